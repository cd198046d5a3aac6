"""Values for columns of other types: Spark's ANSI store assignment, by name at every level.

Numbers go into numbers, dates and timestamps into each other, everything simple into a string. A
value that does not fit stops the command. Text goes into text only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import SchemaMismatchError
from frazil.format import types as I
from frazil.format.types.forms import FORMS, form_of
from frazil.spark.abilities import GeographyType, GeometryType, TimeType
from frazil.spark.files.row_checks import stop_with
from frazil.spark.types import WGS84_SRID, SparkTypeSupport, type_to_spark
from frazil.spark.write.columns.align import Converter, converter
from frazil.spark.write.columns.stored_values import default_literal

_INTEGERS: Final = (S.ByteType, S.ShortType, S.IntegerType, S.LongType)
_NUMBERS: Final = (*_INTEGERS, S.FloatType, S.DoubleType, S.DecimalType)
_MOMENTS: Final = (S.DateType, S.TimestampType, S.TimestampNTZType)
_CONVERTED: Final = (*(form.kind for form in FORMS if not form.in_spark), I.UnknownType)
"""Types that Spark has no own type for: the same goes into them as in other writes."""

_MICROS_OF_MINUTE: Final = 60_000_000


class StoreAssignment:
    """Casts values to columns, and collects what cannot be assigned.

    Args:
        support: the session's newer types.
        case_sensitive: how fields of structs are matched.
        keeps_fields: whether fields that a struct lacks stay as they are, or have their default;
            otherwise they are a problem.
    """

    def __init__(
        self, support: SparkTypeSupport, *, case_sensitive: bool, keeps_fields: bool = False
    ) -> None:
        self._support = support
        self._keeps_fields = keeps_fields
        self._key: Callable[[str], str] = str if case_sensitive else str.lower
        self._problems: list[str] = []

    def fits(self, source: S.DataType, field: I.NestedField) -> bool:
        """Return whether values of a type are a column's as they are."""
        return source == type_to_spark(field.field_type, support=self._support)

    def value(
        self,
        value: Column,
        source: S.DataType,
        field: I.NestedField,
        path: str,
        *,
        old: Column | None = None,
    ) -> Column:
        """Return a value as the column's type.

        Args:
            value: an expression.
            source: its type.
            field: the column or field.
            path: its name in messages.
            old: the column as it is; None for new rows.
        """
        return self._assign(value, source, field.field_type, path, old)

    def key(self, value: Column, source: S.DataType, field: I.NestedField, path: str) -> Column:
        """Return a value as rows have it that are read after it was written, to compare with them.

        Args:
            value: an expression.
            source: its type.
            field: the column or field.
            path: its name in messages.

        Returns:
            The value itself where it is stored as it is.
        """
        assigned = self.value(value, source, field, path)
        written = self._converter_of_writes(field.field_type, path)
        return assigned if written is None else written(assigned)

    def default(self, field: I.NestedField) -> Column:
        """Return a column's write default as rows that are read have it; NULL where it has none."""
        value = default_literal(field)
        wanted = type_to_spark(field.field_type, support=self._support)
        if field.write_default is None:
            return F.lit(None).cast(wanted)
        if form_of(field.field_type).meaning == "time":
            return self._convert(value, S.LongType(), field.field_type, field.name)
        return value

    def finish(self) -> None:
        """Raise SchemaMismatchError with every value that cannot be assigned."""
        if self._problems:
            raise SchemaMismatchError(
                "the values do not fit the table, nothing was changed: " + "; ".join(self._problems)
            )

    def _assign(
        self,
        value: Column,
        source: S.DataType,
        target: I.IcebergType,
        path: str,
        old: Column | None = None,
    ) -> Column:
        wanted = type_to_spark(target, support=self._support)
        if source == wanted:
            return value
        if isinstance(source, S.NullType):
            return value.cast(wanted)
        if isinstance(target, _CONVERTED):
            return self._convert(value, source, target, path)
        match target, source:
            case I.StructType(), S.StructType():
                return self._struct(value, source, target, path, old)
            case I.ListType(), S.ArrayType():
                element = target.element_type
                return F.transform(
                    value,
                    lambda each: self._assign(each, source.elementType, element, f"{path}.element"),
                )
            case I.MapType(), S.MapType():
                keys = F.transform_keys(
                    value,
                    lambda key, _: self._assign(
                        key, source.keyType, target.key_type, f"{path}.key"
                    ),
                )
                return F.transform_values(
                    keys,
                    lambda _, each: self._assign(
                        each, source.valueType, target.value_type, f"{path}.value"
                    ),
                )
            case _ if _may_be_assigned(source, wanted):
                return _cast(value, source, wanted, path)
        self._problems.append(
            f"{path!r} is {wanted.simpleString()} and cannot hold {source.simpleString()}"
        )
        return F.lit(None).cast(wanted)

    def _convert(
        self, value: Column, source: S.DataType, target: I.IcebergType, path: str
    ) -> Column:
        """A value of a type that Spark lacks, in the type that it is read as."""
        wanted = type_to_spark(target, support=self._support)
        if type(source) is type(wanted):
            return value.cast(wanted) if isinstance(wanted, TimeType) else value
        try:
            convert = converter(source, target, path)
        except SchemaMismatchError as error:
            self._problems.append(str(error))
            return F.lit(None).cast(wanted)
        stored = value if convert is None else convert(value)
        match wanted:
            case TimeType():
                return _time_of_micros(stored)
            case GeometryType():
                return F.call_function(
                    "st_setsrid", F.call_function("st_geomfromwkb", stored), F.lit(WGS84_SRID)
                )
            case GeographyType():
                return F.call_function("st_geogfromwkb", stored)
            case _:
                return stored

    def _converter_of_writes(self, target: I.IcebergType, path: str) -> Converter | None:
        """What a write makes of values of the type that rows are read in."""
        match target:
            case I.StructType(fields=fields):
                parts = {
                    f.name: self._converter_of_writes(f.field_type, f"{path}.{f.name}")
                    for f in fields
                }
                return _by_field(parts) if any(parts.values()) else None
            case I.ListType(element_type=element):
                each = self._converter_of_writes(element, f"{path}.element")
                return None if each is None else lambda value: F.transform(value, each)
        if form_of(target).meaning not in ("uuid", "fixed", "time"):
            return None
        kind = type_to_spark(target, support=self._support)
        return None if isinstance(kind, TimeType) else converter(kind, target, path)

    def _struct(
        self,
        value: Column,
        source: S.StructType,
        target: I.StructType,
        path: str,
        old: Column | None,
    ) -> Column:
        given: dict[str, S.StructField] = {}
        for each in source.fields:
            if self._key(each.name) in given:
                self._problems.append(f"{path!r} gets two fields {each.name!r}")
            given[self._key(each.name)] = each
        parts: list[Column] = []
        for field in target.fields:
            found = given.pop(self._key(field.name), None)
            place = f"{path}.{field.name}"
            before = None if old is None else old.getField(field.name)
            if found is None and self._keeps_fields and self._may_be_left_out(field, before):
                part = self.default(field) if before is None else before
                parts.append(part.alias(field.name))
                continue
            if found is None:
                self._problems.append(f"the value for {path!r} has no field {field.name!r}")
                continue
            part = value.getField(found.name)
            parts.append(
                self._assign(part, found.dataType, field.field_type, place, before).alias(
                    field.name
                )
            )
        self._problems.extend(f"{path!r} has no field {each.name!r}" for each in given.values())
        if not parts:
            return F.lit(None)
        return F.when(value.isNotNull(), F.struct(*parts))

    @staticmethod
    def _may_be_left_out(field: I.NestedField, before: Column | None) -> bool:
        return before is not None or field.optional or field.write_default is not None


def _by_field(parts: Mapping[str, Converter | None]) -> Converter:
    """What each field of a struct goes through."""

    def convert_fields(value: Column) -> Column:
        fields = {name: value.getField(name) for name in parts}
        converted = [
            (fields[name] if convert is None else convert(fields[name])).alias(name)
            for name, convert in parts.items()
        ]
        return F.when(value.isNotNull(), F.struct(*converted))

    return convert_fields


def _time_of_micros(micros: Column) -> Column:
    minutes = F.floor(micros / _MICROS_OF_MINUTE).cast("int")
    seconds = (micros % _MICROS_OF_MINUTE).cast("decimal(16, 6)") / F.lit(1_000_000)
    return F.call_function(
        "make_time", F.floor(minutes / 60).cast("int"), minutes % 60, seconds.cast("decimal(16, 6)")
    )


def _may_be_assigned(source: S.DataType, target: S.DataType) -> bool:
    if isinstance(source, _NUMBERS) and isinstance(target, _NUMBERS):
        return True
    if isinstance(source, _MOMENTS) and isinstance(target, _MOMENTS):
        return True
    if isinstance(target, S.StringType | S.CharType | S.VarcharType):
        nested = S.ArrayType | S.MapType | S.StructType | S.BinaryType
        return isinstance(source, S.AtomicType) and not isinstance(source, nested)
    return False


def _cast(value: Column, source: S.DataType, target: S.DataType, path: str) -> Column:
    if _always_fits(source, target):
        return value.cast(target)
    # Whatever the session says of ANSI casts: a value that does not fit is never NULL or wrapped.
    fitted = value.try_cast(target)
    problem = f"a value does not fit into the column {path!r}, which is {target.simpleString()}"
    return F.when(value.isNotNull() & fitted.isNull(), stop_with(problem)).otherwise(fitted)


def _always_fits(source: S.DataType, target: S.DataType) -> bool:
    if isinstance(target, S.StringType | S.FloatType | S.DoubleType):
        return True
    if isinstance(source, _INTEGERS) and isinstance(target, _INTEGERS):
        return _INTEGERS.index(type(source)) <= _INTEGERS.index(type(target))
    return isinstance(source, _MOMENTS) and isinstance(target, _MOMENTS)
