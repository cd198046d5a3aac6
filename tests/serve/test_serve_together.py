"""Several tables in one commit through a server, raced by single commits, with kills of both sides.

Whoever loads one table and then the other finds every commit of both that the first one has in the
second one as well.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from catalog_cases import made_table, opened
from serve_cases import free_port, sql_catalog, started
from together_worker import TABLES

from ci_share import only_in_soak
from frazil.catalog.protocol import Catalog
from frazil.storage.paths import local_path
from frazil.table.handle import TableHandle
from programs import Program

pytestmark = pytest.mark.check

RETRIES = {"commit.retry.num-retries": "100", "commit.retry.min-wait-ms": "10"}
WORKER = Path(__file__).with_name("together_worker.py")


def writers(uri: str, first: int, count: int, commits: int) -> Program:
    """Processes that commit, all of which are killed in the middle or none."""
    properties = {"type": "rest", "uri": uri, "rest.client.max-retries": "30"}
    return Program(WORKER, properties, first, count, commits)


def files_of(catalog: Catalog, name: tuple[str, ...]) -> set[str]:
    """The commits that a table has, by the manifests of its newest snapshot."""
    handle = TableHandle(catalog, catalog.load_table(name))
    if handle.current_snapshot is None:
        return set()
    paths = handle.inspect.files()["file_path"].to_list()
    assert len(paths) == len(set(paths)), "a commit was made twice"
    return {each.removeprefix("/data/") for each in paths}


def both_of(files: set[str]) -> set[str]:
    """Those that were made in both tables."""
    return {each for each in files if each.startswith("both")}


class Reader:
    """Loads the tables in turn, while others write.

    Attributes:
        wrong: what one table had and the other, loaded later, had not.
        seen: how many different states were seen.
    """

    def __init__(self, uri: str) -> None:
        self.wrong: list[set[str]] = []
        self.seen = 0
        self._ends = threading.Event()
        properties = {"type": "rest", "uri": uri, "rest.client.max-retries": "100"}
        self._catalog = opened(properties)
        self._thread = threading.Thread(target=self._read)
        self._errors: list[BaseException] = []

    def _read(self) -> None:
        try:
            before: set[str] = set()
            while not self._ends.is_set():
                for name in TABLES:
                    now = both_of(files_of(self._catalog, name))
                    if before - now:
                        self.wrong.append(before - now)
                    self.seen += now != before
                    before = now
        except BaseException as error:
            self._errors.append(error)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        self._thread.start()
        try:
            yield self
        finally:
            self._ends.set()
            self._thread.join(120)
        assert self._errors == []


@pytest.mark.parametrize(
    ("kind", "count", "commits", "kills", "options"),
    [
        ("sqlite", 3, 4, 2, ()),
        only_in_soak("postgres", 3, 4, 2, ()),
        only_in_soak("sqlite", 8, 25, 4, ()),
        only_in_soak("postgres", 8, 25, 4, ("--workers", "2")),
    ],
)
def test_no_reader_sees_one_table_without_the_other(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    kind: str,
    count: int,
    commits: int,
    kills: int,
    options: tuple[str, ...],
) -> None:
    database = {}
    if kind == "postgres":
        database = {"uri": request.getfixturevalue("postgres_url"), "type": "sql"}
        options = (f"--uri={database['uri']}", *options)
    port = free_port()
    server, uri = started(tmp_path, *options, port=port)
    try:
        made = opened({"type": "rest", "uri": uri})
        for name in TABLES:
            made_table(made, ".".join(name), **RETRIES)
        with Reader(uri).reading() as reader, writers(uri, 0, count, commits) as lasting:
            lines: list[str] = []
            every = 2 * count * commits // (kills + 1)
            for number in range(1, kills + 1):
                with writers(uri, 100 * number, 2, 100) as doomed:
                    lasting.wait_until(partial(lasting.has_printed, number * every))
                    time.sleep(random.uniform(0, 0.05))
                server.kill()
                server, _ = started(tmp_path, *options, port=port)
                lines += doomed.lines
            lasting.end()
            lines += lasting.lines
    finally:
        server.kill()
    assert reader.wrong == []
    assert reader.seen > kills
    check_the_end(sql_catalog(tmp_path, **database), lines, count, commits)


def check_the_end(catalog: Catalog, lines: list[str], count: int, commits: int) -> None:
    """What was acknowledged is there, in both tables, and so is what is in one of them."""
    held = [files_of(catalog, name) for name in TABLES]
    assert both_of(held[0]) == both_of(held[1])
    told = {each.strip() for each in lines}
    acknowledged = {each for each in told if not each.startswith("?")}
    assert acknowledged <= held[0] | held[1]
    unknown = {each.removeprefix("?") for each in told}
    wanted = {f"both-{writer}-{each}" for writer in range(count) for each in range(commits)}
    assert wanted <= unknown
    for name in TABLES:
        table = catalog.load_table(name).metadata
        lists = [local_path(each.manifest_list or "") for each in table.snapshots]
        assert all(each is not None and os.path.exists(each) for each in lists)
