"""Java, PyIceberg and Frazil take turns on one table of Nessie."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog as PyIcebergCatalog
from pyiceberg.exceptions import NoSuchViewError as PyIcebergNoSuchViewError
from pyiceberg.schema import Schema as PyIcebergSchema
from pyiceberg.types import LongType, NestedField
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

from frazil.errors import NoSuchViewError, ViewAlreadyExistsError
from frazil.spark.lake import Lake

Rows = list[tuple[Any, ...]]


def rows_of(frame: Any) -> Rows:
    return sorted(tuple(row) for row in frame.collect())


def by_java(spark: Any, name: str) -> Rows:
    spark.sql(f"REFRESH TABLE java.{name}")
    return rows_of(spark.table(f"java.{name}"))


def by_pyiceberg(peer: PyIcebergCatalog, name: str) -> Rows:
    found = peer.load_table(name).scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_three_writers(spark: Any, lake: Lake, peer: PyIcebergCatalog) -> None:
    spark.sql(
        "CREATE TABLE java.db.t (id bigint, s string) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
    )
    spark.sql("INSERT INTO java.db.t VALUES (1, 'j'), (2, 'j'), (3, 'j')")
    table = lake.load_table("db.t")
    assert rows_of(table.to_df()) == [(1, "j"), (2, "j"), (3, "j")]
    table.append(spark.createDataFrame([(4, "f"), (5, "f")], "id bigint, s string"))
    table.delete("id = 1")
    theirs = peer.load_table("db.t")
    theirs.append(pa.table({"id": [6], "s": ["p"]}, schema=theirs.schema().as_arrow()))
    wanted = [(2, "j"), (3, "j"), (4, "f"), (5, "f"), (6, "p")]
    assert by_java(spark, "db.t") == by_pyiceberg(peer, "db.t") == wanted
    assert rows_of(table.refresh().to_df()) == wanted
    spark.sql("ALTER TABLE java.db.t ADD COLUMN n int")
    table.refresh().update({"n": "1", "s": "'u'"}, where="id = 4")
    spark.sql("DELETE FROM java.db.t WHERE id = 2")
    wanted = [(3, "j", None), (4, "u", 1), (5, "f", None), (6, "p", None)]
    assert by_java(spark, "db.t") == by_pyiceberg(peer, "db.t") == wanted
    assert rows_of(table.refresh().to_df()) == wanted


@pytest.mark.parametrize("version", [2, 3])
def test_staged_tables_and_several_at_once(spark: Any, lake: Lake, version: int) -> None:
    name = f"db.made{version}"
    made = lake.create_table_as_select(name, spark.range(3), format_version=version)
    other = lake.create_table(f"{name}_other", "id bigint", format_version=version)
    with lake.transaction() as transaction:
        transaction.table(name).delete("id = 1")
        transaction.table(f"{name}_other").append(spark.range(1, 2))
    assert by_java(spark, name) == rows_of(made.refresh().to_df()) == [(0,), (2,)]
    assert by_java(spark, f"{name}_other") == rows_of(other.refresh().to_df()) == [(1,)]
    lake.rename_table(name, f"{name}_renamed")
    assert by_java(spark, f"{name}_renamed") == [(0,), (2,)]
    lake.drop_table(f"{name}_renamed")
    assert not lake.table_exists(f"{name}_renamed")


@contextmanager
def used(spark: Any, namespace: str) -> Iterator[None]:
    """Names without a namespace are Java's names of this one."""
    spark.sql(f"USE java.{namespace}")
    try:
        yield
    finally:
        spark.sql("USE spark_catalog.default")


def their_view(sql: str) -> tuple[PyIcebergSchema, ViewVersion]:
    """What PyIceberg makes a view of."""
    version = ViewVersion(
        version_id=1,
        schema_id=0,
        timestamp_ms=1_700_000_000_000,
        summary={"engine-name": "pyiceberg"},
        representations=[SQLViewRepresentation(type="sql", sql=sql, dialect="spark")],
        default_namespace=["db"],
    )
    return PyIcebergSchema(NestedField(1, "id", LongType(), required=False)), version


def test_three_at_one_view(spark: Any, lake: Lake, peer: PyIcebergCatalog) -> None:
    spark.sql("CREATE TABLE java.db.viewed USING iceberg AS SELECT id FROM range(6)")
    with used(spark, "db"):
        spark.sql("CREATE VIEW turns (a COMMENT 'the a') AS SELECT id FROM viewed WHERE id > 3")
    assert rows_of(lake.sql("SELECT * FROM db.turns")) == [(4,), (5,)]
    assert peer.list_views("db") == [("db", "turns")]
    lake.sql("CREATE OR REPLACE VIEW db.turns AS SELECT id AS a FROM db.viewed WHERE id < 2")
    assert rows_of(spark.sql("SELECT a FROM java.db.turns")) == [(0,), (1,)]
    with used(spark, "db"):
        spark.sql("CREATE OR REPLACE VIEW turns AS SELECT max(id) AS m FROM viewed")
        spark.sql("ALTER VIEW turns SET TBLPROPERTIES ('k' = 'v')")
    view = lake.load_view("db.turns")
    theirs = peer.load_view("db.turns").metadata
    # Nessie tells the newest version alone.
    assert view.current_version_id == theirs.current_version_id == 3
    assert view.properties["k"] == theirs.properties["k"] == "v"
    assert rows_of(lake.sql("SELECT m FROM db.turns")) == [(5,)]
    with pytest.raises(ViewAlreadyExistsError):
        lake.create_view("db.turns", "SELECT 1 AS a")
    lake.rename_view("db.turns", "db.named")
    assert rows_of(spark.sql("SELECT m FROM java.db.named")) == [(5,)]
    peer.drop_view("db.named")
    with pytest.raises(NoSuchViewError):
        lake.load_view("db.named")


def test_a_view_of_pyiceberg(spark: Any, lake: Lake, peer: PyIcebergCatalog) -> None:
    lake.create_table_as_select("db.seen", spark.range(4))
    peer.create_view("db.theirs", *their_view("SELECT id FROM seen WHERE id > 1"))
    assert rows_of(lake.sql("SELECT * FROM db.theirs")) == [(2,), (3,)]
    assert rows_of(spark.sql("SELECT * FROM java.db.theirs")) == [(2,), (3,)]
    lake.sql("CREATE OR REPLACE VIEW db.theirs AS SELECT id FROM db.seen WHERE id = 0")
    assert rows_of(spark.sql("SELECT * FROM java.db.theirs")) == [(0,)]
    representation = peer.load_view("db.theirs").sql_for("spark")
    assert representation is not None
    assert representation.sql == "SELECT id FROM db.seen WHERE id = 0"
    spark.sql("DROP VIEW java.db.theirs")
    with pytest.raises(PyIcebergNoSuchViewError):
        peer.load_view("db.theirs")
