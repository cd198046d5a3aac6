"""The metadata tables as DataFrames: names, order and types as the Java runtime shows them."""

import datetime as dt
from dataclasses import replace

import pytest
from polars.testing import assert_frame_equal
from table_rows import SIMPLE, frame, rows_of

from ci_share import one_of_each, only_in_soak
from frazil.cli.format import partition_text
from frazil.errors import FrazilError
from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.format.snapshots import Snapshot
from frazil.spark.abilities import HAS_ARROW_FUNCTIONS
from frazil.spark.metadata_frames.frames import agrees_with_list, counts_in_list
from frazil.spark.metadata_frames.shape import dataframe_of
from frazil.spark.session import costs
from frazil.spark.session.facts import type_support
from frazil.table.inspect.inspector import Inspector
from frazil.table.inspect.schemas import partition_struct_type, partitions_struct

METRICS = (
    "struct<column_size:bigint,value_count:bigint,null_value_count:bigint,"
    "nan_value_count:bigint,lower_bound:{0},upper_bound:{0}>"
)
READABLE = (
    f"struct<city:{METRICS.format('string')},id:{METRICS.format('bigint')},"
    f"x:{METRICS.format('double')}>"
)
FILE = (
    ("content", "int"), ("file_path", "string"), ("file_format", "string"), ("spec_id", "int"),
    ("partition", "struct<city:string>"), ("record_count", "bigint"),
    ("file_size_in_bytes", "bigint"), ("column_sizes", "map<int,bigint>"),
    ("value_counts", "map<int,bigint>"), ("null_value_counts", "map<int,bigint>"),
    ("nan_value_counts", "map<int,bigint>"), ("lower_bounds", "map<int,binary>"),
    ("upper_bounds", "map<int,binary>"), ("key_metadata", "binary"),
    ("split_offsets", "array<bigint>"), ("equality_ids", "array<int>"), ("sort_order_id", "int"),
    ("first_row_id", "bigint"), ("referenced_data_file", "string"), ("content_offset", "bigint"),
    ("content_size_in_bytes", "bigint"),
)  # fmt: skip
FILES = (*FILE, ("readable_metrics", READABLE))
ENTRIES = (
    ("status", "int"), ("snapshot_id", "bigint"), ("sequence_number", "bigint"),
    ("file_sequence_number", "bigint"),
    ("data_file", f"struct<{','.join(f'{n}:{t}' for n, t in FILE)}>"),
    ("readable_metrics", READABLE),
)  # fmt: skip
COUNTS = tuple(
    (f"{which}_{content}_files_count", "int")
    for content in ("data", "delete")
    for which in ("added", "existing", "deleted")
)
MANIFESTS = (
    ("content", "int"), ("path", "string"), ("length", "bigint"), ("partition_spec_id", "int"),
    ("added_snapshot_id", "bigint"), *COUNTS,
    ("partition_summaries", "array<struct<contains_null:boolean,contains_nan:boolean,"
                            "lower_bound:string,upper_bound:string>>"),
)  # fmt: skip
PARTITIONS = (
    ("partition", "struct<city:string>"), ("spec_id", "int"), ("record_count", "bigint"),
    ("file_count", "int"), ("total_data_file_size_in_bytes", "bigint"),
    ("position_delete_record_count", "bigint"), ("position_delete_file_count", "int"),
    ("equality_delete_record_count", "bigint"), ("equality_delete_file_count", "int"),
    ("last_updated_at", "timestamp"), ("last_updated_snapshot_id", "bigint"),
)  # fmt: skip
COLUMNS = {
    "history": (
        ("made_current_at", "timestamp"), ("snapshot_id", "bigint"), ("parent_id", "bigint"),
        ("is_current_ancestor", "boolean"),
    ),
    "metadata_log_entries": (
        ("timestamp", "timestamp"), ("file", "string"), ("latest_snapshot_id", "bigint"),
        ("latest_schema_id", "int"), ("latest_sequence_number", "bigint"),
    ),
    "snapshots": (
        ("committed_at", "timestamp"), ("snapshot_id", "bigint"), ("parent_id", "bigint"),
        ("operation", "string"), ("manifest_list", "string"), ("summary", "map<string,string>"),
    ),
    "refs": (
        ("name", "string"), ("type", "string"), ("snapshot_id", "bigint"),
        ("max_reference_age_in_ms", "bigint"), ("min_snapshots_to_keep", "int"),
        ("max_snapshot_age_in_ms", "bigint"),
    ),
    "manifests": MANIFESTS,
    "all_manifests": (*MANIFESTS, ("reference_snapshot_id", "bigint"), ("key_metadata", "binary")),
    "entries": ENTRIES,
    "all_entries": ENTRIES,
    "partitions": PARTITIONS,
    "files": FILES, "data_files": FILES, "delete_files": FILES,
    "all_files": FILES, "all_data_files": FILES, "all_delete_files": FILES,
}  # fmt: skip


def columns_of(df):
    return tuple((field.name, field.dataType.simpleString()) for field in df.schema.fields)


@pytest.fixture
def cities(lake, spark):
    made = lake.create_table("db.t", SIMPLE, partition_by=["city"])
    made.append(frame(spark, [(1, "a", 0.5), (2, "a", float("nan")), (3, None, None)]))
    made.create_tag("first")
    made.overwrite(frame(spark, [(4, "b", 1.0)]), where="city = 'a'")
    return made


@pytest.mark.check
def test_columns(lake, cities):
    """Of an empty table too; as a frame of Polars they are the same, with as many rows."""
    empty = lake.create_table("db.empty", SIMPLE, partition_by=["city"])
    for name, expected in COLUMNS.items():
        for each in (cities, empty):
            assert columns_of(getattr(each.inspect.dataframes, name)()) == expected, name
        shown, found = getattr(cities.inspect.dataframes, name)(), getattr(cities.inspect, name)()
        assert (shown.columns, shown.count()) == (found.columns, len(found)), name


def test_unpartitioned_tables_have_no_partition(lake, spark):
    table = lake.create_table_as_select("db.u", frame(spark, [(1, "a", 0.5)]))
    assert columns_of(table.files()) == tuple(c for c in FILES if c[0] != "partition")
    assert columns_of(table.partitions()) == PARTITIONS[2:]
    (row,) = table.partitions().collect()
    assert (row.record_count, row.file_count) == (1, 1)
    assert (
        "partition"
        not in table.inspect.dataframes.entries().schema["data_file"].dataType.fieldNames()
    )


def test_what_they_tell(cities):
    first, second = cities.metadata.snapshots
    history = cities.history().orderBy("made_current_at").collect()
    assert [(r.snapshot_id, r.parent_id, r.is_current_ancestor) for r in history] == [
        (first.snapshot_id, None, True),
        (second.snapshot_id, first.snapshot_id, True),
    ]
    utc = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC).replace(tzinfo=None)
    assert history[0].made_current_at == utc
    summary = cities.snapshots().where("operation = 'overwrite'").collect()[0].summary
    assert summary["added-records"] == "1"
    assert "operation" not in summary
    assert rows_of(cities.refs(), "name", "type") == [("first", "TAG"), ("main", "BRANCH")]
    live = cities.files().orderBy("partition.city").collect()
    assert [(r.content, r.file_format, r.partition.city, r.record_count) for r in live] == [
        (0, "PARQUET", None, 1),
        (0, "PARQUET", "b", 1),
    ]
    assert live[1].value_counts == {1: 1, 2: 1, 3: 1}
    assert live[1].null_value_counts == {1: 0, 2: 0, 3: 0}
    assert bytes(live[1].lower_bounds[1]) == (4).to_bytes(8, "little")
    assert live[1].readable_metrics.id.lower_bound == 4
    assert live[1].readable_metrics.city.upper_bound == "b"
    assert live[0].readable_metrics.x.null_value_count == 1
    assert {row.status for row in cities.inspect.dataframes.entries().collect()} <= {0, 1, 2}
    assert (
        sum(r.added_data_files_count for r in cities.inspect.dataframes.manifests().collect()) == 1
    )
    assert rows_of(cities.partitions(), "partition.city", "record_count") == [(None, 1), ("b", 1)]
    assert {r.last_updated_snapshot_id for r in cities.partitions().collect()} == {
        first.snapshot_id, second.snapshot_id,
    }  # fmt: skip
    log = cities.inspect.dataframes.metadata_log_entries().orderBy("timestamp").collect()
    assert log[-1].file == cities.metadata_location
    assert log[-1].latest_snapshot_id == second.snapshot_id
    assert cities.inspect.dataframes.delete_files().count() == 0


@pytest.mark.check
def test_other_snapshots(cities):
    first = cities.metadata.snapshots[0]
    for moment in ({"snapshot_id": first.snapshot_id}, {"ref": "first"},
                   {"as_of": first.timestamp_ms}):  # fmt: skip
        assert cities.files(**moment).count() == 2
        assert rows_of(cities.partitions(**moment), "partition.city") == [(None,), ("a",)]
        assert cities.inspect.dataframes.manifests(**moment).count() == 1
        assert cities.inspect.dataframes.entries(**moment).count() == 2
        assert len(cities.inspect.files(**moment)) == 2
    assert_frame_equal(cities.inspect.files(first), cities.inspect.files(ref="first"))
    for given, wrong, says in (
        ([], {"ref": "none"}, "'none'"),
        ([first], {"ref": "first"}, "give a snapshot or ref, not both"),
        (["first"], {}, "snapshot_id=…, as_of=… or ref=…"),
    ):
        with pytest.raises(FrazilError, match=says):
            cities.inspect.files(*given, **wrong)
    assert cities.inspect.dataframes.all_data_files().select("file_path").distinct().count() == 3
    references = (
        cities.inspect.dataframes.all_manifests().select("reference_snapshot_id").distinct()
    )
    assert references.count() == 2


def test_evolved_specs_show_every_field(lake, spark):
    table = lake.create_table("db.t", SIMPLE, partition_by=["city"])
    table.append(frame(spark, [(1, "a", 0.5)]))
    with table.update_spec() as change:
        change.remove_field("city")
        change.add_field("bucket(4, id)")
    table.append(frame(spark, [(1, "a", 0.5)]))
    found = table.partitions().orderBy("spec_id")
    assert (
        found.schema["partition"].dataType.simpleString() == "struct<city:string,id_bucket_4:int>"
    )
    rows = [(tuple(r.partition), r.spec_id) for r in found.collect()]
    # bucket(4, 1L) by the specification's hash: 1392991556 & 0x7fffffff % 4.
    assert rows == [(("a", None), 0), ((None, 1392991556 % 4), 1)]


def test_every_type_has_its_bounds(lake, spark):
    ddl = (
        "b boolean, i int, f float, m decimal(9,2), d date, t timestamp_ntz, z timestamp, "
        "s string, y binary, st struct<a: int>, l array<int>, mp map<string, int>"
    )
    table = lake.create_table("db.t", ddl)
    table.append(
        spark.sql(
            """select true b, 7 i, float(0.5) f, cast(1.25 as decimal(9,2)) m, date'2024-01-02' d,
            timestamp_ntz'2024-01-02 03:04:05.678901' t,
            timestamp'2024-01-02 03:04:05Z' z, 'text' s,
            X'00ff' y, named_struct('a', 3) st, array(1, 2) l, map('k', 1) mp"""
        )
    )
    metrics = table.files().collect()[0].readable_metrics
    shown = {name: metrics[name].lower_bound for name in ("b", "i", "f", "m", "d", "s", "st.a")}
    assert {k: str(v) for k, v in shown.items()} == {
        "b": "True", "i": "7", "f": "0.5", "m": "1.25", "d": "2024-01-02", "s": "text", "st.a": "3",
    }  # fmt: skip
    assert metrics.t.upper_bound == dt.datetime(2024, 1, 2, 3, 4, 5, 678901)
    assert metrics.z.upper_bound == dt.datetime(2024, 1, 2, 3, 4, 5)
    assert bytes(metrics.y.upper_bound) == b"\x00\xff"
    names = table.files().schema["readable_metrics"].dataType.fieldNames()
    assert names == sorted(names)
    assert {"l.element", "mp.key", "mp.value"} <= set(names)


# Metadata tables that executors decode are equal to those that are made beside the session.


TABLES = (
    "manifests", "all_manifests", "entries", "all_entries", "files", "data_files", "delete_files",
    "all_files", "all_data_files", "all_delete_files", "partitions", "position_deletes",
)  # fmt: skip


@pytest.fixture
def executors(monkeypatch):
    """Nothing is small enough for the driver."""

    def switch():
        decoded = ("DECODED_BYTES", "DECODED_MANIFESTS", "LISTED_SNAPSHOTS")
        for limit in (*decoded, "PLANNED_BYTES", "PRUNING_CORES"):
            monkeypatch.setattr(costs, limit, 0)

    return switch


def made(lake, spark, name, partition_by, version):
    """Appends, a removed file, an evolved spec, a column of every kind of bound."""
    ddl = (
        "id bigint not null, city string, f float, m decimal(9,2), d date, t timestamp_ntz, "
        "z timestamp, y binary, st struct<a: int>, l array<int>, mp map<string, int>"
    )
    rows = spark.sql(
        """select id, if(id % 3 = 0, null, concat('c', id % 3)) city, float(id) f,
        cast(id as decimal(9,2)) m, date'2024-01-02' d,
        timestamp_ntz'2024-01-02 03:04:05.678901' t, timestamp'2024-01-02 03:04:05Z' z, X'00ff' y,
        named_struct('a', 3) st, array(1, 2) l, map('k', 1) mp from range(9)"""
    ).coalesce(1)
    table = lake.create_table(name, ddl, partition_by=partition_by, format_version=version)
    table.append(rows)
    table.append(rows)
    table.overwrite(rows.where("id = 1"), where="city = 'c1'")
    with table.update_spec() as change:
        change.add_field("bucket(4, id)")
    table.append(rows)
    return table


def shown(df):
    """Rows as text, in an order of their own."""
    return sorted(repr(row) for row in df.collect())


@pytest.mark.check
@pytest.mark.parametrize(
    ("partition_by", "version"), [only_in_soak((), 1), (("city", "days(t)"), 2)]
)
def test_both_roads_give_equal_frames(lake, spark, executors, partition_by, version):
    table = made(lake, spark, "db.t", partition_by, version)
    beside = {name: getattr(table.inspect.dataframes, name)() for name in TABLES}
    executors()
    for name, expected in beside.items():
        found = getattr(table.inspect.dataframes, name)()
        assert found.schema == expected.schema, name
        assert shown(found) == shown(expected), name


@pytest.mark.skipif(not HAS_ARROW_FUNCTIONS, reason="its functions get no arrays of Arrow")
@pytest.mark.check
def test_a_count_starts_no_python(lake, spark, executors, capsys):
    """Of a snapshot that removed a file, which is an entry and no file of it."""
    table = made(lake, spark, "db.t", ("city",), 2)
    here, removed = table.inspect.dataframes, table.metadata.snapshots[2].snapshot_id
    before = {
        name: shown(getattr(here, name)(snapshot_id=removed)) for name in ("files", "entries")
    }
    assert len(before["files"]) < len(before["entries"])
    executors()
    for name, expected in before.items():
        rows = getattr(here, name)(snapshot_id=removed)
        assert rows.count() == len(expected)
        rows.groupBy().count().explain()
        plan = capsys.readouterr().out
        assert "Python" not in plan
        assert "InArrow" not in plan
        file = "data_file." if name == "entries" else ""
        rows.agg({f"{file}record_count": "sum"}).explain()
        assert "ArrowEvalPython" in capsys.readouterr().out
        assert shown(rows) == expected


def test_counts_that_the_list_contradicts_are_no_rows():
    """A list's counts are believed where the snapshot's own totals say the same."""
    data = ManifestFile(
        manifest_path="m", manifest_length=1, added_files_count=2, existing_files_count=1
    )
    deletes = replace(data, content=ManifestContent.DELETES, added_files_count=1)
    deletes = replace(deletes, existing_files_count=0)
    assert counts_in_list([data, deletes], "files") == [3, 1]
    assert counts_in_list([data], "entries") is None, "no count of deleted entries"
    for summary, agrees in (
        ({}, True),
        ({"total-data-files": "3", "total-delete-files": "1"}, True),
        ({"total-data-files": "2"}, False),
        ({"total-delete-files": "0"}, False),
    ):
        snapshot = Snapshot(snapshot_id=1, timestamp_ms=1, summary=summary)
        assert agrees_with_list(snapshot, [data, deletes]) is agrees


def test_tables_without_snapshots(lake, executors):
    table = lake.create_table("db.t", "id bigint, city string", partition_by=["city"])
    executors()
    for name in TABLES:
        assert getattr(table.inspect.dataframes, name)().count() == 0, name


@pytest.mark.skipif(not HAS_ARROW_FUNCTIONS, reason="its functions get no arrays of Arrow")
@pytest.mark.check
@pytest.mark.parametrize("name", ["all_files", "all_entries"])
def test_what_is_made_of_maps_is_left_out_where_nobody_asks(lake, spark, executors, capsys, name):
    """A function that decodes the maps of entries is no part of a count."""
    table = made(lake, spark, "db.t", ("city",), 2)
    executors()
    rows = getattr(table.inspect.dataframes, name)()
    file = "data_file." if name == "all_entries" else ""
    for asked, decodes in (
        (rows.groupBy().count(), False),
        (rows.where(f"{file}record_count > 0").select(f"{file}file_path"), False),
        (rows.select(f"{file}value_counts"), True),
        (rows.select("readable_metrics.id.lower_bound"), True),
    ):
        asked.explain()
        assert ("ArrowEvalPython" in capsys.readouterr().out) is decodes


def test_nothing_is_collected(lake, spark, executors, capsys):
    """The plan of a large table is made of tasks, which executors turn into rows."""
    table = made(lake, spark, "db.t", ("city",), 2)
    executors()
    for name in ("all_files", "partitions", "all_manifests"):
        getattr(table.inspect.dataframes, name)().explain()
        plan = capsys.readouterr().out
        assert "MapInArrow" in plan, name
        assert ".parquet" not in plan, name


# Metadata of files of an earlier spec whose source columns were dropped from the schema.


SOURCES = "id int, city string, fare decimal(9,2), ts timestamp, point struct<x:int>"
PARTITIONING = ["city", "truncate(2, city)", "fare", "day(ts)", "bucket(4, id)", "point.x"]
# Of the truncation rule of strings, of the days and of the bucket hash in the specification.
OSLO = ("Oslo", "Os", "12.50", dt.date(2024, 1, 1), 0, 7)
NULLS = (None, None, None, None, None, None)


@pytest.fixture
def dropped(lake, spark):
    made = lake.create_table("db.t", SOURCES, partition_by=PARTITIONING)
    made.append(
        spark.sql(
            "select 1 id, 'Oslo' city, 12.50BD fare, timestamp'2024-01-01 10:00:00' ts,"
            " named_struct('x', 7) point"
        )
    )
    with made.update_spec() as update:
        for field in made.spec.fields:
            update.remove_field(field.name)
    with made.update_schema() as update:
        for name in ("city", "fare", "ts", "point"):
            update.delete_column(name)
    made.append(spark.sql("select 2 id"))
    return made


def partitions_in(df):
    rows = [tuple(row.partition) for row in df.collect()]
    return sorted(
        (
            tuple(str(v) if i == 2 and v is not None else v for i, v in enumerate(row))
            for row in rows
        ),
        key=str,
        reverse=True,
    )


@pytest.mark.parametrize(
    ("name", "place"),
    one_of_each(
        ["files", "all_files", "partitions"], ["driver", "executors"], without=("all_files",)
    ),
)
def test_partitions_have_the_values_that_they_were_made_of(dropped, monkeypatch, name, place):
    if place == "executors":
        monkeypatch.setattr(costs, "DECODED_BYTES", 0)
    assert partitions_in(getattr(dropped.inspect.dataframes, name)()) == [NULLS, OSLO]


def test_entries_manifests_and_position_deletes(dropped):
    entries = dropped.inspect.dataframes.entries().selectExpr("data_file.partition")
    assert partitions_in(entries) == [NULLS, OSLO]
    bounds = [
        [(part.lower_bound, part.upper_bound) for part in row.partition_summaries]
        for row in dropped.inspect.dataframes.manifests().collect()
    ]
    shown = ("Oslo", "Os", "12.50", "2024-01-01", "0", "7")
    assert sorted(bounds) == [[], [(value, value) for value in shown]]
    assert dropped.inspect.dataframes.position_deletes().collect() == []


def test_the_partition_of_a_row(dropped):
    df = dropped.scan(columns=["id", "_partition"]).to_df()
    assert rows_of(df.selectExpr("id", "_partition.city", "_partition.ts_day")) == [
        (1, "Oslo", dt.date(2024, 1, 1)),
        (2, None, None),
    ]


def test_a_source_that_no_schema_knows_is_unknown(dropped, spark):
    """Where metadata keeps no schema that has the column, its partition values are NULL."""
    metadata = replace(dropped.metadata, schemas=(dropped.metadata.schema,))
    found = Inspector(metadata, dropped.metadata_location, dropped.io).partitions()
    columns = partitions_struct(partition_struct_type(metadata))
    rows = partitions_in(dataframe_of(spark, found, columns, type_support(spark)))
    assert set(rows) == {NULLS, (None, None, None, dt.date(2024, 1, 1), 0, None)}


def test_the_command_line_shows_them(dropped):
    first = next(row for row in dropped.inspect.partitions().to_dicts() if row["spec_id"] == 0)
    shown = partition_text(dropped.metadata, 0, first["partition"])
    assert shown == (
        "city=Oslo, city_trunc=Os, fare=12.50, ts_day=2024-01-01, id_bucket=0, point.x=7"
    )
