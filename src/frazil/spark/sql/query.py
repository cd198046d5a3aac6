"""Queries: names of tables are replaced in the text, and Spark reads all else as it was typed."""

from __future__ import annotations

from pyspark.errors import ParseException
from pyspark.sql import DataFrame

from frazil.errors import SqlSyntaxError
from frazil.format.predicates import AlwaysTrue
from frazil.spark.sql.binding.bound_text import BoundText, bind_tables
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.parameters import Args
from frazil.spark.sql.pruning.asked import AskedOfTables, asked_of_tables
from frazil.spark.words import words_of


def query(context: SqlContext, text: str, args: Args = None) -> DataFrame:
    """Return a query's rows: of the tables as they are now, from files that its predicates allow.

    Raises:
        AnalysisException, ParseException: of Spark, where the mistake is in the query.
        NoSuchTableError, NoSuchSnapshotError, NoSuchRefError: what the query names is not there.
    """
    bound = bind_tables(context, text, words_of(text))
    if not bound.relations and not bound.frames:
        return context.spark.sql(text, args)  # type: ignore[arg-type]
    asked = asked_of_tables(context.spark, bound, args)
    if asked is None:
        return bound.run(args, bound.all_rows())
    row = asked.row_of_metadata()
    if row is not None:
        return row
    return bound.run(args, _rows(bound, asked))


def wanted_rows(context: SqlContext, bound: BoundText) -> dict[str, DataFrame]:
    """Return the rows of a query's tables by their names, from the files that it would open."""
    asked = asked_of_tables(context.spark, bound, None)
    return bound.all_rows() if asked is None else _rows(bound, asked)


def passed_on(context: SqlContext, text: str, args: Args = None) -> DataFrame:
    """Return what Spark makes of a statement of its own, which may read tables of the lake.

    It is run once, so that nothing asks first which files it needs.
    """
    try:
        bound = bind_tables(context, text, words_of(text))
    except (ParseException, SqlSyntaxError):
        return context.spark.sql(text, args)  # type: ignore[arg-type]
    if not bound.relations and not bound.frames:
        return context.spark.sql(text, args)  # type: ignore[arg-type]
    return bound.run(args, bound.all_rows())


def _rows(bound: BoundText, asked: AskedOfTables) -> dict[str, DataFrame]:
    where = asked.wanted_rows()
    return {name: each.rows(where.get(name, AlwaysTrue())) for name, each in bound.tables.items()}
