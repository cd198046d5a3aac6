"""Java, PyIceberg and Frazil take turns on one table of Nessie."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog as PyIcebergCatalog

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
