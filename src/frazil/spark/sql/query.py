"""Queries: names of tables are replaced in the text, and Spark reads all else as it was typed."""

from __future__ import annotations

from pyspark.errors import ParseException
from pyspark.sql import DataFrame

from frazil.errors import SqlSyntaxError
from frazil.format.predicates import AlwaysTrue, Expression
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.binding.bound_text import BoundText, bind_tables
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.parameters import Args
from frazil.spark.sql.pruning import EmptyRelations, asks_for_rows, implied, names_the_time
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
    where = _asked(context, bound, args)
    rows = {name: each.rows(where[name]) for name, each in bound.tables.items()}
    return bound.run(args, rows)


def passed_on(context: SqlContext, text: str, args: Args = None) -> DataFrame:
    """Return what Spark makes of a statement of its own, which may read tables of the lake.

    It is run once, so that nothing asks first which files it needs.
    """
    try:
        bound = bind_tables(context, text, words_of(text))
    except (ParseException, SqlSyntaxError):
        return context.spark.sql(text, args)  # type: ignore[arg-type]
    return bound.run(args, bound.all_rows())


def _asked(context: SqlContext, bound: BoundText, args: Args) -> dict[str, Expression]:
    """What the query asks of each table, of those within its views too."""
    tables, words = bound.tables, bound.words
    prunable = {name: each for name, each in tables.items() if each.can_prune}
    where: dict[str, Expression] = dict.fromkeys(tables, AlwaysTrue())
    if is_connect(context.spark) or not prunable or not asks_for_rows(words):
        return where
    empty = EmptyRelations(context.spark)
    places = dict(enumerate(prunable))
    rows = {name: empty.relation(place, prunable[name].schema) for place, name in places.items()}
    for name, each in tables.items():
        if name not in rows:
            rows[name] = each.rows(AlwaysTrue())
    asked = empty.asked(bound.run(args, rows))
    lasts = names_the_time(words)
    for place, name in places.items():
        schema = prunable[name].scan.schema
        where[name] = implied(asked.get(place, []), schema, spark=context.spark, lasts=lasts)
    return where
