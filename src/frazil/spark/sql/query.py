"""Queries: names of tables are replaced in the text, and Spark reads all else as it was typed."""

from __future__ import annotations

from pyspark.errors import ParseException
from pyspark.sql import DataFrame

from frazil.errors import SqlSyntaxError
from frazil.format.predicates import AlwaysTrue, all_of
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.binding.bound_text import BoundText, bind_query
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.parameters import Args
from frazil.spark.sql.pruning.asked import AskedOfTables, asked_of_tables
from frazil.spark.sql.pruning.written_rows import NOTHING_ASKED, WrittenRows, written_rows


def query(context: SqlContext, text: str, args: Args = None) -> DataFrame:
    """Return a query's rows: of the tables as they are now, from files that its predicates allow.

    Raises:
        AnalysisException, ParseException: of Spark, where the mistake is in the query.
        NoSuchTableError, NoSuchSnapshotError, NoSuchRefError: what the query names is not there.
    """
    bound = bind_query(context, text)
    if not bound.is_bound:
        return context.spark.sql(text, args)  # type: ignore[arg-type]
    asked = asked_of_tables(context.spark, bound, args)
    row = None if asked is None else asked.row_of_metadata()
    return bound.run(args, _rows(bound, args, asked)) if row is None else row


def wanted_rows(context: SqlContext, bound: BoundText) -> dict[str, DataFrame]:
    """Return the rows of a query's tables by their names, from the files that it would open."""
    asked = asked_of_tables(context.spark, bound, None)
    return _rows(bound, None, asked)


def passed_on(context: SqlContext, text: str, args: Args = None) -> DataFrame:
    """Return what Spark makes of a statement of its own, which may read tables of the lake.

    It is run once, so that nothing asks first which files it needs.
    """
    try:
        bound = bind_query(context, text)
    except (ParseException, SqlSyntaxError):
        return context.spark.sql(text, args)  # type: ignore[arg-type]
    if not bound.is_bound:
        return context.spark.sql(text, args)  # type: ignore[arg-type]
    return bound.run(args, bound.all_rows())


def _rows(bound: BoundText, args: Args, asked: AskedOfTables | None) -> dict[str, DataFrame]:
    where = {} if asked is None else asked.wanted_rows()
    by_words: dict[str, WrittenRows] = {}
    if is_connect(bound.spark) or bound.calls_functions:
        by_words = written_rows(bound, args)
    rows = {}
    for name, each in bound.tables.items():
        said = by_words.get(name, NOTHING_ASKED)
        wanted = all_of([where.get(name, AlwaysTrue()), said.where])
        rows[name] = each.rows(wanted, said.buckets)
    return rows
