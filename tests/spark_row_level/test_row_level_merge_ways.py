"""Merges by each way that sizes choose: the rows, the rows' ids and the figures are the same.

A table of a test is small: what a way is for is set to nothing.
"""

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from ci_share import in_circles, one_in, one_of_each, only_in_soak, these
from frazil.errors import SchemaMismatchError, ValidationError
from frazil.spark.row_level import delete
from frazil.spark.row_level.merging import merged_rows
from frazil.spark.row_level.merging.keys import key_filter
from frazil.spark.session import costs

MODES = ["copy-on-write", "merge-on-read"]
FILTER = {"FILTERED_ROWS": 0}
WAYS = {
    "few rows": {},
    "a filter of keys": FILTER,
    "many keys of the source": {"SOURCE_KEY_BYTES": 0},
    "many keys of each task": {"SOURCE_KEY_BYTES": 400, "MATCH_BYTES": 200},
    "many matches": {"MATCH_BYTES": 0},
    "a source too large for every task": {"MATCHED_BYTES": -1, **FILTER},
    "no room for the places of rows": {"MATCHED_BYTES": -1, **FILTER},
}
CLAUSES = ["update", "delete and insert", "by source"]
EDGES = {"bigint": [-(1 << 63), (1 << 63) - 1], "string": ["x" * 64, "x" * 65]}


@pytest.fixture
def take(monkeypatch):
    """Makes merges take a way."""

    def switch(way):
        for name, value in WAYS[way].items():
            monkeypatch.setattr(costs, name, value)
        if "FILTERED_ROWS" in WAYS[way]:
            monkeypatch.setattr(key_filter, "_ROWS_A_KEY", 0)
        if way == "no room for the places of rows":
            for module in (merged_rows, delete):
                monkeypatch.setattr(module, "words_of_places", lambda *args, **more: None)

    return switch


def table_of(lake, columns, mode, version=2, by=("p",)):
    return lake.create_table(
        "db.t",
        columns,
        partition_by=list(by),
        format_version=version,
        properties={f"write.{each}.mode": mode for each in ("delete", "update", "merge")},
    )


def rows_of(table, *columns):
    found = table.scan(columns=list(columns)).to_df().collect()
    return sorted((tuple(row) for row in found), key=repr)


def merged(rows, source, clauses):
    """The rows (n, k, v, p) after a merge of rows (k, v, p), as SQL means its clauses."""
    given = {row[0]: row for row in source if row[0] is not None}
    found = []
    for n, k, v, p in rows:
        _, new, place = given.get(k, (None, None, None))
        if clauses == "delete and insert":
            if place != 0:
                found.append((n, k, new if place == 1 else v, p))
        elif new is not None:
            found.append((n, k, new, place if clauses == "update" else p))
        elif clauses == "update" or p != 2:
            found.append((n, k, "left" if clauses == "by source" and p == 1 else v, p))
    if clauses == "delete and insert":
        held = {row[1] for row in rows}
        found += [(None, *row) for row in source if row[0] is None or row[0] not in held]
    return found


@pytest.mark.parametrize(
    ("way", "clauses", "mode", "kind", "version"),
    one_of_each(WAYS, CLAUSES, MODES, EDGES, [3, 2], test=2),
)
def test_rows_ids_and_figures(lake, spark, take, way, clauses, mode, kind, version):
    take(way)
    named = [n if kind == "bigint" else f"k{n}" for n in range(100)]
    keys = [*named[:80], named[7], EDGES[kind][0], None]
    rows = [(n, k, "old", n % 4) for n, k in enumerate(keys)]
    table = table_of(lake, f"n int, k {kind}, v string, p int, _frazil_pos int", mode, version)
    shape = f"n int, k {kind}, v string, p int"
    for part in (rows[:40], rows[40:]):
        table.append(spark.createDataFrame(part, shape).selectExpr("*", "7 as _frazil_pos"))
    table.delete("n % 10 = 5")
    rows = [row for row in rows if row[0] % 10 != 5]
    lineage = ["n", "_row_id"] if version == 3 else ["n", "k"]
    ids = dict(rows_of(table, *lineage))
    dice = random.Random(f"{way} {clauses}")
    chosen = {named[7], *dice.sample(named, 30)}
    source = [(k, "new", dice.randrange(4)) for k in (*sorted(chosen), *EDGES[kind], None)]
    df = spark.createDataFrame(source, f"k {kind}, v string, p int").repartition(3)
    merge = table.merge(df, on="target.k = source.k")
    if clauses == "update":
        merge.when_matched_update({"v": "source.v", "p": "source.p"})
    elif clauses == "delete and insert":
        merge.when_matched_delete(condition="source.p = 0")
        merge.when_matched_update({"v": "source.v"}, condition="source.p = 1")
        merge.when_not_matched_insert({"k": "k", "v": "v", "p": "p"})
    else:
        merge.when_matched_update({"v": "source.v"})
        merge.when_not_matched_by_source_update({"v": "'left'"}, condition="p = 1")
        merge.when_not_matched_by_source_delete(condition="p = 2")
    done = merge.execute()
    expected = merged(rows, source, clauses)
    assert rows_of(table, "n", "k", "v", "p") == sorted(expected, key=repr)
    kept = [row for row in expected if row[0] is not None]
    told = (done.rows_updated, done.rows_deleted, done.rows_inserted)
    updated = len(kept) - len(set(kept) & set(rows))
    assert told == (updated, len(rows) - len(kept), len(expected) - len(kept))
    after = [row for row in rows_of(table, *lineage) if row[0] is not None]
    assert after == [(n, ids[n]) for n, _ in after]


@pytest.mark.check
def test_two_matches_of_a_row_leave_nothing_behind(lake, spark):
    table = table_of(lake, "k bigint, v string, p int", MODES[0])
    table.append(spark.sql("select id as k, 'old' as v, int(id % 3) as p from range(0, 30)"))

    def files():
        return sorted(Path(table.location.removeprefix("file:")).rglob("*.parquet"))

    before = files(), rows_of(table, "k", "v", "p")
    source = spark.sql("select * from values (1, 'a'), (1, 'b'), (2, 'c'), (50, 'd') s(k, v)")
    merge = table.merge(source, on="target.k = source.k").when_matched_update({"v": "source.v"})
    with pytest.raises(ValidationError, match="2 rows of the source match one row"):
        merge.when_not_matched_insert({"k": "k", "v": "v", "p": "1"}).execute()
    assert (files(), rows_of(table, "k", "v", "p")) == before
    # Nor does a match under no clause.
    merge = table.merge(source.dropDuplicates(["k"]), on="target.k = source.k")
    done = merge.when_matched_update({"v": "'x'"}, condition="target.v = 'other'").execute()
    assert not done.files_added
    assert files() == before[0]
    done = table.merge(source, on="target.k = source.k").when_matched_delete().execute()
    assert rows_of(table, "k") == sorted(((k,) for k in range(30) if k not in (1, 2)), key=repr)
    assert (done.rows_deleted, done.rows_copied) == (2, 18)


KEYS = {
    "int": ("int", "bigint(n)"),
    "bigint": ("bigint", "int(n)"),
    "string": ("string", "concat('k', n)"),
    "date": ("date", "date_add(date'1969-12-01', int(n))"),
    "timestamp": ("timestamp", "timestamp_micros(n * 1000001 - 5)"),
    "timestamp_ntz": ("timestamp_ntz", "timestamp_ntz'1960-01-01' + make_dt_interval(int(n))"),
    "decimal": ("decimal(12, 2)", "cast(n / 4 as decimal(12, 2))"),
    # The column stores these in another form.
    "int of decimals": ("int", "decimal(n) + 0.4BD"),
    "date of times": ("date", "timestamp_ntz'1969-12-01 10:00:00' + make_dt_interval(int(n))"),
}
"""The type of the table's key, and the source's key of a number."""


@pytest.mark.check
@pytest.mark.parametrize(
    ("kind", "mode"), one_in(2, [(kind, MODES[n % 4 == 0]) for n, kind in enumerate(KEYS)])
)
def test_keys_of_each_type_pass_the_filter(lake, spark, take, kind, mode):
    take("a filter of keys")
    column, key = KEYS[kind]
    part = {"int": "truncate(100, k)", "date": "month(k)"}.get(column, "bucket(3, n)")
    table = table_of(lake, f"k {column}, n bigint, v string", mode, by=[part])
    rows = f"select cast({key} as {column}) as k, n, 'old' as v from (select id as n from {{}})"
    table.append(spark.sql(rows.format("range(0, 400)") + " union all select null, -1, 'old'"))
    source = spark.sql(
        f"select {key} as k, n, 'new' as v from (select id * 7 as n from range(0, 80)) "
        "union all select null, -2, 'new'"
    )
    merge = table.merge(source, ["k"]).when_matched_update({"v": "source.v"})
    merge.when_not_matched_insert_all().execute()
    expected = dict.fromkeys(range(400), "old") | {n * 7: "new" for n in range(80)}
    expected |= {-1: "old", -2: "new"}
    rows = table.to_df().select("n", "v").collect()
    assert len(rows) == len(expected)
    assert {row["n"]: row["v"] for row in rows} == expected


MATCHES = {
    "target.k <=> source.k and source.n = target.n": {7, -1},
    "upper(target.k) = source.k": set(),
    "target.n = source.k": {3},
    "target.n > source.n": {9},
}
"""Conditions with NULL and two keys, and without keys that a filter compares; which rows go."""


@pytest.mark.parametrize("on", in_circles(MATCHES, test=1))
def test_other_conditions_than_one_key(lake, spark, take, on):
    take("a filter of keys")
    table = table_of(lake, "k string, n bigint", MODES[1], by=["bucket(3, n)"])
    rows = "select concat('k', id) as k, id as n from range(0, 10) union all select null, -1"
    table.append(spark.sql(rows))
    source = "select '3' as k, 8L as n"
    if "<=>" in on:
        source = "select * from values ('k7', 7L), (null, -1L), ('k8', 9L) as s(k, n)"
    done = table.merge(spark.sql(source), on=on).when_matched_delete().execute()
    assert done.rows_deleted == len(MATCHES[on])
    left = {row["n"] for row in table.to_df().select("n").collect()}
    assert left == {-1, *range(10)} - MATCHES[on]


@pytest.mark.check
@pytest.mark.parametrize(
    ("mode", "way"),
    these([(MODES[0], list(WAYS)[-1])], MODES, list(WAYS)[-2:]),
)
def test_rows_of_a_sub_query(lake, spark, take, mode, way):
    take(way)
    table = table_of(lake, "k int, v string, p int", mode)
    table.append(spark.sql("select int(id) as k, 'old' as v, int(id % 4) as p from range(200)"))
    table.delete("k % 10 = 5")
    rows = {k: ("old", k % 4) for k in range(200) if k % 10 != 5}
    spark.sql("select int(id * 3) as k from range(0, 50)").createOrReplaceTempView("chosen")
    table.update({"v": "'new'", "p": "p + 10"}, "k in (select k from chosen)")
    rows = {k: ("new", p + 10) if k % 3 == 0 and k < 150 else (v, p) for k, (v, p) in rows.items()}
    assert rows_of(table, "k", "v", "p") == sorted(((k, *r) for k, r in rows.items()), key=repr)
    table.delete("k in (select k + 1 from chosen)")
    rows = {k: row for k, row in rows.items() if k % 3 != 1 or k > 150}
    new = spark.sql("select 1000 as k, 'x' as v, 0 as p")
    table.overwrite(new, where="k in (select k + 2 from chosen)")
    rows = {k: row for k, row in rows.items() if k % 3 != 2 or k > 150} | {1000: ("x", 0)}
    assert rows_of(table, "k", "v", "p") == sorted(((k, *r) for k, r in rows.items()), key=repr)


# Merges that find matches and take the source's values in one look at the table.


BOTH = ["merge-on-read", "copy-on-write"]


@pytest.mark.parametrize("version", [only_in_soak(2), 3])
def test_every_type_keeps_its_values(lake, spark, version):
    columns = """
        k int, b boolean, l bigint, f float, d double, n decimal(20, 3), day date,
        at timestamp, ntz timestamp_ntz, s string, x binary,
        st struct<a: int, b: string>, li array<struct<c: int>>, m map<string, double>
    """
    moment = datetime(1501, 3, 4, 5, 6, 7, 890123)
    rows = [
        (
            n,
            n % 2 == 0,
            n << 40,
            n / 4,
            -n / 8,
            Decimal(n) / 8,
            date(1400 + n, 2, 28),
            datetime(2024, 1, n + 1, 1, 2, 3, 456789, tzinfo=UTC),
            moment,
            "é" * n,
            bytes([n]),
            (n, None),
            [(n,), None],
            {"x": n / 2},
        )
        for n in range(1, 5)
    ]
    nothing = tuple([None] * (len(rows[0]) - 1))
    table = lake.create_table(
        "db.t", columns, format_version=version, properties={"write.merge.mode": "merge-on-read"}
    )
    table.append(spark.createDataFrame([(n, *nothing) for n in range(4)], columns))
    source = spark.createDataFrame(rows, columns)
    wanted = {row.k: row for row in source.collect()}
    table.upsert(source, keys="k")
    found = {row.k: row for row in table.to_df().collect()}
    assert found.keys() == {0, 1, 2, 3, 4}
    assert tuple(found.pop(0)) == (0, *nothing)
    assert {key: tuple(row) for key, row in found.items()} == {
        key: tuple(row) for key, row in wanted.items()
    }


@pytest.mark.check
@pytest.mark.parametrize("mode", [BOTH[0], only_in_soak(BOTH[1])])
def test_a_value_that_does_not_fit_is_looked_at_where_it_is_taken(lake, spark, mode):
    table = lake.create_table(
        "db.t", "k bigint, v int not null", properties={"write.merge.mode": mode}
    )
    table.append(spark.range(6).selectExpr("id as k", "0 as v"))
    source = spark.createDataFrame(
        [(1, "d", None), (2, "k", None), (3, "u", 7)], "k bigint, op string, v int"
    )

    def run_with(rows):
        (
            table.merge(rows, on="target.k = source.k")
            .when_matched_delete(condition="source.op = 'd'")
            .when_matched_update_all(condition="source.op = 'u'")
            .execute()
        )

    run_with(source)
    expected = {0: 0, 2: 0, 3: 7, 4: 0, 5: 0}
    assert {row.k: row.v for row in table.to_df().collect()} == expected
    for value in ("cast(null as bigint)", "1L << 40"):
        bad = spark.range(4, 5).selectExpr("id as k", "'u' as op", f"{value} as v")
        snapshot = table.metadata.current_snapshot_id
        with pytest.raises(SchemaMismatchError, match="nothing was"):
            run_with(bad)
        table.refresh()
        assert table.metadata.current_snapshot_id == snapshot
    assert {row.k: row.v for row in table.to_df().collect()} == expected
