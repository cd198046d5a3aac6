"""The classes of Iceberg's types (SPEC rules 14-29): frozen, hashable, compared by value.

`frazil.format.types` is the public module; what is true of each class is a row of
`frazil.format.types.forms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from frazil.errors import ValidationError

DEFAULT_CRS = "OGC:CRS84"
DEFAULT_EDGE_ALGORITHM = "spherical"
EDGE_ALGORITHMS = ("spherical", "vincenty", "thomas", "andoyer", "karney")
MAX_DECIMAL_PRECISION = 38


class IcebergType:
    """The base of every type."""

    __slots__ = ()

    @property
    def is_primitive(self) -> bool:
        """True for a type that holds one value and no fields; false for variant (rule 16)."""
        return isinstance(self, PrimitiveType)

    @property
    def is_nested(self) -> bool:
        """True for a struct, a list or a map."""
        return isinstance(self, StructType | ListType | MapType)


class PrimitiveType(IcebergType):
    """The base of the types that hold one value; ``str()`` is the JSON form."""

    __slots__ = ()
    type_name: ClassVar[str] = ""

    def __str__(self) -> str:
        return self.type_name


@dataclass(frozen=True, slots=True)
class BooleanType(PrimitiveType):
    """True or false."""

    type_name: ClassVar[str] = "boolean"


@dataclass(frozen=True, slots=True)
class IntegerType(PrimitiveType):
    """A signed 32-bit integer."""

    type_name: ClassVar[str] = "int"


@dataclass(frozen=True, slots=True)
class LongType(PrimitiveType):
    """A signed 64-bit integer."""

    type_name: ClassVar[str] = "long"


@dataclass(frozen=True, slots=True)
class FloatType(PrimitiveType):
    """A 32-bit IEEE 754 number."""

    type_name: ClassVar[str] = "float"


@dataclass(frozen=True, slots=True)
class DoubleType(PrimitiveType):
    """A 64-bit IEEE 754 number."""

    type_name: ClassVar[str] = "double"


@dataclass(frozen=True, slots=True)
class DecimalType(PrimitiveType):
    """A decimal of ``precision`` digits, ``scale`` of them after the point (rule 18)."""

    precision: int
    scale: int
    type_name: ClassVar[str] = "decimal"

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= MAX_DECIMAL_PRECISION:
            raise ValidationError(
                f"a decimal has 1 to {MAX_DECIMAL_PRECISION} digits, not {self.precision}"
            )
        if not 0 <= self.scale <= self.precision:
            raise ValidationError(
                f"the scale of decimal({self.precision}, {self.scale}) is not within its "
                f"precision: it must be 0 to {self.precision}"
            )

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class DateType(PrimitiveType):
    """A calendar date; days since 1970-01-01."""

    type_name: ClassVar[str] = "date"


@dataclass(frozen=True, slots=True)
class TimeType(PrimitiveType):
    """A time of day; microseconds since midnight (rule 19)."""

    type_name: ClassVar[str] = "time"


@dataclass(frozen=True, slots=True)
class TimestampType(PrimitiveType):
    """A timestamp without a zone; microseconds since the epoch (rule 20)."""

    type_name: ClassVar[str] = "timestamp"


@dataclass(frozen=True, slots=True)
class TimestamptzType(PrimitiveType):
    """A moment; microseconds since the epoch in UTC (rule 20)."""

    type_name: ClassVar[str] = "timestamptz"


@dataclass(frozen=True, slots=True)
class TimestampNanoType(PrimitiveType):
    """A timestamp without a zone; nanoseconds since the epoch (rule 21, v3)."""

    type_name: ClassVar[str] = "timestamp_ns"


@dataclass(frozen=True, slots=True)
class TimestamptzNanoType(PrimitiveType):
    """A moment; nanoseconds since the epoch in UTC (rule 21, v3)."""

    type_name: ClassVar[str] = "timestamptz_ns"


@dataclass(frozen=True, slots=True)
class StringType(PrimitiveType):
    """A string of Unicode characters, stored as UTF-8 (rule 22)."""

    type_name: ClassVar[str] = "string"


@dataclass(frozen=True, slots=True)
class UUIDType(PrimitiveType):
    """A universally unique identifier of 16 bytes (rule 23)."""

    type_name: ClassVar[str] = "uuid"


@dataclass(frozen=True, slots=True)
class FixedType(PrimitiveType):
    """Exactly ``length`` bytes (rule 24)."""

    length: int
    type_name: ClassVar[str] = "fixed"

    def __post_init__(self) -> None:
        if self.length < 0:
            raise ValidationError(f"the length of fixed[{self.length}] is negative")

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


@dataclass(frozen=True, slots=True)
class BinaryType(PrimitiveType):
    """Bytes of any length."""

    type_name: ClassVar[str] = "binary"


@dataclass(frozen=True, slots=True)
class UnknownType(PrimitiveType):
    """A column that holds only nulls and is not in data files (rule 17, v3)."""

    type_name: ClassVar[str] = "unknown"


def _check_crs(crs: str) -> None:
    if not crs or "," in crs or ")" in crs or "{" in crs:
        raise ValidationError(
            f"{crs!r} is not the name of a coordinate reference system; a definition in PROJJSON "
            "belongs into a table property, named as 'projjson:<property>'"
        )


@dataclass(frozen=True, slots=True)
class GeometryType(PrimitiveType):
    """Planar geometries as WKB, in the coordinate reference system ``crs`` (rule 25, v3)."""

    crs: str = DEFAULT_CRS
    type_name: ClassVar[str] = "geometry"

    def __post_init__(self) -> None:
        _check_crs(self.crs)

    def __str__(self) -> str:
        return "geometry" if self.crs == DEFAULT_CRS else f"geometry({self.crs})"


@dataclass(frozen=True, slots=True)
class GeographyType(PrimitiveType):
    """Geometries on a globe as WKB; edges follow ``algorithm`` (rule 26, v3)."""

    crs: str = DEFAULT_CRS
    algorithm: str = DEFAULT_EDGE_ALGORITHM
    type_name: ClassVar[str] = "geography"

    def __post_init__(self) -> None:
        _check_crs(self.crs)
        if self.algorithm not in EDGE_ALGORITHMS:
            raise ValidationError(
                f"{self.algorithm!r} is not an edge algorithm; it must be one of "
                f"{', '.join(EDGE_ALGORITHMS)}"
            )

    def __str__(self) -> str:
        if self.algorithm != DEFAULT_EDGE_ALGORITHM:
            return f"geography({self.crs}, {self.algorithm})"
        return "geography" if self.crs == DEFAULT_CRS else f"geography({self.crs})"


@dataclass(frozen=True, slots=True)
class VariantType(IcebergType):
    """A semi-structured value; neither primitive nor nested (rule 16, v3)."""

    def __str__(self) -> str:
        return "variant"


@dataclass(frozen=True, slots=True)
class NestedField:
    """A named field of a struct, or the element, key or value of a list or map.

    Attributes:
        field_id: unique in the table (rule 14).
        initial_default: the internal value of rows written before the field was added (rule 30).
        write_default: the internal value that a writer uses where none is given (rule 31).
            The default of a struct is None or ``()``, a struct without values of its own (rule 39).
    """

    field_id: int
    name: str
    field_type: IcebergType
    required: bool = False
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None

    @property
    def optional(self) -> bool:
        """True where the field may be null."""
        return not self.required

    def __str__(self) -> str:
        need = "required" if self.required else "optional"
        doc = f" ({self.doc})" if self.doc else ""
        return f"{self.field_id}: {self.name}: {need} {self.field_type}{doc}"


@dataclass(frozen=True, slots=True)
class StructType(IcebergType):
    """A tuple of named fields."""

    fields: tuple[NestedField, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        names: dict[str, int] = {}
        for field in self.fields:
            if field.name in names:
                raise ValidationError(
                    f"two fields of one struct are named {field.name!r}: "
                    f"ids {names[field.name]} and {field.field_id}"
                )
            names[field.name] = field.field_id

    def field_by_id(self, field_id: int) -> NestedField | None:
        """The direct field of that id, if there is one."""
        return next((field for field in self.fields if field.field_id == field_id), None)

    def field_by_name(self, name: str) -> NestedField | None:
        """The direct field of exactly that name, if there is one."""
        return next((field for field in self.fields if field.name == name), None)

    def __str__(self) -> str:
        return f"struct<{', '.join(str(field) for field in self.fields)}>"


@dataclass(frozen=True, slots=True)
class ListType(IcebergType):
    """A list of elements."""

    element_id: int
    element_type: IcebergType
    element_required: bool = False

    @property
    def element_field(self) -> NestedField:
        """The element as a field named ``element``."""
        return NestedField(self.element_id, "element", self.element_type, self.element_required)

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The one nested field."""
        return (self.element_field,)

    def __str__(self) -> str:
        return f"list<{self.element_type}>"


@dataclass(frozen=True, slots=True)
class MapType(IcebergType):
    """Keys, which are required, with values (rule 15)."""

    key_id: int
    key_type: IcebergType
    value_id: int
    value_type: IcebergType
    value_required: bool = False

    @property
    def key_field(self) -> NestedField:
        """The key as a field named ``key``."""
        return NestedField(self.key_id, "key", self.key_type, required=True)

    @property
    def value_field(self) -> NestedField:
        """The value as a field named ``value``."""
        return NestedField(self.value_id, "value", self.value_type, self.value_required)

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The two nested fields."""
        return (self.key_field, self.value_field)

    def __str__(self) -> str:
        return f"map<{self.key_type}, {self.value_type}>"
