"""Queries over tables of a lake, beside plain Spark over temporary views of the same rows."""

import pyspark
import pytest
from plain_cases import KINDS, TABLES
from pyspark.sql import functions as F

import frazil
from ci_share import in_circles, only_in_check


@pytest.fixture(scope="module")
def sides(spark, tmp_path_factory):
    """A lake that is attached too, and temporary views of the same rows."""
    folder = tmp_path_factory.mktemp("lake")
    with frazil.connect(spark, warehouse=str(folder), name="lake") as lake:
        lake.create_namespace("db")
        for name, query in TABLES.items():
            spark.sql(query).coalesce(1).createOrReplaceTempView(f"plain_{name}")
            made = lake.create_table(("db", name), spark.table(f"plain_{name}").schema)
            made.append(spark.table(f"plain_{name}"))
        lake.attach(name="lake")
        yield lake
    for name in TABLES:
        spark.catalog.dropTempView(f"plain_{name}")


def _rows(found):
    return found.schema.simpleString(), sorted(map(str, found.collect()))


@pytest.mark.parametrize(
    "case",
    [case for kind in KINDS for case in in_circles(kind, test=2)],
    ids=lambda case: case.text,
)
def test_a_query_as_over_temporary_views(sides, spark, case):
    wanted = _rows(spark.sql(case.plain("plain_")))
    assert _rows(sides.sql(case.over("db."))) == wanted
    assert _rows(spark.sql(case.over("lake.db."))) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT id, _deleted FROM {d}", [(0, False), (1, True), (2, False)]),
        only_in_check(
            "SELECT a.id, b._deleted FROM {d} a, {d} b WHERE a.id = b.id",
            [(0, False), (2, False)],
        ),
        only_in_check(
            "SELECT id, _deleted FROM {d} WHERE id NOT IN (SELECT id FROM {d})", [(1, True)]
        ),
        (
            "WITH x AS (SELECT id FROM {d}) SELECT d.id, d._deleted FROM {d} d LEFT JOIN x"
            " ON x.id = d.id WHERE x.id IS NULL",
            [(1, True)],
        ),
    ],
)
def test_deleted_rows_are_those_of_the_table_whose_column_is_named(sides, spark, text, wanted):
    if not sides.catalog.table_exists(("db", "d")):
        merge = {"write.delete.mode": "merge-on-read"}
        made = sides.create_table("db.d", "id bigint", properties=merge)
        made.append(spark.range(3).coalesce(1))
        made.delete("id = 1")
    assert sorted(map(tuple, sides.sql(text.format(d="db.d")).collect())) == wanted
    assert sorted(map(tuple, spark.sql(text.format(d="lake.db.d")).collect())) == wanted


@pytest.mark.check
@pytest.mark.skipif(pyspark.__version__ < "4.1", reason="scripts are an option of this Spark")
def test_a_script_of_queries(sides):
    text = "BEGIN DECLARE n INT DEFAULT 3; SELECT id, '{n}' AS s FROM db.t WHERE id > n; END"
    assert sorted(map(tuple, sides.sql(text).collect())) == [(4, "{n}"), (5, "{n}")]


def test_functions_over_tables(sides, spark):
    class Twice:
        def eval(self, row):
            yield row["id"], 1
            yield row["id"], 2

    spark.udtf.register("twice", F.udtf(Twice, returnType="a bigint, b int"))
    for argument in ("TABLE({t})", "TABLE({t}) PARTITION BY k", "TABLE(SELECT * FROM {t})"):
        text = f"SELECT count(*), sum(a) FROM twice({argument})"
        wanted = _rows(spark.sql(text.format(t="plain_t")))
        assert _rows(sides.sql(text.format(t="db.t"))) == wanted
        assert _rows(spark.sql(text.format(t="lake.db.t"))) == wanted
