"""PyIceberg and DuckDB as clients, many of them at once, and servers that end in the middle."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import duckdb_extension_avro
import duckdb_extension_httpfs
import duckdb_extension_iceberg
import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.expressions import GreaterThan
from pyiceberg.types import LongType, StringType
from serve_cases import Running, namespace, running, set_property, sql_catalog, table

from frazil.catalog.protocol import Catalog

CLIENTS, COMMITS = 8, 25
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "city": ["a", "b", "c"]})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(sql_catalog(tmp_path)) as server:
        yield server
        server.check_exchanges()


def pyiceberg(server: Running) -> RestCatalog:
    """PyIceberg's client."""
    return RestCatalog("lake", uri=server.uri)


def test_pyiceberg_writes_and_reads(server: Running) -> None:
    catalog = pyiceberg(server)
    catalog.create_namespace("db", {"owner": "me"})
    made = catalog.create_table("db.t", ROWS.schema)
    made.append(ROWS)
    with made.update_schema() as update:
        update.rename_column("city", "town").add_column("n", LongType())
    later = pa.table(
        {"id": pa.array([4], pa.int64()), "town": ["d"], "n": pa.array([9], pa.int64())}
    )
    made.append(later)
    made.delete("id = 2")
    with made.update_spec() as spec:
        spec.add_identity("town")
    made.append(later.set_column(0, "id", pa.array([5], pa.int64())))
    fresh = pyiceberg(server).load_table("db.t")
    read = fresh.scan(row_filter=GreaterThan("id", 1)).to_arrow().sort_by("id").to_pydict()
    assert read == {"id": [3, 4, 5], "town": ["c", "d", "d"], "n": [None, 9, 9]}
    # Frazil's own catalog has what the client wrote, and the other way round.
    mine = server.catalog.load_table("db.t")
    assert mine.metadata.current_snapshot_id == fresh.metadata.current_snapshot_id
    server.catalog.rename_table("db.t", "db.u")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("db.t")
    assert catalog.list_tables("db") == [("db", "u")]
    assert catalog.load_table("db.u").scan().to_arrow().num_rows == 4
    catalog.rename_table("db.u", "db.v")
    with catalog.create_table_transaction("db.staged", ROWS.schema) as transaction:
        transaction.append(ROWS)
    assert catalog.load_table("db.staged").scan().to_arrow().num_rows == 3
    catalog.purge_table("db.v")
    catalog.drop_table("db.staged")
    catalog.update_namespace_properties("db", removals={"owner"}, updates={"k": "v"})
    assert catalog.load_namespace_properties("db") == {"k": "v"}
    catalog.drop_namespace("db")


def test_duckdb_reads_and_writes(server: Running) -> None:
    catalog = pyiceberg(server)
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", ROWS.schema, properties={"format-version": "2"})
    made.append(ROWS)
    with made.update_schema() as update:
        update.rename_column("city", "town").add_column("more", StringType())
    with duckdb_of(server) as connection:
        read = "SELECT id, town, more FROM lake.db.t ORDER BY id"
        assert connection.execute(read).fetchall() == [
            (1, "a", None),
            (2, "b", None),
            (3, "c", None),
        ]
        connection.execute("INSERT INTO lake.db.t VALUES (4, 'd', 'x')")
        connection.execute("DELETE FROM lake.db.t WHERE id = 1")
        assert connection.execute(read).fetchall() == [
            (2, "b", None),
            (3, "c", None),
            (4, "d", "x"),
        ]
    assert pyiceberg(server).load_table("db.t").scan().to_arrow().num_rows == 3


def test_duckdb_makes_tables(server: Running, tmp_path: Path) -> None:
    """Its commit of a table that was staged says last which schema is current."""
    for name in ("queried", "begun"):
        # DuckDB makes no folders on a local disk; an object store has none.
        for folder in ("data", "metadata"):
            (tmp_path / "db" / name / folder).mkdir(parents=True)
    with server.client() as plain:
        namespace(plain, "db")
    columns, made = "(id BIGINT, s VARCHAR)", "'a' AS s FROM range(2) r(id)"
    with duckdb_of(server) as connection:
        for statement in (
            f"CREATE TABLE lake.db.plain {columns}",
            f"CREATE TABLE lake.db.parted {columns} PARTITIONED BY (s)",
            f"CREATE TABLE lake.db.queried AS SELECT id, {made}",
            f"BEGIN; CREATE TABLE lake.db.begun {columns}; "
            f"INSERT INTO lake.db.begun SELECT id, {made}; COMMIT",
            f"BEGIN; CREATE TABLE lake.db.gone {columns}; ROLLBACK",
            "INSERT INTO lake.db.plain VALUES (7, 'x')",
            "INSERT INTO lake.db.parted VALUES (8, 'y'), (9, NULL)",
        ):
            connection.execute(statement)
    found = {
        name: load.scan().to_arrow().sort_by("id").to_pydict()
        for name in ("plain", "parted", "queried", "begun")
        for load in [pyiceberg(server).load_table(f"db.{name}")]
    }
    two = {"id": [0, 1], "s": ["a", "a"]}
    assert found == {
        "plain": {"id": [7], "s": ["x"]},
        "parted": {"id": [8, 9], "s": ["y", None]},
        "queried": two,
        "begun": two,
    }
    assert not server.catalog.table_exists("db.gone")
    [field] = server.catalog.load_table("db.parted").metadata.spec.fields
    # The name is DuckDB's choice.
    assert (field.source_ids, str(field.transform)) == ((2,), "identity")


def duckdb_of(server: Running) -> duckdb.DuckDBPyConnection:
    """DuckDB with the server as the database `lake`."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    modules = {
        "avro": duckdb_extension_avro,
        "httpfs": duckdb_extension_httpfs,
        "iceberg": duckdb_extension_iceberg,
    }
    for name, module in modules.items():
        folder = Path(next(iter(module.__path__))) / "extensions" / f"v{duckdb.__version__}"
        connection.execute(f"LOAD '{folder / name}.duckdb_extension'")
    connection.execute(
        f"ATTACH 'lake' AS lake (TYPE iceberg, ENDPOINT '{server.uri}', AUTHORIZATION_TYPE 'none')"
    )
    return connection


@pytest.mark.check
def test_many_clients_commit_to_one_table(tmp_path: Path, postgres_url: str) -> None:
    """Two servers on one database: every commit counts once, whoever was first."""

    def opened() -> Catalog:
        return sql_catalog(tmp_path, uri=postgres_url, type="sql")

    with running(opened()) as first, running(opened()) as second:
        with first.client() as client:
            namespace(client, "a")
            uuid = table(client, "a", "t").json()["metadata"]["table-uuid"]
        holds = [{"type": "assert-table-uuid", "uuid": uuid}]

        def commits(number: int) -> list[int]:
            server = (first, second)[number % 2]
            with server.client() as client:
                url = "/v1/namespaces/a/tables/t"
                return [
                    set_property(client, url, f"k{number}.{i}", "v", requirements=holds).status_code
                    for i in range(COMMITS)
                ]

        with ThreadPoolExecutor(CLIENTS) as pool:
            statuses = [each for one in pool.map(commits, range(CLIENTS)) for each in one]
        properties = first.catalog.load_table("a.t").metadata.properties
        kept = [name for name in properties if name.startswith("k")]
        assert set(statuses) <= {200, 409}
        assert len(kept) == statuses.count(200)
        # What is refused has lost as many races in a row as the server tries.
        assert statuses.count(200) >= CLIENTS * COMMITS * 0.9
        first.check_exchanges()


# -- many at once --------------------------------------------------------------------------------


# -- servers and clients that end in the middle --------------------------------------------------


def test_a_client_that_is_gone_before_its_answer(server: Running) -> None:
    with server.client() as client:
        namespace(client, "a")
        table(client, "a", "t")
    body = b'{"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": "v"}}]}'
    head = (
        "POST /v1/namespaces/a/tables/t HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    address = ("127.0.0.1", httpx.URL(server.uri).port)
    # Half of a body changes nothing; a whole one is carried out though nobody waits.
    with socket.create_connection(address) as connection:
        connection.sendall(head + body[:-10])
    time.sleep(0.3)
    assert "k" not in server.catalog.load_table("a.t").metadata.properties
    with socket.create_connection(address) as connection:
        connection.sendall(head + body)
    deadline = time.monotonic() + 20
    while "k" not in server.catalog.load_table("a.t").metadata.properties:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    answered = [each for each in server.recorder.exchanges if each.status]
    server.recorder.exchanges[:] = answered
