"""Commits: rows 2, 3, 8 and 9 of what grows with a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import frazil
from bench.context import Context
from bench.figures import Bar, Figure, limit, report
from bench.slopes_cost import Cost, Slope, cpu_of
from bench.slopes_data import (
    CountingIO,
    data_file,
    write_table_of_files,
    write_table_of_snapshots,
)
from bench.slopes_java import java_append, java_expiry, java_merging_append, java_replace
from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.format.manifests import DataFile
from frazil.format.metadata import parse_metadata
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import spec_for
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField
from frazil.planning.plan import plan
from frazil.planning.removal import data_files
from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle

_PARTITION = "bucket=0"
_EXPIRED = 10


def large_manifests(context: Context) -> Iterator[Figure]:
    """Row 2: change one file whose manifest has many entries; an append that merges manifests."""
    half = Bar(at_most=0.5)
    slope = Slope(
        context, "change a file in a manifest of {} entries", half, exponent=1.1, least=57_000
    )
    for entries in (570, 5_700, 57_000):
        names = _twice(context, f"entries_{entries}", files=entries, per_manifest=entries)
        table = context.lake.load_table(names[0])
        found = plan(table.metadata, table.current_snapshot, table.io)
        middle = range(entries // 2, entries // 2 + 4)
        planned = iter(data_files(table.metadata, found, list(middle)))

        def ours(table: frazil.Table = table, planned: Iterator[DataFile] = planned) -> None:
            context.lake.clear_caches()
            old = next(planned)
            new = data_file(table.location, f"for {old.file_path.rsplit('/', 1)[-1]}")
            table.files.overwrite([new], removed=[old])

        theirs = None
        if context.has_java:
            theirs = java_replace(context, names[1], partition=_PARTITION)
        yield from slope.measure(entries, ours, theirs)
    yield slope.steepness()

    slope = Slope(
        context, "an append that merges manifests of {} files", half, exponent=1.1, least=100_000
    )
    for files in (1_000, 10_000, 100_000):
        # Every round needs a table that was not merged yet: one that is not counted, and three.
        names = _twice(context, f"merging_{files}", files=files, per_manifest=files // 100, times=4)
        tables = iter([context.lake.load_table(name) for name in names[::2]])
        merges = iter(
            [java_merging_append(context, name, partition=_PARTITION) for name in names[1::2]]
            if context.has_java
            else []
        )

        def merge(tables: Iterator[frazil.Table] = tables) -> None:
            context.lake.clear_caches()
            table = next(tables)
            table.files.append([data_file(table.location, f"merging into {table.name}")])

        def their_merge(merges: Iterator[Callable[[], object]] = merges) -> None:
            next(merges)()

        yield from slope.measure(files, merge, their_merge)
    yield slope.steepness()


def overwrites_of_one_file(context: Context) -> Iterator[Figure]:
    """Row 3: the manifests that an overwrite opens, of tables of many manifests."""
    io = CountingIO()
    catalog = FilesystemCatalog("counted", {"warehouse": f"{context.folder}/counted"}, io=io)
    catalog.create_namespace("bench")
    schema = Schema((NestedField(1, "id", LongType()),))
    metadata = new_table_metadata(
        schema,
        spec_for(schema, []),
        location=catalog.default_table_location("bench.counted"),
        properties={"commit.manifest-merge.enabled": "false"},
    )
    table = TableHandle(catalog, catalog.create_table("bench.counted", metadata))
    made = 0
    slope = Slope(context, "overwrite a file, {} manifests", exponent=1.1)
    for manifests in (10, 100, 1_000):
        while made < manifests:
            made += 1
            table.files.fast_append([_unpartitioned(table.location, made)])
        found = plan(table.metadata, table.current_snapshot, table.io)
        planned = iter(data_files(table.metadata, found, [manifests // 2, manifests // 2 + 1]))

        def overwrite(planned: Iterator[DataFile] = planned) -> None:
            io.caches.clear()
            io.opened.clear()
            old = next(planned)
            new = _unpartitioned(table.location, f"for {old.file_path.rsplit('/', 1)[-1]}")
            table.files.overwrite([new], removed=[old])

        took = Cost(min(cpu_of(context, overwrite) for _ in range(2)), 0)
        yield from list(slope.told(manifests, {"frazil": took}))[:1]
        name = f"manifests opened by an overwrite, of {manifests:,}"
        yield limit(name, io.opened["manifest"], 2, unit="")
    yield slope.steepness()


def appends(context: Context) -> Iterator[Figure]:
    """Row 8: an append to a table of many snapshots; many commits in a row."""
    half = Bar(at_most=0.5)
    slope = Slope(context, "an append at {} snapshots", half, exponent=1.1, least=10_000)
    for snapshots in (100, 1_000, 10_000):
        folder = context.folder / f"slopes-snapshots-{snapshots}"
        made = write_table_of_snapshots(folder, snapshots=snapshots, shared=True)
        name = f"bench.snapshots_{snapshots}"
        table = context.lake.register_table(name, made)
        # A table of its own: a side would have to parse what the other committed.
        context.lake.register_table(f"{name}_java", made)
        theirs = _their_appends(context, f"{name}_java")
        yield from slope.measure(snapshots, _appending(table), theirs)
    yield slope.steepness()

    commits, part = 1_000, 100
    table = context.lake.create_table("bench.in_a_row", "id bigint")
    append = _appending(table)
    seconds = [cpu_of(context, lambda: _repeat(append, part)) for _ in range(commits // part)]
    yield report(f"{commits:,} commits in a row", sum(seconds), unit="s")
    yield limit("the last hundred beside the second", seconds[-1] / seconds[1], 3, unit="")
    if context.has_java:
        theirs = java_append(context, "bench.in_a_row")
        _repeat(theirs, 20)
        took = cpu_of(context, lambda: _repeat(theirs, part))
        last = Slope(context, "a hundred commits after {}", half)
        yield from list(
            last.told(commits, {"frazil": Cost(seconds[-1], 0), "java": Cost(took, 0)})
        )[:1]


def expiry(context: Context) -> Iterator[Figure]:
    """Row 9: expire the oldest of many snapshots."""
    slope = Slope(context, "expire the 10 oldest of {} snapshots", Bar(at_most=1), least=5_000)
    for snapshots in (50, 500, 5_000):
        sides: dict[str, str] = {}
        for side in ("ours", "theirs") if context.has_java else ("ours",):
            folder = context.folder / f"slopes-expiry-{side}-{snapshots}"
            sides[side] = write_table_of_snapshots(folder, snapshots=snapshots, shared=False)
        name = f"bench.expiry_{snapshots}"
        table = context.lake.register_table(name, sides["ours"])

        def expire(table: frazil.Table = table) -> None:
            context.lake.clear_caches()
            oldest = [each.snapshot_id for each in table.metadata.snapshots[:_EXPIRED]]
            table.maintenance.expire_snapshots(snapshot_ids=oldest)

        theirs = None
        if context.has_java:
            context.lake.register_table(f"{name}_java", sides["theirs"])
            theirs = java_expiry(context, f"{name}_java", _EXPIRED)
        yield from slope.measure(snapshots, expire, theirs)
        name = f"manifest lists read, of {snapshots:,}, where no data file goes"
        yield limit(name, _lists_read(context, snapshots, replaces_files=False), 22, unit="")
        # A data file that goes may have come again in any later snapshot.
        name = f"manifest lists read, of {snapshots:,}, where data files go"
        yield report(name, _lists_read(context, snapshots, replaces_files=True), unit="")
    yield slope.steepness()


def _lists_read(context: Context, snapshots: int, *, replaces_files: bool) -> int:
    """The manifest lists that an expiry opens, counted by its files."""
    io = CountingIO()
    warehouse = context.folder / f"counted-expiry-{snapshots}-{replaces_files}"
    made = write_table_of_snapshots(
        warehouse / "bench" / "counted",
        snapshots=snapshots,
        shared=False,
        replaces_files=replaces_files,
    )
    catalog = FilesystemCatalog("counted", {"warehouse": str(warehouse)}, io=io)
    metadata = parse_metadata(FileIO().read(made), file=made)
    table = TableHandle(catalog, catalog.create_table("bench.counted", metadata))
    oldest = [each.snapshot_id for each in table.metadata.snapshots[:_EXPIRED]]
    io.caches.clear()
    io.opened.clear()
    table.maintenance.expire_snapshots(snapshot_ids=oldest)
    return io.opened["list"]


def _twice(
    context: Context, name: str, *, files: int, per_manifest: int, times: int = 1
) -> list[str]:
    """One table under names for both sides, so many times; each commit goes its own way."""
    folder = context.folder / f"slopes-{name}"
    made = write_table_of_files(folder, files=files, per_manifest=per_manifest)
    names = [f"bench.{name}_{number}" for number in range(2 * times)]
    for each in names:
        context.lake.register_table(each, made)
    return names


def _appending(table: frazil.Table) -> Callable[[], object]:
    numbers = iter(range(1 << 30))
    is_partitioned = bool(table.metadata.spec.fields)

    def append() -> None:
        made = data_file if is_partitioned else _unpartitioned
        table.files.fast_append([made(table.location, next(numbers))])

    return append


def _their_appends(context: Context, name: str) -> Callable[[], object] | None:
    return java_append(context, name, partition=_PARTITION) if context.has_java else None


def _repeat(step: Callable[[], object], times: int) -> None:
    for _ in range(times):
        step()


def _unpartitioned(location: str, number: int | str) -> DataFile:
    return DataFile(
        file_path=f"{location}/data/{number}.parquet", record_count=1, file_size_in_bytes=1000
    )
