"""Hidden columns of `spark.table`, beside the same columns as those of a plain DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyspark
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ci_share import in_circles


class Row(NamedTuple):
    """A row of the table with its hidden columns, as a query of SQL tells them."""

    id: int
    n: str
    pos: int
    file: str


@dataclass(frozen=True)
class Case:
    """What is made of the table, and what Python makes of its rows.

    Attributes:
        name: of the case.
        make: takes the table's DataFrame.
        model: takes the rows.
        is_for_newer: Spark before 4.2 looks through no alias but of a table.
    """

    name: str
    make: Callable[[DataFrame], DataFrame]
    model: Callable[[list[Row]], list[Any]]
    is_for_newer: bool = False


@pytest.fixture
def table(lake, spark):
    """A table of two files, of three rows and of two."""
    spark.sql("CREATE TABLE lake.db.places (id BIGINT, n STRING)")
    for values in ("(1, 'a'), (2, 'b'), (3, 'c')", "(4, 'd'), (5, 'e')"):
        spark.sql(f"INSERT INTO lake.db.places SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")
    return "lake.db.places"


def model_of(spark, table):
    """The rows with hidden columns."""
    query = f"SELECT id, n, _pos, _file FROM {table}"
    found = [Row(*row) for row in spark.sql(query).collect()]
    assert sorted((row.id, row.pos) for row in found) == [(1, 0), (2, 1), (3, 2), (4, 0), (5, 1)]
    assert len({row.file for row in found}) == 2
    return found


def shown(row):
    """The columns that a star means."""
    return (row.id, row.n)


def pairs(matches):
    """Ids of pairs of rows that match."""
    return lambda rows: [(x.id, y.id) for x in rows for y in rows if matches(x, y)]


def joined(a, condition):
    """Ids of the pairs of a DataFrame joined with itself."""
    return a.alias("x").join(a.alias("y"), F.expr(condition)).select("x.id", "y.id")


def last(a):
    """Rows that are not the first of their file, by a hidden column."""
    return a.filter("_pos > 0")


ONE_TABLE = [
    Case(
        "a select",
        lambda a: a.select("id", "_pos", "_file"),
        lambda r: [(x.id, x.pos, x.file) for x in r],
    ),
    Case(
        "a filter has no more columns",
        lambda a: a.filter("_pos > 0"),
        lambda r: [shown(x) for x in r if x.pos],
    ),
    Case("a star", lambda a: a.select("*", "_pos"), lambda r: [(*shown(x), x.pos) for x in r]),
    Case("an alias", lambda a: a.alias("x").select("x._file"), lambda r: [(x.file,) for x in r]),
    Case(
        "two aliases",
        lambda a: a.alias("x").alias("y").select("y._pos"),
        lambda r: [(x.pos,) for x in r],
    ),
    Case(
        "in brackets", lambda a: a.select(a["_pos"], a["id"]), lambda r: [(x.pos, x.id) for x in r]
    ),
    Case(
        "a new column",
        lambda a: a.withColumn("f", F.col("_file")),
        lambda r: [(*shown(x), x.file) for x in r],
    ),
    Case(
        "after another one",
        lambda a: last(a).filter("_pos < 2").select("id", "_file"),
        lambda r: [(x.id, x.file) for x in r if x.pos == 1],
    ),
    Case("groups", lambda a: a.groupBy("_pos").count(), lambda r: [(0, 2), (1, 2), (2, 1)]),
    Case("an aggregate", lambda a: a.agg(F.sum("_pos")), lambda r: [(sum(x.pos for x in r),)]),
    Case(
        "an order", lambda a: a.sort(F.desc("_pos"), "id").limit(2), lambda r: [(3, "c"), (2, "b")]
    ),
    Case(
        "a window",
        lambda a: a.select(
            "id", F.row_number().over(Window.partitionBy("_file").orderBy(F.desc("_pos")))
        ),
        lambda r: [(1, 3), (2, 2), (3, 1), (4, 2), (5, 1)],
    ),
    Case("other letters", lambda a: a.selectExpr("_POS"), lambda r: [(x.pos,) for x in r]),
    Case("places of rows", lambda a: a.repartition(2, "_file"), lambda r: [shown(x) for x in r]),
]

WITH_ITSELF = [
    Case("equal", lambda a: joined(a, "x._pos = y._pos"), pairs(lambda x, y: x.pos == y.pos)),
    Case(
        "the right one alone",
        lambda a: joined(a, "y._pos = x.id"),
        pairs(lambda x, y: y.pos == x.id),
    ),
    Case(
        "the left one alone",
        lambda a: joined(a, "x._pos = y.id"),
        pairs(lambda x, y: x.pos == y.id),
    ),
    Case(
        "filtered sides",
        lambda a: joined(last(a), "x.id > y.id"),
        pairs(lambda x, y: x.pos and y.pos and x.id > y.id),
    ),
    Case(
        "filtered sides by place",
        lambda a: joined(last(a), "x._pos = y._pos + 1"),
        pairs(lambda x, y: x.pos and y.pos and x.pos == y.pos + 1),
        is_for_newer=True,
    ),
    Case(
        "one side filtered",
        lambda a: a.join(last(a), "id").select("id"),
        lambda r: [(x.id,) for x in r if x.pos],
    ),
    Case(
        "a column of one side",
        lambda a: a.join(a.filter("id > 1").select("id", F.col("_pos").alias("p")), "id").select(
            "id", "p"
        ),
        lambda r: [(x.id, x.pos) for x in r if x.id > 1],
    ),
    Case(
        "semi",
        lambda a: (
            a.alias("x").join(a.alias("y"), F.expr("y._pos = x.id"), "semi").select("id", "_pos")
        ),
        lambda r: [(x.id, x.pos) for x in r if any(y.pos == x.id for y in r)],
    ),
    Case(
        "anti",
        lambda a: a.alias("x").join(
            a.alias("y"), F.expr("y._pos = x._pos + 1 AND y._file = x._file"), "anti"
        ),
        lambda r: [
            shown(x) for x in r if not any((y.pos, y.file) == (x.pos + 1, x.file) for y in r)
        ],
    ),
    Case(
        "after the join",
        lambda a: (
            a.alias("x")
            .join(a.alias("y"), F.expr("x.id = y.id + 1"))
            .filter("x._pos > y._pos")
            .select("x.id", "y._pos")
        ),
        lambda r: [(x.id, y.pos) for x in r for y in r if x.id == y.id + 1 and x.pos > y.pos],
    ),
    Case(
        "beside a join by names",
        lambda a: (
            a.join(a.groupBy("id").count(), "id")
            .alias("j")
            .join(a.alias("z"), F.expr("z._pos = j.id"))
            .select("j.id", "j.count", "z.id")
        ),
        lambda r: [(x.id, 1, z.id) for x in r for z in r if z.pos == x.id],
    ),
    Case(
        "three times",
        lambda a: (
            a.alias("x")
            .join(a.alias("y"), F.expr("x._pos = y._pos + 1"))
            .join(a.alias("z"), F.expr("z._pos = y._pos AND z._file = y._file"))
            .select("x.id", "y.id", "z.id")
        ),
        lambda r: [(x.id, y.id, y.id) for x in r for y in r if x.pos == y.pos + 1],
    ),
    Case(
        "a union",
        lambda a: last(a).union(last(a)).select("id"),
        lambda r: [(x.id,) for x in r if x.pos] * 2,
    ),
    Case(
        "an intersection",
        lambda a: last(a).intersect(a.filter("_pos < 2")),
        lambda r: [shown(x) for x in r if x.pos == 1],
    ),
    Case(
        "a difference", lambda a: a.exceptAll(last(a)), lambda r: [shown(x) for x in r if not x.pos]
    ),
    Case(
        "a sub-query",
        lambda a: a.filter(F.col("_pos") == a.select(F.max("_pos")).scalar()),
        lambda r: [shown(x) for x in r if x.pos == max(y.pos for y in r)],
    ),
    Case(
        "a correlated sub-query",
        lambda a: a.alias("o").where(
            a.alias("i").where(F.col("i._pos") == F.col("o._pos").outer() + 1).exists()
        ),
        lambda r: [shown(x) for x in r if any(y.pos == x.pos + 1 for y in r)],
    ),
]


@pytest.mark.parametrize(
    "case", in_circles([*WITH_ITSELF, *ONE_TABLE], test=2, check=16), ids=lambda case: case.name
)
def test_rows_by_hidden_columns(spark, table, case):
    if case.is_for_newer and pyspark.__version__ < "4.2":
        with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
            case.make(spark.table(table))
        return
    rows = [tuple(row) for row in case.make(spark.table(table)).collect()]
    expected = case.model(model_of(spark, table))
    assert sorted(rows) == sorted(expected)


def test_no_star_has_them(spark, table):
    rows = spark.table(table)
    assert rows.columns == last(rows).columns == ["id", "n"]
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        last(rows).union(rows).select("_pos")


def test_a_join_by_names_keeps_its_own_hidden_columns(spark, table):
    """Spark finds the key of the right side by its alias alone."""
    rows = spark.table(table)
    both = rows.alias("x").join(rows.alias("y"), "id", "left")
    found = both.join(rows.alias("z"), F.expr("z._pos = x.id")).select("y.id", "z.id")
    assert sorted(map(tuple, found.collect())) == [(1, 2), (1, 5), (2, 3)]
    kept = both.join(rows.filter("_pos = 2").alias("z"), F.expr("z.id = x.id")).select("y.id")
    assert [row[0] for row in kept.collect()] == [3]


def test_columns_of_two_reads(spark, table):
    """A column that is taken from a DataFrame is that one's, whatever the other has."""
    left, right = spark.table(table), spark.table(table)
    found = left.join(right, left["_pos"] == right["id"]).select(left["id"], right["id"])
    rows = model_of(spark, table)
    assert sorted(map(tuple, found.collect())) == pairs(lambda x, y: x.pos == y.id)(rows)
    plain = spark.createDataFrame([(row.id, 100) for row in rows], "id bigint, _pos bigint")
    both = left.join(plain, left["id"] == plain["id"])
    assert {row[0] for row in both.select("_pos").collect()} == {100}
    assert sorted(row[0] for row in both.select(left["_pos"]).collect()) == [0, 0, 1, 1, 2]
    beside = plain.alias("p").join(left, F.expr("p.id = length(_file)"))
    assert beside.count() == 0


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        (lambda a, b: F.expr("_pos = 1"), "AMBIGUOUS_REFERENCE"),
        (lambda a, b: a["_pos"] == a["_pos"], "AMBIGUOUS_COLUMN_REFERENCE"),
    ],
)
@pytest.mark.check
def test_what_could_be_that_of_either_side(spark, table, condition, error):
    rows = spark.table(table)
    with pytest.raises(AnalysisException, match=error):
        rows.join(rows, condition(rows, rows))


@pytest.mark.parametrize(
    ("mistake", "told"),
    in_circles(
        [
            ("_pos > 0 AND nope = 1", "`nope`"),
            ("_posx = 1", "`_posx`"),
            ("x._pos = 1", "`x`.`_pos`"),
        ],
        test=1,
    ),
)
def test_other_names_are_not_found(spark, table, mistake, told):
    with pytest.raises(AnalysisException, match=f"UNRESOLVED_COLUMN.* {told} cannot"):
        spark.table(table).filter(mistake)


@pytest.mark.check
def test_names_with_any_letters(spark, lake):
    spark.sql("CREATE TABLE lake.db.odd (`b c` INT, s STRUCT<x: INT>, `d.e` INT)")
    spark.sql("INSERT INTO lake.db.odd VALUES (1, named_struct('x', 2), 3)")
    columns = ("`b c`", "s.x", "`d.e`", "_pos")
    for rows in (
        spark.table("lake.db.odd").select(*columns),
        spark.sql(f"SELECT {', '.join(columns)} FROM lake.db.odd"),
    ):
        assert [tuple(row) for row in rows.collect()] == [(1, 2, 3, 0)]


def test_a_dataframe_stays_at_its_snapshot(spark, lake, table):
    old, expected = spark.table(table), model_of(spark, table)
    spark.sql("CREATE TABLE lake.db.empty (id BIGINT)")
    empty = spark.table("lake.db.empty")
    spark.sql("INSERT INTO lake.db.empty VALUES (1)")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN n TO m")
    spark.sql(f"DELETE FROM {table} WHERE id = 3")
    assert sorted(map(tuple, old.select("id", "n", "_pos").collect())) == sorted(
        row[:3] for row in expected
    )
    assert empty.select("_pos").collect() == []
    spark.sql(f"DROP TABLE {table}")
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        old.select("_pos")


@pytest.mark.check
def test_other_ways_to_read(spark, lake, table):
    place = lake.load_table("db.places").location
    for rows in (
        spark.read.table(table),
        spark.read.format("iceberg").load(table),
        spark.read.format("iceberg").load(place),
        spark.read.option("branch", "main").table(table),
    ):
        assert [row.id for row in rows.filter("_pos > 1").collect()] == [3]
    spark.sql("USE lake.db")
    try:
        assert [row.id for row in spark.table("places").filter("places._pos > 1").collect()] == [3]
        spark.sql("BEGIN TRANSACTION")
        spark.sql(f"INSERT INTO {table} VALUES (9, 'z')")
        rows = spark.table("places").filter("_pos = 0")
        assert sorted(row.id for row in rows.collect()) == [1, 4, 9]
        spark.sql("ROLLBACK")
    finally:
        spark.sql("USE spark_catalog.default")


@pytest.mark.check
def test_views_of_it_have_none(spark, table):
    """As views of Spark's own tables have no `_metadata`."""
    last(spark.table(table)).createOrReplaceTempView("places_view")
    try:
        query = "SELECT a.id, b.id FROM places_view a JOIN places_view b ON a.id = b.id + 1"
        assert sorted(map(tuple, spark.sql(query).collect())) == [(3, 2)]
        with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
            spark.sql("SELECT a.id FROM places_view a JOIN places_view b ON a._pos = b._pos")
    finally:
        spark.catalog.dropTempView("places_view")
