"""Views: which files are opened through them, the lake's methods, views of other engines."""

import json

import pytest
from pyspark.sql import types as S

from frazil.errors import (
    NoSuchTableError,
    NoSuchViewError,
    SchemaMismatchError,
    UnsupportedError,
    ValidationError,
    ViewAlreadyExistsError,
)
from frazil.format.changes import LAST_ADDED
from frazil.format.schema import Schema
from frazil.format.types import IntegerType, LongType, NestedField, StringType
from frazil.format.views import SqlRepresentation, ViewVersion
from frazil.spark.sql.binding.view_columns import can_up_cast

ID = Schema((NestedField(1, "id", LongType()),))


def version(*sql, namespace=("db",), catalog=None):
    """A version as another engine may make it."""
    representations = tuple(SqlRepresentation(text, dialect) for dialect, text in sql)
    return ViewVersion(1, LAST_ADDED, 1000, {}, representations, namespace, catalog)


def with_views(lake, spark):
    """Four files of ten rows, and views of them."""
    table = lake.create_table("db.t", "id bigint, n string")
    for start in range(0, 40, 10):
        rows = spark.range(start, start + 10).selectExpr("id", "concat('n', id % 7) AS n")
        table.append(rows.coalesce(1))
    lake.create_view("db.v", "SELECT id AS i, upper(n) AS n FROM db.t")
    lake.create_view("db.late", "SELECT i FROM db.v WHERE i >= 20")
    lake.create_view("db.sums", "SELECT n, i % 10 AS k, max(i) AS m FROM db.v GROUP BY n, i % 10")
    return lake


@pytest.fixture(scope="module")
def kept(shared_lake, spark):
    """Views that no test changes."""
    return with_views(shared_lake, spark)


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("SELECT * FROM db.v", 4),
        ("SELECT * FROM db.v WHERE i = 33", 1),
        ("SELECT * FROM db.late", 2),
        ("SELECT * FROM db.late WHERE i < 25", 1),
        ("SELECT a.i FROM db.v a JOIN db.late b ON a.i = b.i WHERE a.i > 30", 1),
        ("WITH c AS (SELECT * FROM db.v) SELECT i FROM c WHERE i IN (3, 13)", 2),
        ("SELECT * FROM db.late UNION ALL SELECT id FROM db.t WHERE id < 5", 3),
    ],
)
def test_conditions_reach_the_tables_in_views(kept, query, files):
    assert len(set(kept.sql(query).inputFiles())) == files


def test_views_beside_other_tables(lake):
    """Each name has the rows of its own table, whatever stands in a view beside it."""
    lake.sql("CREATE TABLE db.a AS SELECT 1 AS id")
    lake.sql("CREATE TABLE db.b AS SELECT 2 AS id")
    lake.create_view("db.v", "SELECT id FROM db.b")
    lake.create_view("db.w", "SELECT v.id * 10 + a.id AS id FROM db.v v, db.a a")
    query = "SELECT a.id, v.id, w.id, x.id, a._pos FROM db.a a, db.v v, db.w w, db.v AS x (id)"
    assert [tuple(row) for row in lake.sql(query).collect()] == [(1, 2, 21, 2, 0)]


@pytest.mark.check
def test_rows_through_views(lake, spark, no_leftovers):
    filled = with_views(lake, spark)
    found = filled.sql("SELECT m FROM db.sums WHERE n = 'N3' AND k = 1 ORDER BY m")
    expected = "SELECT max(id) FROM range(40) WHERE id % 7 = 3 AND id % 10 = 1"
    assert [tuple(row) for row in found.collect()] == [tuple(spark.sql(expected).first())]
    kept = filled.sql("SELECT count(*) FROM db.late")
    filled.sql("DELETE FROM db.t WHERE id = 39")
    filled.sql("CREATE OR REPLACE VIEW db.late AS SELECT 1 AS i")
    assert kept.first()[0] == 20
    assert filled.sql("SELECT count(*) FROM db.late").first()[0] == 1


def test_methods_of_the_lake(lake, no_leftovers):
    made = lake.create_view("db.v", "SELECT 1 AS a, 'x' AS b", properties={"comment": "one"})
    assert lake.load_view("db.v") == made
    assert (made.name, made.sql) == ("db.v", "SELECT 1 AS a, 'x' AS b")
    assert [(f.name, f.field_type) for f in made.schema.fields] == [
        ("a", IntegerType()),
        ("b", StringType()),
    ]
    assert made.properties["comment"] == "one"
    assert lake.view_exists("db.v")
    with pytest.raises(ViewAlreadyExistsError):
        lake.create_view("db.v", "SELECT 2 AS a")
    again = lake.create_or_replace_view("db.v", "SELECT 2 AS a")
    assert [each.sql_for("spark") for each in again.versions] == [made.sql, "SELECT 2 AS a"]
    assert again.current_version_id == 2
    lake.rename_view("db.v", "db.w")
    assert lake.list_views("db") == [("db", "w")]
    lake.drop_view("db.w")
    with pytest.raises(NoSuchViewError):
        lake.load_view("db.w")


def test_a_query_is_kept_as_it_is_written(lake, spark):
    rows = spark.range(3)
    for call in (
        lambda: lake.sql("CREATE VIEW db.v AS SELECT :x AS a", {"x": 1}),
        lambda: lake.sql("CREATE VIEW db.v AS SELECT ? AS a", [1]),
        lambda: lake.sql("CREATE OR REPLACE VIEW db.v AS SELECT * FROM {rows}", rows=rows),
        lambda: lake.sql("ALTER VIEW db.v AS SELECT :x AS a", {"x": 1}),
    ):
        with pytest.raises(ValidationError, match="no parameters"):
            call()
    assert lake.list_views("db") == []


def test_the_sql_of_other_engines(lake):
    """Only SQL of Spark is run, and a replacement does not lose the others'."""
    catalog = lake.catalog
    catalog.create_view("db.theirs", ID, version(("trino", "SELECT 1")))
    with pytest.raises(UnsupportedError, match=r"db\.theirs has SQL for trino only"):
        lake.sql("SELECT * FROM db.theirs")
    both = version(("trino", "SELECT 1"), ("Spark", "SELECT 5 AS x"))
    catalog.create_view("db.both", ID, both)
    assert [tuple(row) for row in lake.sql("SELECT id FROM db.both").collect()] == [(5,)]
    with pytest.raises(ValidationError, match="SQL for trino"):
        lake.sql("CREATE OR REPLACE VIEW db.both AS SELECT 6 AS id")
    lake.sql("ALTER VIEW db.both SET TBLPROPERTIES ('replace.drop-dialect.allowed' = 'true')")
    lake.sql("CREATE OR REPLACE VIEW db.both AS SELECT 6 AS id")
    assert lake.load_view("db.both").sql == "SELECT 6 AS id"


def test_names_of_another_default_catalog(lake, spark):
    """Java's runtime keeps the catalog that was current; names without one are of it."""
    lake.create_table("db.t", "id bigint")
    lake.sql("INSERT INTO db.t VALUES (1)")
    spark.sql("CREATE TABLE spark_view_side USING parquet AS SELECT CAST(9 AS BIGINT) AS id")
    try:
        text = "SELECT a.id + b.id FROM lake.db.t a, spark_view_side b"
        made = version(("spark", text), namespace=("default",), catalog="spark_catalog")
        lake.catalog.create_view("db.v", ID, made)
        assert lake.sql("SELECT id FROM db.v WHERE id > 0").first()[0] == 10
    finally:
        spark.sql("DROP TABLE spark_view_side")
    gone = version(("spark", "SELECT id FROM t"), namespace=("nope",))
    lake.catalog.create_view("db.w", ID, gone)
    with pytest.raises(NoSuchTableError, match=r"nope\.t .*in the view db\.w"):
        lake.sql("SELECT * FROM db.w")


def test_a_view_runs_nothing_but_a_query(lake, spark):
    """Whoever writes to the catalog chooses the text."""
    lake.create_table("db.t", "id bigint")
    for text in (
        "DROP TABLE db.t",
        "SELECT 1) x; DROP TABLE db.t --",
        "WITH a AS (SELECT 1 AS id) INSERT INTO lake.db.t SELECT * FROM a",
        "FROM lake.db.t INSERT INTO lake.db.t SELECT id",
        "",
    ):
        lake.catalog.create_view("db.v", ID, version(("spark", text)))
        with pytest.raises(Exception, match=r"view|query") as raised:
            lake.sql("SELECT * FROM db.v").collect()
        assert type(raised.value).__name__ in ("SqlSyntaxError", "ParseException"), text
        lake.catalog.drop_view("db.v")
    assert lake.load_table("db.t").metadata.current_snapshot_id is None


def test_circles_that_a_rename_makes(lake):
    lake.create_view("db.a", "SELECT 1 AS id")
    lake.create_view("db.b", "SELECT id FROM db.a")
    lake.drop_view("db.a")
    lake.rename_view("db.b", "db.a")
    with pytest.raises(ValidationError, match=r"cannot read itself: db\.a reads db\.a"):
        lake.sql("SELECT * FROM db.a")


def test_columns_by_the_names_that_they_had(lake):
    """A column that goes does not let the next one take its place."""
    lake.sql("CREATE TABLE db.t AS SELECT 1 AS a, 'b' AS b, 3 AS c")
    lake.sql("CREATE VIEW db.v (x, y, z) AS SELECT * FROM db.t")
    lake.sql("ALTER TABLE db.t ALTER COLUMN c FIRST")
    assert tuple(lake.sql("SELECT x, y, z FROM db.v").first()) == (1, "b", 3)
    lake.sql("ALTER TABLE db.t DROP COLUMN b")
    lake.sql("ALTER TABLE db.t ADD COLUMN d STRING")
    with pytest.raises(SchemaMismatchError, match="no column b any more"):
        lake.sql("SELECT x FROM db.v")


@pytest.mark.parametrize("around", ["db.summed", "db.nested"])
def test_a_column_that_is_gone_from_an_expression_is_named(lake, around):
    lake.sql("CREATE TABLE db.t (a INT, b INT)")
    lake.sql("CREATE VIEW db.summed AS SELECT a + b AS c FROM db.t")
    lake.sql("CREATE VIEW db.nested AS SELECT s.c + t.a AS d FROM db.summed s JOIN db.t t ON true")
    lake.sql("ALTER TABLE db.t DROP COLUMN b")
    with pytest.raises(SchemaMismatchError, match=r"the view db\.summed .* no column `b` any more"):
        lake.sql(f"SELECT * FROM {around}")


INT, LONG, TEXT = S.IntegerType(), S.LongType(), S.StringType()


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        (INT, LONG, True),
        (LONG, INT, False),
        (S.ByteType(), INT, True),
        (LONG, S.FloatType(), True),
        (S.DoubleType(), S.FloatType(), False),
        (INT, TEXT, True),
        (TEXT, INT, False),
        (S.NullType(), S.DateType(), True),
        (S.DateType(), S.TimestampType(), True),
        (S.TimestampType(), S.DateType(), False),
        (INT, S.DecimalType(10, 0), True),
        (INT, S.DecimalType(10, 1), False),
        (S.DecimalType(5, 2), S.DecimalType(6, 3), True),
        (S.DecimalType(5, 2), S.DecimalType(6, 1), False),
        (S.DecimalType(5, 2), S.DoubleType(), False),
        (S.ArrayType(INT), S.ArrayType(LONG), True),
        (S.ArrayType(INT), TEXT, False),
        (S.MapType(TEXT, INT), S.MapType(TEXT, LONG), True),
        (S.StructType().add("x", INT), S.StructType().add("x", LONG), True),
        (S.StructType().add("x", INT), S.StructType().add("y", LONG), False),
    ],
)
def test_up_casts(spark, found, wanted, expected):
    """As Spark's own up-cast, which a typed Dataset makes."""
    assert can_up_cast(found, wanted) is expected


def test_described_as_json(lake):
    lake.sql("CREATE TABLE db.j (id BIGINT NOT NULL)")
    lake.sql("CREATE VIEW db.vj (k COMMENT 'a key') COMMENT 'of j' AS SELECT id FROM db.j")
    [row] = lake.sql("DESCRIBE TABLE EXTENDED db.vj AS JSON").collect()
    told = json.loads(row.json_metadata)
    assert (told["table_name"], told["namespace"], told["type"]) == ("vj", ["db"], "VIEW")
    [column] = told["columns"]
    assert (column["name"], column["type"], column["comment"]) == ("k", "long", "a key")
    assert told["view_text"] == "SELECT id FROM db.j"
    assert told["view_query_output_columns"] == ["id"]
    assert told["comment"] == "of j"


def test_views_among_tables_with_what_they_are(lake):
    lake.sql("CREATE TABLE db.t (a INT)")
    lake.sql("CREATE VIEW db.v AS SELECT a + 1 AS b FROM db.t")
    rows = lake.sql("SHOW TABLE EXTENDED IN db LIKE '*'").collect()
    assert [(row.namespace, row.tableName, row.isTemporary) for row in rows] == [
        ("db", "t", False),
        ("db", "v", False),
    ]
    table, view = (row.information.splitlines() for row in rows)
    assert "Type: MANAGED" in table
    assert "Type: VIEW" in view
    assert "View Text: SELECT a + 1 AS b FROM db.t" in view


def test_temporary_views_are_told_before_tables_of_the_current_namespace(lake, spark):
    lake.sql("CREATE TABLE db.t (a INT)")
    lake.sql("USE db")
    spark.range(1).createOrReplaceTempView("t")
    try:
        for text in ("DESCRIBE t", "DESCRIBE TABLE EXTENDED t", "SHOW COLUMNS IN t"):
            assert lake.sql(text).collect()[0][0] == "id"
    finally:
        spark.catalog.dropTempView("t")
