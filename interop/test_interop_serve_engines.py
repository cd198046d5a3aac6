"""Engines at one lake: each reads what Frazil wrote, and Frazil reads what they write.

The server has a token and a catalog on SQLite. Frazil writes the tables beside it, by the catalog.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from interop_clients import (
    ClickHouse,
    Client,
    Daft,
    DuckDBClient,
    EngineError,
    Polars,
    PyIceberg,
    program,
)
from serve_cases import Running, running, sql_catalog

from frazil.serve.rights.access import read_tokens
from frazil.spark.lake import Lake, connect
from frazil.spark.table import Table

TOKEN = "engines-0123456789abcdef"
COLUMNS = ("id", "n", "town", "more", "city")
DDL = "id bigint, n bigint, town string, more string, city string"
PLAIN = [[each, each, f"t{each}", None, None] for each in (1, 3, 4, 5)]
LATER = [[6, 6, "t6", "m", "new"], [8, 2**40, "t8", None, "new"]]
ROWS = [*PLAIN, *LATER]
"""What is left of the tables: a column was renamed, one dropped, one made wider, its name taken
again by a new one, rows are in files of two partition specs, and rows 2 and 7 were deleted."""
TABLES = ("plain", "positions", "keys", "vectors")
READERS: dict[str, type[Any]] = {
    "clickhouse": ClickHouse,
    "daft": Daft,
    "duckdb": DuckDBClient,
    "polars": Polars,
    "pyiceberg": PyIceberg,
}
REFUSED = {
    ("clickhouse", "vectors"): "Position deletes are supported only for parquet",
    ("daft", "vectors"): "Parquet",
    ("daft", "keys"): "quality",
    ("polars", "keys"): "quality",
    ("pyiceberg", "keys"): "quality",
}
"""What an engine says of deletes that it cannot read; all that it does not refuse, it reads."""

CLICKHOUSES_OWN = b'{"ref":"main","type":"assert-ref-snapshot-id"}'
"""ClickHouse leaves the snapshot out where there is none; the specification has null there."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("engines")
    tokens = folder / "tokens.yaml"
    tokens.write_text(f"tokens: [{{name: engines, token: {TOKEN}, write: ['*']}}]")
    with running(sql_catalog(folder / "lake"), tokens=read_tokens(tokens)) as server:
        yield server


@pytest.fixture(scope="module")
def lake(spark: Any, server: Running) -> Lake:
    """The catalog of the server, without the server."""
    made = connect(spark, name="lake", warehouse=server.catalog.properties["warehouse"])
    made.create_namespace("db")
    for kind in TABLES:
        _write(spark, made, kind)
    return made


@pytest.fixture(scope="module")
def clients(server: Running, lake: Lake) -> Iterator[dict[str, Client]]:
    """The engines that have been asked for, started once each."""
    with ExitStack() as stack:
        yield _Started(server, stack)


class _Started(dict[str, Client]):
    """Starts an engine when it is first asked for."""

    def __init__(self, server: Running, stack: ExitStack) -> None:
        super().__init__()
        self._server = server
        self._stack = stack
        self._folder = server.catalog.properties["warehouse"]

    def __missing__(self, name: str) -> Client:
        kind, uri = READERS[name], self._server.uri
        if kind in (ClickHouse, Daft):
            self[name] = self._stack.enter_context(program(kind, uri, TOKEN, self._folder))
        else:
            self[name] = kind(uri, TOKEN)
        return self[name]


def _write(spark: Any, lake: Lake, kind: str) -> None:
    table = lake.create_table(
        f"db.{kind}",
        "id bigint, n int, city string, gone string",
        format_version=3 if kind == "vectors" else 2,
        properties={"write.delete.mode": "merge-on-read"},
    )
    first = [1, 3, 4, 5] if kind == "plain" else [1, 2, 3, 4, 5]
    rows = [(each, each, f"t{each}", "x") for each in first]
    _append(table, rows, "id bigint, n int, city string, gone string")
    with table.update_schema() as change:
        change.rename_column("city", "town")
        change.delete_column("gone")
        change.update_column("n", "bigint")
        change.add_column("more", "string")
    with table.update_schema() as change:
        change.add_column("city", "string")
    if kind == "keys":
        # Keys are deleted before the files of another partition spec come, which they are not for.
        _delete_by_key(spark, table, 2)
        _append(table, LATER, DDL)
        return
    with table.update_spec() as spec:
        spec.add_field("town")
    more = [] if kind == "plain" else [[7, 7, "t6", "m", "new"]]
    _append(table, [*LATER, *more], DDL)
    if kind != "plain":
        table.delete("id IN (2, 7)")


def _append(table: Table, rows: list[Any], ddl: str) -> None:
    frame = table.spark.createDataFrame([tuple(row) for row in rows], ddl)
    table.append(frame.coalesce(1))


def _delete_by_key(spark: Any, table: Table, key: int) -> None:
    gone = spark.createDataFrame(
        [(key, None, None, None, None, "d", 1)], f"{DDL}, op string, seq int"
    )
    table.apply_changes(gone, keys="id", op="op", order_by="seq", mode="equality-deletes")


def rows_of(lake: Lake, name: str, columns: tuple[str, ...] = COLUMNS) -> list[list[Any]]:
    found = lake.load_table(name).to_df().select(*columns).orderBy("id").collect()
    return [list(row) for row in found]


# -- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TABLES)
def test_frazil_itself(lake: Lake, kind: str) -> None:
    assert rows_of(lake, f"db.{kind}") == ROWS


@pytest.mark.parametrize("engine", READERS)
@pytest.mark.parametrize("kind", TABLES)
def test_an_engine_reads(clients: dict[str, Client], engine: str, kind: str) -> None:
    client, table = clients[engine], f"db.{kind}"
    refused = REFUSED.get((engine, kind))
    if refused is not None:
        with pytest.raises(Exception, match=refused):
            client.rows(table, COLUMNS)
        return
    assert client.rows(table, COLUMNS) == ROWS
    assert client.rows(table, COLUMNS, "town = 't6'") == [ROWS[4]]
    assert client.rows(table, COLUMNS, "n > 4") == ROWS[3:]


# -- writing -------------------------------------------------------------------------------------


@pytest.fixture
def target(request: pytest.FixtureRequest, lake: Lake) -> Table:
    """A table of two rows, for one test."""
    name = f"db.w{abs(hash(request.node.name))}"
    table = lake.create_table(name, "id bigint, s string", properties={"format-version": "2"})
    _append(table, [(1, "a"), (2, "b")], "id bigint, s string")
    return table


def _named(table: Table) -> str:
    return ".".join(table.identifier)


def test_clickhouse_writes(clients: dict[str, Client], lake: Lake, target: Table) -> None:
    clickhouse, name = clients["clickhouse"], _named(target)
    assert isinstance(clickhouse, ClickHouse)
    clickhouse.run(f"INSERT INTO lake.`{name}` VALUES (3, 'c'), (4, NULL)")
    assert rows_of(lake, name, ("id", "s")) == [[1, "a"], [2, "b"], [3, "c"], [4, None]]
    clickhouse.run(f"ALTER TABLE lake.`{name}` DELETE WHERE id = 1")
    assert rows_of(lake, name, ("id", "s")) == [[2, "b"], [3, "c"], [4, None]]
    # And Frazil goes on with it.
    table = lake.load_table(name)
    table.update({"s": "'d'"}, where="id = 4")
    table.maintenance.expire_snapshots(older_than="2100-01-01")
    assert clickhouse.rows(name, ("id", "s")) == [[2, "b"], [3, "c"], [4, "d"]]


def test_clickhouse_makes_a_table(clients: dict[str, Client], server: Running, lake: Lake) -> None:
    clickhouse = clients["clickhouse"]
    assert isinstance(clickhouse, ClickHouse)
    place = server.catalog.default_table_location("db.made").removeprefix("file://")
    clickhouse.run(
        "CREATE TABLE lake.`db.made` (id Int64, s Nullable(String)) "
        f"ENGINE = IcebergLocal('{place}')"
    )
    clickhouse.run("INSERT INTO lake.`db.made` VALUES (1, 'a')")
    assert rows_of(lake, "db.made", ("id", "s")) == [[1, "a"]]
    table = lake.load_table("db.made")
    _append(table, [(2, "b")], "id bigint, s string")
    assert clickhouse.rows("db.made", ("id", "s")) == [[1, "a"], [2, "b"]]


def test_daft_writes(clients: dict[str, Client], lake: Lake, target: Table) -> None:
    daft, name = clients["daft"], _named(target)
    assert isinstance(daft, Daft)
    daft.append(name, {"id": [3, 4], "s": ["c", None]})
    assert rows_of(lake, name, ("id", "s")) == [[1, "a"], [2, "b"], [3, "c"], [4, None]]


def test_duckdb_writes(clients: dict[str, Client], lake: Lake, target: Table) -> None:
    duckdb, name = clients["duckdb"], _named(target)
    assert isinstance(duckdb, DuckDBClient)
    duckdb.run(f"INSERT INTO lake.{name} VALUES (3, 'c'), (4, NULL)")
    duckdb.run(f"UPDATE lake.{name} SET s = 'd' WHERE id = 4")
    duckdb.run(f"DELETE FROM lake.{name} WHERE id = 1")
    assert rows_of(lake, name, ("id", "s")) == [[2, "b"], [3, "c"], [4, "d"]]


def test_pyiceberg_writes(clients: dict[str, Client], lake: Lake, target: Table) -> None:
    pyiceberg, name = clients["pyiceberg"], _named(target)
    assert isinstance(pyiceberg, PyIceberg)
    table = pyiceberg.catalog.load_table(name)
    rows = table.scan().to_arrow()
    table.append(rows.set_column(0, rows.schema.field("id"), [[3, 4]]))
    table.delete("id = 1")
    assert rows_of(lake, name, ("id", "s")) == [[2, "b"], [3, "a"], [4, "b"]]


# -- what they send ------------------------------------------------------------------------------


def test_a_wrong_token_reads_nothing(server: Running, lake: Lake) -> None:
    with (
        program(ClickHouse, server.uri, "wrong-0123456789abcdef", ".") as clickhouse,
        pytest.raises(EngineError),
    ):
        clickhouse.rows("db.plain", COLUMNS)


def test_what_is_sent_is_of_the_protocol(server: Running, lake: Lake) -> None:
    assert server.check_exchanges() or not lake
    for each in server.recorder.exchanges:
        if CLICKHOUSES_OWN not in each.body:
            each.check_request()
