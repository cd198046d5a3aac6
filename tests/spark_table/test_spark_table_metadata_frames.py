"""The metadata tables as DataFrames: names, order and types as the Java runtime shows them."""

import datetime as dt

import pytest
from table_rows import SIMPLE, frame, rows_of

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
    """Of an empty table too."""
    empty = lake.create_table("db.empty", SIMPLE, partition_by=["city"])
    for name, expected in COLUMNS.items():
        for each in (cities, empty):
            assert columns_of(getattr(each.inspect.dataframes, name)()) == expected, name


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
