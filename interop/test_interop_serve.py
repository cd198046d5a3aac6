"""`frazil serve` under Java's REST catalog in Spark: each reads what the other wrote."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from interop_engines import DuckDB
from pyiceberg.catalog.rest import RestCatalog

from frazil.catalog.config import load_catalog
from frazil.serve.rights.access import Tokens, read_tokens
from frazil.serve.server import CatalogServer
from frazil.serve.settings import Listening, ServeSettings
from frazil.spark.lake import Lake, connect

TOKEN = "interop-0123456789abcdef"
CATALOG = "served"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[CatalogServer]:
    """The server on a catalog of SQLite, with a token."""
    file = folder / "tokens.yaml"
    file.write_text(f"tokens: [{{name: java, token: {TOKEN}, write: ['*']}}]")
    tokens: Tokens = read_tokens(file)
    catalog = load_catalog("lake", warehouse=str(folder / "lake"))
    server = CatalogServer(catalog, ServeSettings(), listening=Listening(port=0), tokens=tokens)
    thread = threading.Thread(target=server.serve, name="serve", daemon=True)
    thread.start()
    yield server
    server.stop()
    thread.join(40)


@pytest.fixture(scope="module")
def java(spark: Any, server: CatalogServer) -> Any:
    """The session, with the server as a catalog of the Java runtime."""
    settings = {"type": "rest", "uri": server.uri, "token": TOKEN, "warehouse": "lake"}
    spark.conf.set(f"spark.sql.catalog.{CATALOG}", "org.apache.iceberg.spark.SparkCatalog")
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{CATALOG}.{key}", value)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.db")
    return spark


@pytest.fixture(scope="module")
def lake(java: Any, folder: Path) -> Lake:
    """The same catalog by Frazil itself."""
    return connect(java, name="lake", warehouse=str(folder / "lake"))


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.parametrize("version", ["2", "3"])
def test_java_and_frazil_take_turns(
    java: Any, lake: Lake, server: CatalogServer, version: str
) -> None:
    name = f"{CATALOG}.db.turns{version}"
    java.sql(
        f"CREATE TABLE {name} (id bigint, city string) USING iceberg PARTITIONED BY (city) "
        f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    java.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'a'), (3, 'b')")
    java.sql(f"DELETE FROM {name} WHERE id = 1")
    java.sql(f"ALTER TABLE {name} RENAME COLUMN city TO town")
    java.sql(f"ALTER TABLE {name} ADD COLUMN n int")
    table = lake.load_table(f"db.turns{version}")
    assert rows(table.to_df()) == [(2, "a", None), (3, "b", None)]
    table.append(java.createDataFrame([(4, "c", 4)], "id bigint, town string, n int"))
    java.sql(f"REFRESH TABLE {name}")
    wanted = [(2, "a", None), (3, "b", None), (4, "c", 4)]
    assert rows(java.table(name)) == wanted
    if version == "2":
        read = RestCatalog("lake", uri=server.uri, token=TOKEN).load_table(f"db.turns{version}")
        assert sorted(tuple(row.values()) for row in read.scan().to_arrow().to_pylist()) == wanted
    with _duckdb(server) as connection:
        found = connection.execute(f"SELECT id, town, n FROM lake.db.turns{version} ORDER BY id")
        assert found.fetchall() == wanted


def test_java_makes_tables_of_queries_renames_and_drops(java: Any, lake: Lake) -> None:
    """A staged create with its first rows, a replaced table, a rename, a drop with its files."""
    name = f"{CATALOG}.db.made"
    java.sql(f"CREATE TABLE {name} USING iceberg AS SELECT id, id % 2 AS p FROM range(10)")
    assert lake.load_table("db.made").to_df().count() == 10
    java.sql(f"CREATE OR REPLACE TABLE {name} USING iceberg AS SELECT id FROM range(3)")
    assert rows(lake.load_table("db.made").to_df()) == [(0,), (1,), (2,)]
    java.sql(f"ALTER TABLE {name} RENAME TO db.other")
    assert ("db", "other") in lake.catalog.list_tables("db")
    java.sql(f"DROP TABLE {CATALOG}.db.other PURGE")
    assert ("db", "other") not in lake.catalog.list_tables("db")


def test_java_reads_a_plan_of_the_server(java: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Java's client takes the files and their deletes from the server."""
    caplog.set_level(logging.INFO, "frazil.serve")
    name = f"{CATALOG}.db.planned"
    java.sql(
        f"CREATE TABLE {name} (id bigint, city string) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
    )
    for start in (0, 10, 20):
        java.sql(f"INSERT INTO {name} SELECT id, 'x' FROM range({start}, {start + 10})")
    java.sql(f"DELETE FROM {name} WHERE id % 3 = 0")
    key = f"spark.sql.catalog.{CATALOG}_planned"
    for setting in ("uri", "token", "type", "warehouse"):
        value = java.conf.get(f"spark.sql.catalog.{CATALOG}.{setting}")
        java.conf.set(f"{key}.{setting}", value)
    java.conf.set(f"{key}.scan-planning-mode", "server")
    java.conf.set(f"{key}.rest-scan-planning-enabled", "true")
    java.conf.set(key, "org.apache.iceberg.spark.SparkCatalog")
    frame = java.table(f"{CATALOG}_planned.db.planned").where("id > 12")
    assert rows(frame.select("id")) == [(each,) for each in range(13, 30) if each % 3]
    assert "/tables/planned/plan 200" in caplog.text


def test_java_and_frazil_take_turns_at_views(java: Any, lake: Lake, server: CatalogServer) -> None:
    java.sql(f"CREATE TABLE {CATALOG}.db.viewed USING iceberg AS SELECT id FROM range(6)")
    java.sql(f"USE {CATALOG}.db")
    try:
        java.sql(
            "CREATE VIEW theirs (a COMMENT 'the a') COMMENT 'about' TBLPROPERTIES ('k' = 'w') "
            "AS SELECT id FROM viewed WHERE id > 3"
        )
        assert rows(lake.sql("SELECT * FROM db.theirs")) == [(4,), (5,)]
        java.sql("CREATE OR REPLACE VIEW theirs AS SELECT id AS a FROM viewed WHERE id > 4")
        java.sql("ALTER VIEW theirs SET TBLPROPERTIES ('x' = '1')")
    finally:
        java.sql("USE spark_catalog.default")
    view = lake.load_view("db.theirs")
    assert [each.version_id for each in view.versions] == [1, 2]
    assert view.properties["x"] == "1"
    assert rows(lake.sql("SELECT * FROM db.theirs")) == [(5,)]
    with connect(java, name=CATALOG, uri=server.uri, token=TOKEN) as client:
        assert rows(client.sql(f"SELECT * FROM {CATALOG}.db.theirs")) == [(5,)]
        client.sql("CREATE OR REPLACE VIEW db.theirs AS SELECT id AS a FROM db.viewed WHERE id < 1")
        client.sql("CREATE VIEW db.ours AS SELECT max(id) AS m FROM db.viewed")
    assert rows(java.sql(f"SELECT * FROM {CATALOG}.db.theirs")) == [(0,)]
    assert rows(java.sql(f"SELECT m FROM {CATALOG}.db.ours")) == [(5,)]
    java.sql(f"ALTER VIEW {CATALOG}.db.ours RENAME TO {CATALOG}.db.named")
    listed = java.sql(f"SHOW VIEWS IN {CATALOG}.db").collect()
    named = [each["viewName"] for each in listed if not each["isTemporary"]]
    assert sorted(named) == ["named", "theirs"]
    assert lake.list_views("db") == [("db", "named"), ("db", "theirs")]
    with pytest.raises(Exception, match="already exists"):
        java.sql(f"CREATE TABLE {CATALOG}.db.named (id bigint) USING iceberg")
    with pytest.raises(Exception, match="already exists"):
        java.sql(f"CREATE VIEW {CATALOG}.db.viewed AS SELECT 1 AS a")
    java.sql(f"DROP VIEW {CATALOG}.db.named")
    assert not lake.view_exists("db.named")
    java.sql(f"DROP VIEW {CATALOG}.db.theirs")
    assert lake.list_views("db") == []


def _duckdb(server: CatalogServer) -> Any:
    connection = DuckDB.started().connection
    connection.execute(f"CREATE OR REPLACE SECRET served (TYPE iceberg, TOKEN '{TOKEN}')")
    connection.execute(
        f"ATTACH 'lake' AS lake (TYPE iceberg, ENDPOINT '{server.uri}', SECRET served)"
    )
    return connection
