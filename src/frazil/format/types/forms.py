"""The table of types: what is true of each type that is not nested, as plain values.

Every plane asks `form_of` for the facts that it needs, and lists no types itself. Names of other
libraries are texts here: the planes above know which objects they mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from frazil.format.types.model import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)

Meaning = Literal[
    "boolean", "integer", "floating", "decimal", "date", "time", "timestamp", "string", "uuid",
    "fixed", "binary", "wkb", "unknown", "variant", "nested",
]  # fmt: skip

Carrier = Literal[
    "boolean", "int", "long", "float", "double", "decimal", "string", "uuid", "fixed", "binary",
    "wkb", "none",
]  # fmt: skip

_NANOS_PER_DAY: Final = 86_400_000_000_000
_CUT: Final = ("identity", "bucket", "truncate")
_OF_DAYS: Final = ("identity", "bucket", "year", "month", "day")
_OF_HOURS: Final = (*_OF_DAYS, "hour")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeForm:
    """One type: what its values mean, and what stands for it elsewhere.

    Attributes:
        kind: the class.
        meaning: how values are written as text, JSON and Python objects.
        carrier: how one value is stored: as those of the type of that name (rule 275).
        unit: the nanoseconds that 1 is among the whole numbers of a date or time; else 0.
        zoned: whether values are moments, written with an offset from UTC.
        since: the first format version that has the type.
        promoted_from: the type that a column may have had before (rules 44, 45).
        transforms: which take its values (rules 77-80).
        sql: its names in DDL, without parameters: Spark's, or Iceberg's where Spark has none.
        aliases: what else users write for it; never found in metadata.
        spark: the DDL name of Spark's type that holds its values.
        arrow: Arrow's type of a column of a file, as PyArrow writes it; empty where parameters
            make it, or files have no such column.
        readable: other Arrow types of files whose values Spark's reader gives as this type.
        scanned: Arrow's type in which values are handed to Spark, where that is another.
        parquet: Parquet's physical type; empty where parameters make it.
        length: of Parquet's fixed bytes; 0 for others.
        logical: what Parquet's column means, as the entries of PyArrow's JSON that matter.
        labelled: whether Spark writes its columns without that, so that footers get it later.
        avro: the Avro schema (rule 251); None where parameters make it.
        hive: its name in Hive, as Java's HiveSchemaUtil has it, which has none for the types of v3
            but variant.
        glue: its name in Glue, where it is not its own.
    """

    kind: type[IcebergType]
    meaning: Meaning
    carrier: Carrier
    unit: int = 0
    zoned: bool = False
    since: int = 1
    promoted_from: str = ""
    transforms: tuple[str, ...] = ("identity", "bucket")
    sql: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    spark: str = ""
    arrow: str = ""
    readable: tuple[str, ...] = ()
    scanned: str = ""
    parquet: str = ""
    length: int = 0
    logical: tuple[tuple[str, str | bool], ...] = ()
    labelled: bool = False
    avro: Any = None
    hive: str = ""
    glue: str = ""

    @property
    def bits(self) -> int:
        """How many bits a whole number of it has."""
        return 32 if self.carrier == "int" else 64

    def holds(self, number: int) -> bool:
        """Whether a whole number has no more bits than that."""
        limit = 1 << (self.bits - 1)
        return -limit <= number < limit

    @property
    def digits(self) -> int:
        """Digits of a second in its texts."""
        return 9 if self.unit == 1 else 6

    @property
    def units_per_day(self) -> int:
        """How many of its whole numbers a day is."""
        return _NANOS_PER_DAY // self.unit

    @property
    def in_spark(self) -> bool:
        """Whether Spark holds its values in a type of just that meaning, in every session."""
        return self.spark in self.sql

    @property
    def is_ordered(self) -> bool:
        """Whether values have an order and single-value bytes (rule 275)."""
        return self.carrier not in ("wkb", "none")


_SMALL: Final = ("int16", "int8", "uint16", "uint8")
_MOMENTS: Final = ("timestamp[us]", "timestamp[us, tz=UTC]", "timestamp[ms]", "INT96")

FORMS: Final = (
    TypeForm(
        kind=BooleanType, meaning="boolean", carrier="boolean", transforms=("identity",),
        sql=("boolean",), aliases=("bool",), spark="boolean",
        arrow="bool", parquet="BOOLEAN", avro="boolean", hive="boolean",
    ),
    TypeForm(
        kind=IntegerType, meaning="integer", carrier="int", transforms=_CUT,
        sql=("int", "integer", "smallint", "short", "tinyint", "byte"), aliases=("integer",),
        spark="int",
        arrow="int32", readable=_SMALL, parquet="INT32", avro="int", hive="int",
    ),
    TypeForm(
        kind=LongType, meaning="integer", carrier="long", promoted_from="int", transforms=_CUT,
        sql=("bigint", "long"), aliases=("bigint",), spark="bigint",
        arrow="int64", readable=("uint32", "int32", *_SMALL), parquet="INT64", avro="long",
        hive="bigint", glue="bigint",
    ),
    TypeForm(
        kind=FloatType, meaning="floating", carrier="float", transforms=("identity",),
        sql=("float", "real"), spark="float",
        arrow="float", parquet="FLOAT", avro="float", hive="float",
    ),
    TypeForm(
        kind=DoubleType, meaning="floating", carrier="double", promoted_from="float",
        transforms=("identity",), sql=("double",), spark="double",
        arrow="double", readable=("float",), parquet="DOUBLE", avro="double", hive="double",
    ),
    TypeForm(
        kind=DecimalType, meaning="decimal", carrier="decimal", transforms=_CUT,
        sql=("decimal", "dec", "numeric"), spark="decimal",
    ),
    TypeForm(
        kind=DateType, meaning="date", carrier="int", unit=_NANOS_PER_DAY, transforms=_OF_DAYS,
        sql=("date",), spark="date",
        arrow="date32[day]", parquet="INT32", logical=(("Type", "Date"),),
        avro={"type": "int", "logicalType": "date"}, hive="date",
    ),
    TypeForm(
        kind=TimeType, meaning="time", carrier="long", unit=1_000,
        sql=("time",), spark="bigint",
        arrow="time64[us]", scanned="int64", parquet="INT64", labelled=True,
        logical=(("Type", "Time"), ("isAdjustedToUTC", False), ("timeUnit", "microseconds")),
        avro={"type": "long", "logicalType": "time-micros"}, hive="string", glue="string",
    ),
    TypeForm(
        kind=TimestampType, meaning="timestamp", carrier="long", unit=1_000,
        promoted_from="date", transforms=_OF_HOURS,
        sql=("timestamp_ntz",), aliases=("timestamp_ntz",), spark="timestamp_ntz",
        arrow="timestamp[us]", readable=(*_MOMENTS, "date32[day]"), parquet="INT64",
        logical=(("Type", "Timestamp"), ("isAdjustedToUTC", False), ("timeUnit", "microseconds")),
        avro={"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
        hive="timestamp", glue="timestamp",
    ),
    TypeForm(
        kind=TimestamptzType, meaning="timestamp", carrier="long", unit=1_000, zoned=True,
        transforms=_OF_HOURS,
        sql=("timestamp", "timestamp_ltz"), aliases=("timestamp_ltz",), spark="timestamp",
        arrow="timestamp[us, tz=UTC]", readable=(*_MOMENTS, "timestamp[ms, tz=UTC]"),
        parquet="INT64",
        logical=(("Type", "Timestamp"), ("isAdjustedToUTC", True), ("timeUnit", "microseconds")),
        avro={"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
        hive="timestamp with local time zone", glue="timestamp",
    ),
    TypeForm(
        kind=TimestampNanoType, meaning="timestamp", carrier="long", unit=1, since=3,
        promoted_from="date", transforms=_OF_HOURS, sql=("timestamp_ns",), spark="bigint",
        arrow="timestamp[ns]", scanned="int64", parquet="INT64", labelled=True,
        logical=(("Type", "Timestamp"), ("isAdjustedToUTC", False), ("timeUnit", "nanoseconds")),
        avro={"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
        hive="timestamp", glue="timestamp_nano",
    ),
    TypeForm(
        kind=TimestamptzNanoType, meaning="timestamp", carrier="long", unit=1, zoned=True, since=3,
        transforms=_OF_HOURS, sql=("timestamptz_ns",), spark="bigint",
        arrow="timestamp[ns, tz=UTC]", scanned="int64", parquet="INT64", labelled=True,
        logical=(("Type", "Timestamp"), ("isAdjustedToUTC", True), ("timeUnit", "nanoseconds")),
        avro={"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
        hive="timestamp with local time zone", glue="timestamp_nano",
    ),
    TypeForm(
        kind=StringType, meaning="string", carrier="string", transforms=_CUT,
        sql=("string",), spark="string",
        arrow="string", readable=("large_string", "binary"), parquet="BYTE_ARRAY",
        logical=(("Type", "String"),), avro="string", hive="string", glue="string",
    ),
    TypeForm(
        kind=UUIDType, meaning="uuid", carrier="uuid", sql=("uuid",), spark="string",
        arrow="extension<arrow.uuid>", readable=("fixed_size_binary[16]",), scanned="binary",
        parquet="FIXED_LEN_BYTE_ARRAY", length=16, logical=(("Type", "UUID"),),
        avro={"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
        hive="string", glue="string",
    ),
    TypeForm(
        kind=FixedType, meaning="fixed", carrier="fixed", sql=("fixed",), spark="binary",
        scanned="binary", readable=("extension<arrow.uuid>",), parquet="FIXED_LEN_BYTE_ARRAY",
        hive="binary", glue="binary",
    ),
    TypeForm(
        kind=BinaryType, meaning="binary", carrier="binary", transforms=_CUT,
        sql=("binary",), spark="binary",
        arrow="binary", readable=("large_binary",), parquet="BYTE_ARRAY", avro="bytes",
        hive="binary", glue="binary",
    ),
    TypeForm(
        kind=UnknownType, meaning="unknown", carrier="none", since=3, transforms=("identity",),
        sql=("void",), spark="void", avro="null", hive="void",
    ),
    TypeForm(
        kind=VariantType, meaning="variant", carrier="none", since=3, transforms=(),
        sql=("variant",), spark="variant", hive="unknown",
    ),
    TypeForm(
        kind=GeometryType, meaning="wkb", carrier="wkb", since=3, transforms=(), spark="binary",
        arrow="binary", parquet="BYTE_ARRAY", logical=(("Type", "Geometry"),), labelled=True,
        avro="bytes", hive="binary", glue="geometry",
    ),
    TypeForm(
        kind=GeographyType, meaning="wkb", carrier="wkb", since=3, transforms=(), spark="binary",
        arrow="binary", parquet="BYTE_ARRAY", logical=(("Type", "Geography"),), labelled=True,
        avro="bytes", hive="binary", glue="geography",
    ),
)  # fmt: skip
"""The table of types, in the order in which messages name them."""

_BY_KIND: Final = {form.kind: form for form in FORMS}
_NESTED: Final = TypeForm(kind=IcebergType, meaning="nested", carrier="none", transforms=())

WITHOUT_PARAMETERS: Final = tuple(
    form for form in FORMS if form.meaning not in ("decimal", "fixed")
)
"""The types that their class alone makes."""

SQL_TYPES: Final = {name: form.kind() for form in WITHOUT_PARAMETERS for name in form.sql}
"""The types that a word of DDL names."""

TEMPORAL_TYPES: Final = tuple(
    form.kind for form in FORMS if form.meaning in ("date", "time", "timestamp")
)
"""The types of days and times, whose values are whole numbers within (rule 275)."""

ORDERED_TYPES: Final = tuple(form.kind for form in FORMS if form.is_ordered)
"""The types whose values have an order and single-value bytes (rule 275)."""

EXACT_TYPES: Final = tuple(
    form.kind for form in FORMS if form.is_ordered and form.meaning != "floating"
)
"""The types of which two values are equal where their single-value bytes are (rule 275)."""


def form_of(kind: IcebergType) -> TypeForm:
    """The row of a type; of a nested one a form of which nothing is true."""
    return _BY_KIND.get(type(kind), _NESTED)
