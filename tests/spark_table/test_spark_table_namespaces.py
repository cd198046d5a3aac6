"""What a table keeps apart from its daily methods: `maintenance`, `files`, `inspect`."""

import pickle

import pytest
from polars.testing import assert_frame_equal

from frazil.errors import NoSuchRefError, UnsupportedError, ValidationError

TABLES = (
    "history", "metadata_log_entries", "snapshots", "refs", "manifests", "entries", "files",
    "data_files", "delete_files", "partitions", "all_manifests", "all_entries", "all_files",
    "all_data_files", "all_delete_files",
)  # fmt: skip


@pytest.fixture
def cities(lake, spark):
    """A partitioned table of two appends; `first` tags the one before."""
    rows = spark.sql("select 1L as id, 'Oslo' as city")
    table = lake.create_table_as_select("db.cities", rows, partition_by="city")
    table.create_tag("first")
    table.append(spark.sql("select 2L as id, 'Rome' as city"))
    return table


def ids(df):
    return sorted(row.id for row in df.collect())


@pytest.mark.check
def test_files_is_a_metadata_table_and_commits_files(cities, lake):
    assert cities.files().count() == 2
    assert cities.files(ref="first").count() == 1
    copy = lake.create_table("db.copy", cities.schema, partition_by="city")
    written = cities.inspect.files()
    assert copy.files().count() == 0
    with cities.transaction() as change:
        change.files.delete(removed_paths=written["file_path"].to_list())
    assert cities.count() == 0
    assert cities.files().count() == 0


@pytest.mark.check
def test_every_metadata_table_has_the_same_rows_as_polars_and_as_dataframe(cities):
    for name in TABLES:
        frame = getattr(cities.inspect, name)()
        shown = getattr(cities.inspect.dataframes, name)()
        assert shown.columns == frame.columns, name
        assert shown.count() == len(frame), name


def test_a_metadata_table_is_of_the_snapshot_that_is_named(cities):
    first = cities.metadata.snapshots[0]
    choices = (
        {"snapshot_id": first.snapshot_id},
        {"as_of": first.timestamp_ms},
        {"ref": "first"},
    )
    for choice in choices:
        assert len(cities.inspect.files(**choice)) == 1
        assert cities.inspect.dataframes.files(**choice).count() == 1
    assert_frame_equal(cities.inspect.files(first), cities.inspect.files(ref="first"))
    with pytest.raises(NoSuchRefError, match="'none'"):
        cities.inspect.files(ref="none")
    with pytest.raises(ValidationError, match="give a snapshot or ref, not both"):
        cities.inspect.files(first, ref="first")
    with pytest.raises(ValidationError, match="snapshot_id=…, as_of=… or ref=…"):
        cities.inspect.files("first")


def test_namespaces_stay_on_the_driver(cities):
    for namespace in (cities.files, cities.maintenance, cities.inspect.dataframes):
        with pytest.raises(UnsupportedError, match="lives on the driver"):
            pickle.dumps(namespace)
