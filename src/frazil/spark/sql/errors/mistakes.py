"""Mistakes in a statement that Spark has a class and a condition for: an error of them is both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark.errors import AnalysisException, ParseException, PySparkException

from frazil.errors import (
    CommitError,
    FrazilError,
    NoSuchColumnError,
    NoSuchTableError,
    ProcedureError,
    SqlSyntaxError,
    ValidationError,
)
from frazil.spark.gateway_errors import Py4JError
from frazil.spark.plans.machine import analysed_plan
from frazil.spark.plans.relations import written_names
from frazil.spark.plans.sparks_errors import SYNTAX_ERROR, UNRESOLVED_COLUMN, sparks_too
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.binding.bind import bind_query
from frazil.spark.sql.binding.bound_plan import BoundPlan
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.errors.failures import place_told
from frazil.spark.sql.functions.calls import may_call
from frazil.spark.sql.parameters import Args
from frazil.spark.sql.parsers.spark_parser import parsed_plan
from frazil.spark.sql.statements.target import no_rows, target_of
from frazil.spark.words import words_of

_MISTAKES: Final = (
    "AMBIGUOUS_REFERENCE",
    "DATATYPE_MISMATCH",
    "FIELD_NOT_FOUND",
    "INVALID_EXTRACT",
    "INVALID_WHERE_CONDITION",
    "TABLE_OR_VIEW_NOT_FOUND",
    "UNBOUND_SQL_PARAMETER",
    "UNRESOLVED_COLUMN",
    "UNRESOLVED_FIELD",
    "UNRESOLVED_ROUTINE",
    "WRONG_NUM_ARGS",
)
"""Conditions of Spark's that tell of the user's own words, as they begin."""

_ALTERS: Final = "ALTER"
"""How statements begin whose words are Iceberg's: Spark's parser refuses those that are right."""

_ALIAS: Final = "SubqueryAlias"
_CHANGES: Final = frozenset({"DeleteFromTable", "UpdateTable", "MergeIntoTable"})
"""What Spark analyses as a statement of its own: it says of each name whether it is there."""

_OWN_WORDS: Final = frozenset({"DEFAULT", "EVOLUTION"})
"""Where these stand Frazil finds more than Spark does over relations of ours."""


@contextmanager
def mistakes_as_sparks(context: SqlContext, text: str, args: Args) -> Iterator[None]:
    """Raise errors about the user's words as errors of Spark too.

    Spark is asked once a statement has failed, so that one which is right is not read twice.

    Args:
        text: the statement.
        args: values of its parameters.

    Raises:
        FrazilError: what was raised; a ParseException or an AnalysisException too, where Spark has
            a condition for it.
    """
    try:
        yield
    except (ValidationError, NoSuchTableError) as error:
        if isinstance(error, PySparkException | CommitError):
            raise
        if isinstance(error, NoSuchColumnError):
            raise sparks_too(error, AnalysisException, UNRESOLVED_COLUMN, {}) from error
        found = _mistake(context, text, args, error)
        if isinstance(found, ParseException):
            raise _both(error, ParseException, found) from error
        if found is not None and not isinstance(error, NoSuchTableError):
            raise _both(error, AnalysisException, found, place_told(found, text)) from error
        if isinstance(error, SqlSyntaxError) or _is_misread_call(error):
            said = {"error": str(error), "hint": ""}
            raise sparks_too(error, ParseException, SYNTAX_ERROR, said) from error
        raise


def _is_misread_call(error: FrazilError) -> bool:
    return isinstance(error, ProcedureError) and isinstance(error.__cause__, SqlSyntaxError)


def _both(
    error: FrazilError, kind: type[PySparkException], found: PySparkException, place: str = ""
) -> FrazilError:
    condition = str(found.getCondition())
    said = str(error).replace(f"[{condition}] ", "")
    return sparks_too(
        type(error)(f"{said}{place}"), kind, condition, found.getMessageParameters() or {}
    )


def _mistake(
    context: SqlContext, text: str, args: Args, error: FrazilError
) -> AnalysisException | None:
    """What Spark says of the user's words; None where it finds them right, or cannot be asked."""
    cause = error.__cause__
    told = cause if isinstance(cause, AnalysisException) and _is_mistake(cause) else None
    if is_connect(context.spark) or context.frames:
        return told
    try:
        parsed_plan(context.spark, text, args)
        found = mistaken_plan(context, text, args)
    except ParseException as refused:
        # What Spark's parser does not know may be right: words of Iceberg's, and values of ours.
        is_syntax = isinstance(error, SqlSyntaxError) or refused.getCondition() == SYNTAX_ERROR
        is_known = not args and text.lstrip()[: len(_ALTERS)].upper() != _ALTERS
        return refused if is_syntax and is_known else told
    except (FrazilError, PySparkException, Py4JError):
        return told
    return told if found is None else found[1]


def mistaken_plan(
    context: SqlContext, text: str, args: Args = None
) -> tuple[Any, AnalysisException] | None:
    """Return the plan of a change over tables without rows that Spark refuses, and what it says.

    Args:
        args: values of its parameters.

    Returns:
        None where Spark finds all names, where it says something else, and of other statements.

    Raises:
        ParseException: of Spark.
        FrazilError: a name in it is nothing.
    """
    words = words_of(text)
    if may_call(words) or not _OWN_WORDS.isdisjoint(word.keyword for word in words):
        return None
    bound = bind_query(context, text, args)
    if not isinstance(bound, BoundPlan) or _kind(bound.plan) not in _CHANGES:
        return None
    plan = _over_no_rows(context, bound)
    spark: Any = context.spark
    mode = bound.machine.sql.execution.CommandExecutionMode.SKIP()
    try:
        spark._jsparkSession.sessionState().executePlan(plan, mode).assertAnalyzed()
    except AnalysisException as error:
        return (plan, error) if _is_mistake(error) else None
    return None


def _over_no_rows(context: SqlContext, bound: BoundPlan) -> Any:
    """The plan of a change over relations without rows, also in place of what it changes."""
    plan = bound.with_rows(bound.no_rows())
    changed = plan.children().apply(0)
    if _kind(changed) == _ALIAS:
        changed = changed.child()
    [parts] = written_names(str(changed.toString()))
    target = target_of(context, parts)
    named = bound.machine.named_plan(analysed_plan(no_rows(context, target)), target.whole_name)
    return plan.transformDown(bound.machine.mapping([(changed, named)]))


def _kind(plan: Any) -> str:
    return str(plan.getClass().getSimpleName())


def is_unknown_column(error: AnalysisException) -> bool:
    """Return whether Spark says that there is no such column."""
    return (error.getCondition() or "").startswith("UNRESOLVED_COLUMN")


def _is_mistake(error: AnalysisException) -> bool:
    return (error.getCondition() or "").startswith(_MISTAKES)
