"""`frazil optimize`: maintenance by the triggers of a table, once or on a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from frazil.cli.app import Settings, command
from frazil.cli.interrupts import until_interrupted
from frazil.cli.layout import one_line
from frazil.cli.output import Output
from frazil.errors import FrazilError
from frazil.later import later

if TYPE_CHECKING:
    from frazil.cli.local_spark import opened_table
    from frazil.cli.progress import shown_progress
    from frazil.spark.maintenance.optimizing.results import OptimizeResult
    from frazil.spark.maintenance.optimizing.watch import watch
    from frazil.spark.table import Table
    from frazil.table.maintenance.optimizing.choices import OptimizingPlan
    from frazil.table.maintenance.optimizing.look import look
else:
    opened_table = later("frazil.cli.local_spark", "opened_table")
    watch = later("frazil.spark.maintenance.optimizing.watch", "watch")
    look = later("frazil.table.maintenance.optimizing.look", "look")
    shown_progress = later("frazil.cli.progress", "shown_progress")


@command(
    "frazil --warehouse /data/lake optimize db.trips --dry-run",
    "frazil --warehouse /data/lake optimize db.trips",
)
@click.argument("table")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and what reads would gain.")
@click.option("--branch", metavar="NAME", help="The branch to work on; main unless given.")
@click.option("--watch", "watches", is_flag=True, help="Go on until it is interrupted.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Between two runs; the table's property unless given.",
)
def optimize(
    settings: Settings,
    out: Output,
    *,
    table: str,
    dry_run: bool,
    branch: str | None,
    watches: bool,
    interval: float | None,
) -> None:
    """Do the maintenance that is worth it: small files, equality deletes, files of deleted rows.

    The triggers are the table's properties self-optimizing.…; --watch runs beside writers.
    """
    if interval is not None and not watches:
        raise click.UsageError("--interval goes with --watch")
    if watches and dry_run:
        raise click.UsageError("--dry-run and --watch contradict each other")
    handle = settings.table(table)
    if dry_run:
        plan = look(handle.metadata, handle.io, branch=branch)
        _show(out, plan_facts(plan), repr(plan))
        return

    def run(opened: Table) -> OptimizeResult:
        with shown_progress(out, "optimizing", in_lines=True) as tell:
            result = opened.optimize(branch=branch, on_progress=tell)
        if not watches or result.steps:
            _show(out, result_facts(result), repr(result))
        return result

    with opened_table(handle) as opened:
        if not watches:
            run(opened)
            return
        with until_interrupted() as stop:
            watch(opened, interval=interval, stop=stop, run=run, on_error=_tell_error)
        click.echo("stopped", err=True)


def plan_facts(plan: OptimizingPlan) -> dict[str, Any]:
    """Return a plan as plain values."""
    return {
        "snapshot": plan.snapshot_id,
        "health": plan.health.score,
        "files": plan.health.files,
        "read_seconds": plan.read_seconds,
        "gain_seconds": plan.gain_seconds,
        "choices": [
            {
                "kind": str(choice.kind),
                "work": str(choice.work),
                "partition": choice.partition,
                "files": choice.files,
                "bytes": choice.size_in_bytes,
                "reason": choice.reason,
                "gain_seconds": choice.gain_seconds,
                "cost_seconds": choice.cost_seconds,
            }
            for choice in plan.choices
        ],
    }


def result_facts(result: OptimizeResult) -> dict[str, Any]:
    """Return what was done as plain values."""
    return {
        "seconds": result.seconds,
        "before": plan_facts(result.before),
        "after": plan_facts(result.after),
        "done": [str(step.work) for step in result.steps if step.has_changed],
        "failures": list(result.failures),
    }


def _show(out: Output, facts: dict[str, Any], text: str) -> None:
    if out.as_json:
        out.document(facts)
        return
    for line in text.splitlines():
        click.echo(one_line(line))


def _tell_error(error: FrazilError) -> None:
    click.echo(one_line(f"this run failed, the next one tries again: {error}"), err=True)
