"""`frazil report`: a page about a table."""

from __future__ import annotations

import click

from frazil.cli.app import LOOKING, Settings, command
from frazil.cli.output import Output
from frazil.table.report.write import write_report


@command(LOOKING, "frazil --warehouse /data/lake report db.trips --out /data/lake/report.html")
@click.argument("table")
@click.option(
    "--out", "path", metavar="FILE", default="report.html", help="report.html by default."
)
def report(settings: Settings, out: Output, *, table: str, path: str) -> None:
    """Write one self-contained page: snapshots, file sizes, deletes, what optimize would do."""
    handle = settings.table(table)
    write_report(path, name=handle.name, metadata=handle.metadata, io=handle.io)
    out.done({"table": handle.name, "report": path}, f"wrote {path}")
