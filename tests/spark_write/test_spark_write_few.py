"""Few rows of many partitions: PyArrow writes them, and the files say what Spark's would."""

from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ci_share import only_in_soak
from frazil.format import types as I
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import UNPARTITIONED, spec_for
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.sorting import UNSORTED, order_for
from frazil.spark.session import costs
from frazil.spark.write.files import FileWrite, chosen_writer, write_data_files
from frazil.spark.write.row_count import ExpectedRows, rows_of_last_writes
from frazil.storage.file_kinds import DATA_FILES
from frazil.storage.files import FileIO, local_path

COLUMNS = {
    "id": I.LongType(),
    "p": I.IntegerType(),
    "b": I.BooleanType(),
    "f": I.FloatType(),
    "x": I.DoubleType(),
    "small": I.DecimalType(7, 2),
    "large": I.DecimalType(38, 10),
    "day": I.DateType(),
    "at": I.TimestamptzType(),
    "local": I.TimestampType(),
    "name": I.StringType(),
    "raw": I.BinaryType(),
}
FEW = ExpectedRows(rows=200)
ROWS = """select id, int(id % 7) p, id % 3 = 0 b, float(id / 3) f,
    case id % 11 when 0 then double('NaN') when 1 then -0.0d else id / 7d end x,
    cast(id / 8 as decimal(7, 2)) small, cast(-id / 3 as decimal(38, 10)) large,
    date'0099-12-31' + int(id) day, timestamp'1582-10-04 00:00:00' + make_dt_interval(id) at,
    timestamp_ntz'2400-01-01 00:00:00.000001' + make_dt_interval(id) local,
    if(id % 5 = 0, null, concat(repeat('ä', int(id % 20)), id)) name, cast(string(id) as binary) raw
    from range(200)"""


def table(tmp_path, *, partition_by, **properties):
    columns = [
        I.NestedField(number, name, kind, False)
        for number, (name, kind) in enumerate(COLUMNS.items(), 1)
    ]
    schema = Schema(tuple(columns))
    spec = spec_for(schema, list(partition_by)) if partition_by else UNPARTITIONED
    return new_table_metadata(
        schema, spec, order_for(schema, ["name"]) if properties.pop("ordered", "") else UNSORTED,
        location=f"file://{tmp_path}/table", properties=properties, format_version=2,
    )  # fmt: skip


def writer_of(entry):
    return pq.read_metadata(local_path(entry.file_path)).created_by.split()[0]


def written(spark, metadata, **more):
    return write_data_files(spark, spark.sql(ROWS), metadata=metadata, io=FileIO(), **more)


@pytest.mark.check
@pytest.mark.parametrize(
    "partition_by", [only_in_soak(["p"]), only_in_soak(["x"]), ["bucket(3, name)", "month(day)"]]
)
def test_files_of_few_rows_say_what_those_of_spark_say(spark, tmp_path, partition_by):
    metadata = table(tmp_path, partition_by=partition_by)
    of_spark = written(spark, metadata)
    told = []
    few = written(spark, metadata, expected=FEW, on_progress=told.append)
    assert [(each.stage, each.writer.name) for each in told] == [
        ("writing", "Arrow"), ("done", "Arrow"),
    ]  # fmt: skip
    assert "few rows" in told[0].writer.why
    assert {writer_of(each) for each in of_spark} == {"parquet-mr"}
    assert {writer_of(each) for each in few} == {"parquet-cpp-arrow"}
    # Sizes and offsets are each writer's own, and a footer of Spark's does not count NaN.
    names = ("partition", "record_count", "value_counts", "null_value_counts", "sort_order_id")
    floats = {list(COLUMNS).index(name) + 1 for name in ("f", "x")}

    def said(entry):
        bounds = [
            sorted((number, value) for number, value in each.items() if number not in floats)
            for each in (entry.lower_bounds, entry.upper_bounds)
        ]
        values = (getattr(entry, name) for name in names)
        plain = [sorted(each.items()) if isinstance(each, dict) else each for each in values]
        return repr((plain, bounds))

    assert sorted(map(said, few)) == sorted(map(said, of_spark))
    read = [
        spark.read.parquet(*(local_path(each.file_path) for each in entries)).select(*COLUMNS)
        for entries in (few, of_spark)
    ]
    one, other = (sorted(map(repr, rows.collect())) for rows in read)
    assert one == other
    assert len(one) == 200


@pytest.mark.parametrize(
    ("partition_by", "expected", "properties"),
    [
        ([], FEW, {}),
        (["p"], None, {}),
        (["p"], ExpectedRows(rows=2_000_000, partitions=100), {}),
        (["p"], FEW, {"write.parquet.bloom-filter-enabled.column.id": "true"}),
        (["p"], FEW, {"write.parquet.compression-codec": "lz4"}),
    ],
)
def test_other_rows_are_spark_s(spark, tmp_path, partition_by, expected, properties):
    metadata = table(tmp_path, partition_by=partition_by, **properties)
    told = []
    entries = written(spark, metadata, expected=expected, on_progress=told.append)
    assert {each.writer.name for each in told} == {"Spark"}
    assert {writer_of(each) for each in entries} == {"parquet-mr"}


@pytest.mark.parametrize(
    ("partition_by", "expected", "writer"),
    [
        (["p"], ExpectedRows(rows=8, partitions=1, is_usual=True), "Arrow"),
        ([], ExpectedRows(rows=8, partitions=1, is_usual=True), "Arrow"),
        # Ten partitions are guessed, and there is none.
        ([], ExpectedRows(rows=9 * costs.FEW_VALUES // len(COLUMNS)), "Spark"),
        (["p"], ExpectedRows(rows=9 * costs.FEW_VALUES // len(COLUMNS)), "Arrow"),
        (["p"], None, "Spark"),
    ],
)
def test_on_a_store_few_rows_are_arrow_s_of_any_number_of_partitions(
    spark, tmp_path, partition_by, expected, writer
):
    metadata = replace(table(tmp_path, partition_by=partition_by), location="s3://bucket/table")
    planned = FileWrite.plan(metadata, FileIO(), None, metadata.schema, DATA_FILES, None)
    assert chosen_writer(spark, planned, expected).name == writer


def test_few_is_a_number_of_values_of_a_partition(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "FEW_VALUES", 50 * len(COLUMNS))
    metadata = table(tmp_path, partition_by=["p"], ordered="yes")
    for rows, writer in ((200, "parquet-cpp-arrow"), (201, "parquet-mr")):
        entries = written(spark, metadata, expected=ExpectedRows(rows=rows, partitions=4))
        assert {writer_of(each) for each in entries} == {writer}
        for each in entries:
            names = pq.read_table(local_path(each.file_path))["name"].to_pylist()
            given = [name for name in names if name is not None]
            # Nulls come first, and Spark orders text by its bytes.
            assert names == [None] * (len(names) - len(given)) + sorted(given, key=str.encode)


def test_frames_of_this_process_have_few_rows(lake):
    table = lake.create_table("db.t", "id bigint, p int", partition_by=["p"])
    rows = pa.table({"id": range(20), "p": pa.array([n % 4 for n in range(20)], pa.int32())})
    table.append(rows)
    paths = table.inspect.files()["file_path"].to_list()
    assert len(paths) == 4
    created = {pq.read_metadata(local_path(path)).created_by.split()[0] for path in paths}
    assert created == {"parquet-cpp-arrow"}
    assert table.scan("p = 3").count() == 5


def writers_of_last_write(table):
    last = table.current_snapshot.snapshot_id
    added = (pl.col("snapshot_id") == last) & (pl.col("status") == 1)
    entries = table.inspect.entries().filter(added)["data_file"]
    paths = entries.struct.field("file_path")
    return {pq.read_metadata(local_path(path)).created_by.split()[0] for path in paths}


@pytest.mark.check
def test_an_append_is_expected_to_be_like_those_before(spark, lake, monkeypatch):
    monkeypatch.setattr(costs, "FEW_VALUES", 20)
    monkeypatch.setattr(costs, "MANY_PARTITIONS", 4)
    table = lake.create_table("db.t", "id bigint, p int", partition_by=["p"])

    def append(rows, partitions):
        table.append(spark.range(rows).selectExpr("id", f"int(id % {partitions}) p"))
        return writers_of_last_write(table)

    spark_s, few = {"parquet-mr"}, {"parquet-cpp-arrow"}
    assert append(40, 4) == spark_s  # nothing is known of the first
    assert append(44, 4) == few  # ten rows of two columns were few
    assert append(8, 4) == spark_s  # eleven were not, of the last five appends
    table.delete("id = 7")  # three rows; tells nothing of appends
    for _ in range(4):
        assert append(8, 4) == spark_s
    assert append(8, 4) == few
    assert append(3, 3) == few
    assert append(3, 3) == few  # as the append before the last, which had more rows a partition
    for _ in range(5):
        append(3, 3)
    assert append(8, 4) == spark_s  # three partitions are not many
    # On a branch it is the branch's own that count.
    first = table.ancestors()[-1]
    table.create_branch("old", snapshot_id=first.snapshot_id)
    table.append(spark.range(8).selectExpr("id", "int(id % 4) p"), branch="old")
    assert table.scan(ref="old").count() == 48
    assert table.scan().count() == 40 + 44 + 7 * 8 + 7 * 3 - 3


def test_an_overwrite_of_partitions_is_expected_to_be_like_those_before(spark, lake, monkeypatch):
    monkeypatch.setattr(costs, "MANY_PARTITIONS", 4)
    table = lake.create_table("db.t", "id bigint, p int", partition_by=["p"])
    for writer in ("parquet-mr", "parquet-cpp-arrow"):
        table.overwrite_partitions(spark.range(40).selectExpr("id", "int(id % 4) p"))
        assert writers_of_last_write(table) == {writer}
    assert sorted(row["id"] for row in table.scan().to_df().collect()) == list(range(40))


def metadata_of(snapshots):
    return SimpleNamespace(snapshots_at_hand=snapshots)


def test_summaries_of_other_writers_need_not_say_it():
    def append(number, **summary):
        return Snapshot(
            snapshot_id=number,
            parent_snapshot_id=number - 1 or None,
            timestamp_ms=number,
            summary={"operation": "append", **summary},
        )

    told = {"added-records": "1200", "changed-partition-count": "400"}
    cases = [{}, {"added-records": "many", "changed-partition-count": "-1"}, told]
    strange = [{**told, "added-records": text} for text in ("²", "٣", "9" * 5000, "")]
    known = {n: append(n, **summary) for n, summary in enumerate(cases, 1)}
    for number, summary in enumerate(strange, 4):
        assert rows_of_last_writes(metadata_of({}), append(number, **summary)) is None
    metadata = metadata_of(known)
    assert rows_of_last_writes(metadata, None) is None
    assert rows_of_last_writes(metadata, known[2]) is None
    usual = ExpectedRows(rows=1200, partitions=400, is_usual=True)
    assert rows_of_last_writes(metadata, known[3]) == usual
    # A parent that has expired ends the look.
    assert rows_of_last_writes(metadata_of({}), known[3]).of_a_partition == 3
