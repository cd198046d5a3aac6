"""The rows of a view's query in the columns that the view's version has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.catalog.identifiers import shown
from frazil.catalog.views import LoadedView
from frazil.errors import SchemaMismatchError
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.session.facts import type_support
from frazil.spark.types import COMMENT_KEY, type_to_spark

QUERY_COLUMN_NAMES: Final = "spark.query-column-names"
"""The property that has the names of the query's own columns, as Java's runtime writes it."""

ENGINE_VERSIONS: Final = ("create_engine_version", "engine_version")
"""Properties that say which Spark made the view, and which changed it last."""

_WIDER: Final = (
    S.ByteType,
    S.ShortType,
    S.IntegerType,
    S.LongType,
    S.FloatType,
    S.DoubleType,
)
_DIGITS: Final[Mapping[type[S.DataType], int]] = {
    S.ByteType: 3,
    S.ShortType: 5,
    S.IntegerType: 10,
    S.LongType: 20,
}
_MOMENTS: Final = (S.DateType, S.TimestampType, S.TimestampNTZType)


@contextmanager
def fitting_the_view(view: LoadedView) -> Iterator[None]:
    """Raise SchemaMismatchError where Spark does not find a column that a view's query names."""
    try:
        yield
    except AnalysisException as error:
        if not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
            raise
        name = (error.getMessageParameters() or {}).get("objectName", "that it names")
        raise _changed_view_error(view, f"its query has no column {name} any more") from None


def as_the_view_says(spark: SparkSession, view: LoadedView, rows: DataFrame) -> DataFrame:
    """Return the rows of a view's query with the view's names, types and comments.

    Raises:
        SchemaMismatchError: the query gives fewer or other columns than when the view was made, or
            one whose values do not all fit.
    """
    fields = view.metadata.schema.fields
    places = _places(view, rows.schema.names)
    given, own = rows.schema.fields, rows.schema.names
    if len({name.lower() for name in own}) < len(own):
        # Columns of one name can be told apart by their places alone.
        own = [f"column_{place}" for place in range(len(own))]
        rows = rows.toDF(*own)
    columns = []
    for field, place in zip(fields, places, strict=True):
        wanted = type_to_spark(field.field_type, support=type_support(spark))
        found = given[place].dataType
        if not can_up_cast(found, wanted):
            raise _changed_view_error(
                view,
                f"the column {field.name} is {wanted.simpleString()}, and its query gives "
                f"{found.simpleString()} now",
            )
        column = F.col(quote_name_always([own[place]]))
        metadata = {COMMENT_KEY: field.doc} if field.doc else {}
        cast = column if found == wanted else column.cast(wanted)
        columns.append(cast.alias(field.name, metadata=metadata))
    return rows.select(*columns)


def _places(view: LoadedView, given: Sequence[str]) -> list[int]:
    """Which of the query's columns each of the view's is: by the name it had, else by its place."""
    count = len(view.metadata.schema.fields)
    known = view.metadata.properties.get(QUERY_COLUMN_NAMES, "").split(",")
    if len(known) != count or "" in known:
        # Nothing tells what has gone or come between.
        if len(given) != count:
            raise _changed_view_error(
                view, f"it has {count} columns, and its query gives {len(given)} now"
            )
        return list(range(count))
    lowered = [name.lower() for name in given]
    places = []
    for at, name in enumerate(known):
        if at < len(lowered) and lowered[at] == name.lower():
            places.append(at)
        elif lowered.count(name.lower()) == 1:
            places.append(lowered.index(name.lower()))
        else:
            raise _changed_view_error(
                view, f"its query has no column {name} any more, but {list(given)}"
            )
    return places


def can_up_cast(found: S.DataType, wanted: S.DataType) -> bool:
    """Return whether every value of a type is one of the other, by Spark's rule of up-casts."""
    if found == wanted or isinstance(found, S.NullType):
        return True
    match found, wanted:
        case S.ArrayType(), S.ArrayType():
            return can_up_cast(found.elementType, wanted.elementType)
        case S.MapType(), S.MapType():
            return can_up_cast(found.keyType, wanted.keyType) and can_up_cast(
                found.valueType, wanted.valueType
            )
        case S.StructType(), S.StructType():
            return len(found.fields) == len(wanted.fields) and all(
                one.name.lower() == other.name.lower() and can_up_cast(one.dataType, other.dataType)
                for one, other in zip(found.fields, wanted.fields, strict=True)
            )
        case S.DecimalType(), S.DecimalType():
            whole = wanted.precision - wanted.scale >= found.precision - found.scale
            return whole and wanted.scale >= found.scale
        case _, S.DecimalType():
            digits = _DIGITS.get(type(found))
            return digits is not None and wanted.precision - wanted.scale >= digits
        case _, S.StringType():
            return isinstance(found, S.AtomicType)
    if type(found) in _WIDER and type(wanted) in _WIDER:
        return _WIDER.index(type(found)) <= _WIDER.index(type(wanted))
    return type(found) in _MOMENTS and type(wanted) in _MOMENTS[1:]


def _changed_view_error(view: LoadedView, said: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"the view {shown(view.identifier)} does not fit what it reads any more: {said}; make it "
        "again with CREATE OR REPLACE VIEW"
    )
