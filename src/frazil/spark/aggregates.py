"""Aggregates of a scan: what metadata states exactly, and the rest by Spark, in one DataFrame."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, cast

import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import ValidationError
from frazil.format import types as I
from frazil.format.partitions.transform_exprs import evolved_field_name, parse_partition_expr
from frazil.format.partitions.transforms import IdentityTransform
from frazil.format.schema import Schema
from frazil.planning.aggregates import Answered, Function, GroupKey, Measure
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.files.file_rows import arrow_values
from frazil.spark.types import SparkTypeSupport, type_to_spark
from frazil.spark.write.columns.partition_columns import column_of, transform_column

_CALL: Final = re.compile(
    r"\s*(?P<function>\w+)\s*\(\s*(?P<of>\*|.+?)\s*\)\s*(?:\bas\s+(?P<alias>\S.*?)\s*)?$",
    re.IGNORECASE | re.DOTALL,
)
_FUNCTIONS: Final = ("count", "min", "max")
_WITHOUT_ORDER: Final = (I.GeometryType, I.GeographyType, I.UnknownType)

Rows = Callable[[ScanPlan, frozenset[int]], DataFrame]


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: measures, a row a group of the keys."""

    measures: tuple[Measure, ...]
    keys: tuple[GroupKey, ...]

    @property
    def names(self) -> list[str]:
        """The result's columns."""
        return [*(key.name for key in self.keys), *(each.name for each in self.measures)]

    @property
    def field_ids(self) -> frozenset[int]:
        """The columns that are needed."""
        measured = {m.field.field_id for m in self.measures if m.field is not None}
        return frozenset(measured | {key.field.field_id for key in self.keys})


def parse_request(
    aggregates: Sequence[str], by: Sequence[str], schema: Schema, *, case_sensitive: bool
) -> Request:
    """The request that a user writes.

    Raises:
        ValidationError: a text is not an aggregate or not a column, a column is not there or
            has no order, or two results have one name.
    """
    if not aggregates:
        raise ValidationError("no aggregate is asked for: give count(*), min(x), max(x), …")
    request = Request(
        tuple(_measure(text, schema, case_sensitive) for text in aggregates),
        tuple(_key(text, schema, case_sensitive) for text in by),
    )
    names = request.names
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValidationError(
            f"several results are named {', '.join(repeated)}: give them names with `as`"
        )
    return request


class Aggregation:
    """The result of aggregates over a scan; Spark reads nothing until a method asks for it.

    Files whose values metadata states exactly are answered from it; only the others are read.
    """

    def __init__(
        self,
        spark: SparkSession,
        request: Request,
        plan: ScanPlan,
        answered: Answered,
        *,
        schema: Schema,
        support: SparkTypeSupport,
        rows: Rows,
    ) -> None:
        self._spark = spark
        self._request = request
        self._plan = plan
        self._answered = answered
        self._schema = schema
        self._support = support
        self._rows = rows

    @property
    def files_from_metadata(self) -> int:
        """The data files that metadata answers for."""
        return len(self._answered.answered)

    @property
    def files_to_scan(self) -> int:
        """The data files whose rows have to be read."""
        return len(self._answered.scanned)

    def explain(self) -> str:
        """Return a few lines for people: how much comes from metadata, and how much is read."""
        size = self._answered.rest_of(self._plan).size_in_bytes
        asked = ", ".join(measure.name for measure in self._request.measures)
        groups = ", ".join(key.name for key in self._request.keys)
        snapshot = self._plan.snapshot_id
        source = "an empty table" if snapshot is None else f"snapshot {snapshot}"
        lines = [
            f"Aggregation of {source}: {asked}{f' by {groups}' if groups else ''}",
            f"  from metadata  {self.files_from_metadata:,} of {self._plan.file_count:,} files",
            f"  to scan        {self.files_to_scan:,} files, {size:,} bytes",
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.explain()

    def to_df(self) -> DataFrame:
        """Return the keys and the measures: one row for each group, or one row without keys.

        Raises:
            UnsupportedError, MissingFileError, InvalidDataFileError: as `Scan.to_df`, of the files
                that have to be read.
        """
        partial = self._spark.createDataFrame(self._partial_result(), self._partial_schema())
        keys = self._request.keys
        if self.files_to_scan:
            part = self._answered.rest_of(self._plan)
            rows = self._rows(part, self._request.field_ids)
            scanned = _groups(rows, [self._key(key) for key in keys]).agg(
                *(self._computation(number, m) for number, m in enumerate(self._request.measures))
            )
            both = partial.unionAll(_with_names(scanned, [f"key{n}" for n in range(len(keys))]))
            partial = _groups(both, [F.col(f"key{n}") for n in range(len(keys))]).agg(
                *(_combination(number, m) for number, m in enumerate(self._request.measures))
            )
        return _with_names(partial, self._request.names)

    def to_arrow(self) -> pa.Table:
        """Return the same as an Arrow table in this process."""
        table: pa.Table = self.to_df().toArrow()
        return table

    # -- from metadata ----

    def _partial_result(self) -> pa.Table:
        frame = self._answered.partial
        kinds = {f"key{n}": key.result_type for n, key in enumerate(self._request.keys)}
        for number, measure in enumerate(self._request.measures):
            kinds[f"measure{number}"] = _result_type(measure)
        arrays = [self._shown_array(frame[name], kind) for name, kind in kinds.items()]
        return pa.table(arrays, names=list(kinds))

    def _shown_array(self, values: pl.Series, kind: I.IcebergType) -> pa.Array:
        if not isinstance(kind, I.PrimitiveType) or values.dtype == pl.Null():
            return pa.nulls(len(values))
        if isinstance(kind, I.DecimalType):
            # 128-bit integers are the unscaled values that Arrow's decimals hold.
            unscaled = values.cast(pl.Decimal(38, 0)).to_arrow()
            return unscaled.view(pa.decimal128(38, kind.scale)).cast(
                pa.decimal128(kind.precision, kind.scale)
            )
        return arrow_values(values, kind, self._support)

    def _partial_schema(self) -> S.StructType:
        request, support = self._request, self._support
        fields = [
            S.StructField(f"key{n}", type_to_spark(key.result_type, support=support))
            for n, key in enumerate(request.keys)
        ]
        for number, measure in enumerate(request.measures):
            kind = type_to_spark(_result_type(measure), support=support)
            counted = measure.function == "count"
            fields.append(S.StructField(f"measure{number}", kind, not counted))
        return S.StructType(fields)

    # -- from rows ----

    def _key(self, key: GroupKey) -> Column:
        column = column_of(self._schema, key.field.field_id)
        value = transform_column(key.transform, key.field.field_type, column)
        return value.cast(type_to_spark(key.result_type, support=self._support))

    def _computation(self, number: int, measure: Measure) -> Column:
        if measure.field is None:
            return F.count(F.lit(1)).alias(f"measure{number}")
        column = column_of(self._schema, measure.field.field_id)
        function = {"count": F.count, "min": F.min, "max": F.max}[measure.function]
        return function(column).alias(f"measure{number}")


def _combination(number: int, measure: Measure) -> Column:
    name = f"measure{number}"
    if measure.function == "count":
        return F.coalesce(F.sum(name), F.lit(0)).cast("bigint").alias(name)
    return (F.min(name) if measure.function == "min" else F.max(name)).alias(name)


def _groups(rows: DataFrame, keys: Sequence[Column]) -> GroupedData:
    return rows.groupBy(*(key.alias(f"key{n}") for n, key in enumerate(keys)))


def _with_names(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """The first columns under these names."""
    return df.toDF(*names, *df.columns[len(names) :])


def _result_type(measure: Measure) -> I.IcebergType:
    if measure.field is None or measure.function == "count":
        return I.LongType()
    return measure.field.field_type


def _measure(text: str, schema: Schema, case_sensitive: bool) -> Measure:
    found = _CALL.match(text)
    function = found["function"].lower() if found else ""
    if found is None or function not in _FUNCTIONS:
        raise ValidationError(
            f"{text!r} is not an aggregate: give count(*), count(x), min(x) or max(x), with "
            "`as name` for a name"
        )
    alias = found["alias"]
    name = alias.strip("`") if alias else None
    if found["of"] == "*":
        if function != "count":
            raise ValidationError(f"{text!r}: * can only be counted")
        return Measure("count", None, name or "count(*)")
    field, column = _column(found["of"], schema, case_sensitive)
    if function != "count" and (
        not isinstance(field.field_type, I.PrimitiveType)
        or isinstance(field.field_type, _WITHOUT_ORDER)
    ):
        raise ValidationError(
            f"{text!r}: a column of type {field.field_type} has no {function}imum"
        )
    return Measure(cast(Function, function), field, name or f"{function}({column})")


def _key(text: str, schema: Schema, case_sensitive: bool) -> GroupKey:
    parsed = parse_partition_expr(text)
    field, column = _column_named(parsed.column, schema, case_sensitive)
    parsed.transform.check(field.field_type)
    return GroupKey(
        parsed.transform, field, parsed.name or evolved_field_name(parsed.transform, column)
    )


def _column(text: str, schema: Schema, case_sensitive: bool) -> tuple[I.NestedField, str]:
    parsed = parse_partition_expr(text)
    if not isinstance(parsed.transform, IdentityTransform) or parsed.name is not None:
        raise ValidationError(f"{text!r} is not a column")
    return _column_named(parsed.column, schema, case_sensitive)


def _column_named(name: str, schema: Schema, case_sensitive: bool) -> tuple[I.NestedField, str]:
    field = schema.find_field(name, case_sensitive=case_sensitive)
    if schema.is_inside_collection(field.field_id):
        raise ValidationError(f"{name!r} lies inside a list or map: it has many values a row")
    return field, schema.find_column_name(field.field_id) or field.name
