"""Sub-queries over views: conditions give the rows that a plain Spark table gives."""

import pytest

from ci_share import one_in
from frazil.format.schema import Schema
from frazil.format.types import DoubleType, IntegerType, NestedField, StringType
from frazil.spark.conditions import condition_of

SCHEMA = Schema(
    (
        NestedField(1, "c", IntegerType()),
        NestedField(2, "f", DoubleType()),
        NestedField(3, "t1", StringType()),
        NestedField(4, "other", StringType()),
    )
)
ROWS = [(1, 1.0, "a", ""), (2, None, "b", ""), (None, float("nan"), "c", ""), (4, 7.0, None, "")]
SOURCE = [(1, "a"), (2, None), (None, "z")]
TEXTS = [
    "c in (select cc from src)",
    "c not in (select cc from src)",
    "c not in (select cc from whole)",
    "not (c in (select cc from whole))",
    "not (c in (select cc from src) and f > 0)",
    "c not in (select cc from nothing)",
    "exists (select 1 from src where c = cc)",
    "not exists (select 1 from src where c = cc)",
    "exists (select 1 from src where t.c <=> cc)",
    "exists (select 1 from src)",
    "not exists (select 1 from nothing)",
    "exists (select 1 from src where c = cc and exists (select 1 from whole w where w.cc = src.cc))",  # noqa: E501
    "exists (select * from src where c = cc) and exists (select 1 from whole where c = cc)",
    "c = (select max(cc) from src)",
    "(select max(cc) from src) > t.c and t1 = 'a'",
    "c < (select max(cc) + 1 from src s where s.cc = c)",
    "f > (select min(cc) from src)",
    "c in (select cc from src) or t1 = 'c'",
    "(c in (select cc from src)) is null",
    "case when c in (select cc from src) then f > 0 else null end",
    "(c, t1) in (select cc, s1 from src)",
    "(c, t1) not in (select cc, s1 from src)",
    "coalesce(c in (select cc from src), true)",
    "(exists (select 1 from src where c = cc)) = (c > 1)",
    "c in (values 1, 2)",
    "array_contains((select collect_list(cc) from src), c)",
]


@pytest.fixture
def views(spark):
    spark.createDataFrame(SOURCE, "cc int, s1 string").createOrReplaceTempView("src")
    spark.createDataFrame([(1, "a"), (4, None)], "cc int, s1 string").createOrReplaceTempView(
        "whole"
    )
    spark.createDataFrame([], "cc int, s1 string").createOrReplaceTempView("nothing")
    yield
    for name in ("src", "whole", "nothing"):
        spark.catalog.dropTempView(name)


@pytest.mark.check
@pytest.mark.parametrize("text", one_in(13, TEXTS))
def test_rows_are_those_of_plain_spark(spark, views, text):
    frame = spark.createDataFrame(ROWS, "c int, f double, t1 string, other string")

    def letters(rows):
        return sorted(str(row.t1) for row in rows.select("t1").collect())

    made = condition_of(text, SCHEMA, spark=spark, case_sensitive=False, time_zone="UTC", alias="t")
    expected = letters(frame.alias("t").where(text))
    assert letters(made.matching_rows(frame)) == expected
    assert sorted(expected + letters(made.other_rows(frame))) == ["None", "a", "b", "c"]
    flagged = made.with_flag(frame, "matches").select("t1", "matches").collect()
    assert sorted(str(row.t1) for row in flagged if row.matches) == expected
    assert made.has_subquery
    assert not made.is_exact
    assert made.column_names is not None
    assert "other" not in made.column_names
    # Nothing is missing where only those columns are.
    assert len(made.matching_rows(frame.select(*sorted(made.column_names))).columns) < 4


def test_what_stands_beside_a_sub_query_still_prunes(spark, views):
    made = condition_of(
        "t.c in (select cc from src) and (t.c = 1 or t1 like 'b%' and upper(t1) = 'B')",
        SCHEMA,
        spark=spark,
        case_sensitive=False,
        time_zone="UTC",
        alias="t",
    )
    assert made.implied.to_sql() == "c = 1 OR startswith(t1, 'b')"
