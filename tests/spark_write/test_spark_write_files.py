"""Data files of whole writes: layout, entries, ids, and what other engines read."""

from __future__ import annotations

import datetime as dt
import os
import struct
import tempfile
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark import TaskContext

from ci_share import in_circles, only_in_check
from frazil.errors import ConfigurationError, SchemaMismatchError, UnsupportedError
from frazil.format import types as I
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import UNPARTITIONED, spec_for
from frazil.format.properties.column_metrics import metrics_modes
from frazil.format.schema import Schema
from frazil.format.sorting import UNSORTED, order_for
from frazil.spark.session import costs
from frazil.spark.session.facts import temporary_settings
from frazil.spark.write import in_place
from frazil.spark.write.arrow import ArrowTask
from frazil.spark.write.files import write_data_files
from frazil.spark.write.finish import Finisher
from frazil.spark.write.options import write_options
from frazil.storage.files import FileIO, local_path
from frazil.storage.parquet.metrics import MetricsReader


def column(field_id, name, field_type, *, required=False, **more):
    return I.NestedField(field_id, name, field_type, required, **more)


SIMPLE = Schema(
    (
        column(1, "id", I.LongType()),
        column(2, "ts", I.TimestampType()),
        column(3, "name", I.StringType()),
        column(4, "x", I.DoubleType()),
    )
)


def table(tmp_path, schema, *, partition_by=(), sort_by=(), version=2, **properties):
    spec = spec_for(schema, list(partition_by)) if partition_by else UNPARTITIONED
    order = order_for(schema, list(sort_by)) if sort_by else UNSORTED
    metadata = new_table_metadata(
        schema, spec, order,
        location=f"file://{tmp_path}/table", properties=properties, format_version=version,
    )  # fmt: skip
    # A new table numbers its fields afresh; the tests name them by the ids that they wrote down.
    return replace(metadata, schemas=(schema,), partition_specs=(spec,))


def write(spark, df, metadata, **more):
    return write_data_files(spark, df, metadata=metadata, io=FileIO(), **more)


def files_below(tmp_path):
    root = tmp_path / "table"
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def simple_rows(spark, count=100):
    return spark.sql(
        f"""select id, timestamp_ntz'2024-01-01' + make_interval(0, 0, 0, int(id)) ts,
        concat('name-', id) name, double(id) / 2 x from range({count})"""
    )


def test_unpartitioned_entries_and_layout(spark, tmp_path):
    files = write(spark, simple_rows(spark), table(tmp_path, SIMPLE))
    assert sum(f.record_count for f in files) == 100
    on_disk = [local_path(f.file_path) for f in files]
    assert sorted(os.path.relpath(p, tmp_path / "table") for p in on_disk) == files_below(tmp_path)
    for entry, path in zip(files, on_disk, strict=True):
        assert entry.file_path.startswith(f"file://{tmp_path}/table/data/")
        assert os.path.dirname(path) == str(tmp_path / "table" / "data")
        assert entry.file_size_in_bytes == os.path.getsize(path)
        schema = pq.ParquetFile(path).schema_arrow
        assert [f.metadata[b"PARQUET:field_id"] for f in schema] == [b"1", b"2", b"3", b"4"]
        assert (entry.partition, entry.spec_id, entry.sort_order_id) == ((), 0, 0)
    low = min(struct.unpack("<q", f.lower_bounds[1])[0] for f in files)
    high = max(struct.unpack("<q", f.upper_bounds[1])[0] for f in files)
    assert (low, high) == (0, 99)
    assert sum(f.value_counts[3] for f in files) == 100
    assert all(f.null_value_counts == {1: 0, 2: 0, 3: 0, 4: 0} for f in files)
    assert all(f.split_offsets == (4,) for f in files)


PARTITIONINGS = [
    (["month(ts)"], {(648,), (649,), (650,), (651,)}, "ts_month=2024-01"),
    (["day(ts)"], {(19723 + d,) for d in range(100)}, "ts_day=2024-01-01"),
    (["bucket(4, id)"], {(0,), (1,), (2,), (3,)}, "id_bucket=0"),
    (["truncate(50, id)"], {(0,), (50,)}, "id_trunc=50"),
    (["name"], {(f"name-{n}",) for n in range(100)}, "name=name-7"),
]


@pytest.mark.parametrize(
    "case", in_circles(map(pytest.param, PARTITIONINGS), test=1), ids=lambda c: c[0][0]
)
def test_partitions_come_from_the_rows_and_stay_in_the_files(spark, tmp_path, case):
    partition_by, expected, folder = case
    metadata = table(tmp_path, SIMPLE, partition_by=partition_by)
    files = write(spark, simple_rows(spark), metadata)
    assert {f.partition for f in files} == expected
    assert any(f"/data/{folder}/" in f.file_path for f in files)
    assert sorted(os.path.relpath(local_path(f.file_path), tmp_path / "table") for f in files) == (
        files_below(tmp_path)
    )
    paths = [local_path(f.file_path) for f in files]
    found = duckdb.sql(
        "select count(*), count(distinct id), count(name), sum(x) "
        f"from read_parquet({paths!r}, hive_partitioning=false)"
    ).fetchone()
    assert found == (100, 100, 100, 2475.0)
    assert pq.ParquetFile(paths[0]).schema_arrow.names == ["id", "ts", "name", "x"]


def test_floats_are_partitioned_by_their_bits_rule_180(spark, tmp_path):
    schema = Schema((column(1, "x", I.DoubleType()),))
    rows = spark.sql("select explode(array(-0.0d, 0.0d, double('nan'), 1.5d, null)) x")
    files = write(spark, rows, table(tmp_path, schema, partition_by=["x"]))
    assert sorted(repr(f.partition[0]) for f in files) == ["-0.0", "0.0", "1.5", "None", "nan"]
    for f in files:
        low = f.lower_bounds.get(1)
        assert (low is None) == (repr(f.partition[0]) in ("None", "nan"))


NESTED = Schema(
    (
        column(1, "id", I.IntegerType(), required=True),
        column(2, "tags", I.ListType(10, I.StringType())),
        column(3, "m", I.MapType(11, I.StringType(), 12, I.LongType())),
        column(
            4,
            "s",
            I.StructType(
                (
                    column(13, "a", I.DecimalType(9, 2)),
                    column(
                        14, "deep", I.ListType(15, I.StructType((column(16, "z", I.DateType()),)))
                    ),
                )
            ),
        ),
    )
)


def field_ids(arrow_field):
    found = {}
    field_id = (arrow_field.metadata or {}).get(b"PARQUET:field_id")
    found[arrow_field.name] = None if field_id is None else int(field_id)
    kind = arrow_field.type
    children = []
    if hasattr(kind, "key_field"):
        children = [kind.key_field, kind.item_field]
    elif hasattr(kind, "value_field"):
        children = [kind.value_field]
    elif kind.num_fields:
        children = [kind.field(i) for i in range(kind.num_fields)]
    return found | {f"{arrow_field.name}.{k}": v for c in children for k, v in field_ids(c).items()}


def test_nested_columns_carry_every_id_rule_255(spark, tmp_path):
    rows = spark.sql(
        """select 1 id, array('a', null) tags, map('k', 1) m,
        named_struct('deep', array(named_struct('z', date'2024-01-01')), 'a', 1.5) s"""
    )
    (entry,) = write(spark, rows, table(tmp_path, NESTED))
    path = local_path(entry.file_path)
    ids = {}
    for field in pq.ParquetFile(path).schema_arrow:
        ids |= field_ids(field)
    assert set(ids.values()) == {1, 2, 3, 4, 10, 11, 12, 13, 14, 15, 16}
    assert entry.file_size_in_bytes == os.path.getsize(path)
    assert entry.lower_bounds.keys() == {1, 13}
    assert entry.lower_bounds[13] == b"\x00\x96"
    assert entry.column_sizes.keys() == {1, 10, 11, 12, 13, 16}
    assert entry.value_counts.keys() == {1, 13}
    expected = (
        1,
        ["a", None],
        {"k": 1},
        {"a": Decimal("1.50"), "deep": [{"z": dt.date(2024, 1, 1)}]},
    )
    assert duckdb.sql(f"select * from '{path}'").fetchone() == expected
    assert spark.read.parquet(path).first().asDict(recursive=True) == {
        "id": 1,
        "tags": ["a", None],
        "m": {"k": 1},
        "s": {"a": Decimal("1.50"), "deep": [{"z": dt.date(2024, 1, 1)}]},
    }


ODD_TYPES = Schema(
    (
        column(1, "u", I.UUIDType()),
        column(2, "f", I.FixedType(3)),
        column(3, "t", I.TimeType()),
        column(4, "n", I.TimestampNanoType()),
        column(5, "z", I.TimestamptzNanoType()),
        column(6, "g", I.GeometryType()),
        column(7, "nothing", I.UnknownType()),
        column(8, "us", I.ListType(9, I.UUIDType())),
        column(10, "x", I.DoubleType()),
        column(11, "st", I.StructType((column(12, "u", I.UUIDType()),))),
        column(13, "m", I.MapType(14, I.StringType(), 15, I.FixedType(1))),
        column(16, "v", I.VariantType()),
    )
)
UUID = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
ODD_ROWS = f"""
select '{UUID.upper()}' u, X'010203' f, 81068000000L t, 1L n, 2L z,
  X'0101000000000000000000F03F0000000000000040' g, void(null) nothing,
  array('{UUID}', null) us, double('nan') x, named_struct('u', '{UUID}') st, map('k', X'09') m,
  parse_json('{{"a": 1}}') v
union all select null, null, null, null, null, null, null, null, 1d, null, null, null
"""


@pytest.mark.skipif(pyspark.__version__ < "4.1", reason="it reads no variants")
@pytest.mark.parametrize("columns", [None, ("t", "n", "z", "g", "nothing", "x", "v")])
def test_types_that_sparks_writer_does_not_know_rule_258(spark, tmp_path, columns):
    schema = ODD_TYPES
    if columns is not None:
        schema = schema.select(columns)
    rows = spark.sql(ODD_ROWS.replace("void(null)", "null"))
    if columns is not None:
        rows = rows.select(*columns)
    files = write(spark, rows.coalesce(1), table(tmp_path, schema, version=3))
    assert sum(f.record_count for f in files) == 2
    (entry,) = files
    parquet = pq.ParquetFile(local_path(entry.file_path))
    text = str(parquet.schema)
    wanted = {
        "t": "int64 field_id=3 t (Time(isAdjustedToUTC=false, timeUnit=microseconds))",
        "n": "int64 field_id=4 n (Timestamp(isAdjustedToUTC=false, timeUnit=nanoseconds",
        "z": "int64 field_id=5 z (Timestamp(isAdjustedToUTC=true, timeUnit=nanoseconds",
        "g": "binary field_id=6 g (Geometry(crs=OGC:CRS84))",
        "u": "fixed_len_byte_array(16) field_id=1 u (UUID)",
        "f": "fixed_len_byte_array(3) field_id=2 f",
        "us": "fixed_len_byte_array(16) field_id=9 element (UUID)",
        "st": "fixed_len_byte_array(16) field_id=12 u (UUID)",
        "m": "fixed_len_byte_array(1) field_id=15 value",
        "v": "group field_id=16 v (Variant(1))",
    }
    for name in schema.as_struct().fields:
        if name.name in wanted:
            assert wanted[name.name] in text, text
    assert "nothing" not in text
    if "u" in [f.name for f in schema.fields]:
        assert entry.nan_value_counts == {10: 1}
        found = duckdb.sql(
            f"select u::varchar, f, us[1]::varchar, st.u::varchar, m['k'] "
            f"from '{local_path(entry.file_path)}' where u is not null"
        ).fetchone()
        assert found == (UUID, b"\x01\x02\x03", UUID, UUID, b"\x09")
        assert entry.lower_bounds[1] == bytes.fromhex(UUID.replace("-", ""))
    assert entry.lower_bounds[3] == struct.pack("<q", 81068000000)
    assert entry.upper_bounds[4] == struct.pack("<q", 1)


def test_uuid_partitions_through_arrow(spark, tmp_path):
    schema = Schema((column(1, "id", I.LongType()), column(2, "u", I.UUIDType())))
    rows = spark.sql("select id, uuid() u from range(200)").cache()
    rows.count()
    metadata = table(tmp_path, schema, partition_by=["bucket(8, u)"])
    files = write(spark, rows, metadata)
    assert {f.partition[0] for f in files} == set(range(8))
    assert sum(f.record_count for f in files) == 200
    for f in files:
        assert f"/data/u_bucket={f.partition[0]}/" in f.file_path
    rows.unpersist()


BAD_VALUES = [
    (I.IntegerType(), False, "2147483648L", "does not fit into an int"),
    (I.IntegerType(), False, "-2147483649L", "does not fit into an int"),
    (I.IntegerType(), True, "cast(null as int)", "required"),
    (I.FixedType(2), False, "X'010203'", "exactly 2 bytes"),
    (I.UUIDType(), False, "'no-uuid'", "no uuid"),
    (I.TimeType(), False, "86400000000L", "microsecond"),
    (
        I.StructType((column(2, "x", I.LongType(), required=True),)),
        False,
        "named_struct('x', cast(null as long))",
        "'c.x' is required",
    ),
    (I.ListType(2, I.LongType(), True), False, "array(1, null)", "'c.element' is required"),
]


@pytest.mark.parametrize(
    "case", in_circles(map(pytest.param, BAD_VALUES), test=1), ids=lambda c: str(c[0])
)
def test_bad_values_stop_the_write_and_leave_nothing(spark, tmp_path, case):
    field_type, required, sql, words = case
    schema = Schema((column(1, "c", field_type, required=required),))
    rows = spark.sql(
        f"select if(id = 7, {sql}, null) c from range(8)" if not required else f"select {sql} c"
    )
    with pytest.raises(SchemaMismatchError, match=words):
        write(spark, rows, table(tmp_path, schema))
    assert files_below(tmp_path) == []
    assert not list(Path(tmp_path, "table").rglob("*.parquet"))


def test_a_task_that_outlives_a_failed_write_leaves_nothing(tmp_path):
    schema = Schema((column(1, "u", I.UUIDType()),))
    metadata = table(tmp_path, schema)
    task = ArrowTask(
        finisher=Finisher(
            FileIO(), MetricsReader(schema, metrics_modes(schema, {})), UNPARTITIONED, 0, True
        ),
        keys=(),
        folder=f"{metadata.location}/data/gone",
        operation_id="gone",
        options=write_options(metadata, schema),
        partition_type=I.StructType(()),
    )
    rows = pa.record_batch({"u": ["00000000-0000-0000-0000-000000000001"]})
    with pytest.raises(FileNotFoundError):
        list(task(iter([rows])))
    assert files_below(tmp_path) == []


WIDER = [
    (I.IntegerType(), "2147483647L", 2147483647),
    (I.IntegerType(), "-2147483648L", -2147483648),
    (I.IntegerType(), "cast(null as bigint)", None),
    (I.FloatType(), "cast(-32768 as short)", -32768.0),
    (I.DoubleType(), "2147483647", 2147483647.0),
    (I.DecimalType(21, 2), "9223372036854775807L", Decimal("9223372036854775807.00")),
    (I.DecimalType(3, 0), "cast(-128 as byte)", Decimal(-128)),
]


@pytest.mark.parametrize("case", WIDER, ids=lambda c: str(c[0]))
def test_numbers_go_where_none_is_lost(spark, tmp_path, case):
    field_type, sql, expected = case
    rows = spark.sql(f"select {sql} c")
    (file,) = write(spark, rows, table(tmp_path, Schema((column(1, "c", field_type),))))
    assert pq.read_table(local_path(file.file_path)).column("c").to_pylist() == [expected]


NARROWER = [
    (I.FloatType(), "1"),
    (I.DoubleType(), "1L"),
    (I.DecimalType(20, 2), "1L"),
    (I.IntegerType(), "1.5D"),
]


@pytest.mark.parametrize("case", NARROWER, ids=lambda c: str(c[0]))
def test_numbers_that_could_be_lost_are_refused(spark, tmp_path, case):
    field_type, sql = case
    with pytest.raises(SchemaMismatchError, match="cannot hold"):
        write(
            spark,
            spark.sql(f"select {sql} c"),
            table(tmp_path, Schema((column(1, "c", field_type),))),
        )


def test_missing_columns_get_write_defaults_rules_31_to_33(spark, tmp_path):
    schema = Schema(
        (
            column(1, "id", I.LongType()),
            column(2, "n", I.IntegerType(), required=True, initial_default=1, write_default=5),
            column(3, "d", I.DateType(), write_default=19723),
            column(4, "ts", I.TimestampType(), write_default=1),
            column(5, "tz", I.TimestamptzType(), write_default=1),
            column(6, "dec", I.DecimalType(9, 2), write_default=Decimal("1.50")),
            column(7, "b", I.BinaryType(), write_default=b"\x00\x01"),
            column(8, "none", I.StringType()),
            column(
                9,
                "s",
                I.StructType((column(10, "y", I.IntegerType(), write_default=3),)),
                write_default=(),
            ),
        )
    )
    rows = spark.range(1)
    (entry,) = write(spark, rows, table(tmp_path, schema, version=3))
    utc = dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)
    (row,) = pq.ParquetFile(local_path(entry.file_path)).read().to_pylist()
    assert row == {
        "id": 0, "n": 5, "d": dt.date(2024, 1, 1), "ts": utc.replace(tzinfo=None), "tz": utc,
        "dec": Decimal("1.50"), "b": b"\x00\x01", "none": None, "s": {"y": 3},
    }  # fmt: skip


@pytest.mark.parametrize("partition_by", [(), ("bucket(2, id)",)])
def test_files_are_sorted_and_say_so_rule_96(spark, tmp_path, partition_by):
    metadata = table(tmp_path, SIMPLE, sort_by=["name desc nulls last"], partition_by=partition_by)
    files = write(spark, simple_rows(spark, 500).repartition(3), metadata)
    assert {f.sort_order_id for f in files} == {metadata.default_sort_order_id} == {1}
    for f in files:
        names = pq.ParquetFile(local_path(f.file_path)).read()["name"].to_pylist()
        assert names == sorted(names, reverse=True)


@pytest.mark.parametrize(
    "option", [{"output-sort-order-id": 0}, {"use-table-distribution-and-ordering": "false"}]
)
def test_a_table_that_was_created_sorted_takes_unsorted_files(spark, tmp_path, option):
    """Rule 94: order 0 is unsorted, though such a table lists order 1 alone."""
    metadata = table(tmp_path, SIMPLE, sort_by=["id desc"])
    assert [order.order_id for order in metadata.sort_orders] == [1]
    (file,) = write(spark, simple_rows(spark, 50).coalesce(1), metadata, options=option)
    assert (file.sort_order_id, file.record_count) == (0, 50)


@pytest.mark.parametrize("in_struct", [True, only_in_check(False)])
def test_small_target_makes_several_files(spark, tmp_path, in_struct):
    """A struct takes what its fields take."""
    metadata = table(tmp_path, SIMPLE)
    rows = simple_rows(spark, 1000).coalesce(1)
    if in_struct:
        metadata = table(tmp_path, Schema((column(5, "s", I.StructType(SIMPLE.fields)),)))
        rows = rows.selectExpr("struct(*) as s")
    files = write(spark, rows, metadata, options={"target-file-size-bytes": "4800"})
    assert len(files) == 10
    assert sum(f.record_count for f in files) == 1000


def test_unknown_options_and_formats_are_refused(spark, tmp_path):
    metadata = table(tmp_path, SIMPLE)
    with pytest.raises(ConfigurationError, match="compresion"):
        write(spark, simple_rows(spark), metadata, options={"compresion": "zstd"})
    with pytest.raises(UnsupportedError, match="orc"):
        write(spark, simple_rows(spark), metadata, options={"write-format": "orc"})


def test_many_files_are_finished_by_executors(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "LOCAL_FOOTERS", replace(costs.LOCAL_FOOTERS, here=0))
    metadata = table(tmp_path, SIMPLE, partition_by=["bucket(3, name)"])
    stages = []
    files = write(spark, simple_rows(spark), metadata, on_progress=lambda p: stages.append(p.stage))
    assert {f.partition for f in files} == {(0,), (1,), (2,)}
    assert sum(f.record_count for f in files) == 100
    assert stages == ["writing", "footers", "done"]


# Spark's writer leaves files where it wrote them: the same rows and checks either way.


SETTING = in_place.IN_PLACE_SETTING
ASKED = "spark.sql.frazil.test"
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@pytest.fixture(params=["always", "never"])
def way(spark, request):
    """Both ways of a write."""
    with temporary_settings(spark, {SETTING: request.param}):
        yield request.param


def ids(table):
    return sorted(row["id"] for row in table.to_df().collect())


def test_partitions_and_names_of_any_kind(spark, lake, way, tmp_path):
    table = lake.create_table(
        "db.t", "id bigint, s string", partition_by=["s"], location=f"file://{tmp_path}/50%25 é+"
    )
    values = ["a b%:/", "", "é+", None]
    rows = spark.createDataFrame([(n, s) for n, s in enumerate(values)], "ID bigint, S string")
    table.append(rows)
    assert dict(map(tuple, table.to_df().collect())) == dict(enumerate(values))
    assert ids(table) == [0, 1, 2, 3]


def test_tasks_see_the_settings_of_the_session(spark, lake, way):
    def told(batches):
        yield from (batch for batch in batches if not batch.num_rows)
        yield pa.record_batch({"s": [TaskContext.get().getLocalProperty(ASKED)]})

    table = lake.create_table("db.t", "s string")
    with temporary_settings(spark, {ASKED: "seen"}):
        table.append(spark.range(0, 1, 1, 1).mapInArrow(told, "s string"))
    assert [row["s"] for row in table.to_df().collect()] == ["seen"]


def test_days_of_another_calendar(spark, lake, way):
    table = lake.create_table("db.t", "d date")
    table.append(spark.range(1).selectExpr("date_add(date'1500-01-01', int(id)) d"))
    assert [str(row["d"]) for row in table.to_df().collect()] == ["1500-01-01"]


def test_a_manager_of_lists_that_knows_no_local_disk(spark, lake, way):
    table = lake.create_table("db.t", "id bigint")
    # There is no such class: whoever asks for it fails.
    with temporary_settings(spark, {MANAGER: "org.example.OfAStoreAlone"}):
        table.append(spark.range(5))
        assert ids(table) == [0, 1, 2, 3, 4]


def test_a_list_that_cannot_be_written_leaves_no_file(spark, lake, tmp_path, monkeypatch):
    taken = tmp_path / "taken"

    def taken_folder(**_):
        (taken / "list").mkdir(parents=True)
        (taken / "list" / "0").write_text("v1")
        return str(taken)

    monkeypatch.setattr(tempfile, "mkdtemp", taken_folder)
    table = lake.create_table("db.t", "id bigint")
    with (
        temporary_settings(spark, {SETTING: "always"}),
        pytest.raises(Exception, match="Race while writing"),
    ):
        table.append(spark.range(5))
    assert not list(tmp_path.rglob("*.parquet"))
    assert lake.load_table("db.t").current_snapshot is None


def test_a_task_that_fails_leaves_no_file(spark, lake, way, tmp_path):
    table = lake.create_table("db.t", "id bigint")
    rows = spark.range(0, 20, 1, 2).selectExpr("if(id = 19, raise_error('no'), id) id")
    with pytest.raises(Exception, match="no"):
        table.append(rows)
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("refusal", ["no such class", "the last call"])
def test_a_spark_that_refuses_before_anything_is_written(spark, lake, monkeypatch, refusal):
    kept = in_place.BySession()
    if refusal == "the last call":
        kept.put(spark, replace(in_place._make(spark), name="no option of Scala's"))
    else:
        monkeypatch.setattr(in_place, "_WRITER", "org.example.NoWriter")
    monkeypatch.setattr(in_place, "_MAKERS", kept)
    table = lake.create_table("db.t", "id bigint")
    with temporary_settings(spark, {SETTING: "always"}), pytest.raises(UnsupportedError):
        table.append(spark.range(3))
    table.append(spark.range(3))
    assert ids(table) == [0, 1, 2]


def test_a_setting_that_says_nothing(spark, lake):
    table = lake.create_table("db.t", "id bigint")
    with (
        temporary_settings(spark, {SETTING: "perhaps"}),
        pytest.raises(ConfigurationError, match="always or never"),
    ):
        table.append(spark.range(3))


def test_a_file_that_nobody_listed_is_in_no_commit(spark, lake, tmp_path, monkeypatch):
    """What a zombie or a loser of speculation leaves beside the others."""
    real = in_place._write

    def with_a_zombie(makers, rows, access, folder, keys, options):
        found = real(makers, rows, access, folder, keys, options)
        written = next(Path(folder.removeprefix("file://")).glob("*.parquet"))
        (written.parent / f"part-00000-zombie-{written.name}").write_bytes(written.read_bytes())
        return found

    monkeypatch.setattr(in_place, "_write", with_a_zombie)
    table = lake.create_table("db.t", "id bigint")
    with temporary_settings(spark, {SETTING: "always"}):
        table.append(spark.range(6))
    assert ids(table) == [0, 1, 2, 3, 4, 5]
    assert len(list(tmp_path.rglob("*.parquet"))) == table.scan().plan().files.height
