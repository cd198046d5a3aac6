"""Texts of PostgreSQL's values become columns of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import pyarrow as pa
from psycopg.adapt import Transformer
from psycopg.pq import Format

from frazil.cdc.pgoutput import TOAST, Unchanged, Values
from frazil.cdc.types import ValueType
from frazil.errors import ValidationError

Row = Sequence[Any]
"""Values of Python; of changes also `TOAST`."""


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """A column that is taken over, and how its values are kept.

    Attributes:
        number: in PostgreSQL's table.
        source_name: in PostgreSQL's table.
        name: in the table of Iceberg.
    """

    number: int
    source_name: str
    name: str
    type: ValueType


class RowLoader:
    """Parses rows of texts, as a connection's settings write them."""

    def __init__(self, connection: psycopg.Connection[Any], columns: Sequence[ValueColumn]) -> None:
        self._columns = tuple(columns)
        self._transformer = Transformer(connection)
        loaders = [column.type.loader_oid for column in columns]
        self._transformer.set_loader_types(loaders, Format.TEXT)

    def row(self, values: Values) -> list[Any]:
        """Return a row's values; those that are not in the log stay `TOAST`.

        Raises:
            ValidationError: a value that Python and Iceberg have not, as the date ``infinity``.
        """
        if TOAST not in values:
            return list(self._load(values))  # type: ignore[arg-type]
        texts = [None if isinstance(value, Unchanged) else value for value in values]
        loaded = self._load(texts)
        return [
            TOAST if value is TOAST else found for value, found in zip(values, loaded, strict=True)
        ]

    def _load(self, texts: Sequence[bytes | None]) -> tuple[Any, ...]:
        try:
            return self._transformer.load_sequence(texts)
        except (psycopg.Error, ValueError, ArithmeticError) as error:
            raise ValidationError(
                f"a row of ({', '.join(column.name for column in self._columns)}) has a value that "
                f"Iceberg cannot hold: {error}"
            ) from error


def arrays_of(rows: Sequence[Row], columns: Sequence[ValueColumn]) -> list[pa.Array]:
    """Return the columns of rows.

    Raises:
        ValidationError: a value does not fit its column.
    """
    found = []
    for values, column in zip(zip(*rows, strict=True), columns, strict=True):
        try:
            found.append(pa.array(values, column.type.arrow))
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            raise ValidationError(
                f"the column {column.name!r} has a value that {column.type.iceberg} cannot hold: "
                f"{error}"
            ) from error
    return found
