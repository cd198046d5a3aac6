"""A fault at a call to the store: the rows stay, and a second run ends the work."""

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

from faulty_io import ERRORS, FaultyIO
from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.errors import FrazilError
from frazil.spark.lake import Lake

pytestmark = pytest.mark.check


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
