"""Maintenance beside the Java runtime: the same columns and counts; both read the statistics."""

from __future__ import annotations

import csv
import json
import os
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
from interop_engines import DuckDB
from interop_java import java_table

from ci_share import only_in_interop, only_in_soak
from frazil.spark.lake import Lake
from frazil.spark.table import Table
from frazil.storage.files import FileIO

DDL = (
    "id bigint, part int, name string, f float, m decimal(12,2), at timestamp, day date, b boolean"
)
ROW = (
    "id",
    "cast(id % 3 as int) as part",
    "if(id % 5 = 0, null, concat('n', id % 50)) as name",
    "cast(id % 9 as float) as f",
    "cast(id % 13 - 6 as decimal(12,2)) as m",
    "timestamp_micros(id * 1000) as at",
    "date_add(date'1969-12-01', cast(id % 60 as int)) as day",
    "id % 2 = 0 as b",
)
OLD = 4 * 24 * 3600


def made(spark: Any, lake: Lake, name: str, version: int = 2, **properties: str) -> Table:
    """Appends, deletes by position, an overwrite, a branch."""
    table = lake.create_table(
        f"db.{name}",
        DDL,
        format_version=version,
        partition_by=["part"],
        properties={"write.delete.mode": "merge-on-read", **properties},
    )
    table.append(spark.range(0, 90).selectExpr(*ROW))
    table.create_branch("audit")
    table.append(spark.range(90, 180).selectExpr(*ROW))
    table.delete("id % 10 = 3")
    table.append(spark.range(200, 230).selectExpr(*ROW), branch="audit")
    table.overwrite(spark.range(300, 330).selectExpr(*ROW), where="part = 1")
    return table


def call(spark: Any, procedure: str, name: str, arguments: str = "") -> list[dict[str, Any]]:
    """The rows that a procedure of the Java runtime gives."""
    text = f", {arguments}" if arguments else ""
    rows = spark.sql(f"call java_sql.system.{procedure}(table => 'db.{name}'{text})").collect()
    return [row.asDict() for row in rows]


def local(path: str) -> Path:
    return Path("/" + path.removeprefix("file:").lstrip("/"))


def lying(table: Table) -> set[Path]:
    """The files below the table's folder; hidden ones aside, which nobody's maintenance removes."""
    files = (path for path in local(table.location).rglob("*") if path.is_file())
    return {path for path in files if not {part[0] for part in path.parts} & {".", "_"}}


def reached(table: Table) -> set[Path]:
    """What the metadata reaches, read by hand from the specification."""
    location = table.metadata_location
    metadata = json.loads(local(location).read_bytes())
    found = {local(location), *(local(e["metadata-file"]) for e in metadata["metadata-log"])}
    for kind in ("statistics", "partition-statistics"):
        found |= {local(file["statistics-path"]) for file in metadata.get(kind, ())}
    for snapshot in metadata["snapshots"]:
        found.add(local(snapshot["manifest-list"]))
        for manifest in records(snapshot["manifest-list"]):
            found.add(local(manifest["manifest_path"]))
            entries = records(manifest["manifest_path"])
            found |= {local(e["data_file"]["file_path"]) for e in entries if e["status"] != 2}
    return found


def records(path: str) -> Iterator[Any]:
    with local(path).open("rb") as stream:
        yield from list(fastavro.reader(stream))


def leave_orphans(table: Table) -> set[str]:
    """Orphans of several kinds, all files old; the names of the orphans."""
    names = ["data/x.parquet", "data/part=7/y.parquet", "metadata/z-m0.avro", "metadata/9.stats"]
    for name in names:
        table.io.create(f"{table.location}/{name}", b"123")
    for hidden in ("data/_h/q.parquet", "data/.w.parquet"):
        table.io.create(f"{table.location}/{hidden}", b"123")
    moment = time.time() - OLD
    for path in local(table.location).rglob("*"):
        if path.is_file():
            os.utime(path, (moment, moment))
    return {name.rpartition("/")[2] for name in names}


@pytest.mark.parametrize("version", [only_in_soak(2), 3])
def test_orphan_files_are_those_of_java(spark: Any, sql_lake: Lake, version: int) -> None:
    names = [f"orphans_{who}_{version}" for who in ("frazil", "java")]
    ours, theirs = (made(spark, sql_lake, name, version) for name in names)
    expected = leave_orphans(ours)
    assert leave_orphans(theirs) == expected
    # Each looks at the other's table first.
    told = call(spark, "remove_orphan_files", names[0], "dry_run => true")
    found = ours.maintenance.remove_orphan_files(dry_run=True)
    assert list(told[0]) == found.frame.columns
    same = {local(row["orphan_file_location"]) for row in told}
    assert {local(path) for path in found.frame["orphan_file_location"]} == same
    done = call(spark, "remove_orphan_files", names[1])
    assert {local(row["orphan_file_location"]).name for row in done} == expected
    assert ours.maintenance.remove_orphan_files().deleted_files_count == len(expected)
    assert lying(ours) == reached(ours)
    assert lying(theirs) == reached(theirs)
    assert spark.table(f"java_sql.db.{names[0]}").count() == ours.scan().count()


@pytest.mark.parametrize("version", [2, only_in_soak(3)])
def test_snapshots_expire_as_by_java(spark: Any, sql_lake: Lake, version: int) -> None:
    names = [f"expired_{who}_{version}" for who in ("frazil", "java")]
    ours, theirs = (made(spark, sql_lake, name, version) for name in names)
    for table in (ours, theirs):
        table.compact(rewrite_all=True)
    # The rewrite of deletes on top leaves none of the files of before.
    limit = datetime.now(UTC).replace(tzinfo=None).isoformat(sep=" ")
    [java] = call(spark, "expire_snapshots", names[1], f"older_than => timestamp '{limit}'")
    told = ours.maintenance.expire_snapshots(older_than=limit, dry_run=True)
    done = ours.maintenance.expire_snapshots(older_than=limit)
    assert told.counts == done.counts == java
    theirs.refresh()
    for table in (ours, theirs):
        moment = time.time() - OLD
        for path in lying(table):
            os.utime(path, (moment, moment))
        table.maintenance.remove_orphan_files()
        older = {path for path in lying(table) if path.name.endswith(".metadata.json")}
        assert lying(table) - older == reached(table) - older
        assert table.maintenance.check().is_sound


def java_statistics(spark: Any, name: str) -> dict[int, dict[int, tuple[bytes, str]]]:
    """By snapshot and field, the sketch that Java reads and its number of distinct values."""
    table = java_table(spark, f"java_sql.db.{name}")
    puffin = spark._jvm.org.apache.iceberg.puffin.Puffin
    found: dict[int, dict[int, tuple[bytes, str]]] = {}
    for file in list(table.statisticsFiles()):
        reader = puffin.read(table.io().newInputFile(file.path())).build()
        blobs = reader.fileMetadata().blobs()
        for pair in reader.readAll(blobs).iterator():
            data = bytes(spark._jvm.org.apache.iceberg.util.ByteBuffers.toByteArray(pair.second()))
            blob = pair.first()
            fields = found.setdefault(int(file.snapshotId()), {})
            fields[int(blob.inputFields().get(0))] = (data, blob.properties().get("ndv"))
        reader.close()
    return found


def test_sketches_are_those_of_java(spark: Any, sql_lake: Lake) -> None:
    names = [f"sketches_{who}" for who in ("frazil", "java")]
    ours, _ = (made(spark, sql_lake, name) for name in names)
    [java] = call(spark, "compute_table_stats", names[1])
    result = ours.maintenance.compute_table_stats()
    assert list(java) == ["statistics_file"]
    assert result.statistics_file is not None
    [mine], [yours] = (list(java_statistics(spark, name).values()) for name in names)
    assert {field: ndv for field, (_, ndv) in mine.items()} == {
        field: ndv for field, (_, ndv) in yours.items()
    }
    # Small sets are held whole.
    for field, (data, _) in mine.items():
        assert data[16:] == yours[field][0][16:], field
    assert spark.table(f"java_sql.db.{names[0]}").where("id = 2").count() == 1


@pytest.mark.parametrize("version", [only_in_interop(2), 3])
def test_partition_statistics_are_those_of_java(spark: Any, sql_lake: Lake, version: int) -> None:
    name = f"partition_stats_{version}"
    table = made(spark, sql_lake, name, version)
    [java] = call(spark, "compute_partition_stats", name)
    theirs = pq.read_table(local(java["partition_statistics_file"]))
    result = table.maintenance.compute_partition_stats()
    assert list(java) == ["partition_statistics_file"]
    assert result.partition_statistics_file is not None
    mine = pq.read_table(local(result.partition_statistics_file))
    assert field_ids(mine) == field_ids(theirs)
    assert [str(field.type) for field in mine.schema] == [str(f.type) for f in theirs.schema]
    left_out = {"total_record_count"}
    rows = [
        [{k: v for k, v in row.items() if k not in left_out} for row in found.to_pylist()]
        for found in (mine, theirs)
    ]
    assert rows[0] == rows[1]
    # Java goes on from our file.
    table.append(spark.range(400, 403).selectExpr(*ROW))
    [java] = call(spark, "compute_partition_stats", name)
    later = pq.read_table(local(java["partition_statistics_file"])).to_pylist()
    counts = [row["data_record_count"] for row in later]
    assert counts == [row["data_record_count"] + 1 for row in rows[0]]
    held = partition_counts(table)
    assert {row["partition"]["part"]: row["data_file_count"] for row in later} == held


def partition_counts(table: Table) -> dict[int, int]:
    """Data files by partition, of the metadata table."""
    rows = table.refresh().inspect.partitions().to_dicts()
    return {row["partition"]["part"]: row["file_count"] for row in rows}


def field_ids(table: Any) -> dict[str, int]:
    return {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in table.schema}


def test_java_reads_a_table_after_a_repair(spark: Any, sql_lake: Lake) -> None:
    table = made(spark, sql_lake, "repaired")
    lost = table.inspect.data_files()["file_path"][0]
    held = table.inspect.data_files()["record_count"][0]
    FileIO().delete(lost)
    before = table.inspect.data_files()["record_count"].sum()
    assert table.maintenance.repair().removed_data_files_count == 1
    count = spark.table("java_sql.db.repaired").count()
    assert count == table.refresh().scan().count()
    assert table.inspect.data_files()["record_count"].sum() == before - held


def test_paths_are_rewritten_as_by_java(
    spark: Any, sql_lake: Lake, duck: DuckDB, tmp_path: Path
) -> None:
    table = made(spark, sql_lake, "moved_2", 2)
    table.delete("id = 2")
    target = f"file://{tmp_path}/copy"
    arguments = f"source_prefix => '{table.location}', target_prefix => '{target}'"
    [java] = call(spark, "rewrite_table_path", "moved_2", arguments)
    result = table.maintenance.rewrite_table_path(table.location, target)
    counted = {name: getattr(result, name) for name in java if name != "file_list_location"}
    assert counted == {name: java[name] for name in counted}
    mine, theirs = (
        {row[1] for row in csv.reader(local(place).open(newline=""))}
        for place in (result.file_list_location or "", java["file_list_location"])
    )
    assert mine == theirs
    for source, there in result.file_list.rows():
        local(there).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(local(source), local(there))
    expected = {row.id for row in table.to_df().select("id").collect()}
    newest = f"{target}/metadata/{result.latest_version}"
    spark.sql(
        f"call java_sql.system.register_table(table => 'db.copied', metadata_file => '{newest}')"
    )
    # Nothing of it may be read from the first place.
    local(table.location).rename(tmp_path / "gone")
    assert {row.id for row in spark.table("java_sql.db.copied").select("id").collect()} == expected
    read = duck.query(f"select id from iceberg_scan('{local(newest)}')")["id"].to_pylist()
    assert set(read) == expected
