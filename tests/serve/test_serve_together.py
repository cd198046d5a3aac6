"""Several tables in one commit through a server, raced by single commits, with kills of both sides.

Whoever loads one table and then the other finds every commit of both that the first one has in the
second one as well.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest
from catalog_cases import made_table, opened
from serve_cases import free_port, sql_catalog, started
from together_worker import TABLES

from ci_share import only_in_soak
from frazil.catalog.protocol import Catalog
from frazil.storage.paths import local_path
from frazil.table.handle import TableHandle

RETRIES = {"commit.retry.num-retries": "100", "commit.retry.min-wait-ms": "10"}
WORKER = Path(__file__).with_name("together_worker.py")


@dataclass
class Writers:
    """Processes that commit, all of which are killed in the middle or none.

    Attributes:
        process: their parent.
        lines: what they have reported so far.
    """

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reading = threading.Thread(target=self._read, args=(self.process.stdout,))
        self._reading.start()

    def _read(self, stream: IO[str]) -> None:
        self.lines.extend(iter(stream.readline, ""))

    def kill(self) -> None:
        """Kill them at once, wherever each is."""
        os.killpg(self.process.pid, signal.SIGKILL)

    def ended(self) -> int:
        """The status of their end."""
        status = self.process.wait(600)
        self._reading.join(60)
        return status


def writers(uri: str, first: int, count: int, commits: int) -> Writers:
    properties = {"type": "rest", "uri": uri, "rest.client.max-retries": "30"}
    command = [sys.executable, str(WORKER), json.dumps(properties)]
    return Writers(
        subprocess.Popen(
            [*command, str(first), str(count), str(commits)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,
        )
    )


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
        with Reader(uri).reading() as reader:
            lasting = writers(uri, 0, count, commits)
            lines: list[str] = []
            every = 2 * count * commits // (kills + 1)
            for number in range(1, kills + 1):
                doomed = writers(uri, 100 * number, 2, 100)
                while len(lasting.lines) < number * every and lasting.process.poll() is None:
                    time.sleep(0.005)
                time.sleep(random.uniform(0, 0.05))
                doomed.kill()
                server.kill()
                server.wait()
                server, _ = started(tmp_path, *options, port=port)
                doomed.ended()
                lines += doomed.lines
            assert lasting.ended() == 0
            lines += lasting.lines
    finally:
        server.kill()
        server.wait()
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
