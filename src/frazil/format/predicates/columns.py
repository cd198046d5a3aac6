"""Predicates from Python objects: ``col("a") > 1``, ``col("b.c").is_in([1, 2])``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, time
from decimal import Decimal
from numbers import Integral, Real
from typing import Any
from uuid import UUID

from frazil.errors import PredicateError
from frazil.format.predicates.expressions import (
    AlwaysFalse,
    And,
    Comparison,
    Expression,
    In,
    IsNaN,
    IsNull,
    NotNaN,
    NotNull,
    NotStartsWith,
    Op,
    Reference,
    StartsWith,
)
from frazil.format.predicates.sql.quoting import TypedText, quote_name


class Column:
    """A column to build predicates from: ``col("a") > 1``, ``col("b").is_in([1, 2])``."""

    __slots__ = ("ref",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, ref: Reference) -> None:
        self.ref = ref

    def __repr__(self) -> str:
        return quote_name(self.ref.parts)

    def __bool__(self) -> bool:
        raise PredicateError(f"write {self!r} == True to filter on a boolean column")

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._compare(Op.EQ, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._compare(Op.NE, other)

    def __lt__(self, other: object) -> Expression:
        return self._compare(Op.LT, other)

    def __le__(self, other: object) -> Expression:
        return self._compare(Op.LE, other)

    def __gt__(self, other: object) -> Expression:
        return self._compare(Op.GT, other)

    def __ge__(self, other: object) -> Expression:
        return self._compare(Op.GE, other)

    def is_in(self, values: Iterable[Any]) -> Expression:
        """Return whether the column is one of the values; with no values FALSE, also on NULL."""
        listed = tuple(self._literal(value) for value in values)
        return In(self.ref, listed) if listed else AlwaysFalse()

    def not_in(self, values: Iterable[Any]) -> Expression:
        """Return whether it is not NULL and not one of the values; with no values TRUE."""
        return self.is_in(values).negation()

    def is_null(self) -> Expression:
        """Return whether the column is NULL."""
        return IsNull(self.ref)

    def not_null(self) -> Expression:
        """Return whether the column is not NULL."""
        return NotNull(self.ref)

    def is_nan(self) -> Expression:
        """Return whether the column is NaN."""
        return IsNaN(self.ref)

    def not_nan(self) -> Expression:
        """Return whether the column is a number or NULL."""
        return NotNaN(self.ref)

    def between(self, low: Any, high: Any) -> Expression:
        """Return ``low <= column <= high``."""
        return And(self >= low, self <= high)

    def starts_with(self, prefix: str) -> Expression:
        """Return whether the string begins with the prefix."""
        return StartsWith(self.ref, _checked_prefix(self.ref, prefix))

    def not_starts_with(self, prefix: str) -> Expression:
        """Return whether the string is not NULL and does not begin with the prefix."""
        return NotStartsWith(self.ref, _checked_prefix(self.ref, prefix))

    def equals_null_safe(self, value: Any) -> Expression:
        """Return ``<=>``: as ``=``, but never NULL; with None the same as `is_null`."""
        if value is None:
            return self.is_null()
        return And(self._compare(Op.EQ, value), self.not_null())

    def _compare(self, op: Op, other: object) -> Expression:
        return Comparison(op, self.ref, self._literal(other))

    def _literal(self, value: object) -> Any:
        if value is None:
            raise PredicateError(
                f"column {self.ref.name!r} is compared with None: no row equals NULL in SQL; use "
                ".is_null() or .not_null()"
            )
        if isinstance(value, Column):
            raise PredicateError(
                f"columns {self.ref.name!r} and {value.ref.name!r} are compared with each other; "
                "a predicate compares a column with a literal"
            )
        return literal_of(value)


def col(name: str) -> Column:
    """Return a column by its name; dots go into structs, backticks quote a part with a dot."""
    return Column(Reference(split_name(name)))


_NAME_PART = re.compile(r"(?:`((?:[^`]|``)*)`|([^.`]+))(\.|$)")


def split_name(name: str) -> tuple[str, ...]:
    """The parts of a dotted name, some of them perhaps in backticks."""
    parts: list[str] = []
    position, dot = 0, "."
    while dot == ".":
        match = _NAME_PART.match(name, position)
        if match is None:
            raise PredicateError(
                f"{name!r} is not a column name: write a.b for field b of struct a, and `a.b` in "
                "backticks for a name that holds a dot"
            )
        parts.append(match[2] if match[1] is None else match[1].replace("``", "`"))
        position, dot = match.end(), match[3]
    return tuple(parts)


def literal_of(value: object) -> Any:
    """A Python object as a literal: scalars of NumPy and pandas become Python's own."""
    match value:
        case bool() | str() | bytes() | Decimal() | UUID() | TypedText():
            return value
        case Integral():
            return int(value)
        case Real():
            return float(value)
        case date() | time():
            return value
        case bytearray() | memoryview():
            return bytes(value)
        case _:
            raise PredicateError(
                f"{value!r} of type {type(value).__name__} is not a literal: use a bool, int, "
                "float, Decimal, str, bytes, date, datetime, time or UUID"
            )


def _checked_prefix(ref: Reference, prefix: object) -> str:
    if isinstance(prefix, str):
        return prefix
    raise PredicateError(
        f"the prefix of column {ref.name!r} must be a string, not {prefix!r} of type "
        f"{type(prefix).__name__}"
    )
