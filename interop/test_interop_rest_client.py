"""Frazil's REST catalog as the client of the Java library's own handlers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from interop_rest import JavaHandlers, rest_server

from frazil.catalog.protocol import TableCommit
from frazil.errors import (
    CommitFailedError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from frazil.format.changes import AssertTableUUID, SetProperties
from frazil.spark.lake import Lake, connect


@pytest.fixture(scope="module")
def lake(spark: Any, sql_lake: Lake) -> Iterator[Lake]:
    """The tables of `java_sql` through REST."""
    with (
        rest_server(JavaHandlers(spark, sql_lake.catalog.name)) as address,
        connect(spark, uri=address, name="rest") as made,
    ):
        yield made


def java_rows(spark: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.sql(f"SELECT * FROM java_sql.db.{name}").collect())


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_tables_life(spark: Any, lake: Lake, version: int) -> None:
    name = f"rest_{version}"
    table = lake.create_table(
        f"db.{name}", "id bigint, s string", partition_by="s", format_version=version
    )
    assert table.format_version == version
    table.append(spark.createDataFrame([(1, "a"), (2, "b"), (3, "b")], "id bigint, s string"))
    table.delete("id = 2")
    table.update({"s": "'c'"}, where="id = 3")
    with table.update_schema() as change:
        change.add_column("n", "int")
    assert java_rows(spark, name) == [(1, "a", None), (3, "c", None)]
    spark.sql(f"INSERT INTO java_sql.db.{name} VALUES (4, 'd', 5)")
    assert sorted(tuple(row) for row in table.refresh().scan().to_df().collect())[-1] == (4, "d", 5)
    table.create_branch("audit")
    table.maintenance.expire_snapshots(older_than="2100-01-01")
    assert len(table.metadata.snapshots) == 1
    with pytest.raises(TableAlreadyExistsError):
        lake.create_table(f"db.{name}", "id bigint")
    lake.rename_table(f"db.{name}", f"db.{name}_b")
    with pytest.raises(NoSuchTableError):
        lake.load_table(f"db.{name}")
    lake.drop_table(f"db.{name}_b")
    assert not lake.table_exists(f"db.{name}_b")


def test_staged_tables_and_refusals(spark: Any, lake: Lake) -> None:
    rows = spark.range(3).selectExpr("id", "cast(id as string) s")
    made = lake.create_table_as_select("db.rest_staged", rows)
    assert java_rows(spark, "rest_staged") == [(0, "0"), (1, "1"), (2, "2")]
    with pytest.raises(TableAlreadyExistsError):
        lake.create_table_as_select("db.rest_staged", rows)
    change = (SetProperties({"a": "1"}),)
    with pytest.raises(CommitFailedError):
        lake.catalog.commit_table("db.rest_staged", (AssertTableUUID("no"),), change)
    lake.catalog.commit_tables([TableCommit(("db", "rest_staged"), (), change)])
    assert made.refresh().properties["a"] == "1"
    with pytest.raises(UnsupportedError, match="register"):
        lake.catalog.register_table("db.x", made.metadata_location)
