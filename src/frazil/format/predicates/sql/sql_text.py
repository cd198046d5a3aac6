"""Predicates as SQL text: for people, and for Spark's ``F.expr``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from frazil.errors import PredicateError
from frazil.format.predicates.expressions import BoundRef, Expression, Leaf, render
from frazil.format.predicates.float_order import in_spark_order
from frazil.format.predicates.sql.quoting import SparkForms, quote_name_always, spark_text
from frazil.format.types import StringType, UUIDType

DEFAULT_FORMS = SparkForms()


def to_sql(expression: Expression) -> str:
    """The predicate, bound or not, as readable SQL that `parse_predicate` reads back."""
    return expression.to_sql()


def to_spark_sql(
    bound: Expression, *, forms: SparkForms = DEFAULT_FORMS, without_nan: Collection[int] = ()
) -> str:
    """A bound predicate as text for Spark's ``F.expr`` over a DataFrame of the table's columns.

    Every part of a name is quoted, every literal has the Spark type of its column (``5L``,
    ``1.20BD``, ``TIMESTAMP_NTZ '...'``, ``X'00FF'``); moments carry their offset, so the session's
    time zone does not matter. What Spark pushes of it into Parquet's readers leaves out no row: see
    `frazil.format.predicates.float_order`. Strings are escaped for Spark's default
    string literals, that is with ``spark.sql.parser.escapedStringLiterals`` off.
    `without_nan`: ids of float columns that are known to hold no NaN.
    """

    def literal_text(node: Leaf, value: Any) -> str:
        ref = node.ref
        if not isinstance(ref, BoundRef):
            raise PredicateError(f"{node!r} is not bound to a schema: call bind() first")
        if isinstance(ref.type, UUIDType) and forms.uuid == "string":
            return spark_text(StringType(), str(value), forms)
        return spark_text(ref.type, value, forms)

    ordered = in_spark_order(bound, without_nan=without_nan)
    return render(ordered, literal_text, quote_name_always)
