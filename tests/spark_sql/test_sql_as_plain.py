"""Queries over tables of a lake, beside plain Spark over temporary views of the same rows."""

import pytest
from plain_cases import CASES, TABLES
from pyspark.sql import functions as F

import frazil


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


def _marked(case):
    marks = [pytest.mark.xfail(strict=True, reason=case.fails)] if case.fails else []
    return pytest.param(case, marks=marks, id=case.text)


def _rows(found):
    return found.schema.simpleString(), sorted(map(str, found.collect()))


@pytest.mark.parametrize("case", [_marked(case) for case in CASES])
def test_a_query_as_over_temporary_views(sides, spark, case):
    wanted = _rows(spark.sql(case.plain("plain_")))
    assert _rows(sides.sql(case.over("db."))) == wanted
    assert _rows(spark.sql(case.over("lake.db."))) == wanted


@pytest.mark.parametrize(
    "text", ["FROM {t} |> WHERE _pos >= 0", "SELECT * FROM {t} NATURAL JOIN {u} WHERE t._pos >= 0"]
)
def test_hidden_columns_where_all_columns_are_meant_are_refused(sides, text):
    with pytest.raises(frazil.errors.UnsupportedError, match="_pos is hidden"):
        sides.sql(text.format(t="db.t", u="db.u"))


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
