"""Commands that compute statistics; both start Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from frazil.cli.app import Settings, command
from frazil.cli.output import Output
from frazil.later import later

if TYPE_CHECKING:
    from frazil.cli.local_spark import opened_table
else:
    opened_table = later("frazil.cli.local_spark", "opened_table")


_snapshot = click.option("--snapshot-id", type=int, metavar="ID", help="Of this snapshot.")


@command(
    "frazil --warehouse /data/lake compute-table-stats db.trips --columns id",
    name="compute-table-stats",
)
@click.argument("table")
@click.option("--columns", metavar="NAMES", help="As 'id,city'; all of primitive types else.")
@_snapshot
def compute_table_stats(
    settings: Settings, out: Output, *, table: str, columns: str | None, snapshot_id: int | None
) -> None:
    """Count the distinct values of columns, for the planners of engines."""
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    with opened_table(settings.table(table)) as opened:
        done = opened.maintenance.compute_table_stats(snapshot_id=snapshot_id, columns=names)
    if out.as_json:
        facts = {"statistics_file": done.statistics_file, "distinct_counts": done.distinct_counts}
        out.document({"table": opened.name, **facts})
    elif done.file is None:
        click.echo("nothing to count: the table has no snapshot")
    else:
        out.pairs([("statistics file", done.statistics_file), *done.distinct_counts.items()])


@command(
    "frazil --warehouse /data/lake compute-partition-stats db.trips",
    name="compute-partition-stats",
)
@click.argument("table")
@_snapshot
def compute_partition_stats(
    settings: Settings, out: Output, *, table: str, snapshot_id: int | None
) -> None:
    """Count rows, files and deletes by partition, for the planners of engines."""
    with opened_table(settings.table(table)) as opened:
        done = opened.maintenance.compute_partition_stats(snapshot_id=snapshot_id)
        facts = {
            "table": opened.name,
            "partition_statistics_file": done.partition_statistics_file,
            "partitions": done.partitions_count,
        }
    if done.file is None:
        out.print_done(facts, "nothing to count: the table has no snapshot")
    else:
        text = f"counted {done.partitions_count} partitions in {done.partition_statistics_file}"
        out.print_done(facts, text)
