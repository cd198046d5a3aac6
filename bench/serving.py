"""Loads and commits a second of `frazil serve` on PostgreSQL; no Spark is needed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.postgres_server import postgres_server

from bench.figures import Figure, at_least, line
from frazil.catalog.config import load_catalog
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField

CLIENTS = 8
TABLES = (8, 48)
LOADS, COMMITS = 2000, 500
SECONDS = 10.0
WORKERS = 2
_REQUEST = re.compile(r" INFO (GET|HEAD|POST|DELETE) (\S+) \d+ ")
_FLUSH_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Served:
    """A server that runs.

    Attributes:
        uri: its address.
        log: its file, with a line a request.
    """

    uri: str
    log: Path

    def requests(self) -> int:
        """How many requests it has answered."""
        time.sleep(_FLUSH_SECONDS)
        return len(_REQUEST.findall(self.log.read_text()))


@contextmanager
def frazil_serve(folder: Path, *options: str, uri: str | None = None) -> Iterator[Served]:
    """The command `frazil serve` in a process of its own, on a free port."""
    database = [] if uri is None else [f"--uri={uri}"]
    log = folder / "serve.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "frazil.cli", "--catalog", "lake"),
                *("--warehouse", str(folder), *database, "serve", "--port", "0", *options),
            ],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            assert process.stdout is not None
            yield Served(process.stdout.readline().split()[-1], log)
        finally:
            process.terminate()
            process.wait(60)


def run(folder: Path, *, seconds: float = SECONDS) -> Iterator[Figure]:
    """Loads with ETags and commits, by 8 clients with their tables; nothing without PostgreSQL."""
    try:
        with postgres_server() as postgres:
            for tables in TABLES:
                place = folder / str(tables)
                place.mkdir()
                uri = postgres.new_database(f"bench{tables}")
                with frazil_serve(place, "--workers", str(WORKERS), uri=uri) as served:
                    _make_tables(served.uri, tables)
                    title = f"frazil serve, {WORKERS} workers, {CLIENTS} clients' {tables} tables"
                    loads = _rate(served.uri, "loads", tables, seconds)
                    yield at_least(f"{title}: loads with ETags", loads, LOADS, unit="/s")
                    commits = _rate(served.uri, "commits", tables, seconds)
                    yield at_least(f"{title}: commits", commits, COMMITS, unit="/s")
    except pytest.skip.Exception as without:
        print(f"frazil serve: {without}")


def _make_tables(uri: str, tables: int) -> None:
    catalog = load_catalog("lake", type="rest", uri=uri)
    catalog.create_namespace("bench")
    schema = Schema((NestedField(1, "id", LongType()),))
    for number in range(tables):
        name = f"bench.t{number}"
        location = catalog.default_table_location(name)
        catalog.create_table(name, new_table_metadata(schema, location=location))
    catalog.close()


def _rate(uri: str, kind: str, tables: int, seconds: float) -> float:
    """Answers a second, of clients that began together."""
    client = Path(__file__).with_name("serving_client.py")
    owned = [",".join(f"t{each}" for each in range(n, tables, CLIENTS)) for n in range(CLIENTS)]
    clients = [
        subprocess.Popen(
            [sys.executable, "-S", str(client), uri, names, kind, str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for names in owned
    ]
    for each in clients:
        assert each.stdout is not None
        if each.stdout.readline() != "ready\n":
            raise AssertionError("a client could not begin")
    answers = sum(int(each) for each in _outputs(clients))
    return answers / seconds


def _outputs(clients: Sequence[subprocess.Popen[str]]) -> list[str]:
    for each in clients:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    return [each.communicate()[0] for each in clients]


if __name__ == "__main__":
    given = float(os.environ.get("FRAZIL_BENCH_SECONDS", SECONDS))
    with tempfile.TemporaryDirectory(prefix="frazil-bench-") as place:
        for figure in run(Path(place), seconds=given):
            print(line(figure), flush=True)
