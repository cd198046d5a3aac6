"""One statement of SQL: which kind it is, and what runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

from pyspark.sql import DataFrame

from frazil.errors import SqlSyntaxError, UnsupportedError, ValidationError
from frazil.spark.procedures.call import call
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.context import SparksNameError, SqlContext
from frazil.spark.sql.functions.calls import may_call
from frazil.spark.sql.parameters import (
    Args,
    first_of_a_query,
    with_frames,
    with_literals,
    with_versions,
)
from frazil.spark.sql.parsers.spark_parser import with_variables
from frazil.spark.sql.query import passed_on, query
from frazil.spark.sql.results import nothing
from frazil.spark.sql.statements import (
    alter,
    changes,
    describe,
    insert,
    merge,
    show,
    tables,
    temporary_views,
    views,
)
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
    reader = WordReader(text)
    if reader.is_done:
        raise SqlSyntaxError("the statement is empty")
    if (args or context.frames) and views.keeps_a_query(reader.words):
        raise ValidationError(
            "a view of the lake keeps its query as it is written: it can have no parameters and no "
            "DataFrames"
        )
    context = replace(context, frames=frames)
    if args and may_call(reader.words):
        # A value may stand several times in what a function becomes.
        text, args = _with_literals(context, reader, args), None
        reader = WordReader(text)
    first = reader.words[0].keyword
    before, kind = _after_ctes(reader) if first == "WITH" else ("", first)
    if (first in _QUERIES or first == "WITH") and kind not in _CHANGES:
        if kind == "FROM" and _inserts(reader):
            return _inserted(context, text, args)
        text, args = with_versions(text, args, spark=context.spark)
        return query(context, text, args)
    bound = _with_literals(context, reader, args)
    try:
        if kind in _CHANGES:
            reader = WordReader(bound)
            before = _after_ctes(reader)[0] if first == "WITH" else ""
            _CHANGES[kind](context, reader, before)
            return nothing(context.spark)
        found = _other(context, first, WordReader(bound))
    except SparksNameError:
        found = None
    return passed_on(context, text, args) if found is None else found


def _with_literals(context: SqlContext, reader: WordReader, args: Args) -> str:
    first = first_of_a_query(reader.words)
    return with_literals(reader.text, args, spark=context.spark, first=first)


def _inserts(reader: WordReader) -> list[int]:
    """Where a statement that begins as a query says INSERT INTO or OVERWRITE, among its words."""
    depth = 0
    found = []
    for at, (word, after) in enumerate(pairwise(reader.words)):
        depth += (word.keyword == "(") - (word.keyword == ")")
        if depth == 0 and word.keyword == "INSERT" and after.keyword in ("INTO", "OVERWRITE"):
            found.append(at)
    return found


def _inserted(context: SqlContext, text: str, args: Args) -> DataFrame:
    """Run ``FROM … INSERT …``: its rows are those of the FROM and of what follows the INSERT.

    Raises:
        UnsupportedError: there are several, and one of them is into the lake.
    """
    bound = _with_literals(context, WordReader(text), args)
    places = _inserts(WordReader(bound))
    readers = [WordReader(bound) for _ in places]
    for reader, place in zip(readers, places, strict=True):
        reader.at = place
    if not any(insert.is_into_the_lake(context, reader) for reader in readers):
        return passed_on(context, text, args)
    if len(readers) > 1:
        raise UnsupportedError(
            "a statement inserts once into a table of the lake: write one for each INSERT"
        )
    for reader, place in zip(readers, places, strict=True):
        reader.at = place
        insert.insert(context, reader, bound[: reader.place])
    return nothing(context.spark)


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
        return call(context.spark, context.catalog, reader.text, name=context.name)
    if first == "SHOW":
        return show.show(context, reader)
    if first in ("DESCRIBE", "DESC"):
        return describe.describe(context, reader)
    if first == "EXPLAIN":
        return temporary_views.explain(context, reader)
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
        tables.create_table(context, reader)
    elif first == "CREATE" and views.makes_view(reader.words):
        views.create_view(context, reader)
    elif first == "CREATE":
        return temporary_views.create_temporary_view(context, reader)
    elif first == "DROP" and is_namespace:
        tables.drop_namespace(context, reader)
    elif first == "DROP" and second == "TABLE":
        tables.drop_table(context, reader)
    elif first == "ALTER" and is_namespace:
        tables.alter_namespace(context, reader)
    elif first == "ALTER" and second == "TABLE":
        alter.alter_table(context, reader)
    elif first == "DROP" and second == "VIEW":
        views.drop_view(context, reader)
    elif first == "ALTER" and second == "VIEW":
        views.alter_view(context, reader)
    elif first == "TRUNCATE":
        changes.truncate(context, reader)
    elif first == "USE":
        tables.use(context, reader)
    elif first == "CACHE":
        return temporary_views.cache(context, reader)
    elif first == "COMMENT":
        return tables.comment(context, reader)
    elif first == "REFRESH":
        return tables.refresh(context, reader)
    else:
        return False
    return True
