"""A process that forks, for test_table_processes.py: what its child can do with a table."""

from __future__ import annotations

import multiprocessing
import sys

import polars as pl
from table_cases import open_catalog

from frazil.errors import FrazilError
from frazil.planning.plan import plan
from frazil.table.handle import TableHandle

DONE, REFUSED, HANGS = 10, 11, 12


def open_table(folder: str) -> TableHandle:
    catalog = open_catalog("sql", folder)
    return TableHandle(catalog, catalog.load_table("db.t"))


def planned(table: TableHandle) -> int:
    table.io.caches.clear()
    return len(plan(table.refresh().metadata, table.current_snapshot, table.io).files)


USES = {
    "plan": planned,
    "inspect": lambda table: len(table.refresh().inspect.files()),
    "rewrite": lambda table: table.files.delete(where="id = 1"),
}


def child(folder: str, use: str) -> None:
    try:
        USES[use](open_table(folder))
    except FrazilError as error:
        print(type(error).__name__, error)
        sys.exit(REFUSED)
    sys.exit(DONE)


def main(folder: str, before: str, method: str, use: str) -> int:
    """Do something, start a child that uses the table, and wait ten seconds for it."""
    if before == "plan":
        planned(open_table(folder))
    elif before == "polars":
        pl.DataFrame({"a": [1]}).select(pl.col("a") + 1, (pl.col("a") + 2).alias("b"))
    started = multiprocessing.get_context(method).Process(target=child, args=(folder, use))
    started.start()
    started.join(10)
    if started.exitcode is None:
        started.kill()
        return HANGS
    return started.exitcode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
