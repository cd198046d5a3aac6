"""Merges that collect keys of their source and matches, and those with too many for that."""

from __future__ import annotations

import numpy as np
import pytest

from frazil.spark.row_level.merging import collected
from frazil.spark.row_level.merging.collected import CollectedKeys

BOUNDS = {
    "few": {},
    "many rows of the source": {"MOST_BYTES": 0},
    "many matches": {"MOST_PAIR_BYTES": 0},
    "many of each task": {"MOST_BYTES": 400, "MOST_PAIR_BYTES": 200},
}


@pytest.fixture(params=BOUNDS)
def bounds(request, monkeypatch):
    for name, value in BOUNDS[request.param].items():
        monkeypatch.setattr(collected, name, value)
    return request.param


def table_of(lake, spark, mode):
    table = lake.create_table(
        "db.t",
        "k string, v string, p int",
        partition_by=["p"],
        format_version=2,
        properties={"write.merge.mode": mode},
    )
    rows = "select concat('k', id) as k, 'old' as v, int(id % 3) as p from range(0, 30)"
    # Keys of the table come twice, and there are NULLs.
    twice = "select 'k5', 'other', 1 union all select null, 'old', 0"
    table.append(spark.sql(f"{rows} union all {twice}"))
    return table


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("long", [False, True], ids=["short keys", "a long key"])
def test_rows_and_figures(lake, spark, bounds, mode, long):
    table = table_of(lake, spark, mode)
    more = ["x" * 65] if long else ["x" * 64]
    keys = ["k3", "k4", "k5", "k33", None, *more]
    source = spark.createDataFrame(
        [(k, "new", 7) for k in keys], "k string, v string, p int"
    ).repartition(3)
    done = (
        table.merge(source, on="target.k = source.k")
        .when_matched_update({"v": "source.v"}, condition="target.v = 'old'")
        .when_not_matched_insert_all()
        .execute()
    )
    expected = [(f"k{n}", "new" if n in (3, 4, 5) else "old", n % 3) for n in range(30)]
    expected += [("k5", "other", 1), (None, "old", 0)]
    expected += [(k, "new", 7) for k in ("k33", None, *more)]
    assert sorted(map(repr, map(tuple, table.to_df().collect()))) == sorted(map(repr, expected))
    assert (done.rows_updated, done.rows_inserted) == (3, 3)


def test_when_all_of_the_source_matches_nothing_is_added(lake, spark, bounds):
    table = table_of(lake, spark, "copy-on-write")
    source = spark.sql("select concat('k', id) as k, 'new' as v, int(id % 3) as p from range(9)")
    done = (
        table.merge(source, on="target.k = source.k")
        .when_matched_update({"v": "source.v"})
        .when_not_matched_insert_all()
        .execute()
    )
    assert (done.rows_updated, done.rows_inserted, done.rows_copied) == (10, 0, 22)


@pytest.mark.parametrize("tasks", [1, 4])
def test_the_keys_of_a_source_are_all_or_none(spark, monkeypatch, tasks):
    rows = spark.range(0, 100, 1, tasks).selectExpr("monotonically_increasing_id() as n")
    for most in (99, 100, 101, 399, 400, 401):
        monkeypatch.setattr(collected, "MOST_BYTES", most * 16)
        found = CollectedKeys.of(rows, "n", ())
        # Of four tasks the last one gives a fourth of the most.
        assert (found is not None) == (most >= 100)
        if found is not None:
            expected = np.concatenate([(t << 33) + np.arange(100 // tasks) for t in range(tasks)])
            assert sorted(found.numbers) == sorted(expected)
