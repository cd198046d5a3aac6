"""Writers in processes of their own: commits of two tables through a server, and single ones.

Arguments: the catalog's properties as JSON, the number of the first writer, how many writers, how
many commits of each. A line is a commit that was acknowledged, or one behind a question mark whose
outcome is unknown. Commits of both tables begin with ``both``, with the writer and a number.
"""

from __future__ import annotations

import json
import os
import random
import sys
import traceback

from catalog_cases import opened
from serve_worker import data_file, report

from frazil.catalog.protocol import Catalog
from frazil.errors import CommitStateUnknownError
from frazil.table.commit.together import ChangedTable, commit_together
from frazil.table.handle import TableHandle
from frazil.table.snapshots.append import FastAppend

TABLES = (("db", "a"), ("db", "b"))


def main() -> None:
    properties, first, writers, commits = json.loads(sys.argv[1]), *map(int, sys.argv[2:5])
    children = [forked(properties, first + number, commits) for number in range(writers)]
    ends = [os.waitpid(child, 0)[1] for child in children]
    if any(ends):
        sys.exit("a writer failed")


def forked(properties: dict[str, str], number: int, commits: int) -> int:
    """A process that commits to both tables so often, and to one of them between."""
    child = os.fork()
    if child == 0:
        try:
            catalog = opened(properties)
            for each in range(commits):
                report(append_to_both(catalog, f"both-{number}-{each}"))
                report(append_to_one(catalog, f"one-{number}-{each}"))
        except BaseException:
            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    return child


def append_to_both(catalog: Catalog, name: str) -> str:
    """Append a file of one name to both tables; its line of the report."""
    tables = [catalog.load_table(each) for each in random.sample(TABLES, 2)]
    parts = [
        ChangedTable(each.identifier, FastAppend(each.io, [data_file(name)]), each)
        for each in tables
    ]
    try:
        commit_together(catalog, parts)
    except CommitStateUnknownError:
        return f"?{name}"
    return name


def append_to_one(catalog: Catalog, name: str) -> str:
    """Append a file to one of the tables; its line of the report."""
    table = TableHandle(catalog, catalog.load_table(random.choice(TABLES)))
    try:
        table.files.fast_append([data_file(name)])
    except CommitStateUnknownError:
        return f"?{name}"
    return name


if __name__ == "__main__":
    main()
