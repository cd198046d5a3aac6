"""Commands that read rows; Spark starts only where rows have to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from frazil.cli.app import Settings, command, of_snapshot
from frazil.cli.describe import plan_facts
from frazil.cli.output import Output, column_of
from frazil.later import later

if TYPE_CHECKING:
    from frazil.cli.local_spark import first_rows, opened_scan
    from frazil.cli.planned import Read
else:
    first_rows, opened_scan = later("frazil.cli.local_spark", "first_rows", "opened_scan")
    Read = later("frazil.cli.planned", "Read")


DEFAULT_ROWS = 20


@command(
    'frazil --warehouse /data/lake scan db.trips --where "fare > 10" --columns id,fare',
    'frazil --warehouse /data/lake scan db.trips --where "fare > 10" --plan',
)
@click.argument("table")
@click.option("--where", metavar="SQL", help="A condition, as \"ts >= '2024-01-01'\".")
@click.option("--columns", metavar="NAMES", help="Columns to show, separated by commas.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=DEFAULT_ROWS,
    show_default=True,
    metavar="N",
    help="At most this many rows.",
)
@of_snapshot
@click.option("--plan", "only_plan", is_flag=True, help="Show what would be read; no Spark starts.")
def scan(
    settings: Settings,
    out: Output,
    *,
    table: str,
    where: str | None,
    columns: str | None,
    limit: int,
    only_plan: bool,
    **moment: Any,
) -> None:
    """Show rows; starts a local Spark."""
    chosen = [name.strip() for name in columns.split(",")] if columns else None
    read = Read.of(settings.table(table), where=where, columns=chosen, **moment)
    if only_plan:
        plan = read.plan()
        out.document(plan_facts(plan)) if out.as_json else click.echo(plan.summary())
        return
    # Spark takes seconds to start, and mistakes are told by now.
    with opened_scan(read) as query:
        names, rows = first_rows(query, limit, table=table)
    shown = {name: column_of(name, (row[name] for row in rows)) for name in names}
    out.listing(rows, shown, nothing="no rows")


@command(
    "frazil --warehouse /data/lake count db.trips",
    "frazil --warehouse /data/lake count db.trips --where \"ts >= '2024-02-01'\"",
)
@click.argument("table")
@click.option("--where", metavar="SQL", help="A condition; all rows without one.")
@of_snapshot
def count(settings: Settings, out: Output, *, table: str, where: str | None, **moment: Any) -> None:
    """Count rows; starts Spark only if metadata cannot tell.

    Metadata tells the number where no condition is left to test on rows.
    """
    read = Read.of(settings.table(table), where=where, **moment)
    found = read.count()
    if found is None:
        with opened_scan(read) as query:
            found = query.count()
    out.print_done({"table": table, "rows": found}, str(found))
