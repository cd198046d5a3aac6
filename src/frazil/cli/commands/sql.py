"""`frazil sql`: a prompt; and statements of an argument, a file or a pipe."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from frazil.cli.app import Settings, command
from frazil.cli.output import Output
from frazil.cli.sql.engine import Engine, LeftError
from frazil.cli.sql.results import Form
from frazil.cli.sql.run import DEFAULT_ROWS, INTERRUPTED, Runner
from frazil.cli.sql.statements import statements_of
from frazil.later import later

if TYPE_CHECKING:
    from frazil.cli.sql.prompt import Prompt
else:
    Prompt = later("frazil.cli.sql.prompt", "Prompt")


@command(
    'frazil --warehouse /data/lake sql "SELECT city, count(*) FROM db.trips GROUP BY city"',
    'frazil --warehouse /data/lake sql "SELECT * FROM db.trips" --csv',
)
@click.argument("statement", required=False)
@click.option(
    "--file",
    "-f",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Run the statements of a file, with ; between them; - is standard input.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print rows as CSV.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"At most this many rows of a statement; {DEFAULT_ROWS} in a table, else all.",
)
def sql(
    settings: Settings,
    out: Output,
    *,
    statement: str | None,
    file: Path | None,
    as_csv: bool,
    limit: int | None,
) -> None:
    """Run statements of SQL, or open a prompt; starts a local Spark.

    STATEMENT is in Spark's and Iceberg's syntax; names are those of the catalog's tables. Without
    one a terminal becomes a prompt, and standard input is read where it is no terminal.
    """
    if statement is not None and file is not None:
        raise click.UsageError("give a statement or a file, not both")
    if out.as_json and as_csv:
        raise click.UsageError("give --json or --csv, not both")
    form = Form.JSON if out.as_json else Form.CSV if as_csv else Form.TABLE
    # Rows are the documents; nothing else is shown between them.
    engine = Engine(settings)
    runner = Runner(engine, replace(out, as_json=form is not Form.TABLE), form, limit)
    try:
        if statement is None and file is None and sys.stdin.isatty():
            # Its library is of no use to scripts.
            Prompt(engine, runner.out, runner.run).run()
            return
        text = statement if statement is not None else _text_of(file)
        statements = list(statements_of(text))
        if not statements:
            raise click.UsageError("give a statement, or statements in --file or standard input")
        engine.start()
        # What is not there is told before Spark has started.
        engine.catalog.result()
        runner.run_each(statements)
    except LeftError:
        sys.exit(INTERRUPTED)
    finally:
        # What is open at the end, or after an error, is rolled back.
        engine.close()


def _text_of(file: Path | None) -> str:
    if file is None or str(file) == "-":
        return sys.stdin.read()
    return file.read_text(encoding="utf-8")
