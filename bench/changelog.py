"""Reading the changes of 100 commits of appends and deletes."""

from __future__ import annotations

from collections.abc import Iterator

from bench.context import Context, run_all
from bench.deletes_data import delete_from
from bench.figures import Figure, interleaved, report
from bench.rows import FLAT_DDL, flat

COMMITS = 100
SHARE = 0.05


def run(context: Context) -> Iterator[Figure]:
    """Seconds a million changes, and net changes; the Java runtime refuses delete files here."""
    table = context.lake.create_table("bench.changed", FLAT_DDL)
    known: set[str] = set()
    for number in range(COMMITS // 2):
        table.append(flat(context.spark, context.rows // COMMITS).coalesce(1))
        files = table.inspect.dataframes.data_files().select("file_path", "record_count").collect()
        new = {row.file_path: row.record_count for row in files if row.file_path not in known}
        delete_from(table, new, SHARE, name=str(number))
        known |= new.keys()
    millions = table.changes().count() / 1e6
    took = interleaved(
        {
            "changes": lambda: run_all(table.changes()),
            "net": lambda: run_all(table.net_changes()),
        },
        rounds=3,
    )
    for what, name in (("changes", "changes"), ("net", "net_changes")):
        title = f"{name} of {COMMITS} commits{context.suffix}"
        yield report(title, took[what] / millions, unit="s a million rows")
    context.lake.purge_table("bench.changed")
