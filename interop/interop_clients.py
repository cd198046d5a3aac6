"""Clients of `frazil serve` that read and write through REST, each with rows as plain values."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import polars
import pytest
from interop_engines import DuckDB
from interop_nessie import ENGINES
from pyiceberg.catalog.rest import RestCatalog

Rows = list[list[Any]]
_PROGRAM: Final = Path(__file__).parent / "engine_program.py"


class EngineError(Exception):
    """What an engine says when it does not do what it is asked for."""


class Client(Protocol):
    """An engine that reads tables of the server."""

    def rows(self, table: str, columns: Sequence[str], where: str | None = None) -> Rows:
        """The rows of a table by their id, those for which the condition holds."""
        ...


def _query(table: str, columns: Sequence[str], where: str | None) -> str:
    condition = "" if where is None else f" WHERE {where}"
    return f"SELECT {', '.join(columns)} FROM {table}{condition} ORDER BY id"


class Program:
    """An engine in a process of its own, whose packages are not those of Spark."""

    def __init__(self, kind: str, process: subprocess.Popen[str]) -> None:
        self.kind = kind
        self._process = process

    def ask(self, **question: Any) -> Rows:
        """The rows of an answer.

        Raises:
            EngineError: if the engine answers with an error, or is gone.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise EngineError(f"{self.kind} ended with {self._process.wait(10)}")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(answer["error"])
        rows: Rows = answer["rows"]
        return rows


class ClickHouse(Program):
    """ClickHouse by chdb; a table is called by its namespace and name together."""

    def rows(self, table: str, columns: Sequence[str], where: str | None = None) -> Rows:
        """The rows of a table."""
        found = self.ask(sql=_query(f"lake.`{table}`", columns, where))
        # Of JSON it writes whole numbers of 64 bits as texts.
        return [[_number(value) for value in row] for row in found]

    def run(self, text: str) -> None:
        """Run a statement."""
        self.ask(sql=text)


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdigit() else value


class Daft(Program):
    """Daft, with PyIceberg as its client of the protocol."""

    def rows(self, table: str, columns: Sequence[str], where: str | None = None) -> Rows:
        """The rows of a table."""
        condition = {} if where is None else {"where": where}
        return self.ask(table=table, columns=list(columns), **condition)

    def append(self, table: str, columns: dict[str, list[Any]]) -> None:
        """Append rows."""
        self.ask(table=table, append=columns)


@contextmanager
def program(
    kind: type[ClickHouse] | type[Daft], uri: str, token: str, folder: str
) -> Iterator[Any]:
    """Start an engine as a client of a server; skips the test where its package is not there.

    ClickHouse reads and writes local files below the folder that it was started in.
    """
    python = ENGINES / "bin" / "python"
    if not (ENGINES / ".ready").is_file():
        pytest.skip("the engine is not there: `make engines` gets it, and says why if it cannot")
    name = kind.__name__.lower()
    process = subprocess.Popen(
        [str(python), str(_PROGRAM), name, uri],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        env={**os.environ, "ENGINE_TOKEN": token, "PYTHONPATH": "", "DAFT_PROGRESS_BAR": "0"},
    )
    try:
        yield kind(name, process)
    finally:
        process.kill()
        process.wait()


class DuckDBClient:
    """DuckDB, with the server attached as `lake`."""

    def __init__(self, uri: str, token: str) -> None:
        self.connection = DuckDB.started().connection
        self.connection.execute(f"CREATE OR REPLACE SECRET served (TYPE iceberg, TOKEN '{token}')")
        self.connection.execute(
            f"ATTACH 'lake' AS lake (TYPE iceberg, ENDPOINT '{uri}', SECRET served)"
        )

    def rows(self, table: str, columns: Sequence[str], where: str | None = None) -> Rows:
        """The rows of a table."""
        found = self.connection.execute(_query(f"lake.{table}", columns, where)).fetchall()
        return [list(row) for row in found]

    def run(self, text: str) -> None:
        """Run a statement."""
        self.connection.execute(text)


class PyIceberg:
    """PyIceberg itself."""

    def __init__(self, uri: str, token: str) -> None:
        self.catalog = RestCatalog("lake", uri=uri, token=token)

    def rows(self, table: str, columns: Sequence[str], where: str | None = None) -> Rows:
        """The rows of a table."""
        scan = self.catalog.load_table(table).scan(row_filter=where or "true")
        found = scan.to_arrow().select(list(columns)).sort_by("id").to_pylist()
        return [list(row.values()) for row in found]


class Polars:
    """Polars' own reader, with PyIceberg as its client of the protocol."""

    def __init__(self, uri: str, token: str) -> None:
        self.catalog = RestCatalog("lake", uri=uri, token=token)

    def rows(self, table: str, columns: Sequence[str], where: str | None = None) -> Rows:
        """The rows of a table."""
        frame = polars.scan_iceberg(self.catalog.load_table(table), reader_override="native")
        if where is not None:
            frame = frame.filter(polars.sql_expr(where))
        return [list(row) for row in frame.select(columns).sort("id").collect().rows()]
