"""`frazil add-files`: data files of a folder become files of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from frazil.cli.app import Settings, command
from frazil.cli.output import Output
from frazil.format.manifests.model import DATA_FORMATS
from frazil.later import later

if TYPE_CHECKING:
    from frazil.cli.local_spark import opened_table
else:
    opened_table = later("frazil.cli.local_spark", "opened_table")


@command(
    "frazil --warehouse /data/lake add-files db.empty /data/lake/old",
    name="add-files",
)
@click.argument("table")
@click.argument("folder")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(DATA_FORMATS),
    default="parquet",
    help="Of the files; parquet unless given.",
)
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Only partitions of this value; may be given for each column.",
)
@click.option("--allow-duplicates", is_flag=True, help="Add files that the table has, once more.")
@click.option("--branch", metavar="NAME", help="The branch to add to; main unless given.")
def add_files(
    settings: Settings,
    out: Output,
    *,
    table: str,
    folder: str,
    file_format: str,
    partitions: tuple[str, ...],
    allow_duplicates: bool,
    branch: str | None,
) -> None:
    """Make the data files below a folder files of a table, as they are.

    No file is written anew or moved. Partition values are taken from the folders' names.
    """
    wanted = {}
    for text in partitions:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--partition is {text!r}; write column=value")
        wanted[name] = value
    with opened_table(settings.table(table)) as opened:
        done = opened.maintenance.add_files(
            folder,
            format=file_format,
            partition_filter=wanted,
            check_duplicate_files=not allow_duplicates,
            branch=branch,
        )
    facts = {
        "table": opened.name,
        "added_files_count": done.added_files_count,
        "changed_partition_count": done.changed_partition_count,
    }
    out.print_done(
        facts,
        f"added {done.added_files_count} files of {done.changed_partition_count} partitions",
    )
