"""How results are shown: a table for people, or one JSON document for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import click
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

Row = Mapping[str, Any]


def show_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(jsonable(value), indent=2, ensure_ascii=False))


def show_rows(rows: Sequence[Row], *, columns: Sequence[str], nothing: str) -> None:
    """Rows as a table; `nothing` where there are none."""
    console = Console(highlight=False, soft_wrap=False)
    if not rows:
        console.print(f"[dim]{nothing}[/]")
        return
    table = RichTable(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        numeric = all(_is_number(row.get(name)) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(readable(row.get(name))) for name in columns))
    console.print(table)


def show_pairs(pairs: Iterable[tuple[str, Any]]) -> None:
    """Names and values, a line each; a value of several lines is indented."""
    console = Console(highlight=False)
    table = RichTable(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, Text(readable(value)))
    console.print(table)


def readable(value: Any) -> str:
    """A value as people read it."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case datetime():
            return value.isoformat(sep=" ", timespec="milliseconds")
        case bytes() | bytearray():
            return bytes(value).hex()
        case Mapping():
            return ", ".join(f"{name}={readable(part)}" for name, part in value.items())
        case list() | tuple():
            return ", ".join(readable(part) for part in value)
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


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))
