"""Rows in the shape of a table: columns by name, safe widening, defaults, checks (rules 30-51).

Everything that can be known from the schemas is found before a row is read, and every problem is
in one error. What only the values tell (nulls in required columns, lengths, the text of uuids)
becomes an expression that stops the write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import SchemaMismatchError
from frazil.format import types as I
from frazil.format.arguments import what_there_is
from frazil.format.schema import Schema
from frazil.format.types.forms import form_of
from frazil.spark.abilities import GeographyType, GeometryType, TimeType
from frazil.spark.files.row_checks import stop_with
from frazil.spark.session.facts import select_with_metadata
from frazil.spark.types import FIELD_ID_KEY, primitive_from_spark, type_to_spark
from frazil.spark.write.columns.stored_values import default_literal, storage_type

Converter = Callable[[Column], Column]
"""What a column goes through; None in place of one means that it stays as it is."""

_UUID: Final = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_MICROS_OF_DAY: Final = 86_400_000_000
_INTEGERS: Final = (S.ByteType, S.ShortType, S.IntegerType)
_SMALLEST_INT: Final = -(1 << 31)
_LARGEST_INT: Final = (1 << 31) - 1
_DIGITS: Final[dict[type[S.DataType], int]] = {
    S.ByteType: 3,
    S.ShortType: 5,
    S.IntegerType: 10,
    S.LongType: 19,
}
"""The digits that every value of a Spark type fits into."""


def align(
    df: DataFrame, schema: Schema, *, case_sensitive: bool = False, beside: Sequence[str] = ()
) -> DataFrame:
    """The rows of a DataFrame with the columns of a table, in the table's order.

    Each column carries its field id in its metadata. Times and nanoseconds become bigints, uuids
    lower-case text, geometries WKB. Missing optional columns get their write default, else null
    (rules 31-33). Columns of type unknown are left out (rule 17), but what they are made of is
    evaluated.

    Args:
        df: with the table's columns in any order.
        case_sensitive: whether names are matched with their case.
        beside: columns of the rows that are none of the table's and follow as they are.

    Raises:
        SchemaMismatchError: listing every column that is missing, unexpected or of a wrong type.
    """
    alignment = _Alignment(case_sensitive=case_sensitive)
    given = [field for field in df.schema.fields if field.name not in beside]
    columns = alignment.columns(S.StructType(given), schema)
    df = _with_evaluation(df, alignment.left_out)
    plain = [
        (column.source, column.field.name)
        for column in columns
        if column.given is not None and column.convert is None
    ]
    if len(plain) == len(columns) and not beside:
        return select_with_metadata(df, plain, [column.metadata for column in columns])
    return df.select(*(column.as_column() for column in columns), *map(F.col, map(_quote, beside)))


@dataclass(frozen=True, slots=True)
class _Aligned:
    """Where the values of a table's column come from.

    Attributes:
        field: the table's.
        given: the column of the rows; None where the rows have none.
        convert: what its values go through.
    """

    field: I.NestedField
    given: S.StructField | None
    convert: Converter | None = None

    @property
    def metadata(self) -> dict[str, Any]:
        return {FIELD_ID_KEY: self.field.field_id}

    @property
    def source(self) -> str:
        """The given column's name, quoted for Spark."""
        return "" if self.given is None else _quote(self.given.name)

    def as_column(self) -> Column:
        """The column with its id."""
        if self.given is None:
            value = default_literal(self.field)
        else:
            column = F.col(self.source)
            value = column if self.convert is None else self.convert(column)
        return value.alias(self.field.name, metadata=self.metadata)


class _Alignment:
    """Collects the problems of one schema while it builds the columns."""

    def __init__(self, *, case_sensitive: bool) -> None:
        self._key: Callable[[str], str] = str if case_sensitive else str.lower
        self._problems: list[str] = []
        self.left_out: list[Column] = []

    def columns(self, source: S.StructType, schema: Schema) -> list[_Aligned]:
        found = self._by_name(source, "")
        columns: list[_Aligned] = []
        for field in schema.fields:
            given = found.pop(self._key(field.name), None)
            convert: Converter | None = None
            if given is None:
                self._check_default(field, field.name)
            else:
                convert = self._field(given.dataType, field, field.name, nullable=given.nullable)
                value = partial(F.col, _quote(given.name))
                self._leave_out(value, given.dataType, field.field_type)
            if not isinstance(field.field_type, I.UnknownType):
                columns.append(_Aligned(field, given, convert))
        self._extra(found, "", schema.fields)
        if self._problems:
            raise SchemaMismatchError(
                "the rows do not fit the table, nothing was written: " + "; ".join(self._problems)
            )
        return columns

    def _leave_out(
        self, value: Callable[[], Column], source: S.DataType, target: I.IcebergType
    ) -> None:
        """Note the parts of a value that no file holds; arrays and maps are evaluated whole."""
        match target, source:
            case I.UnknownType(), S.NullType():
                self.left_out.append(value())
            case I.StructType(), S.StructType():
                fields = {self._key(field.name): field for field in target.fields}
                for given in source.fields:
                    if (field := fields.get(self._key(given.name))) is not None:
                        part = partial(_field_of, value, given.name)
                        self._leave_out(part, given.dataType, field.field_type)
            case _:
                pass

    def _by_name(self, struct: S.StructType, path: str) -> dict[str, S.StructField]:
        found: dict[str, S.StructField] = {}
        for field in struct.fields:
            key = self._key(field.name)
            if key in found:
                self._problems.append(
                    f"there are two columns {path + found[key].name!r} and {path + field.name!r}"
                )
            found[key] = field
        return found

    def _extra(
        self, rest: dict[str, S.StructField], path: str, known: Sequence[I.NestedField]
    ) -> None:
        names = [field.name for field in known]
        holder = repr(path[:-1]) if path else "the table"
        self._problems.extend(
            f"the table has no column {path + field.name!r}"
            + what_there_is(field.name, names, holder=holder)
            for field in rest.values()
        )

    def _check_default(self, field: I.NestedField, path: str) -> None:
        """A column that the rows do not have needs a default or nulls (rules 31-33)."""
        if field.write_default is None and field.required:
            self._problems.append(f"the required column {path!r} is missing")

    def _field(
        self, source: S.DataType, field: I.NestedField, path: str, *, nullable: bool
    ) -> Converter | None:
        if isinstance(source, S.NullType) and not field.required:
            # Cast, not replaced: what makes the value may fail.
            wanted = storage_type(field.field_type)
            return None if wanted == source else lambda value: value.cast(wanted)
        convert = self._type(source, field.field_type, path, nullable=nullable)
        if field.required and nullable:
            return _chain(convert, not_null(path))
        return convert

    def _type(
        self, source: S.DataType, target: I.IcebergType, path: str, *, nullable: bool
    ) -> Converter | None:
        match target, source:
            case I.StructType(), S.StructType():
                return self._struct(source, target, path, nullable=nullable)
            case I.ListType(), S.ArrayType():
                element = target.element_field
                convert = self._field(
                    source.elementType, element, f"{path}.element", nullable=source.containsNull
                )
                return None if convert is None else lambda value: F.transform(value, convert)
            case I.MapType(), S.MapType():
                return self._map(source, target, path)
            case _ if _accepts(target, source):
                return _primitive(target, source, path)
            case _:
                # Both sides have a type named timestamp; they differ in the time zone.
                known = primitive_from_spark(source)
                meaning = "" if known is None else f" (Iceberg's {known})"
                self._problems.append(
                    f"the column {path!r} is {target} and cannot hold Spark's "
                    f"{source.simpleString()}{meaning}: cast it to "
                    f"{type_to_spark(target).simpleString()}"
                )
                return None

    def _struct(
        self, source: S.StructType, target: I.StructType, path: str, *, nullable: bool
    ) -> Converter | None:
        found = self._by_name(source, f"{path}.")
        parts: list[tuple[str, Converter]] = []
        changed = [f.name for f in source.fields] != [f.name for f in target.fields]
        for field in target.fields:
            place = f"{path}.{field.name}"
            given = found.pop(self._key(field.name), None)
            if given is None:
                self._check_default(field, place)
                convert: Converter | None = None
                read: Converter = _constant(default_literal(field))
            else:
                convert = self._field(given.dataType, field, place, nullable=given.nullable)
                read = _part(given.name, convert)
            unknown = isinstance(field.field_type, I.UnknownType)
            changed = changed or given is None or convert is not None or unknown
            if not unknown:
                parts.append((field.name, read))
        self._extra(found, f"{path}.", target.fields)
        if not changed:
            return None

        def rebuild(value: Column) -> Column:
            built = F.struct(*(read(value).alias(name) for name, read in parts))
            return F.when(value.isNotNull(), built) if nullable else built

        return rebuild

    def _map(self, source: S.MapType, target: I.MapType, path: str) -> Converter | None:
        key = self._field(source.keyType, target.key_field, f"{path}.key", nullable=False)
        value = self._field(
            source.valueType,
            target.value_field,
            f"{path}.value",
            nullable=source.valueContainsNull,
        )
        on_keys: Converter | None = (
            None if key is None else lambda m: F.transform_keys(m, lambda k, _: key(k))
        )
        on_values: Converter | None = (
            None if value is None else lambda m: F.transform_values(m, lambda _, v: value(v))
        )
        return _chain(on_keys, on_values)


def _with_evaluation(df: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """The same rows, of which Spark evaluates these columns too, as what makes them may fail.

    Args:
        columns: of Spark's type void, whose values Spark would leave out of any other expression.
    """
    if not columns:
        return df
    hashes = [F.max(F.xxhash64(column)) for column in columns]
    return df.observe(f"frazil-evaluated-{uuid4()}", *hashes)


_ACCEPTED: Final[Mapping[str, tuple[type[S.DataType], ...]]] = {
    "integer": (*_INTEGERS, S.LongType),
    "float": (S.ByteType, S.ShortType, S.FloatType),
    "double": (*_INTEGERS, S.FloatType, S.DoubleType),
    **dict.fromkeys(("string", "uuid"), (S.StringType, S.CharType, S.VarcharType)),
    "time": (S.LongType, TimeType),
    "nested": (),
}


def _accepts(target: I.IcebergType, source: S.DataType) -> bool:
    """Whether every value of a Spark type is a value of an Iceberg type, or can be checked."""
    match target:
        case I.DecimalType(precision=precision, scale=scale):
            if type(source) in _DIGITS:
                return _DIGITS[type(source)] <= precision - scale
            return (
                isinstance(source, S.DecimalType)
                and source.scale <= scale
                and source.precision - source.scale <= precision - scale
            )
        case I.GeometryType():
            return isinstance(source, S.BinaryType | GeometryType)
        case I.GeographyType():
            return isinstance(source, S.BinaryType | GeographyType)
    form = form_of(target)
    accepted = _ACCEPTED.get(form.meaning, _ACCEPTED.get(form.carrier))
    if accepted is not None:
        return isinstance(source, accepted)
    if form.unit == 1:
        exact = S.TimestampType if form.zoned else S.TimestampNTZType
        return isinstance(source, (S.LongType, exact))
    return type(type_to_spark(target)) is type(source)


def converter(source: S.DataType, target: I.IcebergType, path: str) -> Converter | None:
    """Return what values of a simple type go through on their way into a column.

    Args:
        source: Spark's type of the values.
        target: the column's.
        path: its name in messages.

    Returns:
        None where they stay as they are.

    Raises:
        SchemaMismatchError: the column cannot hold such values.
    """
    if not _accepts(target, source):
        raise SchemaMismatchError(
            f"the column {path!r} is {target} and cannot hold Spark's {source.simpleString()}"
        )
    return _primitive(target, source, path)


def _primitive(target: I.IcebergType, source: S.DataType, path: str) -> Converter | None:
    if isinstance(target, I.FixedType):
        length = target.length
        problem = f"a value of the column {path!r} has not exactly {length} bytes"
        return _checker(None, lambda v: F.octet_length(v) == length, problem)
    form = form_of(target)
    match form.meaning:
        case "integer" if form.carrier == "int" and isinstance(source, S.LongType):
            problem = f"a value of the column {path!r} does not fit into an int"
            in_range = _checker(None, lambda v: v.between(_SMALLEST_INT, _LARGEST_INT), problem)
            return _chain(in_range, lambda value: value.cast("int"))
        case "uuid":
            problem = f"a value of the column {path!r} is no uuid"
            return _checker(F.lower, lambda v: v.rlike(_UUID), problem)
        case "time":
            problem = f"a value of the column {path!r} is no microsecond of a day"
            if isinstance(source, TimeType):
                return _micros_of_time
            return _checker(None, lambda v: v.between(0, _MICROS_OF_DAY - 1), problem)
        case "timestamp" if form.unit == 1 and not isinstance(source, S.LongType):
            micros = F.unix_micros if form.zoned else micros_without_zone
            return lambda value: _nanos(micros(value), path)
        case "wkb" if not isinstance(source, S.BinaryType):
            return lambda value: F.call_function("st_asbinary", value)
        case _:
            wanted = storage_type(target)
            return None if wanted == source else lambda value: value.cast(wanted)


def _micros_of_time(value: Column) -> Column:
    seconds = F.hour(value) * 3600 + F.minute(value) * 60
    return seconds.cast("bigint") * 1_000_000 + _second_micros(value)


def _nanos(micros: Column, path: str) -> Column:
    # Outside of ANSI mode a product that is too large would be another time.
    nanos = F.try_multiply(micros, F.lit(1000))
    problem = f"a value of the column {path!r} is no time that nanoseconds since 1970 reach"
    return F.when(micros.isNotNull() & nanos.isNull(), stop_with(problem)).otherwise(nanos)


def micros_without_zone(value: Column) -> Column:
    """Return the microseconds of a timestamp without a zone."""
    days = F.unix_date(value.cast("date")).cast("bigint")
    seconds = days * 86_400 + F.hour(value) * 3600 + F.minute(value) * 60
    return seconds * 1_000_000 + _second_micros(value)


def _second_micros(value: Column) -> Column:
    return (F.extract(F.lit("SECOND"), value) * 1_000_000).cast("bigint")


def not_null(path: str) -> Converter:
    """Return what stops where a value of a required column is null."""
    problem = f"the column {path!r} is required and a row has null in it"
    return lambda value: F.coalesce(value, stop_with(problem))


def _checker(first: Converter | None, is_right: Converter, problem: str) -> Converter:
    def check(value: Column) -> Column:
        kept = value if first is None else first(value)
        return F.when(value.isNull() | is_right(value), kept).otherwise(stop_with(problem))

    return check


def _chain(first: Converter | None, second: Converter | None) -> Converter | None:
    if first is None or second is None:
        return first or second
    return lambda value: second(first(value))


def _constant(literal: Column) -> Converter:
    return lambda _: literal


def _part(name: str, convert: Converter | None) -> Converter:
    if convert is None:
        return lambda value: value.getField(name)
    return lambda value: convert(value.getField(name))


def _field_of(value: Callable[[], Column], name: str) -> Column:
    return value().getField(name)


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
