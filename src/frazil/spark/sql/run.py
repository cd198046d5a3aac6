"""One statement of SQL: which kind it is, and what runs it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from pyspark.sql import DataFrame

from frazil.errors import SqlSyntaxError, UnsupportedError, ValidationError
from frazil.spark.plans.traces import errors_unlogged
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.context import SparksNameError, SqlContext
from frazil.spark.sql.functions.calls import may_call
from frazil.spark.sql.mistakes import mistakes_as_sparks
from frazil.spark.sql.parameters import (
    Args,
    with_frames,
    with_literals,
    with_versions,
)
from frazil.spark.sql.parsers.spark_parser import with_variables
from frazil.spark.sql.query import passed_on, query
from frazil.spark.sql.results import empty_result
from frazil.spark.sql.statements import insert, views
from frazil.spark.sql.statements.listing import (
    CHANGES,
    after_ctes,
    first_of_a_query,
    statement_of,
)
from frazil.spark.words import QUERIES, WordReader


def run_sql(context: SqlContext, text: str, args: Args = None) -> DataFrame:
    """Run a statement, and return its rows.

    Args:
        args: values of ``:name`` by name, or of ``?`` in their order.

    Raises:
        SqlSyntaxError: the statement cannot be read; nothing was done. It is a ParseException too.
        AnalysisException, ParseException: of Spark, where the mistake is in a query.
        FrazilError: what the method behind the statement raises.
    """
    if not isinstance(text, str):
        raise SqlSyntaxError(f"a statement is text, not {type(text).__name__}")
    with errors_unlogged(), mistakes_as_sparks(context, text, args):
        return _run(context, text, args)


def _run(context: SqlContext, text: str, args: Args) -> DataFrame:
    if not is_connect(context.spark):
        text = with_variables(context.spark, text)
    text, frames = with_frames(context.spark, text, context.frames, first_of_a_query)
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
    before, kind = after_ctes(reader) if first == "WITH" else ("", first)
    if (first in QUERIES or first in ("(", "")) and kind not in CHANGES:
        if kind == "FROM" and _inserts(reader):
            return _run_insert(context, text, args)
        text, args = with_versions(text, args, spark=context.spark)
        return query(context, text, args)
    bound = _with_literals(context, reader, args)
    try:
        if kind in CHANGES:
            reader = WordReader(bound)
            before = after_ctes(reader)[0] if first == "WITH" else ""
            CHANGES[kind](context, reader, before)
            return empty_result(context.spark)
        found = _run_other(context, WordReader(bound))
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


def _run_insert(context: SqlContext, text: str, args: Args) -> DataFrame:
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
    return empty_result(context.spark)


def _run_other(context: SqlContext, reader: WordReader) -> DataFrame | None:
    """The result of a statement that is no query and changes no rows; None where it is Spark's."""
    statement = statement_of(reader.words)
    if statement is None:
        return None
    found = statement.run(context, reader)
    if found is None or isinstance(found, bool):
        return None if statement.has_rows or found is False else empty_result(context.spark)
    return found
