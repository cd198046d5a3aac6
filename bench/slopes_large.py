"""Tables of millions of files (row 12): plans, counts and appends, of metadata alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import frazil
from bench.context import Context
from bench.figures import Figure, limit
from bench.slopes_cost import Cost, Slope, costs
from bench.slopes_data import data_file, write_table_of_links

MILLION = 1_000_000
_PARTITION = 500


def millions_of_files(context: Context) -> Iterator[Figure]:
    """Row 12: manifests of 5 000 files, in 1 000 partitions that few manifests hold each."""
    partition = Slope(context, "plan one of 1,000 partitions, {} files")
    counted = Slope(context, "count the rows of {} files", exponent=1.1)
    append = Slope(context, "an append to {} files", exponent=0.2)
    whole = Slope(context, "plan all of {} files")
    bounds = Slope(context, "plan by bounds of a column, {} files")
    shown = Slope(context, "files().count() of {} files")
    parts = Slope(context, "partitions() of {} files")
    for files in (MILLION, 10 * MILLION):
        made = write_table_of_links(context.folder / f"slopes-linked-{files}", files=files)
        # A table of its own for appends: each merges another part of the manifests.
        name = f"bench.linked_{files}"
        changed = context.lake.register_table(name, made)
        table = frazil.open_table(made, spark=context.spark)
        yield from _within(
            context, partition, files, _planning(table, f"part = {_PARTITION}"), 3, 1_000
        )
        yield from _within(context, counted, files, _counting(table), 1, 1_000)
        yield from _within(context, append, files, _appending(changed), 1.5, 1_000)
        yield from _within(context, whole, files, _planning(table, None), None, 2_048, rounds=1)
        by_id = _planning(table, "id between 100 and 120")
        yield from _within(context, bounds, files, by_id, None, 2_048, rounds=1)
        yield from _within(context, shown, files, _showing(table), None, 1_024, rounds=1)
        yield from _within(context, parts, files, _partitions(table), None, 2_048, rounds=1)
    yield counted.steepness()
    yield append.steepness()
    for slope, most in ((whole, 12), (bounds, 12), (shown, 15), (parts, 12)):
        times = slope.ours[10 * MILLION] / slope.ours[MILLION]
        name = slope.name.format("ten times as many")
        yield limit(name, times, most, unit="times")


def _within(
    context: Context,
    slope: Slope,
    files: int,
    step: Callable[[], object],
    seconds: float | None,
    megabytes: float,
    *,
    rounds: int = 3,
) -> Iterator[Figure]:
    """The seconds and the memory of a step, with their limits."""
    took: Cost = costs(context, {"frazil": step}, rounds=rounds)["frazil"]
    told = list(slope.told(files, {"frazil": took}))
    name = slope.name.format(f"{files:,}")
    yield told[0] if seconds is None else limit(name, took.cpu, seconds)
    yield limit(f"{name}, memory", took.peak, megabytes, unit="MB")


def _planning(table: frazil.Table, where: str | None) -> Callable[[], object]:
    def plan() -> None:
        table.io.caches.clear()
        table.scan(where).plan()

    return plan


def _counting(table: frazil.Table) -> Callable[[], object]:
    def count_rows() -> None:
        table.io.caches.clear()
        table.count()

    return count_rows


def _showing(table: frazil.Table) -> Callable[[], object]:
    def show() -> None:
        table.io.caches.clear()
        table.files().count()

    return show


def _partitions(table: frazil.Table) -> Callable[[], object]:
    def count_partitions() -> None:
        table.io.caches.clear()
        table.partitions().count()

    return count_partitions


def _appending(table: frazil.Table) -> Callable[[], object]:
    numbers = count()

    def append() -> None:
        table.files.append([data_file(table.location, next(numbers))])

    return append
