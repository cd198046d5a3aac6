"""Hidden partition transforms as Spark expressions (SPEC rules 75-89).

Every expression equals `frazil.format.partitions.transforms` on every value of its column. Columns
are in the form of `frazil.spark.types`: timestamps without a zone are timestamp_ntz, uuids strings,
nanoseconds bigints. No expression depends on the session's time zone.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import UnsupportedError
from frazil.format import types as I
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.partitions.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from frazil.format.predicates.sql.quoting import decimal_text
from frazil.format.schema import Schema
from frazil.format.types.forms import form_of
from frazil.format.values.decimals import decimal_from_unscaled, largest_of, negate
from frazil.format.values.hashing import bucket_hash
from frazil.spark.files.row_checks import stop_with_value
from frazil.spark.session.free_names import free_names
from frazil.spark.session.tasks import value_function
from frazil.spark.write.columns.bucket_hash import bucket, bytes_hash, long_hash

KEY_PREFIX: Final = "frazil_p"
"""What the columns are called that Spark lays out the files by, ``frazil_p0``, …, unless a column
of the table is called so. Names of hidden folders begin with an underscore or a dot."""

_MICROS_OF_DAY: Final = 86_400_000_000
_MICROS_OF_HOUR: Final = 3_600_000_000
_LONGEST_KEY: Final = 48
_LONG_DIGITS: Final = 18
_MOST_DIGITS: Final = 38


def column_of(schema: Schema, field_id: int) -> Column:
    """The column of a field, which may lie inside structs.

    Raises:
        ValidationError: the schema has no such field.
    """
    first, *rest = schema.name_path(field_id)
    column = F.col(f"`{first.replace('`', '``')}`")
    for name in rest:
        column = column.getField(name)
    return column


def transform_column(
    transform: Transform, source_type: I.IcebergType, value: Column, *, name: str = ""
) -> Column:
    """A transform of a column; null gives null (rule 83).

    Args:
        name: of the column, for errors.

    The result of truncate on a decimal may have one digit more than the column's type.

    Raises:
        ValidationError: the transform does not take the type.
        UnsupportedError: an unknown transform, with which no file may be written (rule 7).
    """
    transform.check(source_type)
    match transform:
        case IdentityTransform():
            return value
        case VoidTransform():
            return F.lit(None).cast("int")
        case BucketTransform(buckets=buckets):
            hashed = bucket(_hash(source_type, value), buckets)
            return F.when(value.isNotNull(), hashed)
        case TruncateTransform(width=width):
            return _truncate(source_type, value, width)
        case YearTransform():
            return (F.year(_date(source_type, value)) - 1970).cast("int")
        case MonthTransform():
            date = _date(source_type, value)
            return ((F.year(date) - 1970) * 12 + F.month(date) - 1).cast("int")
        case DayTransform():
            return _date(source_type, value)
        case HourTransform():
            return _hour_number(_hours(source_type, value), value, name)
        case _:
            raise UnsupportedError(f"files cannot be written with the transform {transform}")


def partition_keys(schema: Schema, spec: PartitionSpec) -> dict[str, Column]:
    """One derived column for each partition field that can differ between rows.

    Two rows have equal keys if and only if they belong to one partition, also where a key has
    passed through a folder name: there Spark takes an empty string for null.

    Raises:
        UnsupportedError: the spec has an unknown transform (rule 7).
    """
    keys: dict[str, Column] = {}
    for position, key in key_names(schema, spec).items():
        field = spec.fields[position]
        source_type = schema.find_type(field.source_id)
        column, name = column_of(schema, field.source_id), schema.find_column_name(field.source_id)
        value = transform_column(field.transform, source_type, column, name=str(name))
        keys[key] = _folder_key(field.transform.result_type(source_type), value)
    return keys


def key_names(schema: Schema, spec: PartitionSpec) -> dict[int, str]:
    """The names of `partition_keys` by the places of their fields in the spec."""
    places = [
        place
        for place, field in enumerate(spec.fields)
        if not field.is_void and not isinstance(schema.find_type(field.source_id), I.UnknownType)
    ]
    columns = [field.name for field in schema.fields]
    names = free_names([f"{KEY_PREFIX}{place}" for place in places], columns)
    return dict(zip(places, names, strict=True))


def identity_columns(schema: Schema, spec: PartitionSpec) -> list[Column]:
    """The columns that a spec partitions by, where each is a top-level one as it is; else none."""
    fields = [
        field
        for field in spec.fields
        if not field.is_void
        and not isinstance(schema.find_field(field.source_id).field_type, I.UnknownType)
    ]
    if not all(
        isinstance(field.transform, IdentityTransform)
        and len(schema.name_path(field.source_id)) == 1
        for field in fields
    ):
        return []
    return [column_of(schema, field.source_id) for field in fields]


def _hash(source_type: I.IcebergType, value: Column) -> Column:
    match source_type:
        case I.DecimalType(precision=precision) if precision > _LONG_DIGITS:
            # No bigint holds them.
            return value_function(bucket_hash, source_type, S.IntegerType())(value)
        case I.DecimalType():
            return bytes_hash(_minimal_bytes(_unscaled_value(source_type, value)))
    form = form_of(source_type)
    match form.meaning:
        case "integer":
            return long_hash(value.cast("bigint"))
        case "date":
            return long_hash(F.unix_date(value).cast("bigint"))
        case "time" | "timestamp":
            return long_hash(_floor_div(value, 1000) if form.unit == 1 else value)
        case "uuid":
            return long_hash(F.unhex(F.replace(value, F.lit("-"), F.lit(""))))
        case _:
            return bytes_hash(value)


def _unscaled_value(source_type: I.DecimalType, value: Column) -> Column:
    """A decimal of at most 18 digits without its point, as a bigint."""
    factor = F.lit(str(10**source_type.scale)).cast(S.DecimalType(source_type.scale + 1, 0))
    return (value * factor).cast("bigint")


def _minimal_bytes(value: Column) -> Column:
    """The shortest two's complement, big-endian, of a bigint (rule 266)."""
    eight = F.unhex(F.lpad(F.hex(value), 16, "0"))
    length = F.lit(8)
    for count in range(7, 0, -1):
        limit = 1 << (8 * count - 1)
        length = F.when((value >= -limit) & (value < limit), F.lit(count)).otherwise(length)
    return F.substring(eight, F.lit(9) - length, length)


def _truncate(source_type: I.IcebergType, value: Column, width: int) -> Column:
    match source_type:
        case I.IntegerType():
            return _truncated_number(value, width, "int", -(1 << 31))
        case I.LongType():
            return _truncated_number(value, width, "bigint", -(1 << 63))
        case I.DecimalType(precision=precision, scale=scale):
            if precision == _MOST_DIGITS:
                # Spark would round their difference to fewer places.
                kind = S.DecimalType(precision, scale)
                truncate = partial(_truncated_decimal, width)
                truncated = value_function(truncate, source_type, kind)(value)
                is_lost = value.isNotNull() & truncated.isNull()
            else:
                step = F.expr(decimal_text(decimal_from_unscaled(width, scale)))
                truncated = value - F.pmod(value, step)
                is_lost = truncated < F.expr(decimal_text(negate(largest_of(precision, scale))))
            stop = _stop_below_smallest(value, source_type, width)
            return F.when(is_lost, stop).otherwise(truncated)
        case _:
            return F.substring(value, 1, width)


def _truncated_decimal(width: int, source_type: I.IcebergType, value: Decimal) -> Decimal | None:
    """A truncated decimal; None where it has more digits than its type."""
    assert isinstance(source_type, I.DecimalType)
    truncated = TruncateTransform(width).apply(source_type, value)
    smallest = negate(largest_of(source_type.precision, source_type.scale))
    return truncated if truncated is not None and truncated >= smallest else None


def _truncated_number(value: Column, width: int, spark_type: str, smallest: int) -> Column:
    rest = F.pmod(value, F.lit(width).cast(spark_type))
    # Only there can the difference underflow, which Spark would raise as an error of its own.
    is_near = value < F.lit(smallest + width).cast(spark_type)
    underflows = is_near & (F.when(is_near, value - F.lit(smallest).cast(spark_type)) < rest)
    return F.when(underflows, _stop_below_smallest(value, spark_type, width)).otherwise(
        value - rest
    )


def _stop_below_smallest(value: Column, source_type: I.IcebergType | str, width: int) -> Column:
    return stop_with_value(
        F.concat(
            F.lit("the value "),
            value.cast("string"),
            F.lit(
                f" has no partition under truncate[{width}]: its multiple of {width} lies below "
                f"the smallest {source_type}"
            ),
        )
    )


def _date(source_type: I.IcebergType, value: Column) -> Column:
    match form_of(source_type).spark:
        case "date":
            return value
        case "timestamp_ntz":
            return value.cast("date")
        case _:
            days = _floor_div(_micros(source_type, value), _MICROS_OF_DAY)
            return F.date_from_unix_date(days.cast("int"))


def _hours(source_type: I.IcebergType, value: Column) -> Column:
    if form_of(source_type).spark == "timestamp_ntz":
        return F.unix_date(value.cast("date")).cast("bigint") * 24 + F.hour(value)
    return _floor_div(_micros(source_type, value), _MICROS_OF_HOUR)


def _hour_number(number: Column, value: Column, name: str) -> Column:
    """A number of hours as an int, which ends within the years that timestamps have."""
    of_column = f" of the column {name}" if name else ""
    beyond = stop_with_value(
        F.concat(
            F.lit("the value "),
            value.cast("string"),
            F.lit(f"{of_column} has no partition under hour: its number lies beyond 32 bits"),
        )
    )
    is_beyond = (number < -(1 << 31)) | (number >= 1 << 31)
    return F.when(is_beyond, beyond.cast("int")).otherwise(number.cast("int"))


def _micros(source_type: I.IcebergType, value: Column) -> Column:
    if form_of(source_type).spark == "timestamp":
        return F.unix_micros(value)
    return _floor_div(value, 1000)


def _floor_div(value: Column, divisor: int) -> Column:
    """Division that rounds towards minus infinity; no step of it can overflow."""
    by = F.lit(divisor).cast("bigint")
    down = F.when(value % by < 0, F.lit(1)).otherwise(F.lit(0))
    return F.call_function("div", value, by) - down


def _folder_key(result_type: I.IcebergType, value: Column) -> Column:
    form = form_of(result_type)
    match form.meaning:
        case "integer":
            return value
        case "timestamp" if form.unit == 1:
            return value
        case "boolean":
            return value.cast("int")
        case "date":
            return F.unix_date(value)
        case "timestamp" if form.zoned:
            return F.unix_micros(value)
        case "string":
            # The one letter that no path holds, and that Spark does not escape.
            has_nul = F.contains(value, F.lit("\x00"))
            return _short_key(
                F.concat(F.lit("s"), value), F.octet_length(value), value, unfit=has_nul
            )
        case "uuid":
            return F.lower(value)
        case "binary" | "fixed":
            return _short_key(F.concat(F.lit("b"), F.hex(value)), F.octet_length(value), value)
        case _:
            return value.cast("string")


def _short_key(
    key: Column, length: Column, value: Column, *, unfit: Column | None = None
) -> Column:
    # A folder's name has at most 255 bytes, and each byte may be escaped as three.
    digest = F.concat(F.lit("h"), F.sha2(value.cast("binary"), 256))
    is_long = length > _LONGEST_KEY
    return F.when(is_long if unfit is None else is_long | unfit, digest).otherwise(key)
