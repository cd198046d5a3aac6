"""Iceberg types as Avro schemas: JSON-able dicts with ids (rules 251-254)."""

from __future__ import annotations

import re
from typing import Any

from frazil.errors import UnsupportedError
from frazil.format.types import (
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from frazil.format.types.forms import form_of

AvroSchema = dict[str, Any]


def record_schema(name: str, fields: tuple[NestedField, ...]) -> AvroSchema:
    """The Avro record of some fields, each with its `field-id`.

    Names that Avro does not allow are sanitized as Java does (rule 127); a named type that occurs
    twice is defined once and referred to afterwards.
    """
    return _Builder().record(name, fields)


def sanitized_name(name: str) -> str:
    """A name that Avro allows: other characters become `_x` and their code, in UTF-16 units.

    >>> sanitized_name("a-b")
    'a_x2Db'
    >>> sanitized_name("2024")
    '_2024'
    """
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return name
    units = name.encode("utf-16-be", "surrogatepass")
    codes = [units[i] << 8 | units[i + 1] for i in range(0, len(units), 2)]
    parts = []
    for position, code in enumerate(codes):
        char = chr(code)
        if code < 128 and (char.isalpha() or char == "_"):
            parts.append(char)
        elif code < 128 and char.isdigit():
            parts.append(char if position else f"_{char}")
        else:
            parts.append(f"_x{code:X}")
    return "".join(parts) or "_"


def decimal_width(precision: int) -> int:
    """The fewest bytes that hold every unscaled value of that precision in two's complement."""
    highest: int = 10**precision - 1
    return highest.bit_length() // 8 + 1


class _Builder:
    def __init__(self) -> None:
        self._defined: set[str] = set()

    def record(self, name: str, fields: tuple[NestedField, ...]) -> AvroSchema:
        used: set[str] = set()
        avro_fields = []
        for field in fields:
            avro_name = sanitized_name(field.name)
            # Two names can become one; ids identify fields, names only have to differ.
            while avro_name in used:
                avro_name += "_"
            used.add(avro_name)
            avro_fields.append(self._field(field, avro_name))
        return {"type": "record", "name": name, "fields": avro_fields}

    def _field(self, field: NestedField, avro_name: str) -> AvroSchema:
        avro_type = self._type(field.field_type, field.field_id)
        avro_field: AvroSchema = {
            "name": avro_name,
            "type": _optional(avro_type) if field.optional else avro_type,
        }
        if field.optional:
            avro_field["default"] = None
        if field.doc:
            avro_field["doc"] = field.doc
        avro_field["field-id"] = field.field_id
        if avro_name != field.name:
            avro_field["iceberg-field-name"] = field.name
        return avro_field

    def _type(self, field_type: IcebergType, field_id: int) -> Any:
        plain = form_of(field_type).avro
        if isinstance(plain, dict) and plain["type"] == "fixed":
            return self._fixed_type(**plain)
        if plain is not None:
            return plain
        if isinstance(field_type, DecimalType):
            precision, scale = field_type.precision, field_type.scale
            return self._fixed_type(
                f"decimal_{precision}_{scale}",
                decimal_width(precision),
                logicalType="decimal",
                precision=precision,
                scale=scale,
            )
        if isinstance(field_type, FixedType):
            return self._fixed_type(f"fixed_{field_type.length}", field_type.length)
        if isinstance(field_type, StructType):
            return self.record(f"r{field_id}", field_type.fields)
        if isinstance(field_type, ListType):
            return self._list(field_type)
        if isinstance(field_type, MapType):
            return self._map(field_type)
        raise UnsupportedError(f"the type {field_type} cannot be written to Avro")

    def _list(self, list_type: ListType) -> AvroSchema:
        items = self._type(list_type.element_type, list_type.element_id)
        return {
            "type": "array",
            "items": items if list_type.element_required else _optional(items),
            "element-id": list_type.element_id,
        }

    def _map(self, map_type: MapType) -> AvroSchema:
        if isinstance(map_type.key_type, StringType):
            values = self._type(map_type.value_type, map_type.value_id)
            return {
                "type": "map",
                "values": values if map_type.value_required else _optional(values),
                "key-id": map_type.key_id,
                "value-id": map_type.value_id,
            }
        pair = self.record(f"k{map_type.key_id}_v{map_type.value_id}", map_type.fields)
        return {"type": "array", "items": pair, "logicalType": "map"}

    def _fixed_type(self, name: str, size: int, **extra: Any) -> Any:
        if name in self._defined:
            return name
        self._defined.add(name)
        return {"type": "fixed", "name": name, "size": size} | extra


def _optional(avro_type: Any) -> Any:
    return "null" if avro_type == "null" else ["null", avro_type]
