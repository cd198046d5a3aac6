"""Every engine reads the rows that a command of Frazil's left, and Java the same lineage."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from interop_cases import shown
from interop_engines import DuckDB
from interop_rows import all_rows
from row_commands import COMMANDS, LAYOUTS, make_view

from ci_share import only_in_interop, only_in_soak
from frazil.spark.lake import Lake
from frazil.spark.table import Table

READERS = ("frazil", "java", "pyiceberg", "duckdb")
FORMS = [
    ("copy-on-write", 1),
    ("copy-on-write", 2),
    ("copy-on-write", 3),
    ("merge-on-read", 2),
    ("merge-on-read", 3),
]
# Each command once; each layout, and each mode and version.
IN_CI = [
    ("unpartitioned", "merge-on-read", 2, "delete"),
    ("bucket", "merge-on-read", 3, "update"),
    ("evolved spec", "copy-on-write", 1, "merge"),
    ("evolved schema", "merge-on-read", 3, "upsert"),
]
# Each command in both modes, and each mode with each version.
IN_INTEROP = [
    ("identity", "copy-on-write", 3, "merge"),
    ("bucket", "merge-on-read", 3, "merge"),
    ("evolved schema", "merge-on-read", 3, "delete"),
    ("evolved schema", "copy-on-write", 2, "update"),
]
EVERY = [
    (layout, *form, command)
    for layout, form, command in itertools.product(LAYOUTS, FORMS, COMMANDS)
]
CASES = [
    case if case in IN_CI else (only_in_interop if case in IN_INTEROP else only_in_soak)(*case)
    for case in EVERY
]

Start = tuple[Table, int]


@pytest.fixture(scope="module")
def start(spark: Any, sql_lake: Lake) -> Callable[[str, str, int], Start]:
    """Give a table of a layout, made once, and the snapshot that every command starts from."""
    make_view(spark)

    @cache
    def made(layout: str, mode: str, version: int) -> Start:
        name = f"db.commands_{layout}_{mode}_{version}".replace(" ", "_").replace("-", "_")
        table = LAYOUTS[layout].create(sql_lake, name, mode, version)
        return table, table.current_snapshot.snapshot_id

    return made


@pytest.mark.parametrize(("layout", "mode", "version", "command"), CASES)
def test_engines_read_what_a_command_left(
    spark: Any,
    duck: DuckDB,
    start: Callable[[str, str, int], Start],
    layout: str,
    mode: str,
    version: int,
    command: str,
) -> None:
    """The rows of the model; in version 3 a row's lineage tells what the command did to it."""
    table, first = start(layout, mode, version)
    name = f"java_sql.{'.'.join(table.identifier)}"
    left = list(COMMANDS[command].leaves(LAYOUTS[layout].rows()))
    expected = sorted(shown(row._asdict()) for row, _ in left)
    by = {
        "frazil": lambda: COMMANDS[command].by_frazil(table),
        "java": lambda: spark.sql(COMMANDS[command].by_java.format(name)),
    }
    for writer, run in by.items():
        if table.refresh().current_snapshot.snapshot_id != first:
            table.rollback_to_snapshot(first)
        before = lineage(spark, name) if version == 3 else {}
        unused = table.refresh().metadata.next_row_id
        run()
        for engine in READERS if writer == "frazil" else ["java"]:
            found = all_rows(engine, spark, duck, table, name)
            assert found == expected, (writer, engine)
        if version == 3:
            now = table.current_snapshot.sequence_number
            after = lineage(spark, name)
            assert len({row_id for row_id, _ in after.values()}) == len(left)
            told = {n: _told(before.get(n), row, now, unused) for n, row in after.items()}
            assert told == {row.n: kind for row, kind in left}, writer


def lineage(spark: Any, name: str) -> dict[int, tuple[int, int]]:
    """Of each row its id and the commit of its last change, as Java reads them."""
    columns = ["n", "_row_id", "_last_updated_sequence_number"]
    return {row[0]: (row[1], row[2]) for row in spark.table(name).select(*columns).collect()}


def _told(
    before: tuple[int, int] | None, after: tuple[int, int], now: int, unused: int
) -> str | tuple[Any, ...]:
    """What became of a row, by its lineage; the lineages where they tell nothing."""
    row_id, changed = after
    if after == before:
        return "kept"
    if before is not None and (row_id, changed) == (before[0], now):
        return "changed"
    if before is None and row_id >= unused and changed == now:
        return "new"
    return before, after, now, unused
