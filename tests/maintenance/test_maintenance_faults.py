"""A fault at any call to the store, in any job: the rows stay, and a second run ends the work."""

from __future__ import annotations

import itertools
import os
import shutil
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

FUTURE = 2**50
STRIDE = int(os.environ.get("FRAZIL_FAULT_STRIDE", "1"))
"""In a soak one call of so many."""

PROPERTIES = {
    **NO_WAITS,
    "commit.status-check.min-wait-ms": "1",
    "commit.status-check.max-wait-ms": "2",
    "write.delete.mode": "merge-on-read",
    "self-optimizing.minor.trigger.interval": "0",
}


@dataclass
class Prepared:
    """A table that can be brought back to how it was: data, deletes of both kinds, orphans."""

    io: FaultyIO
    made: Modelled
    folder: Path

    @classmethod
    def of(cls, spark: Any, folder: Path, version: int, *, by: tuple[str, ...] = ()) -> Prepared:
        io = FaultyIO()
        catalog = FilesystemCatalog("test", {"warehouse": f"{folder}/lake"}, io=io)
        lake = Lake(spark, catalog)
        lake.create_namespace("db")
        made = Modelled(lake, version=version, by=by, properties=PROPERTIES)
        made.append(*range(30), files=3)
        made.delete("id in (0, 1, 2)", lambda r: r[0] in (0, 1, 2))
        made.delete("id in (3, 4, 5)", lambda r: r[0] in (3, 4, 5))
        made.delete_by_keys({"id": [6]}, partition=(0,) if by else ())
        made.table.create_branch("audit")
        for name in ("data/x.parquet", "metadata/y.avro", "data/deep/z.parquet"):
            io.create(f"{made.table.location}/{name}", b"nobody's")
        self = cls(io, made, folder)
        self.make_old()
        shutil.copytree(folder / "lake", folder / "kept")
        return self

    def again(self) -> None:
        """Bring everything back."""
        shutil.rmtree(self.folder / "lake")
        shutil.copytree(self.folder / "kept", self.folder / "lake")
        self.io.caches.clear()

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


def places_are_few(table: Any) -> bool:
    """One position delete file or vector a data file, at most."""
    deletes = [each for each in entries(table) if each[0] == 1]
    return len(deletes) <= len(table.inspect.data_files())


def staged(table: Any) -> Any:
    result = table.maintenance.rewrite_table_path(table.location, f"{table.location}-moved")
    assert all(local(source).exists() for source, _ in result.file_list.rows())
    return result


JOBS: dict[str, tuple[Any, Any]] = {
    "compact": (lambda t: t.compact(rewrite_all=True, remove_dangling_deletes=True), compacted),
    "convert": (
        lambda t: t.convert_equality_deletes(),
        lambda t: all(content == 1 for content, _ in entries(t)),
    ),
    "position deletes": (
        lambda t: t.maintenance.rewrite_position_deletes(rewrite_all=True),
        places_are_few,
    ),
    "manifests": (
        lambda t: t.maintenance.rewrite_manifests(),
        lambda t: len(t.inspect.manifests().filter(content=0)) == 1,
    ),
    "expire": (
        lambda t: t.maintenance.expire_snapshots(older_than=FUTURE, retain_last=1),
        lambda t: len(t.metadata.snapshots) == 1,
    ),
    "orphans": (
        lambda t: t.maintenance.remove_orphan_files(),
        lambda t: t.maintenance.remove_orphan_files(dry_run=True).orphan_files_count == 0,
    ),
    "table stats": (
        lambda t: t.maintenance.compute_table_stats(),
        lambda t: len(t.metadata.statistics) == 1,
    ),
    "partition stats": (
        lambda t: t.maintenance.compute_partition_stats(),
        lambda t: len(t.metadata.partition_statistics) == 1,
    ),
    "table path": (staged, lambda t: True),
    "optimize": (lambda t: t.optimize(), lambda t: t.optimize(dry_run=True).is_empty),
}

IN_CI = {
    # A fault at each of a few calls of the job, counted from its first one.
    ("compact", 2, False): (31,),
    ("convert", 3, True): (15,),
    ("orphans", 3, True): (14,),
}


def cases() -> list[Any]:
    every = itertools.product(JOBS, (2, 3), (False, True))
    in_ci = [pytest.param(*case, calls, id=f"{case[0]}-few") for case, calls in IN_CI.items()]
    all_calls = [
        pytest.param(
            *case,
            None,
            marks=pytest.mark.soak,
            id=f"{case[0]}-{case[1]}-{'death' if case[2] else 'fault'}-all",
        )
        for case in every
    ]
    return in_ci + all_calls


@pytest.mark.parametrize(("job", "version", "dies", "calls"), cases())
def test_a_fault_at_any_call_keeps_the_rows_and_a_second_run_ends_the_work(
    spark: Any, tmp_path: Path, job: str, version: int, dies: bool, calls: tuple[int, ...] | None
) -> None:
    """Where a process dies nothing more reaches the store from one call on."""
    by = ("part",) if job == "partition stats" else ()
    prepared = Prepared.of(spark, tmp_path, version, by=by)
    io, (run, is_done) = prepared.io, JOBS[job]
    io.stays_down = dies
    raised = 0
    for turn, step in enumerate(calls or itertools.count(1, STRIDE)):
        if turn:
            prepared.again()
        io.after = turn % 2 == 1
        io.error = ERRORS["typed"] if dies else list(ERRORS.values())[turn % len(ERRORS)]
        table = prepared.made.other()
        io.left = step
        try:
            run(table)
        except (FrazilError, RuntimeError, MemoryError, KeyboardInterrupt):
            raised += 1
        ended, io.left = io.left > 0, None
        prepared.check(f"{job}, call {step}")
        run(prepared.made.other())
        assert is_done(prepared.made.other()), f"{job} again after call {step}"
        prepared.leaves_nothing()
        prepared.check(f"{job} again after call {step}")
        if ended:
            break
    print(f"{job}: {turn + 1} calls, {raised} raised")
    assert raised or job in ("orphans", "optimize", "expire")
