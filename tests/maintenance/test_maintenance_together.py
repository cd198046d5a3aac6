"""After every kind of commit, expiry and orphan removal leave exactly what metadata reaches."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from compacted_tables import NO_WAITS, Modelled
from independent_walk import local, lying, reached

from ci_share import only_in_soak
from faulty_io import ERRORS, FaultyIO
from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.errors import FrazilError
from frazil.spark.lake import Lake
from frazil.storage.files import FileIO


@pytest.mark.check
@pytest.mark.parametrize("version", [only_in_soak(2), 3])
def test_the_folder_holds_what_metadata_reaches(spark, lake, version):
    table = lake.create_table(
        "db.t",
        "id bigint, part int",
        partition_by=["part"],
        format_version=version,
        properties={
            "write.delete.mode": "merge-on-read",
            "write.metadata.previous-versions-max": "3",
            "write.metadata.delete-after-commit.enabled": "true",
        },
    )
    part = "cast(id % 3 as int) as part"
    for start in range(0, 40, 10):
        table.append(spark.range(start, start + 10).selectExpr("id", part))
    table.create_branch("audit")
    table.append(spark.range(100, 103).selectExpr("id", part), branch="audit")
    table.delete("id % 7 = 3")
    table.delete("id = 101", branch="audit")
    table.maintenance.compute_table_stats()
    table.maintenance.compute_partition_stats()
    # What the rest of the history leaves behind stays with the tag: deletes, both statistics.
    table.create_tag("kept")
    tagged = {row.id for row in table.to_df().collect()}
    table.upsert(spark.range(0, 5).selectExpr("id", part), keys="id")
    table.compact(rewrite_all=True, remove_dangling_deletes=True)
    table.maintenance.rewrite_manifests()
    table.maintenance.compute_partition_stats()
    table.overwrite(spark.range(50, 55).selectExpr("id", "2 as part"), where="part = 2")
    table.maintenance.rewrite_table_path(table.location, "s3://elsewhere/t")
    rows = {row.id for row in table.to_df().collect()}
    audit = {row.id for row in table.scan(ref="audit").to_df().collect()}
    table.maintenance.expire_snapshots_keeping_files(older_than="2999-01-01", retain_last=2)
    table.maintenance.expire_snapshots(older_than="2999-01-01")
    moment = time.time() - 4 * 24 * 3600
    for path in lying(table.location):
        os.utime(path, (moment, moment))
    assert table.maintenance.remove_orphan_files().deleted_files_count > 0
    visible = {path for path in lying(table.location) if not path.name.startswith((".", "_"))}
    reachable = reached(table.metadata_location)
    assert visible == reachable
    names = [path.name for path in reachable]
    assert sum("deletes" in name or name.endswith(".puffin") for name in names) >= 1
    assert any(name.endswith(".stats") for name in names)
    assert sum(name.startswith("partition-stats") for name in names) == 1
    assert {row.id for row in table.scan(ref="kept").to_df().collect()} == tagged
    assert local(table.metadata_location) in visible
    assert table.maintenance.check().is_sound
    assert {row.id for row in table.to_df().collect()} == rows
    assert {row.id for row in table.scan(ref="audit").to_df().collect()} == audit


# An expiry names what it could not delete, and goes on.


FUTURE = "2999-01-01"


def opened(spark: Any, folder: Path, io: FileIO) -> Lake:
    return Lake(spark, FilesystemCatalog("test", {"warehouse": str(folder)}, io=io))


def expired(table: Any, told: list[Any]) -> Any:
    """Expire all but the last snapshot; what an independent walk reaches is left, and no more."""
    result = table.maintenance.expire_snapshots(older_than=FUTURE, on_progress=told.append)
    left = {path for path in lying(table.location) if path.name[0] not in "._"}
    hint = local(table.location) / "metadata" / "version-hint.text"
    failed = {local(path) / "held" for path, _ in result.failures}
    assert left - {hint} == reached(table.metadata_location) | failed
    return result


def test_an_expiry_counts_what_it_deleted_and_names_what_it_could_not(spark, tmp_path):
    lake = opened(spark, tmp_path / "lake", FileIO())
    lake.create_namespace("db")
    made = Modelled(lake, properties={"write.delete.mode": "merge-on-read"})
    made.append(*range(30), files=3)
    made.delete("id in (0, 1, 2)", lambda row: row[0] in (0, 1, 2))
    made.delete_by_keys({"id": [6]})
    stuck = local(made.data_files()[0]["file_path"])
    made.table.compact(rewrite_all=True, remove_dangling_deletes=True)
    # A folder with a file in it cannot be deleted as a file.
    stuck.unlink()
    stuck.mkdir()
    (stuck / "held").touch()
    told: list[Any] = []
    result = expired(made.other(), told)
    assert [local(path) for path, _ in result.failures] == [stuck]
    # One of three data files is stuck; each had a position delete file.
    assert (result.deleted_data_files, result.deleted_position_delete_files) == (2, 3)
    assert result.deleted_equality_delete_files == 1
    done = [each.files_done for each in told]
    assert done == sorted(done)
    assert (told[-1].stage, done[-1]) == ("done", told[-1].files)
    assert len(set(done)) == told[-1].files + 1


# A fault at a call to the store: the rows stay, and a second run ends the work.


PROPERTIES = {
    **NO_WAITS,
    "commit.status-check.min-wait-ms": "1",
    "commit.status-check.max-wait-ms": "2",
    "write.delete.mode": "merge-on-read",
}


@dataclass
class Prepared:
    """A table with data, deletes of both kinds, and orphans."""

    io: FaultyIO
    made: Modelled
    folder: Path

    @classmethod
    def of(cls, spark: Any, folder: Path, version: int) -> Prepared:
        io = FaultyIO()
        catalog = FilesystemCatalog("test", {"warehouse": f"{folder}/lake"}, io=io)
        lake = Lake(spark, catalog)
        lake.create_namespace("db")
        made = Modelled(lake, version=version, properties=PROPERTIES)
        made.append(*range(30), files=3)
        made.delete("id in (0, 1, 2)", lambda r: r[0] in (0, 1, 2))
        made.delete("id in (3, 4, 5)", lambda r: r[0] in (3, 4, 5))
        made.delete_by_keys({"id": [6]})
        made.table.create_branch("audit")
        for name in ("data/x.parquet", "metadata/y.avro", "data/deep/z.parquet"):
            io.create(f"{made.table.location}/{name}", b"nobody's")
        self = cls(io, made, folder)
        self.make_old()
        return self

    def make_old(self) -> None:
        """Let every file be one that orphan removal looks at."""
        moment = time.time() - 4 * 24 * 3600
        for path in lying(str(self.folder / "lake")):
            os.utime(path, (moment, moment))

    def check(self, step: str) -> None:
        """The rows are as ever on both branches, and every file that metadata names is there."""
        self.made.check()
        self.made.check(ref="audit")
        found = self.made.other().maintenance.check()
        assert found.is_sound, f"{step}: {found}"

    def leaves_nothing(self) -> None:
        """Orphan removal leaves what an independent walk reaches, after whatever was left over."""
        self.make_old()
        table = self.made.other()
        table.maintenance.remove_orphan_files(least_age=timedelta(0))
        hint = local(table.location) / "metadata" / "version-hint.text"
        left = {path for path in lying(table.location) if path.name[0] not in "._"} - {hint}
        # Metadata files that only the logs of older ones name stay too.
        older = {path for path in left if path.name.endswith(".metadata.json")}
        assert left - older == reached(table.metadata_location) - older


def entries(table: Any) -> list[tuple[int, str]]:
    """The content and format of each delete file and vector."""
    frame = table.inspect.delete_files()
    return sorted(zip(frame["content"], frame["file_format"].str.to_lowercase(), strict=True))


def compacted(table: Any) -> bool:
    return len(table.inspect.data_files()) == 1 and not entries(table)


JOBS: dict[str, tuple[Any, Any]] = {
    "compact": (lambda t: t.compact(rewrite_all=True, remove_dangling_deletes=True), compacted),
    "convert": (
        lambda t: t.convert_equality_deletes(),
        lambda t: all(content == 1 for content, _ in entries(t)),
    ),
    "orphans": (
        lambda t: t.maintenance.remove_orphan_files(),
        lambda t: t.maintenance.remove_orphan_files(dry_run=True).orphan_files_count == 0,
    ),
}


@pytest.mark.check
@pytest.mark.parametrize(
    ("job", "version", "dies", "call"),
    [("compact", 2, False, 31), ("convert", 3, True, 15), ("orphans", 3, True, 14)],
)
def test_a_fault_at_a_call_keeps_the_rows_and_a_second_run_ends_the_work(
    spark: Any, tmp_path: Path, job: str, version: int, dies: bool, call: int
) -> None:
    """Where a process dies nothing more reaches the store from the call on."""
    prepared = Prepared.of(spark, tmp_path, version)
    io, (run, is_done) = prepared.io, JOBS[job]
    table = prepared.made.other()
    io.error, io.stays_down, io.left = ERRORS["typed"], dies, call
    with contextlib.suppress(FrazilError):
        run(table)
    assert io.left <= 0, "the job makes fewer calls"
    io.left = None
    prepared.check(f"{job}, call {call}")
    run(prepared.made.other())
    assert is_done(prepared.made.other()), f"{job} again after call {call}"
    prepared.leaves_nothing()
    prepared.check(f"{job} again after call {call}")
