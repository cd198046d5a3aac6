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
    NoSuchViewError,
    TableAlreadyExistsError,
    UnsupportedError,
    ViewAlreadyExistsError,
)
from frazil.format.changes import AssertTableUUID, SetProperties
from frazil.format.views import AssertViewUUID
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
    with pytest.raises(UnsupportedError, match="unregister"):
        lake.catalog.unregister_table("db.rest_staged")


def test_a_views_life(spark: Any, lake: Lake) -> None:
    """Java's handlers carry out what Frazil asks for, and each goes on from the other's version."""
    lake.create_table_as_select("db.rest_viewed", spark.range(5))
    lake.sql("CREATE VIEW db.rest_view COMMENT 'one' AS SELECT id FROM db.rest_viewed WHERE id > 2")
    assert java_rows(spark, "rest_view") == [(3,), (4,)]
    spark.sql("USE java_sql.db")
    try:
        spark.sql("CREATE OR REPLACE VIEW rest_view AS SELECT id + 1 AS n FROM rest_viewed")
    finally:
        spark.sql("USE spark_catalog.default")
    assert sorted(lake.sql("SELECT n FROM db.rest_view WHERE n > 4").collect()) == [(5,)]
    lake.sql("CREATE OR REPLACE VIEW db.rest_view AS SELECT max(id) AS m FROM db.rest_viewed")
    lake.sql("ALTER VIEW db.rest_view SET TBLPROPERTIES ('k' = 'v')")
    assert java_rows(spark, "rest_view") == [(4,)]
    view = lake.load_view("db.rest_view")
    assert [each.version_id for each in view.versions] == [1, 2, 3]
    assert view.properties["k"] == "v"
    with pytest.raises(CommitFailedError):
        lake.catalog.commit_view("db.rest_view", (AssertViewUUID("no"),), (SetProperties({}),))
    for taken in ("db.rest_view", "db.rest_viewed"):
        with pytest.raises(ViewAlreadyExistsError):
            lake.create_view(taken, "SELECT 1 AS a")
    lake.rename_view("db.rest_view", "db.rest_named")
    assert lake.list_views("db").count(("db", "rest_named")) == 1
    assert not lake.view_exists("db.rest_view")
    lake.drop_view("db.rest_named")
    with pytest.raises(NoSuchViewError):
        lake.drop_view("db.rest_named")
    with pytest.raises(UnsupportedError, match="register-view"):
        lake.catalog.register_view("db.x", "file:/x")
