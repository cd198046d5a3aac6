"""IDENTIFIER(…): the name that a constant expression says, put in its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Final

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

from frazil.errors import SqlSyntaxError, ValidationError
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.plans.sparks_errors import SYNTAX_ERROR, sparks_too
from frazil.spark.sql.parameters import Args, with_literals_at
from frazil.spark.sql.variables import with_values
from frazil.spark.words import Word, WordReader, begins_query, words_of

_CLAUSE: Final = re.compile(r"\bIDENTIFIER\s*\(", re.IGNORECASE)
_BODIES: Final = frozenset({"FUNCTION", "PROCEDURE"})
"""What has a body whose expressions may name what is of it alone, as a script has."""


def may_say_names(text: object) -> bool:
    """Return whether a text may have an IDENTIFIER(…); quick, and never wrongly no."""
    return isinstance(text, str) and _CLAUSE.search(text) is not None


def with_identifiers(spark: SparkSession, text: str, args: Args = None) -> tuple[str, Args]:
    """Return a statement with names in place of its IDENTIFIER(…), and the values left for it.

    What stands in a script or in the body of a function is left to the statement that it runs,
    and what is wrong in a query to Spark.

    Args:
        args: values of parameters, which the expressions may have.

    Raises:
        AnalysisException: of Spark, where an expression is no constant text.
        SqlSyntaxError: a text is no name.
        ValidationError: a value has no literal.
    """
    words = _words(text)
    clauses = _clauses(words)
    if not clauses:
        return text, args
    text, args = with_literals_at(
        text, args, lambda at: any(first < at < last for first, last in clauses), spark=spark
    )
    words = words_of(text)
    for first, last in reversed(_clauses(words)):
        try:
            name = _name_of(spark, text[words[first + 1].stop : words[last].start])
        except PySparkException:
            if begins_query(words):
                continue
            raise
        text = text[: words[first].start] + quote_name_always(name) + text[words[last].stop :]
    return text, args


def says_names(words: Sequence[Word]) -> bool:
    """Return whether a statement of these words has an IDENTIFIER(…)."""
    return bool(_clauses(words))


def is_script(words: Sequence[Word]) -> bool:
    """Return whether a statement, which is none of a transaction, is a script."""
    return bool(words) and words[0].keyword == "BEGIN"


def _words(text: object) -> tuple[Word, ...]:
    """The words of a statement; none where none of its names is to be found."""
    if not isinstance(text, str) or not may_say_names(text):
        return ()
    try:
        words = words_of(text)
    except SqlSyntaxError:
        return ()
    keys = [word.keyword for word in words[:6]]
    made = keys[:1] == ["CREATE"] and _BODIES.intersection(keys)
    return () if made or is_script(words) else words


def _clauses(words: Sequence[Word]) -> list[tuple[int, int]]:
    """Where the word IDENTIFIER and the parenthesis that ends its expression are among words."""
    found = []
    for at, (word, after) in enumerate(pairwise(words)):
        # A column, a table or an alias may be called so.
        is_name = at > 0 and words[at - 1].keyword in (".", "AS")
        if word.keyword == "IDENTIFIER" and after.keyword == "(" and not is_name:
            reader = WordReader("", tuple(words))
            reader.at = at + 1
            with suppress(SqlSyntaxError):  # Spark says that it has no end.
                reader.inner_reader()
                found.append((at, reader.at - 1))
    return found


def _name_of(spark: SparkSession, expression: str) -> tuple[str, ...]:
    """The parts of the name that an expression says."""
    expression = with_values(spark, expression, lambda _: False)
    [row] = spark.sql(f"SELECT ({expression}\n)").collect()
    if not isinstance(row[0], str):
        # Spark itself says what is wrong with it.
        spark.sql(f"SELECT * FROM IDENTIFIER({expression}\n)")  # noqa: S608
        raise ValidationError(f"IDENTIFIER takes a text, and {expression} is {row[0]!r}")
    try:
        reader = WordReader(row[0])
        name = reader.names("a name")
        reader.finish()
    except SqlSyntaxError as error:
        said = {"error": row[0], "hint": ""}
        raise sparks_too(error, ParseException, SYNTAX_ERROR, said) from error
    return name
