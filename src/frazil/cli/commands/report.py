"""`frazil report`: a page about a table, or pages about the whole lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from frazil.cli.app import Settings, command
from frazil.cli.output import Output
from frazil.cli.progress import shown_progress
from frazil.later import later

if TYPE_CHECKING:
    from frazil.table.report.write import write_lake_report, write_report
else:
    write_lake_report, write_report = later(
        "frazil.table.report.write", "write_lake_report", "write_report"
    )


@command(
    "frazil --warehouse /data/lake report db.trips --out /data/lake/report.html",
    "frazil --warehouse /data/lake report --out /data/lake-report",
    "frazil --warehouse /data/lake report --namespace db --out /data/lake-report",
)
@click.argument("table", required=False)
@click.option(
    "--out",
    "path",
    metavar="PLACE",
    help="The file of a table's page, report.html by default; the folder of a lake's, report.",
)
@click.option(
    "--namespace", metavar="NAME", help="Tables of this namespace and those below it alone."
)
def report(
    settings: Settings,
    out: Output,
    *,
    table: str | None,
    path: str | None,
    namespace: str | None,
) -> None:
    """Write a page about a table, or about the whole lake: an index and a page for each table.

    A page shows snapshots, file sizes, deletes, and what optimize would do; no rows. It loads
    nothing from a network.
    """
    if table is None:
        _report_lake(settings, out, folder=path or "report", namespace=namespace)
        return
    if namespace is not None:
        raise click.UsageError("give a table or --namespace, not both")
    handle = settings.table(table)
    file = path or "report.html"
    with shown_progress(out, "report") as tell:
        write_report(
            file, name=handle.name, metadata=handle.metadata, io=handle.io, on_progress=tell
        )
    out.print_done({"table": handle.name, "report": file}, f"wrote {file}")


def _report_lake(settings: Settings, out: Output, *, folder: str, namespace: str | None) -> None:
    with shown_progress(out, "looking for tables") as tell:
        done = write_lake_report(
            folder, settings.catalog(), namespace=namespace or (), on_progress=tell
        )
    lost = len(done.problems)
    facts = {
        "report": str(done.index),
        "tables": done.tables,
        "views": done.views,
        "problems": done.problems,
    }
    counts = f"{done.tables:,} table{'' if done.tables == 1 else 's'}"
    if done.views:
        counts += f", {done.views:,} view{'' if done.views == 1 else 's'}"
    failed = f"; {lost:,} cannot be loaded, the index says why" if lost else ""
    out.print_done(facts, f"wrote {done.index}: {counts}{failed}")
