"""SQL text of names and values, as Spark's parser reads it.

A name is quoted wherever Spark could read it as anything but itself. Strings escape the backslash
and the quote, and control characters by their code, so that the text is one line of printable
characters whatever the value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from frazil.errors import PredicateError
from frazil.format.types import IcebergType
from frazil.format.types.forms import form_of
from frazil.format.values.civil import (
    NANOS_PER_MICRO,
    format_date,
    format_time,
    format_timestamp,
)
from frazil.format.values.decimals import decimal_as_text
from frazil.format.values.floats import nearest_single, word_unless_finite

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ESCAPES = {
    "\\": "\\\\",
    "'": "\\'",
    **{chr(code): f"\\u{code:04x}" for code in (*range(32), ord("$"), 127)},
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
# Spark's parser puts settings in the place of ${name}, within strings too.
_TO_ESCAPE = re.compile(r"[\x00-\x1f\x7f\\']|\$(?=\{)")
# Words that SQL or this parser reads as something else where a name is written bare.
_RESERVED = re.compile(
    r"""
    all|and|any|array|as|asc|between|binary|bigint|boolean|both|by|case|cast|char|column
    |create|cross|current_date|current_time|current_timestamp|current_user|date|decimal|delete
    |desc|distinct|div|double|drop|else|end|escape|exists|false|filter|float|for|from|full
    |group|having|ilike|in|inner|insert|int|integer|intersect|interval|into|is|isnan|isnull
    |isnotnull|join|lateral|leading|left|like|map|natural|not|null|on|or|order|outer|overlaps
    |regexp|right|rlike|select|session_user|set|smallint|some|startswith|starts_with|string
    |struct|table|then|time|timestamp|timestamp_ltz|timestamp_ntz|tinyint|to|trailing|true
    |try_cast|union|unique|unknown|update|user|using|values|when|where|window|with
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class TypedText:
    """A SQL literal whose value Python's ``datetime`` cannot hold.

    That are nanoseconds, far years, and timestamps without a zone: they are in the session's zone,
    where a ``datetime`` without one is local time.

    Attributes:
        kind: ``DATE``, ``TIME``, ``TIMESTAMP``, ``TIMESTAMP_NTZ`` or ``TIMESTAMP_LTZ``.
        text: what stands between the quotes.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class SparkForms:
    """How the columns of types that Spark lacks look in the DataFrame that is filtered.

    Attributes:
        uuid: ``string`` (lower-case canonical text) or ``binary`` (16 bytes).
        time: ``time`` (Spark's own type) or ``long`` (microseconds since midnight).
        timestamp_ns: ``long`` (nanoseconds since the epoch), ``timestamp`` (microseconds; a
            literal that needs nanoseconds is then refused) or ``text`` (nine digits, which Spark
            would cut: for people and for `parse_predicate`).
    """

    uuid: Literal["string", "binary"] = "string"
    time: Literal["time", "long"] = "time"
    timestamp_ns: Literal["long", "timestamp", "text"] = "long"


def quote_name(parts: Sequence[str]) -> str:
    """The dotted name, each part in backticks unless it is a plain word."""
    return ".".join(_quote_part(part) for part in parts)


def quote_name_always(parts: Sequence[str]) -> str:
    """The dotted name with every part in backticks."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def _quote_part(part: str) -> str:
    if _PLAIN_NAME.fullmatch(part) and not _RESERVED.fullmatch(part.lower()):
        return part
    return "`" + part.replace("`", "``") + "`"


def string_text(value: str) -> str:
    """A string literal that Spark reads back as exactly this string."""
    return "'" + _TO_ESCAPE.sub(lambda match: _ESCAPES[match[0]], value) + "'"


def double_text(value: float) -> str:
    """A double literal; infinities and NaN as casts."""
    return f"{value!r}D" if math.isfinite(value) else _not_finite_text(value, "DOUBLE")


def _not_finite_text(value: float, kind: str) -> str:
    return f"CAST('{word_unless_finite(value)}' AS {kind})"


def decimal_text(value: Decimal) -> str:
    """An exact decimal literal, like ``1.20BD``."""
    return f"{decimal_as_text(value)}BD"


def binary_text(value: bytes) -> str:
    """A binary literal, like ``X'00FF'``."""
    return f"X'{value.hex().upper()}'"


def python_text(value: Any) -> str:
    """SQL text of a literal that has not been bound to a column yet."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            return double_text(value)
        case Decimal():
            return decimal_text(value) if value.is_finite() else double_text(float(value))
        case str():
            return string_text(value)
        case bytes():
            return binary_text(value)
        case UUID():
            return string_text(str(value))
        case datetime() if value.tzinfo is None:
            return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
        case datetime():
            return f"TIMESTAMP_LTZ '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case time():
            return f"TIME '{value.isoformat()}'"
        case TypedText():
            return f"{value.kind} {string_text(value.text)}"
        case _:
            raise PredicateError(
                f"{value!r} of type {type(value).__name__} has no form as a SQL literal"
            )


def spark_text(column_type: IcebergType, value: Any, forms: SparkForms) -> str:
    """SQL text of an internal value of a column of that type.

    The literal has the column's own Spark type, so that Spark compares without casting the column
    and can push the comparison into the Parquet reader.
    """
    form = form_of(column_type)
    match form.meaning:
        case "boolean":
            return "TRUE" if value else "FALSE"
        case "integer":
            return f"{value}L" if form.carrier == "long" else str(value)
        case "floating" if form.carrier == "float" and not math.isfinite(value):
            return _not_finite_text(value, "FLOAT")
        case "floating":
            is_short = form.carrier == "float" and nearest_single(value) == value
            return f"{value!r}F" if is_short else double_text(value)
        case "decimal":
            return decimal_text(value)
        case "string":
            return string_text(value)
        case "fixed" | "binary":
            return binary_text(value)
        case "uuid":
            return binary_text(value.bytes) if forms.uuid == "binary" else string_text(str(value))
        case "date":
            return f"DATE '{format_date(value)}'"
        case "time" if forms.time == "time":
            return f"TIME '{format_time(value * form.unit, form.digits)}'"
        case "timestamp" if form.digits == 6 or forms.timestamp_ns == "text":
            return _timestamp_text(column_type, value * form.unit, form.digits)
        case "timestamp" if forms.timestamp_ns == "timestamp":
            return _nanoseconds_as_timestamp(column_type, value)
        case "time" | "timestamp":
            return f"{value}L"
        case _:
            raise PredicateError(f"a value of type {column_type} has no form as a SQL literal")


def _timestamp_text(column_type: IcebergType, nanos: int, digits: int) -> str:
    text = format_timestamp(nanos, digits).replace("T", " ")
    if form_of(column_type).zoned:
        return f"TIMESTAMP_LTZ '{text}+00:00'"
    return f"TIMESTAMP_NTZ '{text}'"


def _nanoseconds_as_timestamp(column_type: IcebergType, nanos: int) -> str:
    if nanos % NANOS_PER_MICRO:
        raise PredicateError(
            f"{nanos} ns since the epoch does not fit Spark's microseconds; read the {column_type} "
            "column as a long to compare nanoseconds"
        )
    return _timestamp_text(column_type, nanos, 6)
