"""Aggregates of scans: equal to Spark's own, and from metadata where that is exact."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from pathlib import Path

import polars as pl
import pyspark
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F
from test_spark_table_position_deletes import vector, written

from ci_share import examples, only_in_check, only_in_soak
from frazil.errors import ValidationError
from frazil.format.manifests import DataFile
from frazil.format.types import IntegerType, ListType
from frazil.planning.aggregates import Measure, answer
from frazil.storage.avro import manifests_of, read_manifest

DDL = (
    "id bigint not null, city string, x double, f float, n int, m decimal(9,2), d date, "
    "ts timestamp_ntz, z timestamp, s struct<a: int>, y binary, ok boolean"
)
COLUMNS = ("id", "city", "x", "f", "n", "m", "d", "ts", "z", "s.a", "y", "ok")
EVERYTHING = ["count(*)", *(f"{f}({c})" for c in COLUMNS for f in ("count", "min", "max"))]
ROW = """select id, if(id % 4 = 3, null, concat('city ', id % 4)) city, double(id * 0.5) + 1 x,
    float(id + 1) f, if(id % 3 = 0, null, int(id)) n, cast(id as decimal(9,2)) m,
    date_add(date'2024-01-01', int(id)) d, timestamp_ntz'2024-01-02 03:04:05.678901' ts,
    timestamp'2024-01-02 03:04:05Z' z, named_struct('a', int(id)) s, cast(string(id) as binary) y,
    id % 2 = 0 ok from range({}, {})"""


def rows_of(spark, start, end):
    """Rows with an id from start to end."""
    return spark.sql(ROW.format(start, end)).coalesce(1)


def text(value):
    """A value that can be compared: NaN equals NaN, zeros are equal."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value + 0.0)
    return repr(value)


def shown(df):
    """Rows in an order of their own."""
    return sorted(tuple(text(value) for value in row) for row in df.collect())


def by_spark(df, aggregates, keys=()):
    """The same by Spark over the rows."""
    columns = []
    for each in aggregates:
        function, column = each.rstrip(")").split("(")
        value = F.lit(1) if column == "*" else F.col(column)
        columns.append(getattr(F, function)(value).alias(each))
    return df.groupBy(*map(F.expr, keys)).agg(*columns)


def check(table, aggregates, *, by=(), keys=None, where=None):
    """Assert that an aggregation is what Spark says; how many files were answered, and scanned."""
    scan = table.scan(where=where)
    found = scan.aggregate(aggregates, by=by)
    expected = by_spark(table.scan(where=where).to_df(), aggregates, by if keys is None else keys)
    assert shown(found.to_df()) == shown(expected)
    return found.files_from_metadata, found.files_to_scan


@pytest.fixture(scope="module")
def numbers(spark, shared_lake):
    """Two files of ten rows, which no test changes."""
    made = shared_lake.create_table("db.t", DDL)
    made.append(rows_of(spark, 0, 10))
    made.append(rows_of(spark, 10, 20))
    return made


def test_types_and_names(numbers):
    found = numbers.scan().aggregate(["COUNT(*)", "min(id) as first", "max( s.a )", "count(y)"])
    df = found.to_df()
    assert [(f.name, f.dataType.simpleString()) for f in df.schema.fields] == [
        ("count(*)", "bigint"), ("first", "bigint"), ("max(s.a)", "int"), ("count(y)", "bigint"),
    ]  # fmt: skip
    assert [tuple(row) for row in df.collect()] == [(20, 0, 19, 20)]


@pytest.mark.check
def test_what_metadata_answers(numbers):
    """All that Spark's writer states exactly: bounds of text and bytes are cut."""
    unsure = {f"{f}({c})" for f in ("min", "max") for c in ("city", "y")}
    for aggregate in EVERYTHING:
        found = numbers.scan().aggregate([aggregate])
        assert found.files_to_scan == (2 if aggregate in unsure else 0), aggregate
    answered = [each for each in EVERYTHING if each not in unsure]
    assert check(numbers, answered) == (2, 0)


def test_all_together(numbers):
    check(numbers, EVERYTHING)


def test_incremental_scans_aggregate_what_was_appended(numbers):
    first = numbers.metadata.snapshots[0].snapshot_id
    scan = numbers.incremental(first)
    assert [tuple(r) for r in scan.aggregate(["count(*)", "min(id)"]).to_df().collect()] == [
        (10, 10)
    ]
    assert scan.count() == 10


def test_explained(numbers):
    found = numbers.scan(where="id < 15").aggregate(["count(*)", "max(n)"])
    assert repr(found) == found.explain()
    assert "from metadata  1 of 2 files" in found.explain()
    assert "to scan        1 files" in found.explain()
    assert [tuple(row) for row in found.to_df().collect()] == [(15, 14)]


@pytest.mark.check
@pytest.mark.skipif(pyspark.__version__ < "4.1", reason="Spark 4.0 has no type of times")
def test_groups_by_times_of_files_that_are_read(lake, session):
    session(spark__sql__timeType__enabled="true")
    table = lake.create_table("db.t", "id bigint, t time", partition_by=["t"])
    rows = [(1, dt.time(9, 30)), (2, dt.time(9, 30)), (3, dt.time(18))]
    table.append(lake.spark.createDataFrame(rows, "id bigint, t time").coalesce(1))
    found = table.scan(where="id > 1").aggregate(["count(*)"], by=["t"])
    assert found.files_to_scan == 1
    assert sorted(map(tuple, found.to_df().collect())) == [(dt.time(9, 30), 1), (dt.time(18), 1)]


def test_empty_tables_and_no_matches(lake, numbers):
    empty = lake.create_table("db.e", DDL, partition_by=["city"])
    for scan in (empty.scan(), numbers.scan(where="id > 1000")):
        found = scan.aggregate(["count(*)", "min(city)", "max(m)", "count(x)"])
        assert [tuple(row) for row in found.to_df().collect()] == [(0, None, None, 0)]
        assert scan.aggregate(["count(*)", "max(id)"], by=["city"]).to_df().collect() == []
        assert scan.count() == 0


@pytest.mark.parametrize(
    ("spec", "by", "keys"),
    [
        only_in_soak(["city"], ["city"], ["city"]),
        only_in_soak(["days(d)"], ["days(d)"], ["d"]),
        only_in_check(["months(ts)", "city"], ["city"], ["city"]),
        (["truncate(4, id)"], ["truncate(4, id)"], ["id - pmod(id, 4)"]),
        only_in_check(["m"], ["m"], ["m"]),
    ],
)
def test_groups_are_partitions(lake, spark, spec, by, keys):
    made = lake.create_table("db.p", DDL, partition_by=spec)
    made.append(rows_of(spark, 0, 12))
    assert check(made, ["count(*)", "min(id)", "max(n)"], by=by, keys=keys)[1] == 0


def test_partition_values_answer_for_text(lake, spark):
    made = lake.create_table("db.p", DDL, partition_by=["city"])
    made.append(rows_of(spark, 0, 12))
    assert check(made, ["min(city)", "max(city)", "count(city)"]) == (4, 0)


def test_groups_that_are_no_partitions_are_read(numbers):
    assert check(numbers, ["count(*)", "max(id)"], by=["city"]) == (0, 2)


def test_evolved_specs(lake, spark):
    """Files of a spec that knows the group are answered, the others are read."""
    made = lake.create_table("db.p", DDL)
    made.append(rows_of(spark, 0, 12))
    with made.update_spec() as change:
        change.add_field("city")
    made.append(rows_of(spark, 6, 18))
    assert check(made, ["count(*)", "min(id)", "max(d)"], by=["city"]) == (4, 1)


def test_promoted_and_added_columns(lake, spark):
    made = lake.create_table("db.p", "a int, b float, c decimal(4,2)")
    made.append(spark.sql("select 1 a, float(1.1) b, cast(1.25 as decimal(4,2)) c"))
    with made.update_schema() as change:
        change.update_column("a", "bigint")
        change.update_column("b", "double")
        change.update_column("c", "decimal(8,2)")
        change.add_column("e", "int")
    columns = [f"{f}({c})" for c in "abce" for f in ("count", "min", "max")]
    check(made, columns)
    made.append(spark.sql("select 9L a, 9.5D b, cast(1999.25 as decimal(8,2)) c, 3 e"))
    check(made, columns)
    assert check(made, ["min(a)", "max(c)"]) == (2, 0)


NESTED_DDL = (
    "id bigint not null, l array<int>, m map<string, int>, v variant, r struct<x: int> not null, "
    "s struct<a: int, l: array<int>, v: variant, t: struct<b: string>>"
)
NESTED = """select id,
    case id % 3 when 0 then null when 1 then array() else array(1, null) end l,
    case id % 4 when 0 then null when 1 then map('k', null) else map() end m,
    case id % 3 when 0 then null when 1 then parse_json('null') else parse_json('{{"a": 1}}') end v,
    named_struct('x', if(id % 2 = 0, null, 1)) r,
    if(id % 5 = 0, null, named_struct(
        'a', if(id % 2 = 0, null, 1),
        'l', if(id % 2 = 0, null, array(null)),
        'v', if(id % 4 = 0, null, parse_json('null')),
        't', if(id % 3 = 0, null, named_struct('b', string(null))))) s
    from range({}, {})"""
NESTED_COUNTS = [
    f"count({name})" for name in ("l", "m", "v", "r", "s", "s.l", "s.v", "s.t", "s.t.b", "r.x")
]


@pytest.mark.check
@pytest.mark.skipif(pyspark.__version__ < "4.1", reason="it reads no variants")
def test_lists_maps_structs_and_variants_are_counted(lake, spark):
    """One that holds NULL is not NULL; what a struct that is NULL holds, is."""
    made = lake.create_table("db.p", NESTED_DDL, format_version=3)
    for start in (0, 12):
        made.append(spark.sql(NESTED.format(start, start + 12)).coalesce(1))
    check(made, NESTED_COUNTS)
    check(made, NESTED_COUNTS, where="id % 3 = 1", by=["id"])
    # Only of these does metadata say how often they are NULL.
    assert check(made, ["count(v)", "count(r)", "count(r.x)"]) == (2, 0)
    assert check(made, ["count(l)"]) == check(made, ["count(s)"]) == (0, 2)
    with made.update_schema() as change:
        change.rename_column("l", "list")
        change.add_column("late", ListType(1, IntegerType()))
        change.add_column("s.late", ListType(1, IntegerType()))
        change.delete_column("m")
    later = [*NESTED_COUNTS[2:], "count(list)", "count(late)", "count(s.late)"]
    check(made, later)
    assert check(made, ["count(late)"]) == (0, 2)
    made.update({"late": "array(1)", "s.late": "array()"}, "id = 7")
    made.delete("id in (3, 4)")
    check(made, later)
    made.compact(rewrite_all=True)
    check(made, later)
    for aggregate in ("min(list)", "max(s)", "min(v)"):
        with pytest.raises(ValidationError, match="has no m"):
            made.scan().aggregate(aggregate)
    with pytest.raises(ValidationError, match="many values a row"):
        made.scan().aggregate("count(list.element)")


def test_what_an_entry_counts_beside_a_list_is_not_taken(lake, spark):
    """The specification says it of columns that have values; a writer may mean the elements."""
    made = lake.create_table("db.p", "id bigint, l array<int>, s struct<a: int>")
    made.append(spark.sql("select 1L id, array(null) l, named_struct('a', int(null)) s"))
    (file,) = data_files(made)
    counts = dict.fromkeys([field.field_id for field in made.schema.fields], 1)
    doctored = {"value_counts": counts, "null_value_counts": counts}
    other = replace(file, file_path=copy_of(file), **doctored)
    made.files.overwrite([other], removed=[file])
    assert check(made, ["count(l)", "count(s)"]) == (0, 1)


def copy_of(file):
    """The address of a copy of a data file."""
    path = Path(file.file_path.removeprefix("file://"))
    copy = path.with_suffix(".copy.parquet")
    copy.write_bytes(path.read_bytes())
    return copy.as_uri()


@pytest.mark.check
def test_nan_and_zero(lake, spark):
    made = lake.create_table("db.p", "x double, k int", partition_by=["k"])
    for values in ("1.5D, 0", "double('NaN'), 1", "-0.0D, 2", "0.0D, 3", "cast(null as double), 4"):
        made.append(spark.sql(f"select {values}").toDF("x", "k"))
    check(made, ["count(x)", "min(x)", "max(x)"])
    check(made, ["count(x)", "min(x)", "max(x)"], by=["k"])


def test_float_partitions_group_as_values_do(lake, spark):
    made = lake.create_table("db.p", "x double, k int", partition_by=["x"])
    made.append(spark.sql("select double('NaN'), 1 union all select -0.0D, 2").toDF("x", "k"))
    made.append(spark.sql("select double('NaN'), 3 union all select 0.0D, 4").toDF("x", "k"))
    check(made, ["count(*)", "min(k)", "max(k)", "max(x)"], by=["x"])


def data_files(table):
    """The entries of the table's data files."""
    found = []
    for manifest in manifests_of(table.io, table.current_snapshot):
        entries = read_manifest(
            table.io, manifest, specs=table.metadata.specs_by_id, schema=table.schema
        )
        found += [e.data_file for e in entries if e.is_live and e.data_file.is_data]
    return found


@pytest.mark.parametrize(
    "lost",
    [
        {"null_value_counts": None},
        only_in_soak({"lower_bounds": None}),
        only_in_check({"upper_bounds": {}}),
        only_in_soak({"value_counts": None}),
    ],
    ids=lambda lost: next(iter(lost)),
)
def test_missing_metrics_are_not_guessed(lake, spark, lost):
    made = lake.create_table("db.p", DDL)
    made.append(rows_of(spark, 0, 10))
    (file,) = data_files(made)
    made.files.append([replace(file, file_path=copy_of(file), **lost)])
    assert made.scan().count() == 20
    check(made, ["count(*)", "count(n)", "min(n)", "max(id)", "count(s.a)", "min(s.a)"])


def test_unknown_record_counts_are_not_summed(numbers):
    """Files without metrics that Java adds to a table have a record count of -1."""
    plan = numbers.scan().plan()
    unknown = pl.when(pl.col("ordinal") == 1).then(-1).otherwise(pl.col("record_count"))
    doctored = replace(plan, files=plan.files.with_columns(unknown.alias("record_count")))
    rows = Measure("count", None, "rows")
    found = answer(
        doctored, [rows], (), schema=numbers.schema, specs=numbers.metadata.partition_specs
    )
    assert (found.answered.to_list(), found.scanned.to_list()) == ([0], [1])
    assert found.partial.rows() == [(10,)]


@pytest.mark.check
def test_vectors_count_from_the_plan(lake, spark, tmp_path):
    made = lake.create_table("db.p", DDL, partition_by=["city"], format_version=3)
    made.append(rows_of(spark, 0, 20))
    files = made.inspect.data_files().sort("partition")
    folder = tmp_path / "deletes"
    folder.mkdir()
    deletes = []
    for place, positions in ((0, [0, 1, 2, 3, 4]), (1, [1, 3])):
        row = files.row(place, named=True)
        made_vector = vector(folder, row["file_path"], positions)
        deletes.append(replace(made_vector, partition=(row["partition"]["city"],)))
    made.files.row_delta(added_deletes=deletes)
    assert made.scan().count() == 13
    # A group whose rows are all deleted is none.
    assert check(made, ["count(*)", "count(city)", "max(city)"], by=["city"]) == (4, 0)
    assert check(made, ["count(*)", "count(id)"], where="city is not null")[1] == 0
    # The extreme values may be deleted.
    assert check(made, ["min(id)", "max(id)", "count(n)"]) == (2, 2)


@pytest.mark.check
def test_position_deletes_are_read(lake, spark, tmp_path):
    """They may hold a position twice, or name a file that is gone."""
    made = lake.create_table("db.p", DDL)
    made.append(rows_of(spark, 0, 10))
    folder = tmp_path / "deletes"
    folder.mkdir()
    data = made.inspect.data_files()["file_path"][0]
    made.files.row_delta(added_deletes=[written(folder, "parquet", [(data, 1), (data, 1)])])
    made.append(rows_of(spark, 10, 20))
    assert made.scan().count() == 19
    assert check(made, ["count(*)", "min(id)", "max(id)"]) == (1, 1)


@pytest.mark.parametrize(
    ("aggregates", "by", "message"),
    [
        (["sum(id)"], (), "is not an aggregate"),
        (["count(distinct id)"], (), "is not a column|cannot|not"),
        (["min(*)"], (), r"\* can only be counted"),
        (["min(s)"], (), "has no minimum"),
        (["min(id)", "min(id)"], (), "several results are named min"),
        (["min(gone)"], (), "gone"),
        ([], (), "no aggregate"),
        (7, (), "aggregates"),
        (["count(*)"], 7, "by"),
        (["count(*)"], ["s"], "identity|partition|struct"),
    ],
)
def test_wrong_requests(numbers, aggregates, by, message):
    with pytest.raises(ValidationError, match=message):
        numbers.scan().aggregate(aggregates, by=by)


LONG = "b" * 40
VALUES = st.fixed_dictionaries({
    "i": st.none() | st.integers(-5, 5),
    "x": st.none() | st.sampled_from([0.0, -0.0, 1.5, -2.5, math.nan, math.inf]),
    "s": st.none() | st.sampled_from(["", "a", LONG, LONG + "c", "é" * 20, "\U0010ffff" * 17]),
    "k": st.none() | st.sampled_from(["p", "q"]),
})  # fmt: skip
PIECES = st.lists(st.lists(VALUES, min_size=1, max_size=4), min_size=1, max_size=3)
RANDOM = ["count(*)", *(f"{f}({c})" for c in "ixsk" for f in ("count", "min", "max"))]
WHERE = st.sampled_from([None, "i > 0", "k = 'p'", "s is not null", "isnan(x) or i is null"])


CASES = st.fixed_dictionaries({
    "pieces": PIECES,
    "spec": st.sampled_from([[], ["k"], ["k", "truncate(2, i)"], ["x"]]),
    "later": st.sampled_from([None, "k", "i"]),
    "version": st.sampled_from([1, 2, 3]),
    "gone": st.lists(st.integers(0, 3), max_size=2),
    "by": st.sampled_from([[], ["k"], ["x"]]),
    "where": WHERE,
})  # fmt: skip
ONCE = settings(
    max_examples=examples(2),
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.check
@ONCE
@given(case=CASES)
def test_any_table(lake, spark, tmp_path_factory, case):
    check_any(lake, spark, tmp_path_factory.mktemp("deletes"), **case)


def check_any(lake, spark, folder, *, pieces, spec, later, version, gone, by, where):
    """A table of some appends, promoted columns, an evolved spec and deletes."""
    name = f"db.r{len(lake.list_tables('db'))}"
    schema = "i int, x float, s string, k string"
    table = lake.create_table(name, schema, partition_by=spec, format_version=version)
    for number, rows in enumerate(pieces):
        if number == 1:
            with table.update_schema() as change:
                change.update_column("i", "bigint")
                change.update_column("x", "double")
            if later is not None and later not in spec:
                with table.update_spec() as change:
                    change.add_field(later)
        values = [tuple(row[name] for name in "ixsk") for row in rows]
        integer, floating = ("int", "float") if number == 0 else ("bigint", "double")
        made = spark.createDataFrame(values, "i bigint, x double, s string, k string").coalesce(1)
        table.append(made.selectExpr(f"{integer}(i) i", f"{floating}(x) x", "s", "k"))
    if version > 1:
        for place, file in enumerate(data_files(table)):
            if place in gone:
                table.files.row_delta(added_deletes=[deletes_of(folder, file, version)])
    check(table, RANDOM, by=by, where=where)
    check(table, ["count(*)", "count(i)"], by=by, where=where)
    assert table.scan(where=where).count() == table.scan(where=where).to_df().count()


def deletes_of(folder: Path, file: DataFile, version: int) -> DataFile:
    """The first row of a file deleted, in the version's way."""
    made = (
        vector(folder, file.file_path, [0])
        if version > 2
        else written(folder, "parquet", [(file.file_path, 0)])
    )
    return replace(made, partition=file.partition, spec_id=file.spec_id)
