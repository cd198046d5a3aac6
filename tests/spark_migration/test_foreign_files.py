"""Files of other writers as entries of a table, without a session; PyIceberg reads the rows."""

from datetime import UTC, date, datetime, timedelta
from functools import reduce
from operator import or_
from struct import pack

import polars as pl
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from ci_share import only_in_soak
from frazil.catalog.config import load_catalog
from frazil.errors import SchemaMismatchError, UnsupportedError, ValidationError
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import spec_for
from frazil.format.schema import Schema
from frazil.format.schema.name_mapping import mapping_for
from frazil.format.schema.types_json import parse_type
from frazil.format.types import NestedField
from frazil.spark.migration.entries import EntryMaker
from frazil.spark.migration.sources import source_of
from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle
from frazil.table.migration.partitions import (
    PartitionTexts,
    compatible_spec,
    data_files,
    files_in_folders,
    value_column,
)
from frazil.table.snapshots.add_files import AddFiles
from frazil.table.updates.name_mapping import learn_names

KINDS = {
    "id": "long",
    "at": "timestamptz",
    "k": "string",
    "n": "int",
    "day": "date",
    "d": "decimal(9, 2)",
}


def schema(*, required=()):
    fields = enumerate(KINDS.items(), 1)
    return Schema(
        tuple(NestedField(i, n, parse_type(t), required=n in required) for i, (n, t) in fields)
    )


def metadata(by=(), *, version=2, required=(), location="file:///t"):
    columns = schema(required=required)
    spec = spec_for(columns, by)
    return new_table_metadata(columns, spec, location=location, format_version=version)


def maker(table, *, file_format="parquet"):
    """Makes entries for a table's current spec."""
    mapping = mapping_for(table.schema)
    return EntryMaker.of(FileIO(), table, mapping, table.spec, file_format, is_case_sensitive=False)


REFUSED = {
    "another type": ({"id": pa.array([1.5])}, "id is stored as double, and the table's is long"),
    "a required column is missing": ({"at": pa.nulls(1, pa.timestamp("us", "UTC"))}, "lacks the"),
    "a required column is null": ({"id": pa.array([None, 1], pa.int64())}, "has 1 times NULL"),
    "two names": ({"id": [1], "ID": [2]}, "id and ID are one column of the table"),
    "nanoseconds": ({"id": [1], "at": pa.array([1], pa.timestamp("ns", "UTC"))}, "at is stored as"),
    "no zone": ({"id": [1], "at": pa.array([1], pa.timestamp("us"))}, "at is stored as"),
    "more digits": ({"id": [1], "d": pa.array([1], pa.decimal128(10, 2))}, "d is stored as"),
    "another scale": ({"id": [1], "d": pa.array([1], pa.decimal128(9, 1))}, "d is stored as"),
    "strangers": ({"a": [1]}, "none of its columns"),
    "a partition column": ({"id": [1, 2], "k": ["x", "y"]}, "holds the partition column k itself"),
    "another's ids": (
        pa.table(
            [pa.array(["x"])],
            pa.schema([pa.field("k", pa.string(), metadata={"PARQUET:field_id": "1"})]),
        ),
        "k has the field id 1, which is id in the table",
    ),
    "unknown ids": (
        pa.table(
            [pa.array([1])],
            pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "99"})]),
        ),
        "id has the field id 99, by which readers do not find it",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_does_not_fit_is_refused(tmp_path, case):
    data, message = REFUSED[case]
    path = tmp_path / "a.parquet"
    pq.write_table(data if isinstance(data, pa.Table) else pa.table(data), path)
    table = metadata(["k"], required=["id"])
    with pytest.raises(SchemaMismatchError, match=message):
        maker(table).find(str(path), ("x",))


FITTING = {
    "narrower": {"id": pa.array([1], pa.int16()), "d": pa.array([1], pa.decimal128(5, 2))},
    "milliseconds": {"id": [1], "at": pa.array([1], pa.timestamp("ms", "Europe/Oslo"))},
    "the folder's value": {"id": [1], "k": ["x"]},
    "a dictionary": {"ID": [1], "k": pa.array(["x"]).dictionary_encode()},
    "a view": {"id": [1], "k": pa.array(["x"], pa.string_view())},
    "more columns": {"id": [1], "stranger": [[{"a": 1}]]},
}


@pytest.mark.parametrize("case", FITTING)
def test_a_file_that_fits_is_taken(tmp_path, case):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(FITTING[case]), path)
    found = maker(metadata(["k"], required=["id"])).find(str(path), ("x",))
    assert (found.entry.record_count, found.entry.partition) == (1, ("x",))
    assert found.entry.lower_bounds[1] == (1).to_bytes(8, "little")
    assert found.names.spellings == ({(1, "ID")} if "ID" in FITTING[case] else set())
    assert found.names.of_files_only == ({(None, "stranger")} if "more" in case else set())
    if case == "milliseconds":
        assert found.entry.upper_bounds[2] == (1000).to_bytes(8, "little")


def test_bounds_of_dates_in_a_column_of_timestamps_are_timestamps(tmp_path):
    pq.write_table(pa.table({"at": [date(1500, 1, 1), None, date(2024, 2, 29)]}), tmp_path / "a")
    columns = Schema((NestedField(1, "at", parse_type("timestamp"), required=False),))
    table = new_table_metadata(columns, spec_for(columns, ()), location="/t", format_version=3)
    entry = maker(table).find(str(tmp_path / "a"), ()).entry
    micros = [
        (datetime(*day) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        for day in ((1500, 1, 1), (2024, 2, 29))
    ]
    assert [entry.lower_bounds[1], entry.upper_bounds[1]] == [pack("<q", each) for each in micros]


JULIAN = {
    "by a mark": {"org.apache.spark.version": "4.1.0", "org.apache.spark.legacyDateTime": ""},
    "by the version": {"org.apache.spark.version": "2.4.8"},
}


@pytest.mark.parametrize("case", JULIAN)
def test_old_dates_of_the_julian_calendar_are_refused(tmp_path, case):
    path = tmp_path / "a.parquet"
    at = pa.array([datetime(1850, 1, 1)], pa.timestamp("us", "UTC"))
    for refused in ({"day": [date(1500, 1, 1)]}, {"at": at}):
        pq.write_table(pa.table(refused).replace_schema_metadata(JULIAN[case]), path)
        with pytest.raises(SchemaMismatchError, match="by the Julian calendar"):
            maker(metadata()).find(str(path), ())
    for taken in ({"day": [date(1582, 10, 15), None]}, {"id": [1], "other": [date(1500, 1, 1)]}):
        pq.write_table(pa.table(taken).replace_schema_metadata(JULIAN[case]), path)
        assert maker(metadata()).find(str(path), ()).entry.file_path == str(path)


def test_orc_timestamps_without_a_zone_are_refused(tmp_path):
    path = tmp_path / "a.orc"
    orc.write_table(pa.table({"id": [1], "at": pa.array([1], pa.timestamp("us"))}), path)
    with pytest.raises(SchemaMismatchError, match="in the zone of its writer"):
        maker(metadata(), file_format="orc").find(str(path), ())


def listed(*paths):
    return pl.DataFrame({"path": paths, "size": [0 if "zero" in path else 1 for path in paths]})


def test_hidden_and_empty_files_are_no_data():
    kept = ("/r/a", "/r/_k=1/b", "/r/k=_x/c")
    hidden = ("/r/_SUCCESS", "/r/.a.crc", "/r/_t/k=1/d", "/r/k=1/.s/e", "/r/zero", "/r/f._COPYING_")
    assert data_files(listed(*hidden, *kept), "/r")["path"].to_list() == list(kept)


VALUES = {
    "k=x%3Ay%20z": ("x:y z",),
    "k=50%": ("50%",),
    "k=a=b": ("a=b",),
    "k=__HIVE_DEFAULT_PARTITION__": (None,),
    "n=-007": (-7,),
    "day=1969-12-31": (-1,),
    "D=1.5": ("1.50",),
    "at=2024-01-01 00%3A00%3A00.5": (1_704_067_200_500_000,),
}


@pytest.mark.parametrize("folder", VALUES)
def test_values_of_folders(folder):
    column = folder.partition("=")[0].lower()
    table = metadata([column])
    files = files_in_folders(pl.Series([f"file:///r/{folder}/a"]), "file:///r")
    spec = compatible_spec(table, files.names, "r")
    frame = PartitionTexts(spec, table.schema, "UTC").with_values(files, "r")
    values = maker(table).partition_of([frame[value_column(0)][0]])
    assert tuple(str(v) if column == "d" else v for v in values) == VALUES[folder]


def test_times_of_folders_are_those_of_the_zone():
    table = metadata(["at"])
    files = files_in_folders(pl.Series(["file:///r/at=2024-07-01 00%3A00%3A00/a"]), "file:///r")
    spec = compatible_spec(table, files.names, "r")
    frame = PartitionTexts(spec, table.schema, "America/New_York").with_values(files, "r")
    (value,) = maker(table).partition_of([frame[value_column(0)][0]])
    assert datetime.fromtimestamp(value / 1_000_000, UTC) == datetime(2024, 7, 1, 4, tzinfo=UTC)


def test_folders_that_contradict_each_other_or_the_table_are_refused():
    for paths, message in {
        ("/r/k=1/a", "/r/n=1/a"): "different partition columns",
        ("/r/k=1/a", "/r/a"): "different partition columns",
        ("/r/sub/a",): "'sub' names no partition",
        ("/r/k=/a",): "'k=' names no partition",
    }.items():
        with pytest.raises(ValidationError, match=message):
            files_in_folders(pl.Series(paths), "/r")
    table = metadata(["k", "bucket(4, id)"])
    for names in (["k"], ["k", "id"], []):
        with pytest.raises(ValidationError, match="no partition spec of the table"):
            compatible_spec(table, names, "/r")


@pytest.mark.parametrize("version", [1, only_in_soak(2), 3])
def test_pyiceberg_reads_the_rows(tmp_path, version):
    rows = {
        "k=x%3Ay %25/n=-2/day=1969-12-31": {
            "ID": pa.array([1], pa.int32()),
            "at": pa.array([-1], pa.timestamp("ms", "UTC")),
        },
        "/".join(f"{key}=__HIVE_DEFAULT_PARTITION__" for key in ("k", "n", "day")): {"id": [2]},
    }
    for folder, columns in rows.items():
        (tmp_path / "r" / folder).mkdir(parents=True)
        pq.write_table(pa.table(columns), tmp_path / "r" / folder / "a.parquet")
    catalog = load_catalog("c", warehouse=str(tmp_path / "lake"))
    catalog.create_namespace("db")
    made = metadata(["k", "n", "day"], version=version, location=f"file://{tmp_path}/lake/t")
    table = TableHandle(catalog, catalog.create_table("db.t", made))
    paths = pl.Series([f"file://{path}" for path in sorted((tmp_path / "r").rglob("*.parquet"))])
    files = files_in_folders(paths, f"file://{tmp_path}/r")
    spec = compatible_spec(table.metadata, files.names, "r")
    frame = PartitionTexts(spec, table.schema, "UTC").with_values(files, "r")
    make = maker(table.metadata)
    found = [
        make.find(row["path"], make.partition_of([row[value_column(n)] for n in range(3)]))
        for row in frame.to_dicts()
    ]
    with table.transaction() as tx:
        tx.port.run(learn_names(table.metadata, reduce(or_, (one.names for one in found))))
        tx.port.run(AddFiles(table.io, [one.entry for one in found]))
    assert table.metadata.current_snapshot.summary["changed-partition-count"] == "2"
    scan = StaticTable.from_metadata(table.metadata_location).scan
    moment = datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
    first = {"id": 1, "at": moment, "k": "x:y %", "n": -2, "day": date(1969, 12, 31), "d": None}
    nothing = dict.fromkeys(KINDS, None)
    read = scan().to_arrow().to_pylist()
    assert sorted(read, key=lambda row: row["id"]) == [first, {**nothing, "id": 2}]
    assert scan("k == 'x:y %' and n < 0 and id == 1").to_arrow().num_rows == 1
    assert scan("day is null").to_arrow()["id"].to_pylist() == [2]
    for spelling in ("file://", "file:", ""):
        again = [
            make.find(spelling + one.entry.file_path.removeprefix("file://"), one.entry.partition)
            for one in found
        ]
        with pytest.raises(ValidationError, match="has 2 of these 2 files"):
            table.port.run(AddFiles(table.io, [one.entry for one in again]))
    assert len(table.refresh().metadata.snapshots) == 1


LOGGED = {
    "a Delta table": ("_delta_log", "", "Delta"),
    "its partition": ("_delta_log", "day=1/n=2", "Delta"),
    "one of its files": ("_delta_log", "day=1/n=2/a.parquet", "Delta"),
    "a folder of such tables": ("_delta_log", "..", "Delta"),
    "a Hudi table": (".hoodie", "", "Hudi"),
}


@pytest.mark.parametrize("case", LOGGED)
def test_files_that_the_log_of_another_format_rules_are_refused(tmp_path, case):
    log, below, kind = LOGGED[case]
    root = tmp_path / "lake" / "logged"
    for name in (f"{log}/00000000000000000000.json", "day=1/n=2/a.parquet"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("{}")
    with pytest.raises(UnsupportedError, match=f"{kind} table.*deleted rows would come back"):
        source_of(None, FileIO(), str((root / below).resolve()), "parquet")
