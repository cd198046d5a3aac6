"""CALL of maintenance: orphan files, statistics, paths, conversions, checks."""

import csv
import os
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from frazil.errors import ValidationError


def folder_of(table):
    """The table's folder."""
    return Path(table.location.removeprefix("file://"))


def test_orphan_files_are_told_and_removed(spark, trips, called):
    orphan = folder_of(trips) / "data" / "orphan.parquet"
    orphan.write_bytes(b"left behind")
    os.utime(orphan, (1_000_000_000, 1_000_000_000))
    told = [{"orphan_file_location": f"file://{orphan}"}]
    assert called("CALL system.remove_orphan_files(table => 'db.trips', dry_run => true)") == told
    assert orphan.exists()
    spark.sql(
        f"SELECT 'file:{orphan}' AS file_path, TIMESTAMP '2020-01-01' AS last_modified"
    ).createOrReplaceTempView("listed_files")
    found = called(
        "CALL system.remove_orphan_files('db.trips', file_list_view => 'listed_files',"
        " dry_run => true)"
    )
    assert [Path(row["orphan_file_location"].removeprefix("file:")) for row in found] == [orphan]
    spark.catalog.dropTempView("listed_files")
    with pytest.raises(ValidationError):
        called("CALL system.remove_orphan_files('db.trips', older_than => current_timestamp())")
    assert (
        called(
            "CALL system.remove_orphan_files('db.trips', TIMESTAMP '2021-01-01',"
            " prefix_mismatch_mode => 'ignore', max_concurrent_deletes => 2)"
        )
        == told
    )
    assert not orphan.exists()
    assert trips.refresh().count() == 40


def test_statistics_are_computed(spark, lake, trips, called):
    [row] = called("CALL system.compute_table_stats('db.trips', columns => array('city'))")
    [file] = trips.refresh().metadata.statistics
    assert row == {"statistics_file": file.statistics_path}
    assert [blob.properties["ndv"] for blob in file.blob_metadata] == ["3"]
    parted = lake.create_table("db.parted", "id bigint, city string", partition_by="city")
    assert called("CALL system.compute_partition_stats(table => 'db.parted')") == []
    parted.append(spark.range(9).selectExpr("id", "concat('c', id % 3) as city"))
    [row] = called("CALL system.compute_partition_stats(table => 'db.parted')")
    assert Path(row["partition_statistics_file"].removeprefix("file://")).exists()


def test_a_table_is_staged_for_another_place(trips, called, tmp_path):
    [row] = called(
        f"CALL system.rewrite_table_path('db.trips', '{trips.location}', 's3://new/trips',"
        f" staging_location => '{tmp_path / 'staged'}')"
    )
    assert row["latest_version"] == Path(trips.metadata_location).name
    assert row["rewritten_manifest_file_paths_count"] == 4
    assert row["rewritten_delete_file_paths_count"] == 0
    [listed] = Path(row["file_list_location"].removeprefix("file://")).parent.rglob("file-list*")
    parts = [listed] if listed.is_file() else [p for p in listed.iterdir() if p.suffix == ".csv"]
    pairs = [pair for part in parts for pair in csv.reader(part.read_text().splitlines())]
    assert all(target.startswith("s3://new/trips/") for _, target in pairs)
    data = {file["file_path"] for file in trips.inspect.files().to_dicts()}
    assert data <= {source for source, _ in pairs}


def test_equality_deletes_are_converted(spark, lake, called):
    table = lake.create_table("db.keyed", "id bigint not null, name string", format_version=2)
    table.append(spark.sql("SELECT id, 'a' AS name FROM range(5)"))
    rows = spark.sql("SELECT 2L AS id, 'b' AS name")
    table.apply_changes(rows, keys="id", mode="equality-deletes")
    [row] = called("CALL system.convert_equality_deletes('db.keyed')")
    assert row["converted_equality_delete_files_count"] >= 1
    assert row["left_equality_delete_files_count"] == 0
    read = StaticTable.from_metadata(table.refresh().metadata_location).scan().to_arrow()
    assert sorted(zip(*read.to_pydict().values(), strict=True))[2] == (2, "b")


def test_a_table_is_checked_and_repaired(trips, called):
    assert called("CALL system.check('db.trips')") == []
    [lost, *_] = [file["file_path"] for file in trips.inspect.files().to_dicts()]
    Path(lost.removeprefix("file://")).unlink()
    [row] = called("CALL system.check(table => 'db.trips')")
    told = {"file_path": lost, "kind": "data", "problem": "missing", "in_current_snapshot": True}
    assert told.items() <= row.items()
    [row] = called("CALL system.repair('db.trips')")
    assert row["removed_data_files_count"] == 1
    assert (row["corrected_files_count"], row["removed_statistics_count"]) == (0, 0)
    assert trips.refresh().count() == 30
