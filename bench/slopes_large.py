"""Tables of millions of files (row 12): plans, counts and appends, of metadata alone.

Those of Frazil come first, so that what the Java runtime keeps is in none of their figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import frazil
from bench.context import Context
from bench.figures import Figure, limit
from bench.slopes_cost import Cost, Slope, Step, costs
from bench.slopes_data import data_file, write_table_of_links
from bench.slopes_java import java_merging_append, java_plan

MILLION = 1_000_000
SIZES = (MILLION, 10 * MILLION)
_PARTITION = 500
_IDS = ("id", 100, 120)
_NUMBERS = count()


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """One thing that is done to a table of millions of files.

    Attributes:
        name: of its figures; `{}` stands for the number of files.
        step: what is done to a table that is in nobody's cache.
        java: the same by the Java runtime, of the table's name.
        megabytes: the most that may be taken.
        seconds: the longest that it may take; None where ten times as many files have a bar.
        times: the most that ten times as many files may take; None where `exponent` says it.
        rounds: 1 is enough where a step takes seconds.
        appends: whether it changes its table, so that the Java runtime does it once.
    """

    name: str
    step: Callable[[frazil.Table], object]
    java: Callable[[Context, str], Step]
    megabytes: float
    seconds: float | None = None
    times: float | None = None
    exponent: float | None = None
    rounds: int = 1
    appends: bool = False


_KINDS: tuple[_Kind, ...] = (
    _Kind(
        name="plan one of 1,000 partitions, {} files",
        step=lambda table: table.scan(f"part = {_PARTITION}").plan(),
        java=lambda context, name: java_plan(
            context, name, between=("part", _PARTITION, _PARTITION)
        ),
        seconds=3,
        megabytes=1_000,
        rounds=3,
    ),
    _Kind(
        name="count the rows of {} files",
        step=lambda table: table.count(),
        java=lambda context, name: lambda: context.java(name).count(),
        seconds=1,
        megabytes=1_000,
        exponent=1.1,
        rounds=3,
    ),
    _Kind(
        name="plan all of {} files",
        step=lambda table: table.scan().plan(),
        java=lambda context, name: java_plan(context, name),
        times=12,
        megabytes=2_048,
    ),
    _Kind(
        name="plan by bounds of a column, {} files",
        step=lambda table: table.scan(f"{_IDS[0]} between {_IDS[1]} and {_IDS[2]}").plan(),
        java=lambda context, name: java_plan(context, name, between=_IDS),
        times=12,
        megabytes=2_048,
    ),
    _Kind(
        name="files().count() of {} files",
        step=lambda table: table.files().count(),
        java=lambda context, name: lambda: context.java(f"{name}.files").count(),
        times=15,
        megabytes=1_024,
        rounds=2,
    ),
    _Kind(
        name="partitions() of {} files",
        step=lambda table: table.partitions().count(),
        java=lambda context, name: lambda: context.java(f"{name}.partitions").count(),
        times=12,
        megabytes=2_048,
    ),
    _Kind(
        name="an append to {} files",
        step=lambda table: table.files.append([data_file(table.location, next(_NUMBERS))]),
        # Its first append merges all manifests that are small, ours a hundred of them at most.
        java=lambda context, name: java_merging_append(
            context, name, partition=f"part={_PARTITION}"
        ),
        seconds=1.5,
        megabytes=1_000,
        exponent=0.2,
        rounds=3,
        appends=True,
    ),
)


def millions_of_files(context: Context) -> Iterator[Figure]:
    """Row 12: manifests of 5 000 files, in 1 000 partitions that few manifests hold each."""
    made = {
        files: write_table_of_links(context.folder / f"slopes-linked-{files}", files=files)
        for files in SIZES
    }
    ours = {files: _our_costs(context, files, made[files]) for files in SIZES}
    theirs = {files: _java_costs(context, files, made[files]) for files in SIZES}
    for kind in _KINDS:
        slope = Slope(context, kind.name, exponent=kind.exponent)
        for files in SIZES:
            took, name = ours[files][kind.name], kind.name.format(f"{files:,}")
            yield from slope.told(files, {"frazil": took, **theirs[files].get(kind.name, {})})
            if kind.seconds is not None:
                yield limit(f"{name}, seconds", took.cpu, kind.seconds)
            yield limit(f"{name}, MB", took.peak, kind.megabytes, unit="MB")
        if kind.times is None:
            yield slope.steepness()
        else:
            grew = slope.ours[SIZES[1]] / slope.ours[SIZES[0]]
            yield limit(kind.name.format("ten times as many"), grew, kind.times, unit="times")


def _our_costs(context: Context, files: int, made: str) -> dict[str, Cost]:
    # A table of its own for appends: each merges another part of the manifests.
    tables = {
        "append": context.lake.register_table(f"bench.appended_{files}", made),
        "read": frazil.open_table(made, spark=context.spark),
    }
    found = {}
    for kind in _KINDS:
        table = tables["append" if kind.appends else "read"]

        def cold(kind: _Kind = kind, table: frazil.Table = table) -> None:
            table.io.caches.clear()
            kind.step(table)

        found[kind.name] = costs(context, {"frazil": cold}, rounds=kind.rounds)["frazil"]
    return found


def _java_costs(context: Context, files: int, made: str) -> dict[str, dict[str, Cost]]:
    if not context.has_java:
        return {}
    names = {"append": f"bench.java_appended_{files}", "read": f"bench.java_read_{files}"}
    for name in names.values():
        context.lake.register_table(name, made)
    return {
        kind.name: costs(
            context,
            {"java": kind.java(context, names["append" if kind.appends else "read"])},
            rounds=1 if kind.appends else kind.rounds,
        )
        for kind in _KINDS
    }
