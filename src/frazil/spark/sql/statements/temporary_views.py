"""Temporary views, cached queries and EXPLAIN: queries that Spark keeps or shows."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from frazil.errors import UnsupportedError
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.sql.binding.bound_text import bind_query
from frazil.spark.sql.context import NamedView, SqlContext
from frazil.spark.sql.query import query, wanted_rows
from frazil.spark.sql.results import table_of
from frazil.spark.words import WordReader, words_of


def create_temporary_view(context: SqlContext, reader: WordReader) -> bool:
    """Run a CREATE TEMPORARY VIEW; return whether it was one with a query."""
    reader.expect("CREATE")
    replaces = reader.takes("OR", "REPLACE")
    is_global = reader.takes("GLOBAL")
    if not (reader.takes("TEMP") or reader.takes("TEMPORARY")):
        return False
    if not reader.takes("VIEW"):
        return False
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    name = reader.name("the name of a view")
    columns = None
    if reader.sees("("):
        inner = reader.inside()
        columns = [inner.name("a column")]
        while inner.takes(","):
            columns.append(inner.name("a column"))
    if not reader.takes("AS"):
        return False
    rows = query(context, reader.rest())
    if columns is not None:
        rows = rows.toDF(*columns)
    if if_not_exists and context.spark.catalog.tableExists(name):
        return True
    if is_global:
        make = rows.createOrReplaceGlobalTempView if replaces else rows.createGlobalTempView
    else:
        make = rows.createOrReplaceTempView if replaces else rows.createTempView
    make(name)
    return True


def cache(context: SqlContext, reader: WordReader) -> bool:
    """Run a CACHE TABLE of a query; return whether it was one."""
    reader.expect("CACHE")
    lazy = reader.takes("LAZY")
    reader.expect("TABLE")
    names = reader.names("the name of a table")
    reader.takes("AS")
    if reader.is_done:
        found = context.find(names)
        if found is not None:
            kind = "view" if isinstance(found, NamedView) else "table"
            raise UnsupportedError(
                f"{'.'.join(names)} is a {kind} of the lake: keep a query of it, with CACHE TABLE "
                "name AS and the query, or its rows, with DataFrame.cache()"
            )
        return False
    rows = query(context, reader.rest())
    rows.createOrReplaceTempView(names[-1])
    context.spark.catalog.cacheTable(names[-1])
    if not lazy:
        context.spark.table(quote_name_always([names[-1]])).count()
    return True


def explain(context: SqlContext, reader: WordReader) -> DataFrame | None:
    """Run an EXPLAIN of a query; None where it is of another statement."""
    begin = reader.place
    reader.expect("EXPLAIN")
    for mode in ("EXTENDED", "CODEGEN", "COST", "FORMATTED"):
        if reader.takes(mode):
            break
    head, text = reader.text[begin : reader.place], reader.rest()
    words = words_of(text)
    if words and words[0].keyword in ("INSERT", "DELETE", "UPDATE", "MERGE"):
        raise UnsupportedError(
            f"EXPLAIN of {words[0].keyword} is not there for tables of the lake; explain the query "
            "that it is made of"
        )
    bound = bind_query(context, text)
    explained = replace(bound, text=head + bound.text).run(None, wanted_rows(context, bound))
    plan = str(explained.collect()[0][0])
    for name, said in bound.names.items():
        plan = plan.replace(name, said)
    return table_of(context.spark, ("plan",), [(plan,)])
