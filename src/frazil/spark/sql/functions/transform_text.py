"""Transforms of partitions as text of SQL: exact for every type that they take (SPEC rules 75-89).

The text is made of Spark's own functions alone, so that it stands wherever an expression can. A
value that is not a name or a literal is bound once, by the lambda of an array of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from frazil.errors import ValidationError
from frazil.format.predicates.sql.quoting import decimal_text, string_text
from frazil.format.values.decimals import decimal_from_unscaled
from frazil.spark.sql.functions.calls import BUCKET, TRUNCATE, VERSION
from frazil.spark.write.columns.bucket_hash import (
    bucket_text,
    bytes_hash_text,
    let_text,
    long_hash_text,
)
from frazil.version import FRAZIL_VERSION

_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_WHOLE: Final[Mapping[str, int]] = {
    "TINYINT": -(1 << 7),
    "SMALLINT": -(1 << 15),
    "INT": -(1 << 31),
    "BIGINT": -(1 << 63),
}
"""Types of whole numbers, and the smallest of each."""

_TIMES: Final = ("TIMESTAMP", "TIMESTAMP_NTZ")
_LONG_DIGITS: Final = 18
_MOST_DIGITS: Final = 38
_MICROS_OF_DAY: Final = 86_400_000_000
_MICROS_OF_HOUR: Final = 3_600_000_000
_TWO_WORDS: Final = f"CAST({1 << 64} AS DECIMAL(20,0))"
RESULTS: Final[Mapping[str, str]] = {
    BUCKET: "INT",
    "years": "INT",
    "months": "INT",
    "days": "DATE",
    "hours": "INT",
    VERSION: "STRING",
}
"""Types of results that do not depend on the value's."""


def version_text() -> str:
    """Return what `system.iceberg_version()` is."""
    return string_text(FRAZIL_VERSION)


def transform_text(name: str, number: int, kind: str, value: str, *, is_simple: bool) -> str:
    """Return a transform of a value as text of SQL; NULL gives NULL.

    Args:
        name: of the function.
        number: of buckets, or the width.
        kind: the value's type, as Spark writes it.
        value: text of SQL.
        is_simple: the value can be written several times.

    Raises:
        ValidationError: the function does not take the type.
    """
    if kind == "VOID":
        return "NULL" if name == TRUNCATE else f"CAST(NULL AS {RESULTS[name]})"
    if is_simple:
        return f"({_transform(name, number, kind, value)})"
    bound = "frazil_value"
    return let_text(bound, value, _transform(name, number, kind, bound))


def _transform(name: str, number: int, kind: str, value: str) -> str:
    kind = kind.partition(" COLLATE ")[0]
    kind = "STRING" if re.match(r"(VAR)?CHAR\(", kind) else kind
    if name == BUCKET:
        return f"CASE WHEN {value} IS NOT NULL THEN {bucket_of(number, kind, value)} END"
    if name == TRUNCATE:
        return _truncated_text(number, kind, value)
    return _of_a_time(name, kind, value)


def bucket_of(buckets: int, kind: str, value: str) -> str:
    """Return the bucket of a value that is not NULL (rule 84)."""
    return bucket_text(_hash(kind, value), buckets)


def _hash(kind: str, value: str) -> str:
    if kind in _WHOLE:
        return long_hash_text(f"CAST({value} AS BIGINT)")
    if kind == "DATE":
        return long_hash_text(f"CAST(unix_date({value}) AS BIGINT)")
    if kind in _TIMES:
        return long_hash_text(value)
    if kind in ("STRING", "BINARY"):
        return bytes_hash_text(f"CAST({value} AS BINARY)")
    digits = _DECIMAL.fullmatch(kind)
    if digits is None:
        raise _refusal(BUCKET, "whole numbers, decimals, dates, times, texts and bytes", kind)
    return bytes_hash_text(_minimal_bytes(int(digits[1]), int(digits[2]), value))


def _minimal_bytes(precision: int, scale: int, value: str) -> str:
    """The shortest two's complement, big-endian, of a decimal without its point (rule 266)."""
    if precision <= _LONG_DIGITS:
        unscaled = f"CAST({value} * CAST({10**scale} AS DECIMAL({scale + 1},0)) AS BIGINT)"
        digits = _hex(unscaled)
    else:
        u, low = "frazil_unscaled", "frazil_low"
        high = f"({u} div {_TWO_WORDS}) - CASE WHEN {u} % {_TWO_WORDS} < 0 THEN 1 ELSE 0 END"
        signed = f"{low} - CASE WHEN {low} >= {1 << 63} THEN {_TWO_WORDS} ELSE 0 END"
        lower = let_text(low, f"pmod({u}, {_TWO_WORDS})", _hex(f"CAST({signed} AS BIGINT)"))
        digits = let_text(u, _unscaled_text(precision, scale, value), f"{_hex(high)} || {lower}")
    shorter = f"regexp_replace({digits}, '^(?:00)+(?=[0-7])', '')"
    return f"unhex(regexp_replace({shorter}, '^(?:FF)+(?=[89A-F])', ''))"


def _hex(value: str) -> str:
    return f"lpad(hex({value}), 16, '0')"


def _unscaled_text(precision: int, scale: int, value: str) -> str:
    """A decimal without its point, by its digits: a product would be rounded."""
    point = f".{'0' * scale}" if scale else ""
    digits = f"to_char({value}, 'S{'0' * (precision - scale)}{point}')"
    return f"CAST(replace({digits}, '.', '') AS DECIMAL(38,0))"


def _truncated_text(width: int, kind: str, value: str) -> str:
    if kind in ("TINYINT", "SMALLINT"):
        return f"CAST({_truncated_text(width, 'INT', f'CAST({value} AS INT)')} AS {kind})"
    if kind in _WHOLE:
        smallest = _WHOLE[kind]
        rest = f"pmod({value}, CAST({width} AS {kind}))"
        least = f"CAST('{smallest}' AS {kind})"
        below = string_text(f" truncated to a multiple of {width} lies below the smallest {kind}")
        stop = f"raise_error(concat({value}, {below}))"
        # Only there can the difference underflow.
        near = f"CASE WHEN {value} - {least} < {rest} THEN {stop} ELSE {value} - {rest} END"
        is_near = f"{value} < CAST('{smallest + width}' AS {kind})"
        return f"CASE WHEN {is_near} THEN {near} ELSE {value} - {rest} END"
    if kind in ("STRING", "BINARY"):
        return f"substring({value}, 1, {width})"
    digits = _DECIMAL.fullmatch(kind)
    if digits is None:
        raise _refusal(TRUNCATE, "whole numbers, decimals, texts and bytes", kind)
    precision, scale = int(digits[1]), int(digits[2])
    if precision < _MOST_DIGITS:
        step = decimal_text(decimal_from_unscaled(width, scale))
        return f"CAST({value} - pmod({value}, {step}) AS {kind})"
    u, r, t = "frazil_unscaled", "frazil_multiple", "frazil_digits"
    multiple = f"CAST({u} - pmod({u}, CAST({width} AS DECIMAL(10,0))) AS DECIMAL(38,0))"
    sign = f"CASE WHEN {r} < 0 THEN '-' ELSE '' END"
    place = _MOST_DIGITS - scale
    written = f"concat({sign}, substring({t}, 1, {place}), '.', substring({t}, {place + 1}))"
    # Negation, and abs() with it, rounds to 34 digits in Spark.
    padded = f"lpad(replace(CAST({r} AS STRING), '-', ''), {_MOST_DIGITS}, '0')"
    back = let_text(t, padded, f"CAST({written} AS {kind})")
    return let_text(u, _unscaled_text(precision, scale, value), let_text(r, multiple, back))


def _of_a_time(name: str, kind: str, value: str) -> str:
    if kind not in _TIMES and (kind != "DATE" or name == "hours"):
        taken = "times" if name == "hours" else "dates and times"
        raise _refusal(name, taken, kind)
    if name == "hours":
        if kind == "TIMESTAMP_NTZ":
            return f"CAST(unix_date(CAST({value} AS DATE)) * 24 + hour({value}) AS INT)"
        return f"CAST({_floor_div(f'unix_micros({value})', _MICROS_OF_HOUR)} AS INT)"
    date = _date(kind, value)
    if name == "days":
        return date
    if name == "years":
        return f"(year({date}) - 1970)"
    return f"((year({date}) - 1970) * 12 + month({date}) - 1)"


def _date(kind: str, value: str) -> str:
    if kind == "TIMESTAMP":
        days = _floor_div(f"unix_micros({value})", _MICROS_OF_DAY)
        return f"date_from_unix_date(CAST({days} AS INT))"
    return f"CAST({value} AS DATE)" if kind != "DATE" else value


def _floor_div(value: str, divisor: int) -> str:
    return f"(({value} div {divisor}) - CASE WHEN {value} % {divisor} < 0 THEN 1 ELSE 0 END)"


def _refusal(name: str, taken: str, kind: str) -> ValidationError:
    return ValidationError(f"system.{name} takes {taken}, not {kind}")
