"""Upkeep of tables of millions of files (row 13), and tables that are wide or long (row 14).

Metadata alone is there. The memory of executors' Python is not counted; `check`, which opens every
file, is not measured. In a local session executors are the driver's virtual machine, whose heap
grows as far as it may before it is collected: a run of row 13 alone has one of `UPKEEP_HEAP`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from pyspark.sql import functions as F

import frazil
from bench.context import Context
from bench.figures import Figure, limit
from bench.slopes_cost import Slope, costs
from bench.slopes_data import data_file, write_table_of_links, write_table_of_snapshots
from bench.slopes_wide_data import (
    lengthen,
    write_table_of_columns,
    write_table_of_partitions,
)
from frazil.catalog.metadata_files import read_metadata
from frazil.storage.files import FileIO
from frazil.table.maintenance.expire import unreachable_files

MILLION = 1_000_000
UPKEEP_HEAP = "2g"
_DRIVER_MB = 4_096
_LONG_BYTES = 500 << 20


def upkeep_of_millions(context: Context) -> Iterator[Figure]:
    """Row 13: each once, of tables whose manifests are links to those of half a million files."""
    names = {
        "report": "the page about {} files",
        "optimize": "look what optimize would do to {} files",
        "orphans": "compare a listing of {} names with as many files",
        "manifests": "rewrite the manifests of {} files",
        "expire": "expire the manifests of {} files that others hold",
    }
    slopes = {key: Slope(context, name, exponent=1.2) for key, name in names.items()}
    for files in (MILLION, 10 * MILLION):
        made = write_table_of_links(context.folder / f"slopes-linked-{files}-upkeep", files=files)
        name = f"bench.upkeep_{files}"
        table = context.lake.register_table(name, made)
        page = context.folder / "upkeep.html"
        steps: dict[str, Callable[[], object]] = {
            "report": lambda table=table, page=page: table.report(page),
            "optimize": lambda table=table: table.optimize(dry_run=True),
            "orphans": lambda table=table: _compared(table),
            "manifests": lambda table=table: table.maintenance.rewrite_manifests(),
            "expire": lambda table=table: _gone(table),
        }
        for key, step in steps.items():
            table.io.caches.clear()
            took = costs(context, {"frazil": step}, rounds=1)["frazil"]
            yield from list(slopes[key].told(files, {"frazil": took}))[:1]
            what = f"{names[key].format(f'{files:,}')}, resident"
            yield limit(what, took.resident, _DRIVER_MB, unit="MB")
        context.lake.drop_table(name)
    for slope in slopes.values():
        yield slope.steepness()


def wide_and_long(context: Context) -> Iterator[Figure]:
    """Row 14: what opens, plans and commits to tables that are large in another way."""
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
        steps: dict[str, tuple[Callable[[], object], float]] = {
            "open": (lambda file=file: read_metadata(FileIO(), file), 20),
            "plan": (lambda table=table, where=where: table.scan(where).plan(), 5),
            "append": (lambda table=table: table.files.append([_new_file(table)]), 30),
        }
        for verb, (step, seconds) in steps.items():
            table.io.caches.clear()
            took = costs(context, {"frazil": step}, rounds=1)["frazil"]
            yield limit(f"{verb} a table of {what}", took.cpu, seconds)
            yield limit(f"{verb} a table of {what}, memory", took.peak, _DRIVER_MB, unit="MB")
        context.lake.drop_table(name)


def _long(folder: Path) -> str:
    file = write_table_of_snapshots(folder, snapshots=100_000, shared=True)
    lengthen(file, size=_LONG_BYTES)
    return file


def _compared(table: frazil.Table) -> None:
    """Tell which names are no files of the table: none is."""
    old = F.lit("2020-01-01").cast("timestamp").alias("last_modified")
    listed = table.files().select("file_path", old)
    found = table.maintenance.remove_orphan_files(
        file_list=listed, dry_run=True, location="file:///lake/linked"
    )
    assert found.orphan_files_count == 0


def _gone(table: frazil.Table) -> None:
    """Look for what goes with the snapshots before the newest: manifests, and no data file."""
    metadata = table.metadata
    newest = tuple(
        each for each in metadata.snapshots if each.snapshot_id == metadata.current_snapshot_id
    )
    found = unreachable_files(table.io, metadata, replace(metadata, snapshots=newest))
    assert not len(found.held)
    assert found.manifests


def _new_file(table: frazil.Table) -> frazil.DataFile:
    made = data_file(table.location, 1)
    return made if table.metadata.spec.fields else replace(made, partition=())
