"""One statement of SQL: which kind it is, and what runs it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from pyspark.sql import DataFrame

from frazil.errors import SqlSyntaxError, ValidationError
from frazil.spark.plans.traces import errors_unlogged
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.context import SparksNameError, SqlContext
from frazil.spark.sql.errors.mistakes import mistakes_as_sparks
from frazil.spark.sql.functions.calls import may_call
from frazil.spark.sql.functions.current_place import with_current_place
from frazil.spark.sql.parameters import (
    Args,
    with_frames,
    with_literals,
    with_versions,
)
from frazil.spark.sql.parsers.identifiers import with_identifiers
from frazil.spark.sql.parsers.spark_parser import with_variables
from frazil.spark.sql.query import passed_on, query
from frazil.spark.sql.results import empty_result, table_of
from frazil.spark.sql.statements import insert, views
from frazil.spark.sql.statements.listing import (
    CHANGES,
    after_ctes,
    explained_change,
    first_of_a_query,
    inserts_in,
    rows_of_change,
    statement_of,
)
from frazil.spark.words import QUERIES, WordReader, words_of


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
    text, args = with_identifiers(context.spark, text, args)
    reader = WordReader(text)
    if reader.is_done:
        raise SqlSyntaxError("the statement is empty")
    place = context.current_place
    if place is not None and not views.keeps_a_query(reader.words):
        text = with_current_place(text, place)
        reader = WordReader(text)
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
        if kind == "FROM" and inserts_in(reader.words):
            return _run_inserts(context, text, args)
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


def _run_inserts(context: SqlContext, text: str, args: Args) -> DataFrame:
    """Run ``FROM … INSERT …``: rows are those of the FROM and of what follows each INSERT."""
    bound = _with_literals(context, WordReader(text), args)
    words = WordReader(bound).words
    starts = [words[place].start for place in inserts_in(words)]
    texts = [bound[start:stop] for start, stop in pairwise([*starts, len(bound)])]
    if all(insert.catalog_of_insert(context, WordReader(each)) is None for each in texts):
        return passed_on(context, text, args)
    insert.insert_each(context, bound[: starts[0]], texts)
    return empty_result(context.spark)


def _plan_of_change(context: SqlContext, explain: str, text: str) -> DataFrame | None:
    """The plan of a statement that changes something, which is not run; None where it is Spark's.

    Args:
        explain: the EXPLAIN before it.
    """
    words = words_of(text)
    if words[0].keyword != "FROM" and any(context.is_of_spark((w.text,)) for w in words[:6]):
        return None
    said = [f"== Command ==\nExternalCommand {text}"]
    for rows in rows_of_change(text):
        found = _run_other(context, WordReader(f"{explain} {rows}"))
        if found is not None:
            said.append(str(found.collect()[0][0]))
    return table_of(context.spark, ("plan",), [("\n\n".join(said),)])


def _run_other(context: SqlContext, reader: WordReader) -> DataFrame | None:
    """The result of a statement that is no query and changes no rows; None where it is Spark's."""
    statement = statement_of(reader.words)
    if statement is None:
        return None
    if statement.words == "EXPLAIN":
        change = explained_change(reader.text)
        if change is not None:
            return _plan_of_change(context, *change)
    found = statement.run(context, reader)
    if found is None or isinstance(found, bool):
        return None if statement.has_rows or found is False else empty_result(context.spark)
    return found
