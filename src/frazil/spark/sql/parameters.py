"""Parameters of a statement: ``:name`` and ``?`` in the text of commands become literals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from string import Formatter
from time import mktime
from typing import Any, Final
from uuid import UUID, uuid4

from pyspark.sql import DataFrame, SparkSession

from frazil.errors import PredicateError, SqlSyntaxError, ValidationError
from frazil.format.predicates.sql.quoting import binary_text, python_text
from frazil.spark.words import Word, words_of
from frazil.spark.write.rows import rows_of

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SAME_CALENDARS: Final = 1901
"""From this year on Spark's two calendars agree in every zone."""

_BEFORE_EXPRESSIONS: Final = frozenset(
    {
        "ALL", "AND", "BETWEEN", "BY", "CASE", "DISTINCT", "DIV", "ELSE", "ESCAPE", "HAVING",
        "ILIKE", "IN", "LIKE", "LIMIT", "NOT", "OF", "OFFSET", "ON", "OR", "REGEXP", "RLIKE",
        "SELECT", "THEN", "VALUES", "WHEN", "WHERE",
    }
)  # fmt: skip
"""Words that are no value: a parameter may follow them without a space."""

_BEFORE_LITERALS: Final = [
    [word]
    for word in (
        "OF", "BUCKET", "INTERVAL", "ESCAPE", "COMMENT", "LOCATION", "DATE", "TIME", "TIMESTAMP",
        "TIMESTAMP_LTZ", "TIMESTAMP_NTZ",
    )
]  # fmt: skip
_AROUND_LITERALS: Final = [["IDENTIFIER", "("], ["REPEATABLE", "("]]
_AFTER_LITERALS: Final = frozenset({"PERCENT"})
_SAID: Final = (str, int, float, bytes, Decimal, date, time, timedelta, UUID, list, tuple, dict)

Args = Mapping[str, Any] | Sequence[Any] | None


@dataclass(frozen=True, slots=True)
class LiteralText:
    """A value as SQL already says it.

    Attributes:
        text: a constant expression.
    """

    text: str


def with_literals(
    text: str, args: Args, *, spark: SparkSession | None = None, first: int = 0
) -> str:
    """Return a text with the values of parameters in their places.

    A value is in parentheses where an expression may stand, so that it meets nothing around it;
    where the grammar takes a literal alone it stands by itself.

    Args:
        spark: the session that reads the text; a datetime without a zone is what it is to its
            own parameters.
        first: the place of the word from which on parameters are parts of expressions.

    Raises:
        ValidationError: a value has no literal.
        SqlSyntaxError: there are more or fewer values than ``?`` in the text.
    """
    if not args:
        return text
    words = words_of(text)
    for each in reversed(_parameters(words, args)):
        text = each.put_into(text, _literal(each.value, spark), words, first=first)
    return text


def with_versions(text: str, args: Args, *, spark: SparkSession | None = None) -> tuple[str, Args]:
    """Return a query with the values that stand after AS OF, where Spark binds none, and the rest.

    Raises:
        ValidationError: a value has no literal.
        SqlSyntaxError: there are more or fewer values than ``?`` in the text.
    """
    words = words_of(text)
    if not args or not any(b.keyword == "OF" and a.text in ":?" for b, a in pairwise(words)):
        return text, args
    return with_literals_at(text, args, lambda at: words[at - 1].keyword == "OF", spark=spark)


def with_literals_at(
    text: str, args: Args, is_meant: Callable[[int], bool], *, spark: SparkSession | None = None
) -> tuple[str, Args]:
    """Return a text with the values of some parameters in their places, and the other ones.

    Args:
        is_meant: tells of a parameter by the place of its first word among the words.

    Raises:
        ValidationError: a value has no literal.
        SqlSyntaxError: there are more or fewer values than ``?`` in the text.
    """
    if not args:
        return text, args
    words = words_of(text)
    found = _parameters(words, args)
    bound = [each for each in found if is_meant(each.at)]
    for each in reversed(bound):
        text = each.put_into(text, _literal(each.value, spark), words)
    if isinstance(args, Mapping):
        return text, args
    return text, [each.value for each in found if each not in bound] or None


def with_frames(
    spark: SparkSession,
    text: str,
    values: Mapping[str, Any],
    first_of: Callable[[Sequence[Word]], int],
) -> tuple[str, dict[str, DataFrame]]:
    """Return a text with a name for each DataFrame that stands in it as ``{name}``.

    What is rows to `Table.append` is one too. Numbers, texts and the like become literals, as of
    parameters; within quotes they are written as they are. ``{{`` and ``}}`` stand for braces.

    Args:
        first_of: returns from which of its words on a statement may hold expressions.

    Returns:
        The text, and the DataFrames by the names in it.

    Raises:
        SqlSyntaxError: the text names a value that is not given, or a brace has no other.
        ValidationError: a value has no literal.
    """
    if not values:
        return text, {}
    frames: dict[str, DataFrame] = {}
    said: dict[str, Any] = {}
    pieces: list[str] = []
    try:
        for before, name, _, _ in Formatter().parse(text):
            pieces.append(before)
            if name is None:
                continue
            value = values[name]
            if value is None or isinstance(value, _SAID):
                ours = f"frazil_{uuid4().hex}"
                said[ours] = value
                pieces.append(f" :{ours}")
            else:
                frames[name] = rows_of(spark, value)
                pieces.append(f"`{name}`")
    except (KeyError, ValueError) as error:
        known = ", ".join(values)
        raise SqlSyntaxError(
            f"the braces in the statement cannot be read ({error}); values are given for {known}"
        ) from error
    joined = "".join(pieces)
    first = first_of(words_of(joined)) if said else 0
    text = with_literals(joined, said, spark=spark, first=first)
    for ours, value in said.items():
        # What is left stands within quotes, or in a comment.
        text = text.replace(f" :{ours}", _literal(value, spark))
    return text, frames


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A parameter in a text, and its value.

    Attributes:
        at: the place of its first word among the words.
        start, stop: where it stands in the text.
    """

    at: int
    start: int
    stop: int
    value: Any

    def put_into(self, text: str, literal: str, words: Sequence[Word], *, first: int = 0) -> str:
        """Return the text with a literal in its place, and nothing that it could run into."""
        before = [word.keyword for word in words[max(self.at - 2, 0) : self.at]]
        after = next((word.keyword for word in words[self.at :] if word.start >= self.stop), "")
        alone = (
            self.at < first
            or before[-1:] in _BEFORE_LITERALS
            or before in _AROUND_LITERALS
            or after in _AFTER_LITERALS
        )
        put = f" {literal} " if alone else f"({literal})"
        return text[: self.start] + put + text[self.stop :]


def _parameters(words: Sequence[Word], args: Mapping[str, Any] | Sequence[Any]) -> list[_Parameter]:
    return _named_parameters(words, args) if isinstance(args, Mapping) else _in_order(words, args)


def _named_parameters(words: Sequence[Word], args: Mapping[str, Any]) -> list[_Parameter]:
    found = []
    for at, (colon, name) in enumerate(pairwise(words)):
        before = words[at - 1] if at else None
        # A colon right after a name or a bracket goes into the value before it.
        follows = (
            before is not None
            and before.stop == colon.start
            and before.keyword not in _BEFORE_EXPRESSIONS
            and (before.may_be_name or before.text in ("]", ")"))
        )
        if colon.text == ":" and colon.stop == name.start and not follows and name.text in args:
            found.append(_Parameter(at, colon.start, name.stop, args[name.text]))
    return found


def _in_order(words: Sequence[Word], args: Sequence[Any]) -> list[_Parameter]:
    marks = [(at, word) for at, word in enumerate(words) if word.keyword == "?"]
    if len(marks) != len(args):
        raise SqlSyntaxError(f"the statement has {len(marks)} ? and {len(args)} values are given")
    return [
        _Parameter(at, mark.start, mark.stop, value)
        for (at, mark), value in zip(marks, args, strict=True)
    ]


def _literal(value: Any, spark: SparkSession | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, LiteralText):
        return value.text
    if isinstance(value, list | tuple):
        return f"array({', '.join(_literal(each, spark) for each in value)})"
    if isinstance(value, dict):
        pairs = [f"{_literal(key, spark)}, {_literal(each, spark)}" for key, each in value.items()]
        return f"map({', '.join(pairs)})"
    try:
        if isinstance(value, timedelta):
            seconds = f"{value.seconds}.{value.microseconds:06}"
            return f"make_dt_interval({value.days}, 0, 0, {seconds})"
        if isinstance(value, datetime) and value.tzinfo is None and not _is_wall_clock(spark):
            return python_text(_EPOCH + timedelta(microseconds=_micros(value, spark)))
        if isinstance(value, str) and spark is not None and _keeps_escapes(spark, value):
            return f"CAST({binary_text(value.encode())} AS STRING)"
        return python_text(value)
    except (PredicateError, OverflowError, ValueError) as error:
        raise ValidationError(f"the parameter {value!r} has no literal in SQL: {error}") from error


def _is_wall_clock(spark: SparkSession | None) -> bool:
    """Whether a datetime without a zone is a time without one to Spark's parameters."""
    if spark is None:
        return False
    kind = spark.conf.get("spark.sql.timestampType", "TIMESTAMP_LTZ")
    return str(kind).upper() == "TIMESTAMP_NTZ"


def _micros(value: datetime, spark: SparkSession | None) -> int:
    """The moment of a datetime without a zone, in microseconds since the epoch, as Spark has it."""
    if spark is not None and value.year < _SAME_CALENDARS:
        [row] = spark.sql("SELECT unix_micros(:moment)", {"moment": value}).collect()
        return int(row[0])
    return int(mktime(value.timetuple())) * 1_000_000 + value.microsecond


def _keeps_escapes(spark: SparkSession, value: str) -> bool:
    """Whether a session reads backslashes in literals as they are, and a text has such."""
    if python_text(value) == f"'{value}'":
        return False
    return str(spark.conf.get("spark.sql.parser.escapedStringLiterals", "false")).lower() == "true"
