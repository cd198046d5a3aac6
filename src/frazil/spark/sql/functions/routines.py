"""SHOW PROCEDURES, DESCRIBE PROCEDURE and SHOW FUNCTIONS: what can be called of a lake."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import types as S

from frazil.catalog.identifiers import Identifier, shown
from frazil.errors import NoSuchNamespaceError, ProcedureError
from frazil.format.predicates.sql.quoting import quote_name
from frazil.spark.procedures.call import PROCEDURES
from frazil.spark.sql.context import SparksNameError, SqlContext
from frazil.spark.sql.functions.calls import PARAMETERS
from frazil.spark.sql.results import matches, table_of
from frazil.spark.words import WordReader

_SYSTEM: Final = ("system",)
_PROCEDURES: Final = S.StructType(
    [
        S.StructField("catalog", S.StringType(), False),
        S.StructField("namespace", S.ArrayType(S.StringType(), False), False),
        S.StructField("schema", S.StringType(), True),
        S.StructField("procedure_name", S.StringType(), False),
    ]
)


def show_procedures(context: SqlContext, reader: WordReader) -> DataFrame:
    """Run a SHOW PROCEDURES: all of them are in `system`."""
    levels = _namespace(context, reader)
    names = sorted(PROCEDURES) if levels == _SYSTEM else ()
    rows = [(context.name, [*_SYSTEM], *_SYSTEM, name) for name in names]
    return context.spark.createDataFrame(rows, _PROCEDURES)


def describe_procedure(context: SqlContext, reader: WordReader) -> DataFrame:
    """Run a DESCRIBE PROCEDURE.

    Raises:
        ProcedureError: there is none of that name.
    """
    reader.expect("PROCEDURE")
    parts = reader.names("the name of a procedure")
    reader.finish()
    *levels, name = _levels(context, parts)
    found = PROCEDURES.get(name.lower()) if (*levels,) == _SYSTEM else None
    if found is None:
        raise ProcedureError(f"there is no procedure {shown(parts)}: SHOW PROCEDURES IN system")
    told = [f"Procedure:   {name.lower()}", f"Description: {found.signature}"]
    return table_of(context.spark, ("procedure_desc",), [(line,) for line in told])


def show_functions(context: SqlContext, reader: WordReader, *, scope: str) -> DataFrame:
    """Run a SHOW FUNCTIONS: of Spark's, and of those of the lake where they are called.

    Args:
        scope: ``SYSTEM`` for Spark's, ``USER`` for the lake's, ``ALL`` for both.
    """
    levels = _namespace(context, reader)
    pattern = None
    is_like = reader.takes("LIKE")
    if is_like or not reader.is_done:
        if reader.words[reader.at].is_string:
            pattern = reader.string()
        else:
            *before, pattern = reader.names("the name of a function")
            levels = _levels(context, (*before,)) if before else levels
    names = []
    if scope != "SYSTEM" and levels in ((), _SYSTEM):
        names += [(name, quote_name([context.name, *levels, name])) for name in PARAMETERS]
    elif not context.catalog.namespace_exists(levels):
        raise NoSuchNamespaceError(f"there is no namespace {shown(levels)} in {context.name}")
    if scope != "USER":
        found = context.spark.sql("SHOW SYSTEM FUNCTIONS IN spark_catalog.default").collect()
        names += [(row[0], row[0]) for row in found]
    rows = sorted({said for name, said in names if matches(name, pattern)})
    return table_of(context.spark, ("function",), [(each,) for each in rows])


def _namespace(context: SqlContext, reader: WordReader) -> Identifier:
    if reader.takes("FROM") or reader.takes("IN"):
        return _levels(context, reader.names("a namespace"))
    return context.current.levels


def _levels(context: SqlContext, parts: Identifier) -> Identifier:
    """The levels of a namespace, which may be `system`."""
    if context.is_of_spark(parts):
        raise SparksNameError(shown(parts))
    return () if parts == (context.name,) else context.without_catalog(parts)
