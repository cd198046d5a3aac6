"""SQL's literals as Python objects, by the rules of Spark's parser."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar, Final

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark

from frazil.errors import PredicateError
from frazil.format.predicates.expressions import Op
from frazil.format.predicates.sql.quoting import TypedText
from frazil.format.values.civil import (
    NANOS_PER_MICRO,
    NANOS_PER_SECOND,
    parse_date,
    parse_time,
    parse_timestamp,
)
from frazil.format.values.decimals import (
    decimal_from_text,
    digits_of,
    negate,
    rounded_to_scale,
    whole_part_of,
)
from frazil.format.values.floats import nearest_single

NOT_A_LITERAL: Final = object()
"""What `literal_value` gives for an expression that is not a literal."""

_ESCAPE = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))", re.DOTALL | re.ASCII
)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_KEPT = ("%", "_")
_INTEGER_TYPES = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TIMESTAMP_KINDS = {
    "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP",
    "TIMESTAMPLTZ": "TIMESTAMP_LTZ",
    "TIMESTAMPNTZ": "TIMESTAMP_NTZ",
    "DATETIME": "TIMESTAMP",
}
_CAST_OPTIONS = ("format", "action", "default")
_STRING_TYPES = ("TEXT", "VARCHAR", "CHAR", "NVARCHAR", "NCHAR")
_EPOCH = datetime(1970, 1, 1)


class _WholeStatements(Spark):
    """Spark's tokens, also of what follows words such as CALL and SHOW.

    Of those sqlglot's own tokenizer makes one string of the rest, in every statement of a text.
    """

    class Tokenizer(Spark.Tokenizer):
        """The tokens."""

        COMMANDS: ClassVar[set[TokenType]] = set()


def spark_tokens(text: str) -> list[Token]:
    """The tokens of a text, with the values of its strings as Spark reads them.

    A quote that is doubled within a string stands for one quote, as in Spark since 4.0.
    """
    tokens: list[Token] = []
    for token in _WholeStatements().tokenize(text):
        if token.token_type is TokenType.STRING:
            raw = text[token.start : token.end + 1]
            quote = raw[:1]
            if quote not in ("'", '"') or raw[-1:] != quote or len(raw) < 2:
                raise PredicateError(f"the string {raw!r} cannot be read")
            value = _ESCAPE.sub(_replacement, raw[1:-1])
            last = tokens[-1] if tokens else None
            if (
                last is not None
                and last.token_type is TokenType.STRING
                and last.end + 1 == token.start
                and text[last.end] == quote
            ):
                last.text += quote + value
                last.end = token.end
                continue
            token.text = value
        tokens.append(token)
    return tokens


def _replacement(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code is not None:
        point = int(code, 16)
        return chr(point) if point <= 0x10FFFF else match[0]
    if match[3] is not None:
        return chr(int(match[3], 8))
    character = match[4]
    return "\\" + character if character in _KEPT else _ESCAPED.get(character, character)


def without_parentheses(node: exp.Expression) -> exp.Expression:
    """What stands inside of any number of parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def literal_value(node: exp.Expression) -> Any:
    """The Python object of a literal, None for NULL, `NOT_A_LITERAL` for anything else."""
    sign = 1
    while isinstance(node, exp.Paren | exp.Neg):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    try:
        value = _value(node, sign)
    except (ValueError, OverflowError, InvalidOperation) as error:
        raise PredicateError(f"{_text(node)} is not a literal: {error}") from error
    if sign > 0 or value is NOT_A_LITERAL or value is None:
        return value
    if isinstance(value, Decimal):
        return negate(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return -value if value else value
    return NOT_A_LITERAL


def _text(node: exp.Expression) -> str:
    text = node.sql(dialect="spark")
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _value(node: exp.Expression, sign: int) -> Any:
    match node:
        case exp.Literal() if node.is_string:
            return str(node.this)
        case exp.Literal():
            return _number(str(node.this))
        case exp.RawString():
            return str(node.this)
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case exp.HexString() if not node.args.get("is_integer"):
            digits = str(node.this)
            return bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)
        case exp.Concat() if all(
            isinstance(part, exp.Literal | exp.RawString) for part in node.expressions
        ):
            return "".join(str(part.this) for part in node.expressions)
        case exp.Cast() if not any(node.args.get(name) for name in _CAST_OPTIONS):
            inner = literal_value(node.this)
            return inner if inner is NOT_A_LITERAL or inner is None else _cast(inner, node.to, sign)
        case _:
            return NOT_A_LITERAL


def _number(text: str) -> int | float | Decimal:
    if re.fullmatch(r"\d+", text, re.ASCII):
        return int(text)
    return float(text) if "e" in text.lower() else decimal_from_text(text)


def _cast(value: Any, to: exp.DataType, sign: int) -> Any:
    kind = to.this.name if hasattr(to.this, "name") else str(to.this)
    if kind in _INTEGER_TYPES:
        return _to_integer(value, kind, sign)
    if kind in ("FLOAT", "DOUBLE"):
        number = float(value)
        return nearest_single(number) if kind == "FLOAT" else number
    if kind == "DECIMAL":
        return _to_decimal(value, to)
    if kind == "BOOLEAN" and isinstance(value, bool | str):
        return _to_boolean(value)
    if kind in _STRING_TYPES and isinstance(value, str):
        return value
    if kind == "BINARY" and isinstance(value, str | bytes):
        return value.encode("utf-8") if isinstance(value, str) else value
    if kind == "DATE" and isinstance(value, str | date) and not isinstance(value, datetime):
        return value if isinstance(value, date) else _to_date(value)
    if kind == "TIME" and isinstance(value, str | time):
        return value if isinstance(value, time) else _to_time(value)
    if kind in _TIMESTAMP_KINDS and isinstance(value, TypedText):
        value = value.text if value.kind in _TIMESTAMP_KINDS.values() else value
    if kind in _TIMESTAMP_KINDS and isinstance(value, str | date):
        return _to_timestamp(value, _TIMESTAMP_KINDS[kind])
    raise ValueError(f"{value!r} cannot be cast to {to.sql(dialect='spark')} here")


def _to_integer(value: Any, kind: str, sign: int) -> int:
    number = decimal_from_text(value) if isinstance(value, str) else Decimal(value)
    if not number.is_finite() or number.adjusted() > 40:
        raise ValueError(f"it does not fit {kind}")
    whole = whole_part_of(number)
    limit = 1 << (_INTEGER_TYPES[kind] - 1)
    if not -limit <= sign * whole < limit:
        raise ValueError(f"it does not fit {kind}")
    return whole


def _to_decimal(value: Any, to: exp.DataType) -> Decimal:
    parameters = [int(str(parameter.this.this)) for parameter in to.expressions]
    precision = parameters[0] if parameters else 10
    scale = parameters[1] if len(parameters) > 1 else 0
    if isinstance(value, float):
        value = repr(value)
    exact_number = decimal_from_text(value) if isinstance(value, str) else Decimal(value)
    number = rounded_to_scale(exact_number, scale)
    if digits_of(number) > max(precision, scale):
        raise ValueError(f"it does not fit decimal({precision}, {scale})")
    return number


def _to_boolean(value: bool | str) -> bool:
    if isinstance(value, bool):
        return value
    if value.strip().lower() not in ("true", "false"):
        raise ValueError("it is neither true nor false")
    return value.strip().lower() == "true"


def _to_date(text: str) -> date | TypedText:
    days = parse_date(text)
    try:
        return date.fromordinal(date(1970, 1, 1).toordinal() + days)
    except (ValueError, OverflowError):
        return TypedText("DATE", text)


def _to_time(text: str) -> time | TypedText:
    nanos = parse_time(text)
    if nanos % NANOS_PER_MICRO:
        return TypedText("TIME", text)
    return (_EPOCH + timedelta(microseconds=nanos // NANOS_PER_MICRO)).time()


def _to_timestamp(value: str | date, kind: str) -> datetime | TypedText:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return TypedText(kind, f"{value.isoformat()} 00:00:00")
    nanos, offset = parse_timestamp(value)
    if nanos % NANOS_PER_MICRO:
        return TypedText(kind, value)
    try:
        moment = _EPOCH + timedelta(microseconds=nanos // NANOS_PER_MICRO)
    except OverflowError:
        return TypedText(kind, value)
    if offset is None:
        return TypedText(kind, moment.isoformat(sep=" "))
    return moment.replace(tzinfo=timezone(timedelta(seconds=offset)))


def compare_constants(left: Any, op: Op, right: Any) -> bool | None:
    """The truth of a comparison of two literals; None where they are of different kinds."""
    if isinstance(left, TypedText) and isinstance(right, TypedText):
        left, right = _place_in_time(left), _place_in_time(right)
        if left[0] != right[0]:
            return None
    numbers = (int, float, Decimal)
    both_numbers = all(
        isinstance(value, numbers) and not isinstance(value, bool) for value in (left, right)
    )
    if not both_numbers and type(left) is not type(right):
        return None
    if any(isinstance(value, float | Decimal) and math.isnan(value) for value in (left, right)):
        return None
    try:
        return bool(op.compare(left, right))
    except TypeError:
        return None


def _place_in_time(literal: TypedText) -> tuple[str, int]:
    """What a literal counts from, and its distance: to be compared where the first is the same."""
    if literal.kind == "DATE":
        return "days", parse_date(literal.text)
    if literal.kind == "TIME":
        return "midnight", parse_time(literal.text)
    nanos, offset = parse_timestamp(literal.text)
    return ("wall clock", nanos) if offset is None else ("UTC", nanos - offset * NANOS_PER_SECOND)
