"""How results are shown: a table for people, or one JSON document for programs.

On a terminal long text folds into its column. Where the output goes to a file or another program,
every row is one line, however long.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import click
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

Row = Mapping[str, Any]

_UNBOUNDED = 1_000_000


def show_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(jsonable(value), indent=2, ensure_ascii=False))


def show_rows(rows: Sequence[Row], *, columns: Sequence[str], nothing: str) -> None:
    """Rows as a table; `nothing` where there are none."""
    if not rows:
        click.echo(nothing)
        return
    table = RichTable(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        values = [row.get(name) for row in rows]
        table.add_column(
            name,
            justify="right" if _are_numbers(values) else "left",
            no_wrap=not any(isinstance(value, str) for value in values),
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(readable(row.get(name))) for name in columns))
    _show(table)


def show_pairs(pairs: Iterable[tuple[str, Any]]) -> None:
    """Names and values, a line each."""
    table = RichTable(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, Text(readable(value)))
    _show(table)


def _show(table: RichTable) -> None:
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(table)
        return
    plain = Console(width=_UNBOUNDED, color_system=None, force_terminal=False)
    with plain.capture() as captured:
        plain.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def readable(value: Any) -> str:
    """A value as people read it; points in time in UTC, marked with Z."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case datetime():
            known = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            precision = "milliseconds" if known.microsecond % 1000 == 0 else "microseconds"
            text = known.isoformat(sep=" ", timespec=precision)
            return text if value.tzinfo is None else f"{text}Z"
        case bytes() | bytearray():
            return bytes(value).hex()
        case Mapping():
            return ", ".join(f"{name}={readable(part)}" for name, part in value.items())
        case list() | tuple():
            return f"[{', '.join(readable(part) for part in value)}]"
        case _:
            return str(value)


def readable_bytes(size: int | None) -> str:
    """A size with its unit."""
    if size is None:
        return "-"
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def jsonable(value: Any) -> Any:
    """A value as JSON holds it: times in ISO 8601, bytes in hex, decimals as text."""
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


def _are_numbers(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(
        isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in known
    )
