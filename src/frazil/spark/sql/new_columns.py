"""The columns of a query's result: new ones, which say nothing of the scans below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.spark.files.parquet.native import SCAN_METADATA
from frazil.spark.gateway_errors import Py4JError
from frazil.spark.plans.machine import elements
from frazil.spark.session.by_session import BySession
from frazil.spark.types import with_fields_made

OTHER_SPARK: Final = (Py4JError, TypeError)
"""What is raised where this Spark has not what is asked for: a method, or a class."""


@dataclass(frozen=True, slots=True)
class _Makers:
    """What makes plans in a session; each is an object of the virtual machine.

    Attributes:
        scan_metadata: names of what scans need in a column's metadata.
        none: no metadata of a column's own.
    """

    alias: Any
    new_id: Any
    project: Any
    dataset: Any
    to_sequence: Any
    scan_metadata: Any
    none: Any


_MAKERS: Final = BySession[_Makers]()


def with_new_columns(rows: DataFrame) -> DataFrame:
    """Return the rows of a classic session in columns of their own, without what scans need.

    A join can tell two results of one query apart then, and what is made of the rows has no field
    ids of a table. Columns keep the names of the tables that they are found by.
    """
    frame: Any = rows
    try:
        named = _named_anew(rows)
        # Metadata of parts of columns is not looked for where there are none.
        is_flat = str(frame._jdf.schema().catalogString()).count("<") < 2
    except OTHER_SPARK:
        named, is_flat = rows.toDF(*rows.columns), False
    if is_flat:
        return named
    fields = named.schema.fields
    if not any(map(_tells_of_scans, fields)):
        return named
    # By their places, since names may be there twice.
    places = [f"column_{place}" for place in range(len(fields))]
    return named.toDF(*places).select(
        *(
            F.col(place)
            .cast(_plain_type(field.dataType))
            .alias(field.name, metadata=_plain_metadata(field))
            for place, field in zip(places, fields, strict=True)
        )
    )


def _named_anew(rows: DataFrame) -> DataFrame:
    spark, given = rows.sparkSession, cast(Any, rows)
    makers = _MAKERS.get_or_make(spark, _make_makers)
    plan = given._jdf.queryExecution().analyzed()
    columns = [
        makers.alias(
            each,
            each.name(),
            makers.new_id(),
            each.qualifier(),
            makers.none,
            makers.scan_metadata,
        )
        for each in elements(plan.output())
    ]
    project = makers.project(makers.to_sequence(columns), plan)
    return DataFrame(makers.dataset.ofRows(given._jdf.sparkSession(), project), spark)


def _make_makers(spark: SparkSession) -> _Makers:
    session: Any = spark
    jvm = session._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    to_sequence = jvm.PythonUtils.toSeq
    return _Makers(
        alias=catalyst.expressions.Alias,
        new_id=catalyst.expressions.NamedExpression.newExprId,
        project=catalyst.plans.logical.Project,
        dataset=jvm.org.apache.spark.sql.classic.Dataset,
        to_sequence=to_sequence,
        scan_metadata=to_sequence(list(SCAN_METADATA)),
        none=jvm.scala.Option.empty(),
    )


def _tells_of_scans(field: S.StructField) -> bool:
    return not SCAN_METADATA.isdisjoint(field.metadata or {}) or _holds_such(field.dataType)


def _holds_such(kind: S.DataType) -> bool:
    match kind:
        case S.StructType(fields=fields):
            return any(map(_tells_of_scans, fields))
        case S.ArrayType(elementType=element):
            return _holds_such(element)
        case S.MapType(keyType=key, valueType=value):
            return _holds_such(key) or _holds_such(value)
    return False


def _plain_type(kind: S.DataType) -> S.DataType:
    return with_fields_made(
        kind,
        lambda f, inner: S.StructField(f.name, inner, f.nullable, _plain_metadata(f)),
    )


def _plain_metadata(field: S.StructField) -> dict[str, Any]:
    return {key: value for key, value in (field.metadata or {}).items() if key not in SCAN_METADATA}
