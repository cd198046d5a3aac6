"""Views in the SQL catalog: the Java runtime and Frazil make, change and read the same ones."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.errors import NoSuchTableError
from frazil.spark.lake import Lake


@pytest.fixture
def shared(spark: Any, sql_lake: Lake) -> Lake:
    """A lake with the table `db.viewed`, which both know."""
    if not sql_lake.table_exists("db.viewed"):
        spark.sql(
            "CREATE TABLE java_sql.db.viewed (id INT, s STRING, d DECIMAL(9, 2)) USING iceberg"
        )
        spark.sql("INSERT INTO java_sql.db.viewed VALUES (1, 'a', 1), (2, 'b', 2), (3, NULL, 3)")
    return sql_lake


def both(spark: Any, lake: Lake, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query for Frazil, which are those for the Java runtime."""
    ours = sorted((tuple(row) for row in lake.sql(query).collect()), key=repr)
    theirs = sorted((tuple(row) for row in spark.sql(query).collect()), key=repr)
    assert ours == theirs
    return ours


def test_java_reads_frazils_views(spark: Any, shared: Lake) -> None:
    shared.sql(
        "CREATE OR REPLACE VIEW java_sql.db.ours (a COMMENT 'the a', `b c`) COMMENT 'about' "
        "TBLPROPERTIES ('k' = 'w') AS SELECT id, s FROM db.viewed WHERE id > 1 -- the end"
    )
    assert both(spark, shared, "SELECT * FROM java_sql.db.ours") == [(2, "b"), (3, None)]
    shared.sql("CREATE OR REPLACE VIEW java_sql.db.over AS SELECT a + 1 AS n FROM java_sql.db.ours")
    assert both(spark, shared, "SELECT n FROM java_sql.db.over WHERE n > 3") == [(4,)]
    for statement in (
        "DESCRIBE java_sql.db.ours",
        "SHOW CREATE TABLE java_sql.db.over",
        "SHOW VIEWS IN java_sql.db LIKE 'ours'",
        "SHOW TBLPROPERTIES java_sql.db.ours",
        "SHOW TABLES IN java_sql.db LIKE 'o*'",
    ):
        both(spark, shared, statement)


def test_frazil_reads_javas_views(spark: Any, shared: Lake) -> None:
    spark.sql("USE java_sql.db")
    try:
        spark.sql(
            "CREATE VIEW theirs (a COMMENT 'the a', b) COMMENT 'about' TBLPROPERTIES ('k' = 'w') "
            "AS WITH viewed AS (SELECT id, s FROM viewed) SELECT * FROM viewed WHERE id < 3"
        )
        spark.sql("CREATE VIEW over_theirs AS SELECT max(a) AS m FROM theirs")
    finally:
        spark.sql("USE spark_catalog.default")
    assert both(spark, shared, "SELECT * FROM java_sql.db.theirs") == [(1, "a"), (2, "b")]
    assert both(spark, shared, "SELECT * FROM java_sql.db.over_theirs") == [(2,)]
    both(spark, shared, "DESCRIBE java_sql.db.theirs")
    # Made where the session's own catalog is the current one.
    spark.sql("CREATE VIEW java_sql.db.away AS SELECT count(*) AS n FROM java_sql.db.viewed")
    assert both(spark, shared, "SELECT n FROM java_sql.db.away") == [(3,)]
    assert ("db", "theirs") in shared.list_views("db")
    with pytest.raises(NoSuchTableError, match="is a view"):
        shared.load_table("db.theirs")


def test_changes_in_turns(spark: Any, shared: Lake) -> None:
    """Versions, properties and names: each goes on from what the other left."""
    shared.sql("CREATE VIEW java_sql.db.turns AS SELECT 1 AS a")
    spark.sql("CREATE OR REPLACE VIEW java_sql.db.turns AS SELECT 2 AS a, 'x' AS b")
    shared.sql("ALTER VIEW java_sql.db.turns SET TBLPROPERTIES ('ours' = '1')")
    spark.sql("ALTER VIEW java_sql.db.turns SET TBLPROPERTIES ('theirs' = '2')")
    shared.sql("CREATE OR REPLACE VIEW java_sql.db.turns AS SELECT 3 AS a")
    spark.sql("ALTER VIEW java_sql.db.turns UNSET TBLPROPERTIES ('ours')")
    view = shared.load_view("db.turns")
    assert [each.version_id for each in view.versions] == [1, 2, 3]
    assert [each.sql_for("spark") for each in view.versions] == [
        "SELECT 1 AS a",
        "SELECT 2 AS a, 'x' AS b",
        "SELECT 3 AS a",
    ]
    assert view.properties["theirs"] == "2"
    assert "ours" not in view.properties
    assert both(spark, shared, "SELECT * FROM java_sql.db.turns") == [(3,)]
    spark.sql("ALTER VIEW java_sql.db.turns RENAME TO java_sql.db.turned")
    assert shared.view_exists("db.turned")
    shared.sql("ALTER VIEW java_sql.db.turned RENAME TO db.again")
    assert both(spark, shared, "SELECT a FROM java_sql.db.again") == [(3,)]
    spark.sql("DROP VIEW java_sql.db.again")
    assert not shared.view_exists("db.again")
