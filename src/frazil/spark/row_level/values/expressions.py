"""What may stand in a command: expressions of one row, told by Spark's own analysis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.errors import PredicateError, ValidationError
from frazil.spark.session.messages import without_plan

_NOT_DETERMINISTIC: Final = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
SUBQUERY_REFUSED: Final = "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY"


def condition_column(condition: str | Column, what: str) -> Column:
    """Return a condition as a column.

    Raises:
        PredicateError: it is neither text nor a Column.
    """
    if isinstance(condition, Column):
        return condition
    if isinstance(condition, str) and condition.strip():
        return F.expr(condition)
    raise PredicateError(f"{what} is SQL text or a Column, not {condition!r}")


def check_condition(scope: DataFrame, condition: Column, text: str, what: str) -> None:
    """Check that Spark can tell whether a condition holds for a row, the same at each look.

    Aggregates, window functions and random values are refused as Spark refuses them in a join.

    Raises:
        PredicateError: it cannot.
    """
    try:
        _as_join(scope, condition)
    except AnalysisException as error:
        raise PredicateError(f"{what} {text!r} cannot be used: {without_plan(error)}") from error


def check_not_random(scope: DataFrame, condition: Column, text: str) -> None:
    """Check that a condition which Spark can evaluate tells the same of a row at each look.

    Unlike `check_condition` it takes sub-queries that Spark refuses in joins.

    Raises:
        PredicateError: it is random.
    """
    try:
        _as_join(scope, condition)
    except AnalysisException as error:
        if error.getCondition() == _NOT_DETERMINISTIC:
            raise PredicateError(
                f"the condition {text!r} is random, so that it means other rows at each look: "
                "write its values to a column first"
            ) from error


def check_values(scope: DataFrame, values: Sequence[Column], texts: Sequence[str]) -> None:
    """Check that values are computed from one row; they may be random.

    Raises:
        ValidationError: a value is not, or names a column that is not there.
    """
    try:
        _as_join(scope, reduce(and_, (value.isNull() for value in values)))
    except AnalysisException:
        for value, text in zip(values, texts, strict=True):
            _check_value(scope, value, text)


def _check_value(scope: DataFrame, value: Column, text: str) -> None:
    try:
        _as_join(scope, value.isNull())
    except AnalysisException as error:
        condition = error.getCondition() or ""
        if condition != _NOT_DETERMINISTIC and not condition.startswith(SUBQUERY_REFUSED):
            raise ValidationError(
                f"the value {text!r} cannot be used: {without_plan(error)}"
            ) from error


def _as_join(scope: DataFrame, condition: Column) -> None:
    # It has no column, which Spark would propose in place of a wrong one.
    one = scope.sparkSession.range(1).drop("id")
    scope.join(one, condition).schema  # noqa: B018 - asking for it is the analysis
