"""Parameters of a statement: ``:name`` and ``?`` in the text of commands become literals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from string import Formatter
from typing import Any, Final
from uuid import UUID

from pyspark.sql import DataFrame, SparkSession

from frazil.errors import PredicateError, SqlSyntaxError, ValidationError
from frazil.format.predicates.sql.quoting import python_text
from frazil.spark.words import Word, words_of
from frazil.spark.write.rows import rows_of

_SAID: Final = (str, int, float, bytes, Decimal, date, time, UUID, list, tuple, dict)

Args = Mapping[str, Any] | Sequence[Any] | None


def with_literals(text: str, args: Args) -> str:
    """Return a text with the values of parameters in their places.

    Raises:
        ValidationError: a value has no literal.
        SqlSyntaxError: there are more or fewer values than ``?`` in the text.
    """
    if not args:
        return text
    words = words_of(text)
    if isinstance(args, Mapping):
        changes = _named(words, args)
    else:
        changes = _in_order(words, args)
    for start, stop, value in reversed(changes):
        text = text[:start] + _literal(value) + text[stop:]
    return text


def with_frames(
    spark: SparkSession, text: str, values: Mapping[str, Any]
) -> tuple[str, dict[str, DataFrame]]:
    """Return a text with a name for each DataFrame that stands in it as ``{name}``.

    What is rows to `Table.append` is one too. Numbers, texts and the like become literals; ``{{``
    and ``}}`` stand for braces.

    Returns:
        The text, and the DataFrames by the names in it.

    Raises:
        SqlSyntaxError: the text names a value that is not given, or a brace has no other.
        ValidationError: a value has no literal.
    """
    if not values:
        return text, {}
    frames: dict[str, DataFrame] = {}
    pieces: list[str] = []
    try:
        for before, name, _, _ in Formatter().parse(text):
            pieces.append(before)
            if name is None:
                continue
            value = values[name]
            if value is None or isinstance(value, _SAID):
                pieces.append(_literal(value))
            else:
                frames[name] = rows_of(spark, value)
                pieces.append(f"`{name}`")
    except (KeyError, ValueError) as error:
        known = ", ".join(values)
        raise SqlSyntaxError(
            f"the braces in the statement cannot be read ({error}); values are given for {known}"
        ) from error
    return "".join(pieces), frames


def _named(words: Sequence[Word], args: Mapping[str, Any]) -> list[tuple[int, int, Any]]:
    changes = []
    for before, colon, name in zip((None, *words), words, words[1:], strict=False):
        follows = before is not None and before.stop == colon.start and before.may_be_name
        if colon.text == ":" and colon.stop == name.start and not follows and name.text in args:
            changes.append((colon.start, name.stop, args[name.text]))
    return changes


def _in_order(words: Sequence[Word], args: Sequence[Any]) -> list[tuple[int, int, Any]]:
    marks = [word for word in words if word.keyword == "?"]
    if len(marks) != len(args):
        raise SqlSyntaxError(f"the statement has {len(marks)} ? and {len(args)} values are given")
    return [(mark.start, mark.stop, value) for mark, value in zip(marks, args, strict=True)]


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list | tuple):
        return f"array({', '.join(_literal(each) for each in value)})"
    if isinstance(value, dict):
        pairs = [f"{_literal(key)}, {_literal(each)}" for key, each in value.items()]
        return f"map({', '.join(pairs)})"
    try:
        return python_text(value)
    except PredicateError as error:
        raise ValidationError(f"the parameter {value!r} has no literal in SQL: {error}") from error
