"""How cost grows with a table: CPU seconds and memory at three sizes, and the exponent.

CPU is that of this process and of the virtual machine together, so that what runs beside does not
count. An exponent of 1 is linear; 0 is a cost that the size has no part in. `--row` takes one row
alone, `--large` adds 200 million rows to row 0. Row 10 is of the group `equality`. A row that wants
another heap than others is measured by a process of its own, as if it were asked for alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Final

from bench.context import Context
from bench.figures import Figure, limit
from bench.slopes_commits import appends, expiry, large_manifests, overwrites_of_one_file
from bench.slopes_cost import DRIVER_HEAP
from bench.slopes_large import millions_of_files
from bench.slopes_planning import (
    kept_manifests,
    metadata_tables,
    plans_for_spark,
    plans_under_deletes,
)
from bench.slopes_rows import changes_of_snapshots, deleted_rows, writes_to_partitions
from bench.slopes_upkeep import upkeep_of_millions, wide_and_long

ROWS: Final[Mapping[int, Callable[[Context], Iterator[Figure]]]] = {
    0: deleted_rows,
    1: plans_under_deletes,
    2: large_manifests,
    3: overwrites_of_one_file,
    4: changes_of_snapshots,
    5: plans_for_spark,
    6: kept_manifests,
    7: metadata_tables,
    8: appends,
    9: expiry,
    11: writes_to_partitions,
    12: millions_of_files,
    13: upkeep_of_millions,
    14: wide_and_long,
}

HEAPS: Final[Mapping[int | None, str]] = {5: "1g", 12: DRIVER_HEAP, 13: DRIVER_HEAP}
"""The driver's heap of rows whose bars are for that: Spark's default of row 5."""

_SECONDS_A_ROW: Final = 120
_LONGER: Final[Mapping[int, int]] = {12: 1_200, 13: 1_500, 14: 360}
"""Rows that take longer: ten million entries are copied, a hundred thousand lists are read."""


def run(context: Context) -> Iterator[Figure]:
    """Every row, or the one that was asked for, whose heap the session has then."""
    for row in ROWS if context.row is None else (context.row,):
        if context.row is None and row in HEAPS:
            yield from _in_another_session(row)
            continue
        began = perf_counter()
        yield from ROWS[row](context)
        took = perf_counter() - began
        if not context.large:
            yield limit(f"row {row} in all", took, _LONGER.get(row, _SECONDS_A_ROW))


def _in_another_session(row: int) -> Iterator[Figure]:
    """The figures of a row that a process of its own measures."""
    with tempfile.TemporaryDirectory(prefix="frazil-bench-") as folder:
        found = Path(folder) / "figures.json"
        program = [sys.executable, "-m", "bench", "--only", "slopes", "--row", str(row)]
        # It ends badly where a bar does not hold, too: the figures say that.
        subprocess.run([*program, "--json", str(found)], check=False, stdout=subprocess.DEVNULL)
        if not found.exists():
            raise RuntimeError(f"row {row} of slopes did not end: see what it said above")
        yield from (Figure(**figure) for figure in json.loads(found.read_bytes()))
