"""Orphan files: what goes is what an independent walk of the metadata does not reach."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from independent_walk import local, lying, reached

from ci_share import only_in_check
from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.catalog.static import StaticCatalog
from frazil.errors import FrazilError, StorageError, UnsupportedError, ValidationError
from frazil.format.manifests import DataFile
from frazil.format.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import spec_for
from frazil.format.schema import Schema
from frazil.format.sorting import order_for
from frazil.format.types import LongType, NestedField
from frazil.spark.session import costs
from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle
from frazil.table.maintenance.orphans import OrphanSearch
from frazil.table.manifests.comparable_paths import ComparablePaths
from frazil.table.port import HandlePort

SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "_part", LongType())))
NO_WAIT: dict[str, Any] = {"least_age": timedelta(0)}
AGE = 4 * 24 * 3600


@dataclass
class Lake:
    """A filesystem catalog in a folder."""

    catalog: FilesystemCatalog
    folder: Path

    def make(self, name: str = "db.t", *, by: tuple[str, ...] = (), **properties: str):
        """An empty table."""
        metadata = new_table_metadata(
            SCHEMA,
            spec_for(SCHEMA, by),
            order_for(SCHEMA, ()),
            location=self.catalog.default_table_location(name),
            properties=properties,
        )
        return TableHandle(self.catalog, self.catalog.create_table(name, metadata))


@pytest.fixture
def place(tmp_path: Path) -> Lake:
    """A filesystem catalog with the namespace `db`."""
    catalog = FilesystemCatalog("files", {"warehouse": str(tmp_path / "lake")})
    catalog.create_namespace("db")
    return Lake(catalog, tmp_path / "lake")


def put(table: TableHandle, name: str, *, age: int = AGE) -> str:
    """A file in the table's folder that was changed so many seconds ago."""
    path = f"{table.location}/{name}"
    table.io.create(path, name.encode())
    old(path, age)
    return path


def old(path: str | Path, age: int = AGE) -> None:
    moment = time.time() - age
    os.utime(local(str(path)), (moment, moment))


def data(path: str, **more: Any) -> DataFile:
    return DataFile(file_path=path, record_count=1, file_size_in_bytes=len(Path(path).name), **more)


def all_old(table: TableHandle) -> None:
    for path in lying(table.location):
        old(path)


def busy(table: TableHandle) -> TableHandle:
    """Commits on two branches and a tag, statistics, a removed file, an expired snapshot."""
    table.files.append([data(put(table, "data/a.parquet"))])
    table.create_branch("audit")
    table.create_tag("first")
    table.files.append([data(put(table, "data/b.parquet"))], branch="audit")
    table.files.append([data(put(table, "data/c.parquet")), data(put(table, "data/d.parquet"))])
    removed = [data(f"{table.location}/data/c.parquet")]
    table.files.delete(removed=removed)
    head = table.metadata.current_snapshot_id
    stats = put(table, "metadata/1.stats")
    table.maintenance.set_statistics(
        StatisticsFile(
            snapshot_id=head,
            statistics_path=stats,
            file_size_in_bytes=10,
            file_footer_size_in_bytes=5,
        )
    )
    by_partition = put(table, "metadata/partition-stats-1.parquet")
    table.maintenance.set_statistics(
        PartitionStatisticsFile(
            snapshot_id=head, statistics_path=by_partition, file_size_in_bytes=10
        )
    )
    return table


def test_what_no_metadata_reaches_goes_and_all_else_stays(place: Lake) -> None:
    table = busy(place.make())
    orphans = {
        local(put(table, name))
        for name in (
            "data/x.parquet",
            "data/deep/er/folder/still/y.parquet",
            "metadata/z.avro",
            "metadata/v99.metadata.json",
            "data/op/_temporary/0/_temporary/attempt_1/part-0.parquet",
            f"metadata/.snap.avro.{'0' * 32}.tmp",
        )
    }
    kept = {
        local(put(table, name))
        for name in ("data/_hidden/q.parquet", "data/.dot.parquet", "_log/1.json")
    }
    young = local(put(table, "data/young.parquet", age=3600))
    all_old(table)
    old(young, 3600)
    before = lying(table.location)
    hint = local(table.location) / "metadata" / "version-hint.text"
    told = table.maintenance.remove_orphan_files(dry_run=True)
    assert lying(table.location) == before
    assert {local(path) for path in told.frame["orphan_file_location"]} == orphans
    assert told.frame.columns == ["orphan_file_location"]
    assert (told.orphan_files_count, told.deleted_files_count) == (len(orphans), 0)
    assert "dry run" in repr(told)
    assert "x.parquet" in repr(told)
    done = table.maintenance.remove_orphan_files()
    assert done.deleted_files_count == len(orphans)
    assert lying(table.location) == reached(table.metadata_location) | kept | {young, hint}
    assert repr(table.maintenance.remove_orphan_files()) == "Orphan files: none"


def test_folders_of_partition_fields_are_not_hidden(place: Lake) -> None:
    table = place.make(by=("_part",))
    in_partition = put(table, "data/_part=1/x.parquet")
    put(table, "data/_other=1/x.parquet")
    found = table.maintenance.remove_orphan_files(dry_run=True).frame["orphan_file_location"]
    assert found.to_list() == [in_partition]


def with_store(place: Lake, store: FileIO) -> TableHandle:
    """The table, whose maintenance asks another store."""

    class Watched(HandlePort):
        @property
        def io(self) -> FileIO:
            return store

    loaded = place.catalog.load_table("db.t")
    table = TableHandle(place.catalog, loaded)
    table.port = Watched(place.catalog, loaded)
    return table


def test_what_is_committed_during_the_listing_stays(place: Lake) -> None:
    table = place.make()
    late = put(table, "data/late.parquet")

    class Committing(FileIO):
        def list_level(self, folder: str):
            other = TableHandle(place.catalog, place.catalog.load_table("db.t"))
            if other.metadata.current_snapshot is None:
                other.files.append([data(late)])
            return super().list_level(folder)

    assert with_store(place, Committing()).maintenance.remove_orphan_files().orphan_files_count == 0
    assert local(late).exists()


def test_a_table_reached_through_a_link_keeps_its_files(place: Lake, tmp_path: Path) -> None:
    table = busy(place.make())
    put(table, "data/x.parquet")
    link = tmp_path / "link"
    link.symlink_to(local(table.location))
    all_old(table)
    found = table.maintenance.remove_orphan_files(location=str(link), dry_run=True)
    assert [local(path).name for path in found.frame["orphan_file_location"]] == ["x.parquet"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"older_than": datetime.now(UTC) - timedelta(hours=5)}, "less than 1 day, 0:00:00 ago"),
        ({"older_than": "2999-01-01"}, "2999-01-01T00:00:00.*is still to come"),
        ({"older_than": "2999-01-01", **NO_WAIT}, "is still to come"),
        ({"prefix_mismatch_mode": "SOME"}, "SOME"),
        ({"max_concurrent_deletes": 0}, "max_concurrent_deletes"),
        ({"equal_schemes": {"": "s3"}}, "equal_schemes"),
        ({"nope": 1}, "nope"),
        ({"file_list": pl.DataFrame({"path": ["a"]})}, "file_path"),
    ],
    ids=lambda one: one if isinstance(one, str) else " ".join(one),
)
def test_wrong_arguments_are_refused(place: Lake, arguments: dict[str, Any], words: str) -> None:
    table = place.make()
    put(table, "data/x.parquet")
    with pytest.raises(ValidationError, match=words):
        table.maintenance.remove_orphan_files(**arguments)
    assert local(f"{table.location}/data/x.parquet").exists()


def test_nothing_goes_where_it_is_not_sure(place: Lake) -> None:
    table = busy(place.make())
    orphan = put(table, "data/x.parquet")
    other = place.make("db.other")
    all_old(other)
    with pytest.raises(ValidationError, match="another table"):
        table.maintenance.remove_orphan_files(location=str(place.folder))
    table.set_properties({"gc.enabled": "false"})
    with pytest.raises(ValidationError, match=r"gc\.enabled"):
        table.maintenance.remove_orphan_files()
    table.set_properties({"gc.enabled": "true"})
    manifest = table.inspect.manifests()["path"][0]
    local(manifest).write_bytes(b"broken")
    table.io.caches.clear()
    with pytest.raises(FrazilError):
        table.maintenance.remove_orphan_files()
    assert local(orphan).exists()


def test_a_table_without_a_catalog_loses_no_file(place: Lake) -> None:
    table = place.make()
    older = table.metadata_location
    newer = put(table, "data/newer.parquet")
    table.files.append([data(newer)])
    static = StaticCatalog(older, {})
    pinned = TableHandle(static, static.load_table(static.identifier))
    assert pinned.maintenance.remove_orphan_files(dry_run=True).orphan_files_count == 1
    with pytest.raises(UnsupportedError, match="without a catalog"):
        pinned.maintenance.remove_orphan_files()
    assert local(newer).exists()


def test_a_list_of_files_takes_the_place_of_a_listing(place: Lake) -> None:
    table = busy(place.make())
    named, unnamed = put(table, "data/x.parquet"), put(table, "data/y.parquet")
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    files = pl.DataFrame(
        {
            "file_path": [named, f"{table.location}/data/a.parquet", "/elsewhere/z"],
            "last_modified": [long_ago, long_ago, datetime.now(UTC)],
        }
    )
    done = table.maintenance.remove_orphan_files(file_list=files)
    assert done.frame["orphan_file_location"].to_list() == [named]
    assert not local(named).exists()
    assert local(unnamed).exists()


# -- paths: what comes out is what Java's DeleteOrphanFilesSparkAction has ----


LISTED = ["s3://b/t/a", "s3a://b/t/b", "s3://c/t/c", "s3://b//t//d", "s3://b/t/e"]
NAMED = ["s3a://b/t/a", "s3n://b/t/b", "s3://b/t/c", "s3://b/t/d", "/t/e"]


def searched(mode: str, *, listed: list[str], named: list[str], **equal: Any) -> list[str]:
    search = OrphanSearch(
        location="s3://b/t",
        older_than_ms=10,
        paths=ComparablePaths.of(equal.get("equal_schemes"), equal.get("equal_authorities")),
        mode=mode,  # type: ignore[arg-type]
        hidden_fields=(),
        delete_threads=1,
    )
    frame = pl.DataFrame({"path": listed, "size": 1, "modified_ms": 5})
    parts = search.paths.parts(pl.Series("path", named))
    return search.orphans(search.unreached_files(frame, parts))["path"].to_list()


def test_schemes_of_one_store_are_equal_and_other_prefixes_are_a_conflict() -> None:
    assert searched("IGNORE", listed=LISTED, named=NAMED) == []
    assert searched("DELETE", listed=LISTED, named=NAMED) == ["s3://c/t/c"]
    with pytest.raises(ValidationError, match="b and c"):
        searched("ERROR", listed=LISTED, named=NAMED)
    equal = {"equal_authorities": {"c": "b"}}
    assert searched("ERROR", listed=LISTED, named=NAMED, **equal) == []
    assert searched("ERROR", listed=["s3://b/t/x"], named=NAMED) == ["s3://b/t/x"]


def test_local_paths_are_equal_however_they_are_written() -> None:
    spellings = ["/t/a", "file:/t/a", "file:///t/a", "file://localhost/t/a", "file:///t//a"]
    for listed in spellings:
        for named in spellings:
            assert searched("ERROR", listed=[listed], named=[named]) == []
    assert searched("DELETE", listed=["hdfs://n/t/a"], named=["file:/t/a"]) == ["hdfs://n/t/a"]
    with pytest.raises(ValidationError, match="file and hdfs"):
        searched("ERROR", listed=["hdfs://n/t/a"], named=["file:/t/a"])
    # One fitting name is enough.
    both = ["file:/t/a", "hdfs://n/t/a"]
    assert searched("DELETE", listed=["hdfs://n/t/a"], named=both) == []


def test_files_whose_age_is_unknown_are_no_candidates() -> None:
    search = OrphanSearch(
        location="s3://b/t",
        older_than_ms=10,
        paths=ComparablePaths.of(),
        mode="ERROR",
        hidden_fields=(),
        delete_threads=1,
    )
    listed = pl.DataFrame(
        {"path": ["s3://b/t/a", "s3://b/t/b", "s3://b/t/c"], "size": 1, "modified_ms": [0, 9, 10]}
    )
    assert search.candidates(listed)["path"].to_list() == ["s3://b/t/b"]
    assert replace(search, older_than_ms=11).candidates(listed)["path"].len() == 2


def test_orphans_of_an_object_store(s3: Any) -> None:
    warehouse = f"{s3.new_bucket('orphans')}/lake"
    catalog = FilesystemCatalog("files", {"warehouse": warehouse, **s3.properties})
    catalog.create_namespace("db")
    place = Lake(catalog, Path("/nowhere"))
    table = place.make()
    for name in "ab":
        table.io.create(f"{table.location}/data/{name}.parquet", b"1")
    table.files.append([data(f"{table.location}/data/a.parquet")])
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    done = table.maintenance.remove_orphan_files(older_than=tomorrow, least_age=timedelta(days=-2))
    assert done.frame["orphan_file_location"].to_list() == [f"{table.location}/data/b.parquet"]
    assert not table.io.exists(f"{table.location}/data/b.parquet")
    assert TableHandle(catalog, catalog.load_table("db.t")).inspect.files()["file_path"].len() == 1


def test_what_cannot_be_deleted_is_told_and_all_else_goes(place: Lake) -> None:
    table = place.make()
    stuck, free = put(table, "data/stuck.parquet"), put(table, "data/free.parquet")

    class Refusing(FileIO):
        def delete(self, path: str) -> None:
            if path == stuck:
                raise StorageError(f"cannot delete {path}: it is locked")
            super().delete(path)

    done = with_store(place, Refusing()).maintenance.remove_orphan_files()
    assert (done.orphan_files_count, done.deleted_files_count) == (2, 1)
    assert [path for path, _ in done.failures] == [stuck]
    assert "locked" in repr(done)
    assert (local(stuck).exists(), local(free).exists()) == (True, False)


# Executors find the same orphans as are found beside the session.


@pytest.fixture
def all_on_executors(monkeypatch):
    """Nothing is small."""
    monkeypatch.setattr(costs, "LISTED_FOLDERS", -1)


@pytest.mark.parametrize("are_executors_asked", [only_in_check(False), True])
def test_metadata_files_that_only_older_logs_name_are_removed(
    spark, lake, monkeypatch, are_executors_asked
):
    """Also where metadata lay in another folder: that is no sign of another table."""
    if are_executors_asked:
        monkeypatch.setattr(costs, "LISTED_FOLDERS", -1)
    at = f"{lake.catalog.default_table_location('db.t')}/{{}}"
    properties = {"write.metadata.previous-versions-max": "2", "write.metadata.path": at}
    table = lake.create_table(
        "db.t", "id bigint", properties={key: x.format("before") for key, x in properties.items()}
    )
    table.set_properties({"note": "1"})
    table.set_properties({"write.metadata.path": at.format("after")})
    for number in range(4):
        table.set_properties({"note": str(number)})
    all_old(table)
    done = table.maintenance.remove_orphan_files()
    assert done.orphan_files_count == 4
    visible = {path for path in lying(table.location) if not path.name.startswith(".")}
    assert visible == reached(table.metadata_location)
    assert len(visible) == 3


@pytest.mark.check
def test_executors_list_compare_and_delete(spark, lake, all_on_executors):
    table = lake.create_table("db.t", "id bigint, part int", partition_by=["part"])
    for start in (0, 10):
        table.append(spark.range(start, start + 10).selectExpr("id", "cast(id % 3 as int) part"))
    table.delete("id = 4")
    put = [f"{table.location}/data/part=1/x.parquet", f"{table.location}/metadata/y.avro"]
    for path in put:
        table.io.create(path, b"123")
    all_old(table)
    young = f"{table.location}/data/young.parquet"
    table.io.create(young, b"")
    told = table.maintenance.remove_orphan_files(dry_run=True)
    assert sorted(told.frame["orphan_file_location"]) == sorted(put)
    assert (told.orphan_files_count, told.orphan_bytes, told.deleted_files_count) == (2, 6, 0)
    listed = spark.createDataFrame([(put[0],)], "file_path string")
    listed = listed.selectExpr("file_path", "timestamp'2020-01-01' as last_modified")
    named = table.maintenance.remove_orphan_files(file_list=listed, dry_run=True)
    assert named.frame["orphan_file_location"].to_list() == put[:1]
    heard = []
    done = table.maintenance.remove_orphan_files(on_progress=heard.append)
    assert (done.orphan_files_count, done.deleted_files_count, done.failures) == (2, 2, ())
    assert [each.stage for each in heard] == ["searching", "searching", "deleting", "done"]
    assert heard[1].files > 2
    assert [(each.files, each.share) for each in heard[2:]] == [(2, 0.0), (2, 1.0)]
    visible = {path for path in lying(table.location) if not path.name.startswith((".", "_"))}
    assert visible == reached(table.metadata_location) | {local(young)}
    other = lake.create_table("db.other", "id bigint")
    with pytest.raises(ValidationError, match="another table"):
        table.maintenance.remove_orphan_files(location=other.location)
    assert table.maintenance.remove_orphan_files().orphan_files_count == 0
