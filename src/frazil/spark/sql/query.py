"""Queries: the rows of tables are put in their places, and Spark reads all else as it was typed."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import ParseException
from pyspark.sql import DataFrame

from frazil.errors import SqlSyntaxError
from frazil.format.predicates import AlwaysTrue, all_of
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.binding.bind import bind_query
from frazil.spark.sql.binding.bound_text import BoundText
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.new_columns import with_new_columns
from frazil.spark.sql.parameters import Args
from frazil.spark.sql.pruning.asked import AskedOfTables, asked_of_tables
from frazil.spark.sql.pruning.known_queries import KnownQueries
from frazil.spark.sql.pruning.written_rows import NOTHING_ASKED, WrittenRows, written_rows


def query(context: SqlContext, text: str, args: Args = None) -> DataFrame:
    """Return a query's rows: of the tables as they are now, from files that its predicates allow.

    Raises:
        AnalysisException, ParseException: of Spark, where the mistake is in the query.
        NoSuchTableError, NoSuchSnapshotError, NoSuchRefError: what the query names is not there.
    """
    bound = bind_query(context, text, args)
    if not bound.is_bound:
        return context.spark.sql(text, args)  # type: ignore[arg-type]
    known = None if context.transaction is not None else KnownQueries.of(bound, args)
    again = None if known is None else known.run_again(bound, args)
    if again is not None:
        return again
    asked = asked_of_tables(context.spark, bound, args)
    row = None if asked is None else asked.row_of_metadata()
    if row is not None:
        return row
    wanted = _wanted_rows(bound, args, asked)
    rows = _rows(bound, wanted)
    found = bound.run(args, rows)
    if known is not None:
        known.keep(bound, wanted, rows, found)
    return found if is_connect(context.spark) else with_new_columns(found)


def row_or_rows(bound: BoundText) -> DataFrame | dict[str, DataFrame]:
    """Return the row of a query that metadata answers, else the rows of its tables by their names.

    Raises:
        AnalysisException: of Spark, where the mistake is in the query.
    """
    asked = asked_of_tables(bound.spark, bound, None)
    row = None if asked is None else asked.row_of_metadata()
    return _rows(bound, _wanted_rows(bound, None, asked)) if row is None else row


def wanted_rows(context: SqlContext, bound: BoundText) -> dict[str, DataFrame]:
    """Return the rows of a query's tables by their names, from the files that it would open."""
    asked = asked_of_tables(context.spark, bound, None)
    return _rows(bound, _wanted_rows(bound, None, asked))


def passed_on(context: SqlContext, text: str, args: Args = None) -> DataFrame:
    """Return what Spark makes of a statement of its own, which may read tables of the lake.

    It is run once, so that nothing asks first which files it needs.
    """
    try:
        bound = bind_query(context, text, args)
    except (ParseException, SqlSyntaxError):
        return context.spark.sql(text, args)  # type: ignore[arg-type]
    if not bound.is_bound:
        return context.spark.sql(text, args)  # type: ignore[arg-type]
    return bound.run(args, bound.all_rows())


def _rows(bound: BoundText, wanted: Mapping[str, WrittenRows]) -> dict[str, DataFrame]:
    return {
        name: each.relation(wanted[name].where, wanted[name].buckets)
        for name, each in bound.tables.items()
    }


def _wanted_rows(
    bound: BoundText, args: Args, asked: AskedOfTables | None
) -> dict[str, WrittenRows]:
    """What is asked of each table, by its name in the query."""
    where = {} if asked is None else asked.wanted_rows()
    by_words: dict[str, WrittenRows] = {}
    if is_connect(bound.spark) or bound.calls_functions:
        by_words = written_rows(bound, args)
    wanted = {}
    for name in bound.tables:
        said = by_words.get(name, NOTHING_ASKED)
        both = all_of([where.get(name, AlwaysTrue()), said.where])
        wanted[name] = WrittenRows(both, said.buckets)
    return wanted
