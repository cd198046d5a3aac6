"""CALL: the table of procedures, and how one is found and run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from frazil.catalog.protocol import Catalog
from frazil.errors import ProcedureError
from frazil.spark.procedures.of_changes import OF_CHANGES
from frazil.spark.procedures.of_files import OF_FILES
from frazil.spark.procedures.of_frazil import OF_FRAZIL
from frazil.spark.procedures.of_maintenance import OF_MAINTENANCE
from frazil.spark.procedures.of_migration import OF_MIGRATION
from frazil.spark.procedures.of_snapshots import OF_SNAPSHOTS
from frazil.spark.procedures.parameters import Arguments, arguments_of
from frazil.spark.procedures.procedure import Caller, Procedure
from frazil.spark.procedures.statement import CallStatement, parse_call

PROCEDURES: Final[Mapping[str, Procedure]] = {
    each.signature.name: each
    for each in (
        *OF_SNAPSHOTS,
        *OF_FILES,
        *OF_MAINTENANCE,
        *OF_MIGRATION,
        *OF_CHANGES,
        *OF_FRAZIL,
    )
}
"""Every procedure by its name; a new one is an entry of such a tuple."""


def call(
    spark: SparkSession,
    catalog: Catalog,
    text: str,
    on_progress: Callable[[Any], None] | None = None,
    *,
    name: str | None = None,
) -> DataFrame:
    """Run the procedure that a CALL names, and return its result.

    Args:
        on_progress: called with what the procedure is at, if it tells.
        name: what can stand before ``system`` and before tables; the catalog's unless given.

    Raises:
        ProcedureError: the text is no CALL, or names no procedure or wrong arguments.
    """
    statement = parse_call(text)
    found = procedure_of(statement, name or catalog.name)
    caller = Caller(spark, catalog, on_progress, name)
    return found.call(caller, _arguments(spark, found, statement))


def would_delete(spark: SparkSession, catalog: Catalog, text: str) -> object:
    """Return what the procedure that a CALL names would delete, and change nothing.

    Returns:
        a result that can be printed; None for a procedure that deletes no files.

    Raises:
        ProcedureError: the text is no CALL, or names no procedure or wrong arguments.
    """
    statement = parse_call(text)
    found = procedure_of(statement, catalog.name)
    arguments = _arguments(spark, found, statement)
    return None if found.look is None else found.look(Caller(spark, catalog), arguments)


def _arguments(spark: SparkSession, found: Procedure, statement: CallStatement) -> Arguments:
    return arguments_of(found.signature, statement, lambda expression: _evaluate(spark, expression))


def procedure_of(statement: CallStatement, name: str) -> Procedure:
    """Return the procedure that a statement names.

    Args:
        name: the catalog's.

    Raises:
        ProcedureError: it names another catalog, or there is no such procedure.
    """
    if statement.catalog not in (None, name):
        raise ProcedureError(
            f"the CALL is for the catalog {statement.catalog!r}, and this is {name!r}: "
            f"write system.{statement.procedure}(…)"
        )
    found = PROCEDURES.get(statement.procedure)
    if found is None:
        near = get_close_matches(statement.procedure, PROCEDURES, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ProcedureError(
            f"there is no procedure {statement.procedure!r}{hint}; there are "
            f"{', '.join(sorted(PROCEDURES))}"
        )
    return found


def _evaluate(spark: SparkSession, expression: str) -> Any:
    """The value of an expression of constants, by Spark."""
    try:
        tree = parse_one(expression, dialect="spark")
        if tree.find(exp.Query, exp.Column) is not None:
            raise ProcedureError(
                f"{expression} is no constant: an argument is a literal, or made of literals and "
                "functions; text stands in quotes"
            )
        [row] = spark.sql(f"SELECT {expression}").collect()
    except (PySparkException, SqlglotError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[0] if lines else type(error).__name__
        raise ProcedureError(f"{expression} cannot be evaluated: {reason}") from error
    return row[0]
