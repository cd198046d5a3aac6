"""Defaults of columns by text: one value each, as the column stores it."""

from __future__ import annotations

from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import PredicateError, SchemaMismatchError, UnsupportedError
from frazil.format.types import NestedField, TimestamptzType
from frazil.format.values import to_python
from frazil.spark.files.write_failures import refusing_values
from frazil.spark.row_level.values.expressions import check_condition
from frazil.spark.row_level.values.store_assignment import StoreAssignment
from frazil.spark.session.facts import is_case_sensitive, type_support
from frazil.spark.session.messages import without_plan
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.pruning.query_words import names_the_time
from frazil.spark.sql.results import empty_result
from frazil.spark.types import type_to_spark
from frazil.spark.words import words_of

_OF_TEXT: Final = (S.NumericType, S.BooleanType, S.DateType, S.TimestampType, S.TimestampNTZType)


def default_value(context: SqlContext, field: NestedField, text: str) -> Any:
    """Return the value of an expression as a column stores it, by Spark's store assignment.

    Returns:
        What `frazil.format.values.coerce` takes; None for NULL.

    Raises:
        UnsupportedError: it is another one at another time, or a sub-query.
        PredicateError: it is random, or names a column.
        SchemaMismatchError: the column cannot hold it.
    """
    words = words_of(text)
    if names_the_time(words):
        raise UnsupportedError(
            f"the default {text} of the column {field.name!r} is another one each day: table "
            "metadata holds a value; give the time in the statements that insert"
        )
    if any(word.keyword == "SELECT" for word in words):
        raise UnsupportedError(
            f"the default {text} of the column {field.name!r} is a sub-query: table metadata holds "
            "a value; write the value"
        )
    spark = context.spark
    value = F.expr(text)
    scope = empty_result(spark)
    what = f"the default of the column {field.name!r}"
    try:
        given = scope.select(value).schema.fields[0].dataType
    except AnalysisException as error:
        raise PredicateError(f"{what} {text!r} cannot be used: {without_plan(error)}") from error
    check_condition(scope, value.isNull(), text, what)
    support = type_support(spark)
    wanted = type_to_spark(field.field_type, support=support)
    if isinstance(given, S.StringType) and isinstance(wanted, _OF_TEXT):
        # Spark reads the text of a default, which it would not assign.
        value, given = value.try_cast(wanted), wanted
    assignment = StoreAssignment(support, case_sensitive=is_case_sensitive(spark))
    stored = assignment.value(value, given, field, field.name)
    assignment.finish()
    is_moment = isinstance(field.field_type, TimestamptzType)
    with refusing_values():
        # As a number, since Python's own has no place for the zone of the session.
        shown = F.unix_micros(stored) if is_moment else stored
        row = spark.range(1).select(shown, F.expr(text).isNull()).collect()[0]
    if row[0] is None and not row[1]:
        raise SchemaMismatchError(
            f"the default {text} is no value of the column {field.name!r}, which is "
            f"{wanted.simpleString()}; nothing was changed"
        )
    if isinstance(wanted, S.StructType):
        return None if row[0] is None else row[0].asDict(recursive=True)
    return to_python(field.field_type, row[0]) if is_moment else row[0]
