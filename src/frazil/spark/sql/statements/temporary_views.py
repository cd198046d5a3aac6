"""Temporary views, cached queries and EXPLAIN: queries that Spark keeps or shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from frazil.catalog.identifiers import Identifier, shown
from frazil.errors import NoSuchTableError, SqlSyntaxError, UnsupportedError, ValidationError
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.plans.relations import PlannedRelation
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.binding.bind import bind_query, use_of
from frazil.spark.sql.binding.hidden_columns import is_only_a_query
from frazil.spark.sql.binding.relations import QueriedTable
from frazil.spark.sql.binding.view_definition import ViewColumn
from frazil.spark.sql.cached_tables import CachedTables
from frazil.spark.sql.context import NamedTable, NamedView, SqlContext
from frazil.spark.sql.query import query, wanted_rows
from frazil.spark.sql.results import table_of
from frazil.spark.sql.statements.views import columns_of
from frazil.spark.types import COMMENT_KEY
from frazil.spark.words import WordReader, properties_of, words_of


def create_temporary_view(context: SqlContext, reader: WordReader) -> bool:
    """Run a CREATE TEMPORARY VIEW; return whether it was one with a query."""
    reader.expect("CREATE")
    replaces = reader.takes("OR", "REPLACE")
    is_global = reader.takes("GLOBAL")
    if not ((reader.takes("TEMP") or reader.takes("TEMPORARY")) and reader.takes("VIEW")):
        return False
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    name = reader.name("the name of a view")
    columns = columns_of(reader.inner_reader()) if reader.sees("(") else None
    if reader.takes("COMMENT"):
        # What is said of a view that ends with the session is told nowhere.
        reader.string()
    if not reader.takes("AS"):
        return False
    rows = query(context, reader.remaining_text())
    if columns is not None:
        rows = _named_rows(rows, columns)
    if if_not_exists and context.spark.catalog.tableExists(name):
        return True
    if is_global:
        make = rows.createOrReplaceGlobalTempView if replaces else rows.createGlobalTempView
    else:
        make = rows.createOrReplaceTempView if replaces else rows.createTempView
    make(name)
    return True


def _named_rows(rows: DataFrame, columns: Sequence[ViewColumn]) -> DataFrame:
    """Rows with the names and comments of a view's columns."""
    if len(columns) != len(rows.columns):
        raise ValidationError(
            f"{len(columns)} columns are named, and the query gives {len(rows.columns)}: "
            f"{rows.columns}"
        )
    fields = rows.toDF(*(each.name for each in columns)).schema.fields
    places = [f"column_{place}" for place in range(len(columns))]
    named = [
        F.col(place).alias(each.name, metadata=_with_comment(field.metadata, each.comment))
        for place, each, field in zip(places, columns, fields, strict=True)
    ]
    return rows.toDF(*places).select(*named)


def _with_comment(metadata: Mapping[str, Any], comment: str | None) -> dict[str, Any]:
    return {**metadata, **({} if comment is None else {COMMENT_KEY: comment})}


def cache(context: SqlContext, reader: WordReader) -> bool:
    """Run a CACHE TABLE; return whether it was one of the lake's."""
    lazy, names, options = _begin_of_cache(reader)
    if reader.is_done:
        found = context.find(names)
        if found is not None:
            keep_table(context, names, found, _storage_level(options), lazy=lazy)
        return found is not None
    level = _storage_level(options)
    rows = query(context, reader.remaining_text())
    rows.createTempView(names[-1])
    quoted = quote_name_always([names[-1]])
    try:
        context.spark.catalog.cacheTable(quoted, level)
        if not lazy:
            context.spark.table(quoted).count()
    except Exception:
        context.spark.catalog.dropTempView(names[-1])
        raise
    return True


def _begin_of_cache(reader: WordReader) -> tuple[bool, Identifier, Mapping[str, str]]:
    """What stands before the query of a CACHE TABLE: whether it is LAZY, the name, the options."""
    reader.expect("CACHE")
    lazy = reader.takes("LAZY")
    reader.expect("TABLE")
    names = reader.names("the name of a table")
    options = properties_of(reader.inner_reader()) if reader.takes("OPTIONS") else {}
    reader.takes("AS")
    return lazy, names, options


def name_of_cached_query(text: str) -> str | None:
    """Return the name that a CACHE TABLE gives a query; None where it has none."""
    reader = WordReader(text)
    try:
        names = _begin_of_cache(reader)[1]
    except SqlSyntaxError:
        return None
    return None if reader.is_done else names[-1]


def keep_table(
    context: SqlContext,
    parts: Identifier,
    found: NamedTable | NamedView,
    level: StorageLevel,
    *,
    lazy: bool = False,
) -> None:
    """Keep the rows of a table for the statements after.

    Args:
        parts: its name.
        lazy: they are read when they are first asked for, and not now.

    Raises:
        UnsupportedError: it is a view, or in a transaction.
    """
    if isinstance(found, NamedView):
        raise UnsupportedError(
            f"{shown(parts)} is a view of the lake: keep a query of it, with CACHE TABLE name AS "
            "and the query"
        )
    if context.transaction is not None:
        raise UnsupportedError(
            f"a transaction cannot keep the rows of {shown(parts)}: run COMMIT or ROLLBACK first"
        )
    kept = CachedTables.of(context.spark)
    table = use_of(context, PlannedRelation(parts, None), found)
    assert isinstance(table, QueriedTable)
    rows = table.whole_relation()
    kept.keep(found, rows, level)
    try:
        if not lazy:
            rows.count()
    except Exception:
        kept.forget(found)
        raise


def uncache(context: SqlContext, reader: WordReader) -> bool:
    """Run an UNCACHE TABLE; return whether it was one of the lake's."""
    reader.expect("UNCACHE", "TABLE")
    if_exists = reader.takes("IF", "EXISTS")
    names = reader.names("the name of a table")
    try:
        found = context.find(names)
    except NoSuchTableError:
        if if_exists:
            return True
        raise
    if isinstance(found, NamedTable):
        CachedTables.of(context.spark).forget(found)
    return found is not None


def _storage_level(options: Mapping[str, str]) -> StorageLevel:
    """Where cached rows are kept, as Spark's option `storageLevel` says.

    Raises:
        ValidationError: there is no such level.
    """
    given = {key.lower(): value for key, value in options.items()}
    said = given.pop("storagelevel", "MEMORY_AND_DISK_DESER").upper()
    # PySpark calls the level of objects as they are by this name, and Spark by none.
    name = "MEMORY_AND_DISK_DESER" if said == "MEMORY_AND_DISK" else said
    found = getattr(StorageLevel, name, None)
    if not isinstance(found, StorageLevel):
        raise ValidationError(f"there is no storage level {said}: MEMORY_ONLY is one")
    return found


def explain(context: SqlContext, reader: WordReader) -> DataFrame | None:
    """Run an EXPLAIN of a query; None where it is of another statement."""
    begin = reader.place
    reader.expect("EXPLAIN")
    modes = ("EXTENDED", "CODEGEN", "COST", "FORMATTED")
    mode = next((each for each in modes if reader.takes(each)), "SIMPLE")
    head, text = reader.text[begin : reader.place], reader.remaining_text()
    if not is_only_a_query(words_of(text)):
        # To look which rows it needs would run it.
        return None
    bound = bind_query(context, text)
    rows = wanted_rows(context, bound)
    if is_connect(context.spark):
        explained = replace(bound, text=head + bound.text).run(None, rows)
        plan = str(explained.collect()[0][0])
        for name, said in bound.names.items():
            plan = plan.replace(name, said)
    else:
        found: Any = bound.run(None, rows)
        session: Any = context.spark
        explain_string = session._jvm.PythonSQLUtils.explainString
        plan = str(explain_string(found._jdf.queryExecution(), mode.lower()))
    return table_of(context.spark, ("plan",), [(plan,)])
