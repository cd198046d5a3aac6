"""`frazil sql`: statements, and their rows as tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from frazil.cli.app import CHANGING, Settings, command
from frazil.cli.commands.read import DEFAULT_ROWS
from frazil.cli.local_spark import local_session
from frazil.cli.output import Output, column_of
from frazil.spark.lake import Lake
from frazil.spark.words import words_of


@command(
    CHANGING,
    'frazil --warehouse /data/lake sql "SELECT city, count(*) FROM db.trips GROUP BY city"',
    'frazil --warehouse /data/lake sql "SHOW TABLES IN db" --json',
)
@click.argument("statement", required=False)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run the statements of a file, with ; between them.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=DEFAULT_ROWS,
    show_default=True,
    metavar="N",
    help="Show at most this many rows of a statement.",
)
def sql(
    settings: Settings, out: Output, *, statement: str | None, file: Path | None, limit: int
) -> None:
    """Run statements of SQL; starts a local Spark.

    STATEMENT is in Spark's and Iceberg's syntax; names are those of the catalog's tables.
    """
    if (statement is None) == (file is None):
        raise click.UsageError("give a statement, or a file of statements with --file")
    text = str(statement) if file is None else file.read_text(encoding="utf-8")
    catalog = settings.catalog()
    # What is open at the end, or after an error, is rolled back.
    with local_session() as spark, Lake(spark, catalog) as lake:
        for each in statements_of(text):
            found = lake.sql(each)
            if not found.columns:
                continue
            rows = found.limit(limit + 1).collect()
            _show(out, found.columns, [row.asDict(recursive=True) for row in rows], limit)


def statements_of(text: str) -> Iterator[str]:
    """Yield the statements of a text, which has ``;`` between them.

    Raises:
        SqlSyntaxError: a quote or a comment has no end.
    """
    start = None
    stop = 0
    for word in words_of(text):
        if word.keyword == ";":
            if start is not None:
                yield text[start:stop]
            start = None
            continue
        start = word.start if start is None else start
        stop = word.stop
    if start is not None:
        yield text[start:stop]


def _show(out: Output, names: list[str], rows: list[dict[str, object]], limit: int) -> None:
    if out.as_json:
        out.document(rows[:limit])
        return
    columns = {name: column_of(name, (row[name] for row in rows)) for name in names}
    out.rows(rows[:limit], columns, nothing="no rows")
    if len(rows) > limit:
        click.echo(f"the first {limit} rows; --limit shows more", err=True)
