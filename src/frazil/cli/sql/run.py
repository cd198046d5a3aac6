"""Statements of an argument, a file or the prompt: run, and their rows printed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final

import click

from frazil.cli.output import Output
from frazil.cli.sql.engine import CancelledError, Engine, LeftError
from frazil.cli.sql.mistakes import said_of
from frazil.cli.sql.names import Names
from frazil.cli.sql.results import FirstRows, Form, show_answer
from frazil.cli.sql.statements import Statement
from frazil.later import later

if TYPE_CHECKING:
    from frazil.cli.sql.rows import export_rows_of, first_rows_of
else:
    export_rows_of, first_rows_of = later("frazil.cli.sql.rows", "export_rows_of", "first_rows_of")

DEFAULT_ROWS: Final = 50
INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs statements, and prints their rows.

    Attributes:
        engine: runs them.
        out: how wide rows are.
        form: a table, JSON or CSV.
        limit: at most so many rows of each; None for `DEFAULT_ROWS` in a table, else for all.
    """

    engine: Engine
    out: Output
    form: Form = Form.TABLE
    limit: int | None = None

    def run(self, text: str) -> str:
        """Run a statement, print its rows, and return what can be said of their number.

        Raises:
            CancelledError, LeftError: the user ended it.
            FrazilError: what the statement raises; and the errors of Spark.
        """
        if self.form is not Form.TABLE:
            rows = self.engine.submit(
                lambda lake: export_rows_of(lake, text, self.form, self.limit)
            )
            self.engine.wait_for(rows, self.out)
            return ""
        limit = self.limit or DEFAULT_ROWS
        answer = self.engine.wait_for(
            self.engine.submit(lambda lake: first_rows_of(lake, text, limit)), self.out
        )
        show_answer(self.out, answer)
        return _number_of(answer)

    def run_each(self, statements: list[Statement]) -> None:
        """Run statements one after the other, up to the first that fails.

        Raises:
            click.ClickException: one failed; with its line, where it is one of several.
            SystemExit: the user ended it.
        """
        for statement in statements:
            begun = perf_counter()
            try:
                said = self.run(statement.text)
            except (CancelledError, LeftError):
                click.echo("cancelled", err=True)
                sys.exit(INTERRUPTED)
            except (OSError, click.ClickException):
                raise  # As where a pipe is closed: the command ends as others do.
            except Exception as error:
                # Spark raises several kinds that share no base.
                where = f"line {statement.line}: " if len(statements) > 1 else ""
                said = said_of(error, self.engine.settings.properties, Names(self.engine))
                raise click.ClickException(f"{where}{said}") from error
            if self.form is Form.TABLE and sys.stdout.isatty():
                print_outcome(said, perf_counter() - begun)
            elif said.startswith("the first"):
                click.echo(said, err=True)


def print_outcome(said: str, seconds: float) -> None:
    """Print how many rows there were, and how long they took."""
    click.secho(f"{said}, {seconds:.2f} s" if said else f"{seconds:.2f} s", dim=True)


def _number_of(answer: FirstRows) -> str:
    if not answer.columns:
        return ""
    number = len(answer.rows)
    if answer.has_more:
        return f"the first {number} rows; --limit shows more"
    return f"{number} row" if number == 1 else f"{number} rows"
