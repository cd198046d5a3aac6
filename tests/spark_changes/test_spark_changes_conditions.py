"""Conditions of changelogs: the changes of the rows that plain Spark chooses."""

from collections import Counter

import pytest
from pyspark.sql import functions as F

from ci_share import only_in_soak
from frazil.errors import PredicateError

SCHEMA = "id bigint, city string, x double"
NAN = float("nan")
FIRST = [(1, "Oslo", 0.5), (2, "oslo", NAN), (3, "Rome", None)]
SECOND = [(11, "Oslo", NAN), (12, None, 2.0)]
CONDITIONS = [
    only_in_soak("upper(city) = 'OSLO'"),
    only_in_soak("x > id or id % 2 = 0"),
    "city in (select name from wanted)",
    lambda: F.col("x") > F.col("id"),
]
TYPES = ("_change_type", "_change_ordinal")


@pytest.fixture
def wanted(spark):
    spark.createDataFrame([("Oslo",), ("Rome",)], "name string").createOrReplaceTempView("wanted")
    yield
    spark.catalog.dropTempView("wanted")


@pytest.fixture(scope="module")
def changed(spark, shared_lake):
    """Two appends, a copy-on-write overwrite, a merge-on-read delete and an update."""
    made = shared_lake.create_table(
        "db.t", SCHEMA, format_version="3", properties={"write.delete.mode": "merge-on-read"}
    )
    for rows in (FIRST, SECOND):
        made.append(spark.createDataFrame(rows, SCHEMA).coalesce(1))
    made.overwrite(spark.createDataFrame([(2, "OSLO", 5.0)], SCHEMA), where="id = 2")
    made.delete("id = 11")
    made.update(set={"city": "'oslo'"}, where="id = 3")
    return made


# What each snapshot did, worked out by hand.
CHANGES = [
    *((row, "INSERT", 0) for row in FIRST),
    *((row, "INSERT", 1) for row in SECOND),
    (FIRST[1], "DELETE", 2),
    ((2, "OSLO", 5.0), "INSERT", 2),
    (SECOND[0], "DELETE", 3),
    (FIRST[2], "DELETE", 4),
    ((3, "oslo", None), "INSERT", 4),
]
NET = [
    (FIRST[0], "INSERT", 0),
    (SECOND[1], "INSERT", 1),
    ((2, "OSLO", 5.0), "INSERT", 2),
    ((3, "oslo", None), "INSERT", 4),
]


def expected(spark, changes, where):
    """The changes whose rows plain Spark chooses."""
    rows = [(*row, kind, ordinal) for row, kind, ordinal in changes]
    return spark.createDataFrame(rows, f"{SCHEMA}, _change_type string, _change_ordinal int").where(
        where
    )


def same(df):
    """Rows as text, since NaN is not equal to itself."""
    return Counter(map(str, df.select("id", "city", "x", *TYPES).collect()))


@pytest.mark.check
@pytest.mark.parametrize("condition", CONDITIONS)
def test_changes_of_rows_that_match(spark, wanted, changed, condition):
    where = condition() if callable(condition) else condition
    assert same(changed.changes(where=where)) == same(expected(spark, CHANGES, where))
    assert same(changed.net_changes(where=where)) == same(expected(spark, NET, where))
    appended = [change for change in CHANGES if change[2] < 2]
    found = changed.incremental(where=where, columns=["id", "city", "x"]).to_df()
    assert Counter(map(str, found.collect())) == Counter(
        map(str, expected(spark, appended, where).select("id", "city", "x").collect())
    )


@pytest.mark.check
def test_what_is_implied_prunes_and_updates_are_told(spark, changed):
    where = "id < 10 and length(city) = 4 and x is not null"
    found = changed.changes(where=where, identifier_columns="id")
    kinds = Counter((row.id, row._change_ordinal, row._change_type) for row in found.collect())
    assert kinds == {
        (1, 0, "INSERT"): 1,
        (2, 0, "INSERT"): 1,
        (2, 2, "UPDATE_BEFORE"): 1,
        (2, 2, "UPDATE_AFTER"): 1,
    }
    assert changed.incremental(where=where).plan().file_count == 1
    assert same(changed.changes(where=where)) == same(expected(spark, CHANGES, where))


def test_a_random_condition_is_refused(changed):
    for read in (changed.changes, changed.net_changes):
        with pytest.raises(PredicateError, match="rand"):
            read(where="rand() < x")
