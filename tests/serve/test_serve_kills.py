"""Servers and clients killed in the middle, and answers lost at every request.

No commit is lost or made twice, and no file that a table names is gone.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from catalog_cases import made_table, new_metadata, opened
from serve_cases import (
    Running,
    namespace,
    running,
    set_property,
    sql_catalog,
    started,
    table,
)
from serve_worker import append, data_file

from ci_share import only_in_soak
from frazil.catalog.protocol import Catalog
from frazil.catalog.rest.exchange.answers import Answer, LostAnswerError
from frazil.catalog.rest.exchange.transport import Transport
from frazil.storage.paths import local_path
from frazil.table.handle import TableHandle
from programs import Program, free_port

T = "/v1/namespaces/db/tables/t"
RETRIES = {"commit.retry.num-retries": "100", "commit.retry.min-wait-ms": "10"}
KEEPS_ALL = {"write.metadata.previous-versions-max": "10000"}


def client_of(uri: str, **properties: str) -> Catalog:
    return opened({"type": "rest", "uri": uri, "rest.client.max-retries": "30", **properties})


def appended(catalog: Catalog, name: str = "db.t") -> Counter[str]:
    """How often each file is in a table; all manifests and older metadata files are read for it."""
    handle = TableHandle(catalog, catalog.load_table(name))
    for entry in handle.metadata.metadata_log:
        path = local_path(entry.metadata_file)
        assert path is not None
        assert os.path.exists(path), path
    for snapshot in handle.metadata.snapshots:
        path = local_path(snapshot.manifest_list or "")
        assert path is not None
        assert os.path.exists(path), path
    paths = handle.inspect.files()["file_path"].to_list() if handle.metadata.snapshots else []
    return Counter(each.removeprefix("/data/") for each in paths)


# -- servers that are killed ---------------------------------------------------------------------


@pytest.mark.check
@pytest.mark.parametrize(
    ("kind", "writers", "appends", "kills", "options"),
    [
        ("sqlite", 3, 4, 1, ()),
        only_in_soak("sqlite", 8, 25, 10, ()),
        only_in_soak("postgres", 8, 25, 10, ()),
        only_in_soak("postgres", 8, 25, 10, ("--workers", "2")),
    ],
)
def test_a_server_killed_under_many_writers(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    kind: str,
    writers: int,
    appends: int,
    kills: int,
    options: tuple[str, ...],
) -> None:
    port = free_port()
    database = {}
    if kind == "postgres":
        database = {"uri": request.getfixturevalue("postgres_url"), "type": "sql"}
        options = (f"--uri={database['uri']}", *options)
    server, uri = started(tmp_path, *options, port=port)
    try:
        made_table(client_of(uri), **RETRIES, **KEEPS_ALL)
        properties = {"type": "rest", "uri": uri, "rest.client.max-retries": "30"}
        worker = Path(__file__).with_name("serve_worker.py")
        with Program(worker, properties, writers, appends) as working:
            every = writers * appends // (kills + 1)
            for number in range(1, kills + 1):
                working.wait_until(partial(working.has_printed, number * every))
                server.kill()
                server, _ = started(tmp_path, *options, port=port)
            said = working.end().split()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
    finally:
        server.kill()
    acknowledged = {each for each in said if not each.startswith("?")}
    unknown = {each.removeprefix("?") for each in said if each.startswith("?")}
    assert len(acknowledged | unknown) == writers * appends
    catalog = sql_catalog(tmp_path, **database)
    held = appended(catalog)
    assert set(held.values()) == {1}
    assert acknowledged <= set(held) <= acknowledged | unknown
    assert len(catalog.load_table("db.t").metadata.snapshots) == len(held)


# -- requests whose answers are lost -------------------------------------------------------------


class Exchanges:
    """Counts the exchanges of this process, and does something at one of them."""

    def __init__(self, at: int, act: Callable[[], None], *, after: bool) -> None:
        self.count = 0
        real = Transport.exchange

        def exchange(transport: Transport, *args: Any, **kwargs: Any) -> Answer:
            self.count += 1
            is_it = self.count == at
            if is_it and not after:
                act()
            answer = real(transport, *args, **kwargs)
            if is_it:
                act()
            return answer

        self._real, self._counted = real, exchange

    def __enter__(self) -> Exchanges:
        Transport.exchange = self._counted  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        Transport.exchange = self._real  # type: ignore[method-assign]


def history(catalog: Catalog, space: str, report: Callable[[str], None]) -> None:
    """Every kind of change, in an order in which each rests on the one before."""
    steps: dict[str, Callable[[], object]] = {
        "namespace": lambda: catalog.create_namespace(space, {"k": "1"}),
        "properties": lambda: catalog.update_namespace_properties(space, updates={"k": "2"}),
        "create": lambda: catalog.create_table(
            f"{space}.t", new_metadata(catalog, f"{space}.t", **RETRIES, **KEEPS_ALL)
        ),
        "append": lambda: _append(catalog, f"{space}.t", "one"),
        "again": lambda: _append(catalog, f"{space}.t", "two"),
        "rename": lambda: catalog.rename_table(f"{space}.t", f"{space}.r"),
        "last": lambda: _append(catalog, f"{space}.r", "three"),
        "other": lambda: catalog.create_table(f"{space}.o", new_metadata(catalog, f"{space}.o")),
        "drop": lambda: catalog.drop_table(f"{space}.o"),
    }
    for name, step in steps.items():
        step()
        report(name)


def _append(catalog: Catalog, table_name: str, file: str) -> None:
    TableHandle(catalog, catalog.load_table(table_name)).files.fast_append([data_file(file)])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(sql_catalog(tmp_path)) as server:
        yield server


def requests_of_a_history(server: Running) -> int:
    catalog = client_of(server.uri)
    with Exchanges(0, lambda: None, after=True) as counted:
        history(catalog, "whole", lambda _: None)
    return counted.count


@pytest.mark.check
@pytest.mark.parametrize("after", [only_in_soak(False), True])
def test_a_lost_answer_at_every_request(server: Running, after: bool) -> None:
    """With keys nobody sees that an answer was lost."""

    def lose() -> None:
        raise LostAnswerError("the connection broke")

    count = requests_of_a_history(server)
    assert count > 12
    for at in range(1, count + 1):
        catalog = client_of(server.uri)
        with Exchanges(at, lose, after=after):
            history(catalog, f"s{at}", lambda _: None)
        assert appended(catalog, f"s{at}.r") == Counter(("one", "two", "three"))
        metadata = catalog.load_table(f"s{at}.r").metadata
        assert len(metadata.metadata_log) == 3
        assert catalog.list_tables(f"s{at}") == [(f"s{at}", "r")]
        assert catalog.load_namespace_properties(f"s{at}")["k"] == "2"


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
        assert append(catalog, "one") == "one"
        first = workers_of(server)
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        until(lambda: len(set(workers_of(server)) - {first[0]}) == 2)
        until(lambda: answers(uri))
        assert append(catalog, "two") == "two"
        assert appended(catalog) == Counter(("one", "two"))
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
