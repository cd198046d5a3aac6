"""Rows of a statement: a table that fits the terminal, JSON or CSV."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import click

from frazil.cli.layout import Kind, TextColumn
from frazil.cli.output import Output, jsonable, readable_text

_NULL: Final = "NULL"


class Form(Enum):
    """How rows are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows of a statement.

    Attributes:
        columns: its columns; none where a statement has no result.
        rows: values in the columns' order.
        has_more: there are more rows than were asked for.
    """

    columns: tuple[TextColumn, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    has_more: bool = False


def show_answer(out: Output, answer: FirstRows) -> None:
    """Print rows as a table that fits the terminal, if there is one."""
    if not answer.columns:
        return
    names = {str(number): column for number, column in enumerate(answer.columns)}
    rows = [
        {str(number): sql_text(value) for number, value in enumerate(row)} for row in answer.rows
    ]
    out.rows(rows, names, nothing="no rows")


def export(form: Form, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows as one JSON document, or as CSV; they are printed as they come."""
    if form is Form.CSV:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        for row in rows:
            writer.writerow([_csv_text(value) for value in row])
        return
    keys = list(_distinct_names(names))
    before = "["
    for row in rows:
        document = {key: jsonable(value) for key, value in zip(keys, row, strict=True)}
        click.echo(f"{before}\n  {json.dumps(document, ensure_ascii=False)}", nl=False)
        before = ","
    click.echo("[]" if before == "[" else "\n]")


def sql_text(value: Any) -> str:
    """Return a value as SQL says it; points in time in UTC, marked with Z."""
    match value:
        case None:
            return _NULL
        case bool():
            return "true" if value else "false"
        case Decimal():
            return format(value, "f")
        case Mapping():
            return f"{{{', '.join(f'{sql_text(k)}: {sql_text(v)}' for k, v in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(sql_text(part) for part in value)}]"
        case _:
            return readable_text(value)


def _csv_text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Mapping() | list() | tuple():
            return json.dumps(jsonable(value), ensure_ascii=False)
        case Decimal():
            return format(value, "f")
        case _:
            return str(jsonable(value))


def _distinct_names(names: Sequence[str]) -> Iterator[str]:
    """Names, with a number behind one that was there before: a JSON object keeps the last only."""
    seen: set[str] = set()
    for name in names:
        number, found = 1, name
        while found in seen:
            number += 1
            found = f"{name}_{number}"
        seen.add(found)
        yield found


def kind_of(type_name: str) -> Kind:
    """Return how a column of a type of Spark may be cut."""
    numbers = ("tinyint", "smallint", "int", "bigint", "float", "double")
    if type_name in numbers or type_name.startswith("decimal"):
        return "number"
    if type_name in ("boolean", "date", "timestamp", "timestamp_ntz"):
        return "whole"
    return "text"
