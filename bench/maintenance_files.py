"""Expiry of many snapshots and the search for orphans among many files, beside the Java runtime."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import frazil
from bench.context import Context
from bench.figures import Bar, Figure, compare, interleaved, report
from frazil.format.manifests import Content, DataFile
from frazil.storage.paths import local_path

SNAPSHOTS = 1_000
LISTED = 100_000
ORPHANS = 10_000
FOLDERS = 100
ROUNDS = 3
EXPIRED = "bench.maintenance_expired"
LITTERED = "bench.maintenance_littered"
_OLD = 10 * 24 * 3600
_AT_MOST = Bar(at_most=0.7)


def expiry(context: Context) -> Iterator[Figure]:
    """All snapshots but the newest go; each round begins with the same files."""
    lake = context.lake
    table = lake.create_table(EXPIRED, "id bigint", format_version=2)
    for number in range(SNAPSHOTS):
        # Every file goes with the fifth commit after its own.
        gone = [_file(table, f"{number - 5:05}")] if number >= 5 else []
        path = _put(table, f"{number:05}")
        table.files.overwrite([_file(table, Path(path).stem)], removed=gone)
    location, folder = table.metadata_location, Path(_local(table.location))
    kept = context.folder / "maintenance-kept"
    shutil.copytree(folder, kept)
    left: dict[str, set[str]] = {}

    def restored() -> None:
        lake.drop_table(EXPIRED)
        shutil.rmtree(folder)
        shutil.copytree(kept, folder, copy_function=os.link)
        lake.register_table(EXPIRED, location)
        # Its manifests would be known from the round before.
        lake.clear_caches()

    call = f"call java.system.expire_snapshots(table => '{EXPIRED}', older_than => timestamp "
    sides: dict[str, Callable[[], object]] = {
        "ours": lambda: lake.load_table(EXPIRED).maintenance.expire_snapshots(
            older_than="2999-01-01", retain_last=1
        )
    }
    if context.has_java:
        sides["java"] = lambda: context.spark.sql(
            f"{call}'2999-01-01 00:00:00', retain_last => 1)"
        ).collect()
    times: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(ROUNDS + 1):
        for side in list(sides) if number % 2 == 0 else list(sides)[::-1]:
            restored()
            began = time.perf_counter()
            sides[side]()
            took = time.perf_counter() - began
            if number:
                times[side].append(took)
            left[side] = {path.name for path in (folder / "data").iterdir()}
    if any(files != left["ours"] or len(files) != 5 for files in left.values()):
        raise AssertionError(f"data files are left: { {s: len(f) for s, f in left.items()} }")
    lake.purge_table(EXPIRED)
    title = f"expiry of {SNAPSHOTS:,} snapshots{context.suffix}"
    yield _figure(title, {side: statistics.median(took) for side, took in times.items()})


def orphans(context: Context) -> Iterator[Figure]:
    """Files in a hundred folders, of which a tenth belong to nothing; none is deleted."""
    table = context.lake.create_table(LITTERED, "id bigint", format_version=2)
    names = [f"{number % FOLDERS:03}/{number:06}" for number in range(LISTED)]
    for name in names:
        _put(table, name)
    table.files.append([_file(table, name) for name in names[ORPHANS:]])
    moment = time.time() - _OLD
    older_than = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() - 5 * 24 * 3600))
    for path in Path(_local(table.location)).rglob("*"):
        os.utime(path, (moment, moment))
    found: dict[str, int] = {}

    def ours() -> None:
        context.lake.clear_caches()
        handle = context.lake.load_table(LITTERED)
        done = handle.maintenance.remove_orphan_files(dry_run=True, older_than=older_than)
        found["ours"] = done.orphan_files_count

    def java() -> None:
        rows = context.spark.sql(
            f"call java.system.remove_orphan_files(table => '{LITTERED}', dry_run => true, "
            f"older_than => timestamp '{older_than}')"
        )
        found["java"] = len(rows.collect())

    sides: dict[str, Callable[[], object]] = {"ours": ours}
    if context.has_java:
        sides["java"] = java
    medians = interleaved(sides, rounds=ROUNDS)
    if set(found.values()) != {ORPHANS}:
        raise AssertionError(f"orphans were found: {found}")
    context.lake.purge_table(LITTERED)
    yield _figure(f"orphans among {LISTED:,} files{context.suffix}", medians)


def _figure(title: str, medians: dict[str, float]) -> Figure:
    if "java" not in medians:
        return report(title, medians["ours"], unit="s")
    return compare(title, "Java runtime", medians["ours"], medians["java"], _AT_MOST)


def _put(table: frazil.Table, name: str) -> str:
    path = Path(_local(f"{table.location}/data/{name}.parquet"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"1")
    return str(path)


def _file(table: frazil.Table, name: str) -> DataFile:
    return DataFile(
        content=Content.DATA,
        file_path=f"{table.location}/data/{name}.parquet",
        file_format="parquet",
        spec_id=0,
        partition=(),
        record_count=1,
        file_size_in_bytes=1,
    )


def _local(path: str) -> str:
    found = local_path(path)
    assert found is not None
    return found
