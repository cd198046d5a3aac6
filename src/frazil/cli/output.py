"""How results are shown: lines for people, or one JSON document for programs.

On a terminal lines have its width. Where the output goes to a file or another program, every row is
one line, however long.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import click

from frazil.cli.layout import TextColumn, one_line, pair_lines, table_lines
from frazil.format.html_text import size_text

Row = Mapping[str, Any]

_USUAL_WIDTH: Final = 80


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command's result goes, and in which form.

    Attributes:
        as_json: one JSON document in place of text.
        is_wide: lines as long as they are, on a terminal too.
    """

    as_json: bool = False
    is_wide: bool = False

    @property
    def width(self) -> int | None:
        """How many cells a line has; None where it may have any number."""
        if self.is_wide or not sys.stdout.isatty():
            return None
        stated = os.environ.get("COLUMNS", "")
        if stated.isdigit() and int(stated):
            return int(stated)
        with suppress(OSError, ValueError):
            return os.get_terminal_size(sys.stdout.fileno()).columns or _USUAL_WIDTH
        return _USUAL_WIDTH

    def document(self, value: Any) -> None:
        """Print one JSON document."""
        click.echo(json.dumps(jsonable(value), indent=2, ensure_ascii=False))

    def print_done(self, facts: Mapping[str, Any], text: str) -> None:
        """Print what was done: the sentence, or the facts where a document is asked for."""
        if self.as_json:
            self.document(facts)
        else:
            click.echo(one_line(text))

    def rows(self, rows: Sequence[Row], columns: Mapping[str, TextColumn], *, nothing: str) -> None:
        """Print rows as a table.

        Args:
            rows: values by name.
            columns: which of them are shown, in order, and how.
            nothing: what is printed where there are no rows.
        """
        if not rows:
            click.echo(nothing)
            return
        cells = [[one_line(readable_text(row.get(name))) for name in columns] for row in rows]
        lines = table_lines(list(columns.values()), cells, width=self.width)
        for line in lines.heading:
            click.echo(click.style(line, bold=True))
        for line in lines.body:
            click.echo(line)

    def listing(
        self,
        found: Sequence[Any],
        columns: Mapping[str, TextColumn],
        *,
        nothing: str,
        shown: Callable[[Any], Row] = dict,
    ) -> None:
        """Print what was found: all of it as a document where one is asked for, else a table.

        Args:
            found: rows with their values by name, or what `shown` makes rows of.
            columns: as of `rows`.
            nothing: as of `rows`.
            shown: makes of each what people read.
        """
        if self.as_json:
            self.document(found)
        else:
            self.rows([shown(each) for each in found], columns, nothing=nothing)

    def pairs(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Print names and values, a line each."""
        texts = [(name, one_line(readable_text(value))) for name, value in pairs]
        for name, value in pair_lines(texts, width=self.width):
            click.echo(click.style(name, bold=True) + value.rstrip())


def column_of(heading: str, values: Iterable[Any]) -> TextColumn:
    """Return how a column of these values is shown: text may be cut, nothing else may."""
    known = [value for value in values if value is not None]
    numbers = (int, float, Decimal)
    if known and all(isinstance(v, numbers) and not isinstance(v, bool) for v in known):
        return TextColumn(heading, "number")
    if any(isinstance(value, str | Mapping | list | tuple | bytes | bytearray) for value in known):
        return TextColumn(heading, "text")
    return TextColumn(heading)


def readable_text(value: Any) -> str:
    """Return a value as people read it; points in time in UTC, marked with Z."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return repr(value)
        case datetime():
            known = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            precision = "milliseconds" if known.microsecond % 1000 == 0 else "microseconds"
            text = known.isoformat(sep=" ", timespec=precision)
            return text if value.tzinfo is None else f"{text}Z"
        case bytes() | bytearray():
            return bytes(value).hex()
        case Mapping():
            return ", ".join(f"{name}={readable_text(part)}" for name, part in value.items())
        case list() | tuple():
            return f"[{', '.join(readable_text(part) for part in value)}]"
        case _:
            return str(value)


def readable_bytes(size: int | None) -> str:
    """Return a size with its unit."""
    return "-" if size is None else size_text(size)


def readable_duration(milliseconds: int | None) -> str:
    """Return a length of time in its largest units, as ``1 d 6 h``; exact."""
    if milliseconds is None:
        return "-"
    rest, parts = milliseconds, []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    if rest or not parts:
        parts.append(f"{rest} ms")
    return " ".join(parts)


def jsonable(value: Any) -> Any:
    """Return a value as JSON holds it: times in ISO 8601, bytes in hex, decimals as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            # JSON has no NaN and no infinities.
            return value if value == value and abs(value) != float("inf") else str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case Decimal() | UUID():
            return str(value)
        case Mapping():
            return {str(name): jsonable(part) for name, part in value.items()}
        case Iterable():
            return [jsonable(part) for part in value]
        case _:
            return str(value)
