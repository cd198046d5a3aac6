"""A merge into many rows leaves out rows by a bit of their keys' hash: no match may be lost."""

import pytest

from ci_share import one_in, only_in_soak
from frazil.spark.row_level.merging.keys import key_filter
from frazil.spark.session import costs

KEYS = {
    "int": ("int", "bigint(n)"),
    "bigint": ("bigint", "int(n)"),
    "string": ("string", "concat('k', n)"),
    "date": ("date", "date_add(date'1969-12-01', int(n))"),
    "timestamp": ("timestamp", "timestamp_micros(n * 1000001 - 5)"),
    "timestamp_ntz": ("timestamp_ntz", "timestamp_ntz'1960-01-01' + make_dt_interval(int(n))"),
    "decimal": ("decimal(12, 2)", "cast(n / 4 as decimal(12, 2))"),
}
"""The type of the table's key, and the source's key of a number."""


@pytest.fixture(autouse=True)
def every_merge_filters(monkeypatch):
    """Tables of tests are small."""
    monkeypatch.setattr(costs, "FILTERED_ROWS", 0)
    monkeypatch.setattr(key_filter, "_ROWS_A_KEY", 0)


@pytest.fixture
def filters(monkeypatch):
    """How many bits each merge's filter has."""
    made = []
    original = key_filter.KeyFilter.of.__func__

    def of(cls, source, *, rows):
        found = original(cls, source, rows=rows)
        made.append(None if found is None else found.bits)
        return found

    monkeypatch.setattr(key_filter.KeyFilter, "of", classmethod(of))
    return made


def table_of(lake, spark, kind, key, mode, on_rows="range(0, 400)", part="bucket(3, n)"):
    table = lake.create_table(
        "db.t",
        f"k {kind}, n bigint, v string",
        partition_by=[part],
        format_version=2,
        properties={"write.merge.mode": mode, "write.update.mode": mode},
    )
    rows = f"select cast({key} as {kind}) as k, n, 'old' as v from (select id as n from {on_rows})"
    table.append(spark.sql(rows + " union all select null, -1, 'old'"))
    return table


@pytest.mark.check
@pytest.mark.parametrize(
    ("kind", "mode"),
    one_in(
        2,
        [(kind, "copy-on-write" if n % 4 else "merge-on-read") for n, kind in enumerate(KEYS)],
    ),
)
def test_keys_of_each_type(lake, spark, filters, kind, mode):
    column, key = KEYS[kind]
    table = table_of(lake, spark, column, key, mode)
    source = spark.sql(
        f"select {key} as k, n, 'new' as v from (select id * 7 as n from range(0, 80)) "
        "union all select null, -2, 'new'"
    )
    table.merge(source, on="target.k = source.k").when_matched_update(
        {"v": "source.v"}
    ).when_not_matched_insert_all().execute()
    expected = dict.fromkeys(range(400), "old") | {n * 7: "new" for n in range(80)}
    expected |= {-1: "old", -2: "new"}
    rows = table.to_df().select("n", "v").collect()
    assert len(rows) == len(expected)
    assert {row["n"]: row["v"] for row in rows} == expected
    # Whole numbers from 0 to 553 are told apart themselves, others by hashes.
    assert set(filters) == {9 * 64 if "int" in kind else 1 << 13}


STORED = {
    "int": "decimal(n * 7) + 0.4BD",
    "date": "timestamp_ntz'1969-12-01 10:00:00' + make_dt_interval(int(n * 7))",
}
"""Keys of a source that the table's columns, of these types, store in another form."""


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("int", "copy-on-write"), only_in_soak("date", "copy-on-write"), ("date", "merge-on-read")],
)
def test_keys_count_as_they_are_stored(lake, spark, filters, kind, mode):
    """In the filter, among the values that prune files, and in matches without a join."""
    column, key = KEYS[kind]
    part = "truncate(100, k)" if kind == "int" else "month(k)"
    table = table_of(lake, spark, column, key, mode, part=part)
    source = spark.sql(
        f"select {STORED[kind]} as k, 'new' as v from (select id as n from range(0, 80))"
    )
    table.merge(source, ["k"]).when_matched_update({"v": "source.v"}).execute()
    found = table.scan("v = 'new'").to_df().select("n").collect()
    assert sorted(row["n"] for row in found) == [n * 7 for n in range(58)]
    assert None not in filters


@pytest.mark.parametrize("mode", [only_in_soak("copy-on-write"), "merge-on-read"])
def test_equal_nulls_and_two_keys(lake, spark, filters, mode):
    column, key = KEYS["string"]
    table = table_of(lake, spark, column, key, mode)
    source = spark.sql(
        "select 'k7' as k, 7 as n union all select null, -1 union all select 'k8', 9"
    )
    done = (
        table.merge(source, on="target.k <=> source.k and source.n = target.n")
        .when_matched_delete()
        .execute()
    )
    assert done.rows_deleted == 2
    left = {row["n"] for row in table.to_df().select("n").collect()}
    assert left == set(range(400)) - {7}
    assert set(filters) == {256}


@pytest.mark.check
@pytest.mark.parametrize(
    "on",
    ["upper(target.k) = source.k", "target.n = source.k", "target.n > source.n"],
    ids=["function", "other type", "no equality"],
)
def test_without_comparable_keys_there_is_no_filter(lake, spark, filters, on):
    column, key = KEYS["string"]
    table = table_of(lake, spark, column, key, "copy-on-write", "range(0, 5)")
    source = spark.sql("select '3' as k, bigint(3) as n")
    table.merge(source, on=on).when_matched_delete().execute()
    left = {row["n"] for row in table.to_df().select("n").collect()}
    gone = {"upper(target.k) = source.k": set(), "target.n = source.k": {3}}.get(on, {4})
    assert left == {-1, 0, 1, 2, 3, 4} - gone
    assert set(filters) == {None}
