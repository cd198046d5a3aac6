"""One statement of SQL: which kind it is, and what runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame

from frazil.errors import SqlSyntaxError
from frazil.spark.procedures.call import call
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.parameters import Args, with_frames, with_literals
from frazil.spark.sql.parsers.spark_parser import with_variables
from frazil.spark.sql.query import query
from frazil.spark.sql.results import nothing
from frazil.spark.sql.statements import alter, changes, describe, insert, merge, show, tables, views
from frazil.spark.words import WordReader

_QUERIES: Final = ("SELECT", "VALUES", "FROM", "TABLE", "(", "MAP", "REDUCE", "")
_CHANGES: Final[Mapping[str, Callable[[SqlContext, WordReader, str], None]]] = {
    "INSERT": insert.insert,
    "DELETE": changes.delete,
    "UPDATE": changes.update,
    "MERGE": merge.merge,
}


def run_sql(context: SqlContext, text: str, args: Args = None) -> DataFrame:
    """Run a statement, and return its rows.

    Args:
        args: values of ``:name`` by name, or of ``?`` in their order.

    Raises:
        SqlSyntaxError: the statement cannot be read; nothing was done.
        AnalysisException, ParseException: of Spark, where the mistake is in a query.
        FrazilError: what the method behind the statement raises.
    """
    if not isinstance(text, str):
        raise SqlSyntaxError(f"a statement is text, not {type(text).__name__}")
    if not is_connect(context.spark):
        text = with_variables(context.spark, text)
    text, frames = with_frames(context.spark, text, context.frames)
    context = replace(context, frames=frames)
    reader = WordReader(text)
    if reader.is_done:
        raise SqlSyntaxError("the statement is empty")
    first = reader.words[0].keyword
    before, kind = _after_ctes(reader) if first == "WITH" else ("", first)
    if kind in _CHANGES:
        bound = with_literals(text, args)
        reader = WordReader(bound)
        if first == "WITH":
            before, kind = _after_ctes(reader)
        _CHANGES[kind](context, reader, before)
        return nothing(context.spark)
    if first in _QUERIES or first == "WITH":
        return query(context, text, args)
    bound = with_literals(text, args)
    found = _other(context, first, WordReader(bound))
    return context.spark.sql(text, args) if found is None else found  # type: ignore[arg-type]


def _after_ctes(reader: WordReader) -> tuple[str, str]:
    """The text of CTEs, and the word that follows them; the reader stands there."""
    begin = reader.place
    reader.expect("WITH")
    reader.takes("RECURSIVE")
    while True:
        reader.name("the name of a CTE")
        if reader.sees("("):
            reader.inside()
        while reader.sees_one_of("MAX"):
            reader.word("MAX")
            reader.word("RECURSION")
            reader.word("LEVEL")
            reader.word("a number")
        reader.takes("AS")
        reader.inside()
        if not reader.takes(","):
            break
    kind = "" if reader.is_done else reader.words[reader.at].keyword
    return reader.text[begin : reader.place], kind


def _other(context: SqlContext, first: str, reader: WordReader) -> DataFrame | None:
    """The result of a statement that is no query and changes no rows; None where it is Spark's."""
    if first == "CALL":
        return call(context.spark, context.catalog, reader.text)
    if first == "SHOW":
        return show.show(context, reader)
    if first in ("DESCRIBE", "DESC"):
        return describe.describe(context, reader)
    if first == "EXPLAIN":
        return views.explain(context, reader)
    done = _changes_definitions(context, first, reader)
    return nothing(context.spark) if done else None


def _changes_definitions(context: SqlContext, first: str, reader: WordReader) -> bool:
    second = reader.words[1].keyword if len(reader.words) > 1 else ""
    third = reader.words[3].keyword if len(reader.words) > 3 else ""
    is_namespace = second in tables.NAMESPACE_WORDS
    makes_table = "TABLE" in (second, third if second == "OR" else "")
    if first == "CREATE" and is_namespace:
        tables.create_namespace(context, reader)
    elif first in ("CREATE", "REPLACE") and makes_table:
        if _is_of_spark(context, reader):
            return False
        tables.create_table(context, reader)
    elif first == "CREATE":
        return views.create_view(context, reader)
    elif first == "DROP" and is_namespace:
        tables.drop_namespace(context, reader)
    elif first == "DROP" and second == "TABLE":
        if _is_of_spark(context, reader):
            return False
        tables.drop_table(context, reader)
    elif first == "ALTER" and is_namespace:
        tables.alter_namespace(context, reader)
    elif first == "ALTER" and second == "TABLE":
        if _is_of_spark(context, reader):
            return False
        alter.alter_table(context, reader)
    elif first == "TRUNCATE":
        changes.truncate(context, reader)
    elif first == "USE":
        tables.use(context, reader)
    elif first == "CACHE":
        return views.cache(context, reader)
    elif first == "COMMENT":
        return tables.comment(context, reader)
    elif first == "REFRESH":
        return tables.refresh(context, reader)
    else:
        return False
    return True


def _is_of_spark(context: SqlContext, reader: WordReader) -> bool:
    """Whether the name of the table that a statement is about is Spark's."""
    ahead = WordReader(reader.text, reader.words)
    while not ahead.is_done and not ahead.takes("TABLE"):
        ahead.word("a word")
    for words in (("IF", "NOT", "EXISTS"), ("IF", "EXISTS")):
        ahead.takes(*words)
    return context.is_of_spark(ahead.names("the name of a table"))
