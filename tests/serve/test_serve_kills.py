"""Servers and their processes that are killed in the middle.

No commit is lost or made twice, and no file that a table names is gone.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import catalog_worker
import httpx
import pytest
from catalog_cases import made_table, opened, set_properties
from serve_cases import namespace, set_property, sql_catalog, started, table

from frazil.catalog.protocol import Catalog
from frazil.storage.paths import local_path
from programs import Program, free_port

T = "/v1/namespaces/db/tables/t"
RETRIES = {"commit.retry.num-retries": "100", "commit.retry.min-wait-ms": "10"}
KEEPS_ALL = {"write.metadata.previous-versions-max": "10000"}


def client_of(uri: str, **properties: str) -> Catalog:
    return opened({"type": "rest", "uri": uri, "rest.client.max-retries": "30", **properties})


def kept(catalog: Catalog, name: str = "db.t") -> set[str]:
    """The properties that writers set, each by one commit; no metadata file is gone."""
    metadata = catalog.load_table(name).metadata
    for entry in metadata.metadata_log:
        path = local_path(entry.metadata_file)
        assert path is not None
        assert os.path.exists(path), path
    found = {name for name, value in metadata.properties.items() if value == "done"}
    assert len(metadata.metadata_log) == len(found)
    return found


# -- servers that are killed ---------------------------------------------------------------------


@pytest.mark.check
def test_a_server_killed_under_many_writers(tmp_path: Path) -> None:
    port, writers, commits = free_port(), 3, 4
    server, uri = started(tmp_path, port=port)
    try:
        made_table(client_of(uri), **RETRIES, **KEEPS_ALL)
        properties = {"type": "rest", "uri": uri, "rest.client.max-retries": "30"}
        worker = Path(catalog_worker.__file__)
        with Program(worker, properties, writers, commits) as working:
            working.wait_until(partial(working.has_printed, writers * commits // 2))
            server.kill()
            server, _ = started(tmp_path, port=port)
            said = working.end().split()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
    finally:
        server.kill()
    acknowledged = {each for each in said if not each.startswith("?")}
    unknown = {each.removeprefix("?") for each in said if each.startswith("?")}
    assert len(acknowledged | unknown) == writers * commits
    assert acknowledged <= kept(sql_catalog(tmp_path)) <= acknowledged | unknown


# -- servers that end, and their processes -------------------------------------------------------


def test_a_request_that_was_begun_is_answered_though_the_server_ends(tmp_path: Path) -> None:
    server, uri = started(tmp_path)
    try:
        with httpx.Client(base_url=uri, timeout=60) as client, ThreadPoolExecutor(1) as pool:
            namespace(client, "db")
            table(client, "db", "t")
            database = sqlite3.connect(next(tmp_path.glob("*.db")), isolation_level=None)
            database.execute("BEGIN IMMEDIATE")
            sent = pool.submit(set_property, client, T, "p", "1")
            time.sleep(0.5)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            assert server.process.poll() is None
            assert not sent.done()
            database.execute("ROLLBACK")
            database.close()
            assert sent.result(60).status_code == 200
        assert server.process.wait(60) == 0
    finally:
        server.kill()
    assert sql_catalog(tmp_path).load_table("db.t").metadata.properties["p"] == "1"


def workers_of(server: Program) -> list[int]:
    """The processes that serve, of a server with several."""
    parent = server.process.pid
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    lines = {int(each): Path(f"/proc/{each}/cmdline").read_text() for each in children}
    return [each for each, line in lines.items() if "spawn_main" in line]


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def answers(uri: str) -> bool:
    try:
        return httpx.get(f"{uri}/health", timeout=30).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.check
@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="it reads /proc")
def test_several_processes_of_a_server(tmp_path: Path) -> None:
    server, uri = started(tmp_path, "--workers", "2")
    try:
        until(lambda: answers(uri))
        catalog = client_of(uri)
        made_table(catalog, **RETRIES)
        set_properties(catalog, "db.t", one="done")
        first = workers_of(server)
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        until(lambda: len(set(workers_of(server)) - {first[0]}) == 2)
        until(lambda: answers(uri))
        set_properties(catalog, "db.t", two="done")
        assert kept(catalog) == {"one", "two"}
        left = workers_of(server)
        # Nobody is left behind who would still answer.
        server.process.kill()
        server.process.wait()
        until(lambda: not any(os.path.exists(f"/proc/{each}") for each in left))
        assert not answers(uri)
    finally:
        server.kill()
    server, uri = started(tmp_path, "--workers", "2")
    with server:
        until(lambda: answers(uri))
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
