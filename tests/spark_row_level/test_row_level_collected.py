"""Merges that collect keys of their source and matches, and those with too many for that."""

import numpy as np
import pytest

from ci_share import one_of_each
from frazil.errors import ValidationError
from frazil.spark.row_level.merging.keys import key_filter
from frazil.spark.row_level.merging.keys.collected import CollectedKeys
from frazil.spark.row_level.merging.matches import by_file
from frazil.spark.session import costs

BOUNDS = {
    "few": {},
    "many rows of the source": {"SOURCE_KEY_BYTES": 0},
    "many matches": {"MATCH_BYTES": 0},
    "many of each task": {"SOURCE_KEY_BYTES": 400, "MATCH_BYTES": 200},
}


@pytest.fixture(params=BOUNDS)
def bounds(request, monkeypatch):
    for name, value in BOUNDS[request.param].items():
        monkeypatch.setattr(costs, name, value)
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


@pytest.mark.check
@pytest.mark.parametrize(
    ("bounds", "mode", "long"),
    one_of_each(BOUNDS, ["copy-on-write", "merge-on-read"], [False, True]),
    indirect=["bounds"],
)
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


@pytest.mark.parametrize("tasks", [1, 4])
def test_the_keys_of_a_source_are_all_or_none(spark, monkeypatch, tasks):
    rows = spark.range(0, 100, 1, tasks).selectExpr("monotonically_increasing_id() as n")
    for most in (99, 100, 101, 399, 400, 401):
        monkeypatch.setattr(costs, "SOURCE_KEY_BYTES", most * 16)
        found = CollectedKeys.of(rows, "n", ())
        # Of four tasks the last one gives a fourth of the most.
        assert (found is not None) == (most >= 100)
        if found is not None:
            expected = np.concatenate([(t << 33) + np.arange(100 // tasks) for t in range(tasks)])
            assert sorted(found.numbers) == sorted(expected)


LOW, HIGH = -(1 << 63), (1 << 63) - 1


@pytest.mark.check
@pytest.mark.parametrize(
    ("keys", "bounds", "moved"),
    one_of_each(
        [[3, 4, 11, None], [HIGH, HIGH - 1], [LOW, 7], [3, 3, 50]],
        ["few", "many matches"],
        [False, True],
    ),
    indirect=["bounds"],
    ids=str,
)
def test_one_whole_number_is_found_without_a_join(lake, spark, monkeypatch, bounds, keys, moved):
    monkeypatch.setattr(costs, "FILTERED_ROWS", 0)
    monkeypatch.setattr(key_filter, "_ROWS_A_KEY", 0)
    found = []
    original = by_file.matches_by_key
    monkeypatch.setattr(
        by_file, "matches_by_key", lambda *a, **k: found.append(original(*a, **k)) or found[-1]
    )
    table = lake.create_table(
        "db.t",
        "k bigint, v string, p int",
        partition_by=["p"],
        format_version=2,
        properties={"write.merge.mode": "copy-on-write"},
    )
    before = [(k, "old", k % 3) for k in (*range(10), 3, LOW, HIGH)] + [(None, "old", 1)]
    shape = "k bigint, v string, p int"
    table.append(spark.createDataFrame(before, shape))
    source = [(k, "new", ((k or 0) + moved) % 3) for k in keys]
    merge = table.merge(spark.createDataFrame(source, shape), on="source.k = target.k")
    merge.when_matched_update_all().when_not_matched_insert_all()
    if keys.count(3) > 1:
        with pytest.raises(ValidationError, match="2 rows of the source match one row"):
            merge.execute()
        expected = before
    else:
        done = merge.execute()
        known = {k: row for k, row in zip(keys, source, strict=True) if k is not None}
        expected = [known.get(k, (k, v, p)) for k, v, p in before]
        new = [row for row in source if row[0] is None or row[0] not in {k for k, *_ in before}]
        assert (done.rows_inserted, done.rows_updated) == (
            len(new),
            sum(row[1] == "new" for row in expected),
        )
        expected += new
    assert sorted(map(repr, map(tuple, table.to_df().collect()))) == sorted(map(repr, expected))
    by_key = bounds == "few" and keys not in ([3, 3, 50], [LOW, 7])
    assert [each is not None for each in found] == ([by_key] if bounds == "few" else [])
