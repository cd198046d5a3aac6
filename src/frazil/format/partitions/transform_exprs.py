"""What users write for a partition or sort field: ``month(ts)``, ``bucket(16, id) as shard``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from frazil.errors import ValidationError
from frazil.format.partitions.transforms import (
    PARAMETRIC,
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from frazil.format.schema import Schema

_PLAIN: dict[str, Transform] = {
    "identity": IdentityTransform(),
    "year": YearTransform(),
    "years": YearTransform(),
    "month": MonthTransform(),
    "months": MonthTransform(),
    "day": DayTransform(),
    "days": DayTransform(),
    "date": DayTransform(),
    "hour": HourTransform(),
    "hours": HourTransform(),
    "date_hour": HourTransform(),
    "void": VoidTransform(),
}
_TOKEN = re.compile(
    r"\s*(?:`(?P<name>(?:[^`]|``)+)`|(?P<word>[^\W\d][\w$]*)|(?P<number>\d+)|(?P<mark>[(),.]))"
)


@dataclass(frozen=True, slots=True)
class PartitionExpr:
    """A transform of a named column.

    Attributes:
        transform: what to apply.
        column: the dotted name of the source column.
        name: the name of the field, or None for the default one.
    """

    transform: Transform
    column: str
    name: str | None = None

    def resolve(self, schema: Schema, *, case_sensitive: bool = True) -> int:
        """The id of the source column."""
        return schema.find_field(self.column, case_sensitive=case_sensitive).field_id


def parse_partition_expr(text: str) -> PartitionExpr:
    """The transform, column and name that a user writes.

    ``x``, ``identity(x)``, ``year(ts)`` (also ``years``; month, day, hour alike; ``date`` and
    ``date_hour`` for day and hour), ``bucket(16, id)`` and ``truncate(10, s)`` in either order of
    arguments, ``void(x)``; nested columns as ``a.b``, odd names in backticks; any of them followed
    by ``as name``.
    """
    return _Parser(text, _tokens(text)).parse()


def default_field_name(transform: Transform, column: str) -> str:
    """The name of a field in a new spec, as Java gives it: ``id_bucket``, ``ts_month``."""
    match transform:
        case IdentityTransform():
            return column
        case BucketTransform():
            return f"{column}_bucket"
        case TruncateTransform():
            return f"{column}_trunc"
        case VoidTransform():
            return f"{column}_null"
    return f"{column}_{transform}"


def evolved_field_name(transform: Transform, column: str) -> str:
    """The name of a field added to a spec, as Java gives it: ``id_bucket_16``, ``s_trunc_10``."""
    match transform:
        case BucketTransform(parameter) | TruncateTransform(parameter):
            return f"{default_field_name(transform, column)}_{parameter}"
    return default_field_name(transform, column)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # name, word, number or mark: a quoted name is never a keyword or a function
    text: str


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValidationError(
                f"{text!r} is not a column or a transform of one: it is not clear what "
                f"{text[position:].strip()!r} means; write names with other signs in backticks"
            )
        kind = str(match.lastgroup)
        tokens.append(_Token(kind, match[kind].replace("``", "`")))
        position = match.end()
    return tokens


class _Parser:
    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._position = 0

    def parse(self) -> PartitionExpr:
        transform, column = self._term()
        name = None
        if self._peek("word") and self._tokens[self._position].text.lower() == "as":
            self._position += 1
            name = self._take("name", "word")
        if self._position < len(self._tokens):
            raise self._wrong(f"{self._tokens[self._position].text!r} is too much")
        return PartitionExpr(transform, column, name)

    def _term(self) -> tuple[Transform, str]:
        called = (
            len(self._tokens) > 1
            and self._tokens[0].kind == "word"
            and self._tokens[1] == _Token("mark", "(")
        )
        if not called:
            return IdentityTransform(), self._column()
        function = self._take("word").lower()
        self._take("mark")
        parameters: list[int] = []
        columns: list[str] = []
        while True:
            if self._peek("number"):
                parameters.append(int(self._take("number")))
            else:
                columns.append(self._column())
            mark = self._take("mark")
            if mark == ")":
                break
            if mark != ",":
                raise self._wrong(f"{mark!r} is not expected")
        return self._transform(function, parameters, columns), columns[0]

    def _transform(self, function: str, parameters: list[int], columns: list[str]) -> Transform:
        if function not in _PLAIN and function not in PARAMETRIC:
            known = ", ".join([*_PLAIN, *PARAMETRIC])
            raise self._wrong(f"there is no transform {function!r}; there are {known}")
        if len(columns) != 1:
            raise self._wrong(f"{function} takes one column, not {len(columns)}")
        if function in _PLAIN:
            if parameters:
                raise self._wrong(f"{function} takes no number")
            return _PLAIN[function]
        if len(parameters) != 1:
            raise self._wrong(f"{function} takes one number, not {len(parameters)}")
        return PARAMETRIC[function](parameters[0])

    def _column(self) -> str:
        parts = [self._take("name", "word")]
        while self._position < len(self._tokens) and self._tokens[self._position] == _Token(
            "mark", "."
        ):
            self._position += 1
            parts.append(self._take("name", "word"))
        return ".".join(parts)

    def _peek(self, *kinds: str) -> bool:
        return self._position < len(self._tokens) and self._tokens[self._position].kind in kinds

    def _take(self, *kinds: str) -> str:
        if not self._peek(*kinds):
            found = (
                repr(self._tokens[self._position].text)
                if self._position < len(self._tokens)
                else "its end"
            )
            raise self._wrong(f"{found} is not expected")
        token = self._tokens[self._position]
        self._position += 1
        return token.text

    def _wrong(self, why: str) -> ValidationError:
        return ValidationError(f"{self._text!r} is not a column or a transform of one: {why}")
