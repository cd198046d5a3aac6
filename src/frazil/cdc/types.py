"""Types of PostgreSQL as Iceberg's, and how their texts are read.

| PostgreSQL | Iceberg |
|---|---|
| boolean | boolean |
| smallint, integer / bigint, oid | int / long |
| real / double precision | float / double |
| numeric(P, S) up to 38 digits | decimal(P, S) |
| numeric without a precision, or with more digits | string, or the decimal that the table has |
| date, time | the same |
| timestamp / timestamp with time zone | timestamp / timestamptz |
| uuid, bytea | uuid, binary |
| text, varchar, char, name, citext, enums, json, jsonb, xml, inet, cidr, macaddr | string |
| arrays of these | list |

Domains are what they are made of. Other types are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from frazil.errors import UnsupportedError
from frazil.format import types as I
from frazil.format.types.forms import form_of
from frazil.storage.parquet.arrow_names import ARROW_TYPES

MOST_DIGITS: Final = 38

TEXT_OID: Final = 25
TEXT_ARRAY_OID: Final = 1009


@dataclass(frozen=True, slots=True)
class ServerType:
    """A type as the server's catalog has it.

    Attributes:
        kind: ``b`` base, ``d`` domain, ``e`` enum, and others (`pg_type.typtype`).
        base: what a domain is made of.
        base_modifier: the modifier of that.
        element: of an array.
        array_oid: the type of arrays of it; 0 for none.
    """

    oid: int
    name: str
    kind: str
    base: ServerType | None = None
    base_modifier: int = -1
    element: ServerType | None = None
    array_oid: int = 0


@dataclass(frozen=True, slots=True)
class ValueType:
    """How the values of a column are kept and read.

    Attributes:
        iceberg: the type in the table.
        arrow: the type of its values on the way.
        loader_oid: PostgreSQL's type by whose rules the texts are parsed.
    """

    iceberg: I.IcebergType
    arrow: pa.DataType
    loader_oid: int


_SIMPLE: Final = {
    "bool": "boolean",
    "int2": "int",
    "int4": "int",
    "int8": "long",
    "oid": "long",
    "float4": "float",
    "float8": "double",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "bytea": "binary",
}

_TEXTS: Final = frozenset(
    (
        *("text", "varchar", "bpchar", "name", "citext", "json", "jsonb", "xml"),
        *("inet", "cidr", "macaddr", "macaddr8"),
    )
)


def value_type(
    kind: ServerType, modifier: int, *, column: str, wanted: I.IcebergType | None = None
) -> ValueType:
    """Return how values of a type are kept.

    Args:
        modifier: of the column's type, -1 for none.
        column: for the message.
        wanted: the type of the table's column, if there is one.

    Raises:
        UnsupportedError: Iceberg has no type for it, or it is one of those that are left out.
    """
    if kind.kind == "d" and kind.base is not None:
        inner = modifier if modifier >= 0 else kind.base_modifier
        return value_type(kind.base, inner, column=column, wanted=wanted)
    if kind.element is not None:
        list_type = wanted if isinstance(wanted, I.ListType) else None
        inside = None if list_type is None else list_type.element_type
        element = value_type(kind.element, modifier, column=column, wanted=inside)
        loader = _array_of(kind.element, element.loader_oid)
        iceberg = I.ListType(element_id=1, element_type=element.iceberg, element_required=False)
        return ValueType(iceberg, pa.list_(element.arrow), loader)
    if kind.name in _SIMPLE and kind.kind == "b":
        simple = I.type_named(_SIMPLE[kind.name])
        return ValueType(simple, ARROW_TYPES[form_of(simple).arrow], kind.oid)
    if kind.name == "uuid":
        return ValueType(I.UUIDType(), pa.string(), TEXT_OID)
    if kind.kind == "e" or (kind.kind == "b" and kind.name in _TEXTS):
        return ValueType(I.StringType(), pa.string(), TEXT_OID)
    if kind.name == "numeric":
        return _decimal(kind.oid, modifier, wanted)
    raise UnsupportedError(
        f"the column {column!r} is of PostgreSQL's type {kind.name}, which is not taken over; "
        "leave it out by a publication of the other columns, as CREATE PUBLICATION p FOR TABLE "
        "t (a, b), and name that with --publication"
    )


def _decimal(oid: int, modifier: int, wanted: I.IcebergType | None) -> ValueType:
    if modifier < 4:
        if isinstance(wanted, I.DecimalType):
            return ValueType(wanted, pa.decimal128(wanted.precision, wanted.scale), oid)
        return ValueType(I.StringType(), pa.string(), TEXT_OID)
    # The manual's "numeric": eleven bits of the scale, which may be negative.
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    if scale < 0:
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    if precision > MOST_DIGITS:
        return ValueType(I.StringType(), pa.string(), TEXT_OID)
    return ValueType(I.DecimalType(precision, scale), pa.decimal128(precision, scale), oid)


def _array_of(element: ServerType, loader_oid: int) -> int:
    """The type by which arrays are parsed whose elements are parsed by another."""
    while element.kind == "d" and element.base is not None:
        element = element.base
    return TEXT_ARRAY_OID if loader_oid == TEXT_OID else element.array_oid
