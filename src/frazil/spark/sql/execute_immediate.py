"""EXECUTE IMMEDIATE as the statement that it runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pyspark.sql import SparkSession

from frazil.errors import SqlSyntaxError, ValidationError
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.parameters import Args, LiteralText, with_literals
from frazil.spark.sql.variables import with_values
from frazil.spark.words import WordReader, begins_query, words_of

_IMMEDIATE: Final = re.compile(
    r"(?>\s+|--[^\n]*\n|/\*.*?\*/)*+EXECUTE\s+IMMEDIATE\b", re.IGNORECASE | re.DOTALL
)
_BY_KIND: Final = {
    "binary": ("hex({})", "unhex({})"),
    "timestamp": ("unix_micros({})", "timestamp_micros({})"),
}
"""What is asked of a value over Connect and what makes it again, where its text tells less."""


_Value = tuple[str, str | None]
"""An expression, and what it is called after AS."""


def is_immediate(statement: object) -> bool:
    """Return whether a statement is an EXECUTE IMMEDIATE."""
    return isinstance(statement, str) and _IMMEDIATE.match(statement) is not None


def immediate_statement(spark: SparkSession, statement: str, args: Args = None) -> str:
    """Return the statement that an EXECUTE IMMEDIATE runs, with its values in their places.

    With INTO it is a SET VARIABLE of the query's row.

    Args:
        args: values of parameters of the EXECUTE IMMEDIATE itself.

    Raises:
        SqlSyntaxError: the statement cannot be read, or there are more or fewer values than
            parameters, or INTO stands with what is no query.
        ValidationError: the text to run is NULL.
        AnalysisException: of Spark, where a value is no constant.
    """
    said, variables, values = _clauses(with_literals(statement, args, spark=spark))
    text = _text_of(spark, said)
    text = with_literals(text, _values_of(spark, values, text), spark=spark)
    if not variables:
        return text
    if not begins_query(words_of(text)):
        raise SqlSyntaxError(f"EXECUTE IMMEDIATE … INTO takes the row of a query, not {text!r}")
    return f"SET VARIABLE ({', '.join(variables)}) = ({text.rstrip().removesuffix(';')}\n)"


def _clauses(statement: str) -> tuple[str, list[str], list[_Value]]:
    """The expression whose value is the statement, what INTO names, and the values of USING.

    Raises:
        SqlSyntaxError: it cannot be read.
    """
    reader = WordReader(statement)
    reader.expect("EXECUTE", "IMMEDIATE")
    text = reader.text_to("INTO", "USING")
    variables: list[str] = []
    if reader.takes("INTO"):
        variables = [each for each, _ in _parts(reader.text_to("USING"))]
    values: list[_Value] = []
    if reader.takes("USING"):
        rest = reader.remaining_text().rstrip().removesuffix(";")
        values = _parts(_without_parentheses(rest))
    return text, variables, values


def _parts(text: str) -> list[_Value]:
    """The parts of a list with commas, each less the name after its AS."""
    found, depth, begin = [], 0, 0
    name: str | None = None
    stop: int | None = None
    words = words_of(text)
    for at, word in enumerate(words):
        if word.is_string:
            continue
        depth += (word.text in ("(", "[")) - (word.text in (")", "]"))
        if depth:
            continue
        if word.keyword == "AS" and at + 1 < len(words):
            stop, name = word.start, words[at + 1].text
        elif word.text == ",":
            found.append((text[begin : word.start if stop is None else stop].strip(), name))
            begin, stop, name = word.stop, None, None
    found.append((text[begin:stop].strip(), name))
    return found


def _without_parentheses(text: str) -> str:
    """A list less the parentheses around all of it."""
    words = words_of(text)
    if len(words) < 2 or words[0].keyword != "(":
        return text
    depth = 0
    for at, word in enumerate(words):
        if not word.is_string:
            depth += (word.keyword == "(") - (word.keyword == ")")
        if depth == 0:
            return text[words[0].stop : word.start] if at == len(words) - 1 else text
    return text


def _text_of(spark: SparkSession, expression: str) -> str:
    """The value of an expression that is a text.

    Raises:
        ValidationError: it is NULL, or no text.
    """
    [row] = spark.sql(f"SELECT ({expression}\n)").collect()
    if not isinstance(row[0], str):
        raise ValidationError(f"EXECUTE IMMEDIATE runs a text, and {expression} is {row[0]!r}")
    return row[0]


def _values_of(spark: SparkSession, values: Sequence[_Value], text: str) -> Args:
    """The values of parameters: by their names, or in their order where the text has ``?``."""
    marks = sum(word.keyword == "?" and not word.is_string for word in words_of(text))
    found = [_constant(spark, said) for said, _ in values]
    if marks or not values:
        if marks != len(values):
            raise SqlSyntaxError(
                f"the statement has {marks} ? and EXECUTE IMMEDIATE gives {len(values)} values"
            )
        return found
    names = [name or _own_name(said) for said, name in values]
    unnamed = [said for (said, _), name in zip(values, names, strict=True) if name is None]
    if unnamed:
        raise SqlSyntaxError(
            f"EXECUTE IMMEDIATE … USING {unnamed[0]}: write AS and a name after it"
        )
    return dict(zip(map(str, names), found, strict=True))


def _own_name(text: str) -> str | None:
    """The last part of the name of a variable; None of what is none."""
    words = words_of(text)
    names, dots = words[::2], words[1::2]
    is_name = all(
        word.may_be_name and (word.is_name or not word.text[0].isdigit()) for word in names
    )
    return names[-1].text if is_name and all(word.text == "." for word in dots) else None


def _constant(spark: SparkSession, text: str) -> LiteralText:
    """A constant expression of the same value and type, in which no name is left.

    Raises:
        AnalysisException: of Spark, where it is no constant.
    """
    value = spark.sql(f"SELECT ({text}\n) AS value")
    if not is_connect(spark):
        return LiteralText(with_values(spark, text, lambda _: False))
    kind = value.schema["value"].dataType.simpleString()
    asked, made = _BY_KIND.get(kind, ("CAST({} AS STRING)", f"CAST({{}} AS {kind})"))
    [row] = value.selectExpr(asked.format("value")).collect()
    if row[0] is None:
        return LiteralText(f"CAST(NULL AS {kind})")
    return LiteralText(made.format(with_literals(":value", {"value": row[0]}, spark=spark)))
