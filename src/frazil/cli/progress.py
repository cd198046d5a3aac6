"""What a long command is at, shown in a terminal while it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from frazil.cli.layout import one_line
from frazil.cli.output import Output


class ProgressReport(Protocol):
    """What a job is at, as its `on_progress` is told; its text is for people."""

    @property
    def share(self) -> float | None:
        """How much is done, from 0 to 1; None while that is unknown."""


@contextmanager
def shown_progress(
    out: Output, title: str, *, in_lines: bool = False
) -> Iterator[Callable[[ProgressReport], None]]:
    """Give an `on_progress` that shows a bar on standard error; it goes when the block ends.

    There is a bar only where both standard output and standard error are a terminal, and no JSON
    is asked for.

    Args:
        out: of the command.
        title: what is shown until the job tells something.
        in_lines: where there is no bar, each step is a line on standard error.
    """
    if out.as_json or not (sys.stdout.isatty() and sys.stderr.isatty()):
        yield _show_in_lines if in_lines else _show_nothing
        return
    text = TextColumn(
        "{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)
    )
    bars = Progress(
        SpinnerColumn(),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        text,
        console=Console(stderr=True),
        transient=True,
        expand=True,
    )
    with bars:
        bar = bars.add_task(title, total=None)

        def show(report: ProgressReport) -> None:
            done = None if report.share is None else 1.0
            bars.update(
                bar, description=one_line(str(report)), total=done, completed=report.share or 0.0
            )

        yield show


def _show_in_lines(report: ProgressReport) -> None:
    click.echo(one_line(str(report)), err=True)


def _show_nothing(report: ProgressReport) -> None:
    pass
