"""Upkeep of tables of millions of files (row 13), and tables that are wide or long (row 14).

Metadata alone is there, so `check` finds that each file is missing. The memory of executors' Python
is not counted. In a local session executors are the driver's virtual machine, whose heap grows as
far as it may before it is collected: row 13 has one of `DRIVER_HEAP`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JJavaError

import frazil
from bench.context import CATALOG, Context
from bench.figures import Bar, Figure, at_least, compare, limit, report
from bench.slopes_cost import DRIVER_MB, Cost, Slope, costs, give_memory_back
from bench.slopes_data import (
    FILE_SIZE,
    data_file,
    write_table_of_copies,
    write_table_of_snapshots,
)
from bench.slopes_java import is_out_of_memory
from bench.slopes_wide_data import (
    lengthen,
    write_table_of_columns,
    write_table_of_partitions,
)
from frazil.catalog.metadata_files import read_metadata
from frazil.spark.session.costs import MOST_NAMED
from frazil.storage.files import FileIO

MILLION = 1_000_000
SIZES = (MILLION, 10 * MILLION)
_LONG_BYTES = 500 << 20
_NAMES_OF_LONG_AGO = ("file_path", "timestamp '2020-01-01' as last_modified")

_OPTIMIZE = "optimize {} files, of which 24 are small"
_ORPHANS = "compare a listing of {} names with as many files"
_MANIFESTS = "rewrite the manifests of {} files"
_EXPIRY = "expire the manifests of {} files that others hold"
"""The last three are what the Java runtime does too."""


def upkeep_of_millions(context: Context) -> Iterator[Figure]:
    """Row 13: each once, of tables each of whose files has a name of its own.

    What the Java runtime can do comes after all of Frazil's, on tables of its own.
    """
    slopes: dict[str, Slope] = {}
    for files in SIZES:
        for name, took, told in _our_upkeep(context, files):
            # A plan of a million files is kept for the second look, one of ten million is not.
            exponent = None if name == _OPTIMIZE else 1.2
            slope = slopes.setdefault(name, Slope(context, name, exponent=exponent))
            yield from list(slope.told(files, {"frazil": took}))[:1]
            what = name.format(f"{files:,}")
            yield limit(f"{what}, resident", took.resident, DRIVER_MB, unit="MB")
            if told is not None:
                yield at_least(f"{what}, told", told, 3, unit="times")
    for slope in slopes.values():
        yield slope.steepness()
    for files in SIZES:
        for name, java in _java_upkeep(context, files):
            what, ours = name.format(f"{files:,}"), slopes[name].ours[files]
            if java is None:
                yield report(f"{what}, not enough memory for", ours, unit="s", against="Java")
            else:
                yield compare(what, "Java runtime", ours, java.cpu, Bar())


def _our_upkeep(context: Context, files: int) -> Iterator[tuple[str, Cost, int | None]]:
    """What is done, what it took, and how often it told how far it was, if it tells that."""
    made = write_table_of_copies(context.folder / f"slopes-upkeep-{files}", files=files)
    name = f"bench.upkeep_{files}"
    table = context.lake.register_table(name, made)
    heard: list[object] = []
    steps: dict[str, Callable[[], object]] = {
        "the page about {} files": lambda: table.report(
            context.folder / "upkeep.html", on_progress=heard.append
        ),
        "look what optimize would do to {} files": lambda: table.optimize(dry_run=True),
        _OPTIMIZE: lambda: _optimized(table, heard.append),
        _ORPHANS: lambda: _compared(table, heard.append),
        "check {} files, none of which is there": lambda: _checked(table, heard.append),
        _MANIFESTS: lambda: table.maintenance.rewrite_manifests(on_progress=heard.append),
        _EXPIRY: lambda: _expired(table, heard.append),
    }
    for what, step in steps.items():
        if what == _OPTIMIZE:
            _add_small_files(context, table)
        table.io.caches.clear()
        heard.clear()
        give_memory_back()
        took = costs(context, {"frazil": step}, rounds=1)["frazil"]
        yield what, took, len(heard) if heard else None
    context.lake.drop_table(name)


def _java_upkeep(context: Context, files: int) -> Iterator[tuple[str, Cost | None]]:
    """What the Java runtime has a procedure for; None where its memory is not enough."""
    if not context.has_java:
        return
    made = write_table_of_copies(context.folder / f"slopes-java-upkeep-{files}", files=files)
    name = f"bench.java_upkeep_{files}"
    context.lake.register_table(name, made)
    procedures = {
        _ORPHANS: "remove_orphan_files({}, dry_run => true, file_list_view => 'listed_files', "
        "location => 'file:///lake')",
        _MANIFESTS: "rewrite_manifests({}, use_caching => false)",
        _EXPIRY: "expire_snapshots({}, older_than => TIMESTAMP '2100-01-01', retain_last => 1)",
    }
    listed = context.java(f"{name}.files").selectExpr(*_NAMES_OF_LONG_AGO)
    listed.createOrReplaceTempView("listed_files")
    for what, procedure in procedures.items():
        text = f"CALL {CATALOG}.system.{procedure.format(f'table => {name!r}')}"
        try:
            took = costs(context, {"java": partial(_call, context, text)}, rounds=1)["java"]
        except Py4JJavaError as error:
            if not is_out_of_memory(error):
                raise
            yield what, None
        else:
            yield what, took


def _call(context: Context, text: str) -> None:
    context.spark.sql(text).collect()


def wide_and_long(context: Context) -> Iterator[Figure]:
    """Row 14: tables that are large in another way: each is opened, planned, changed and kept."""
    folder = context.folder / "slopes-wide"
    made: dict[str, Callable[[Path], str]] = {
        "5,000 columns": lambda at: write_table_of_columns(at, columns=5_000, files=200),
        "100,000 partitions": lambda at: write_table_of_partitions(at, partitions=100_000),
        "100,000 snapshots": lambda at: write_table_of_snapshots(
            at, snapshots=100_000, shared=True
        ),
        "a metadata file of 500 MB": _long,
    }
    for number, (what, write) in enumerate(made.items()):
        file = write(folder / str(number))
        name = f"bench.wide_{number}"
        table = context.lake.register_table(name, file)
        where = {0: "c7 between 5 and 9", 1: "part = 77"}.get(number)
        page = folder / "upkeep.html"
        steps: dict[str, tuple[Callable[[], object], float]] = {
            "open": (lambda file=file: read_metadata(FileIO(), file), 20),
            "plan": (lambda table=table, where=where: table.scan(where).plan(), 5),
            "append to": (lambda table=table: table.files.append([_new_file(table)]), 30),
            "write the page about": (lambda table=table, page=page: table.report(page), 60),
            "look what optimize would do to": (
                lambda table=table: table.optimize(dry_run=True),
                60,
            ),
            "check": (lambda table=table: table.maintenance.check(), 120),
            "rewrite the manifests of": (
                lambda table=table: table.maintenance.rewrite_manifests(),
                60,
            ),
            "expire all snapshots but one of": (lambda table=table: _expired(table), 60),
        }
        for verb, (step, seconds) in steps.items():
            table.io.caches.clear()
            took = costs(context, {"frazil": step}, rounds=1)["frazil"]
            yield limit(f"{verb} a table of {what}", took.cpu, seconds)
            yield limit(f"{verb} a table of {what}, memory", took.peak, DRIVER_MB, unit="MB")
        context.lake.drop_table(name)


def _long(folder: Path) -> str:
    file = write_table_of_snapshots(folder, snapshots=100_000, shared=True)
    lengthen(file, size=_LONG_BYTES)
    return file


def _add_small_files(context: Context, table: frazil.Table) -> None:
    """Let all files be as large as is asked, but those of a partition that has 24 small ones more.

    These are really there.
    """
    table.set_properties({"write.target-file-size-bytes": str(FILE_SIZE)})
    for number in range(24):
        rows = context.spark.range(number, number + 1, 1, 1)
        table.append(rows.selectExpr("id", "bigint(7) as part"))


def _optimized(table: frazil.Table, tell: Callable[[object], None]) -> None:
    """Put the small files together; no other file is touched."""
    done = table.optimize(on_progress=tell)
    assert not done.failures
    assert done.after.health.files == done.before.health.files - 23


def _compared(table: frazil.Table, tell: Callable[[object], None]) -> None:
    """Tell which names are no files of the table: none is."""
    listed = table.files().selectExpr(*_NAMES_OF_LONG_AGO)
    found = table.maintenance.remove_orphan_files(
        file_list=listed, dry_run=True, location="file:///lake", on_progress=tell
    )
    assert found.orphan_files_count == 0


def _checked(table: frazil.Table, tell: Callable[[object], None]) -> None:
    """Look for each file."""
    found = table.maintenance.check(on_progress=tell)
    assert found.problems_count >= MILLION
    assert len(found.frame) == MOST_NAMED


def _expired(table: frazil.Table, tell: Callable[[object], None] | None = None) -> None:
    """Let all snapshots but the newest go: with them manifests go, and no file of theirs."""
    done = table.maintenance.expire_snapshots(
        older_than="2100-01-01", retain_last=1, on_progress=tell
    )
    assert done.deleted_manifest_files
    assert not done.failures


def _new_file(table: frazil.Table) -> frazil.DataFile:
    made = data_file(table.location, 1)
    return made if table.metadata.spec.fields else replace(made, partition=())
