"""The JSON of types and of fields (SPEC rules 197, 198)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.errors import InvalidFormatError, InvalidMetadataError, ValidationError
from frazil.format.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    type_named,
)
from frazil.format.values.json_form import from_json, to_json


def parse_type(json_value: Any) -> IcebergType:
    """The type of its JSON: a string, or an object for struct, list and map (rule 198).

    Upper case and whitespace around parameters are accepted (rule 197).
    """
    try:
        if isinstance(json_value, str):
            return type_named(json_value)
        if isinstance(json_value, Mapping):
            return _parse_object(json_value)
    except ValidationError as error:
        raise InvalidMetadataError(str(error)) from error
    raise InvalidMetadataError(f"{json_value!r} is not a type")


def type_to_json(value_type: IcebergType) -> str | dict[str, Any]:
    """The JSON of a type: ``str()`` of a primitive or variant, an object otherwise (rule 198)."""
    if isinstance(value_type, StructType):
        return {
            "type": "struct",
            "fields": [field_to_json(field) for field in value_type.fields],
        }
    if isinstance(value_type, ListType):
        return {
            "type": "list",
            "element-id": value_type.element_id,
            "element": type_to_json(value_type.element_type),
            "element-required": value_type.element_required,
        }
    if isinstance(value_type, MapType):
        return {
            "type": "map",
            "key-id": value_type.key_id,
            "key": type_to_json(value_type.key_type),
            "value-id": value_type.value_id,
            "value": type_to_json(value_type.value_type),
            "value-required": value_type.value_required,
        }
    return str(value_type)


def field_to_json(field: NestedField) -> dict[str, Any]:
    """The JSON of a struct's field; absent documentation and null defaults are left out."""
    json_value: dict[str, Any] = {
        "id": field.field_id,
        "name": field.name,
        "required": field.required,
        "type": type_to_json(field.field_type),
    }
    if field.doc is not None:
        json_value["doc"] = field.doc
    if field.initial_default is not None:
        json_value["initial-default"] = _default_to_json(field, field.initial_default)
    if field.write_default is not None:
        json_value["write-default"] = _default_to_json(field, field.write_default)
    return json_value


def field_from_json(json_value: Any) -> NestedField:
    """The field of a struct; its defaults become internal values."""
    if not isinstance(json_value, Mapping):
        raise InvalidMetadataError(f"{json_value!r} is not a struct field: expected an object")
    name = _require_value(json_value, "name", str, "a struct field")
    holder = f"the field {name!r}"
    doc = json_value.get("doc")
    if doc is not None and not isinstance(doc, str):
        raise InvalidMetadataError(f"the doc {doc!r} of {holder} is not a string", field=name)
    field_type = parse_type(_required_value(json_value, "type", holder))
    return NestedField(
        field_id=_require_value(json_value, "id", int, holder),
        name=name,
        field_type=field_type,
        required=_require_value(json_value, "required", bool, holder),
        doc=doc,
        initial_default=_default_from_json(json_value, "initial-default", field_type, name),
        write_default=_default_from_json(json_value, "write-default", field_type, name),
    )


def _parse_object(json_value: Mapping[str, Any]) -> IcebergType:
    kind = json_value.get("type")
    if kind == "struct":
        fields = _require_value(json_value, "fields", list, "a struct")
        return StructType(tuple(field_from_json(field) for field in fields))
    if kind == "list":
        return ListType(
            element_id=_require_value(json_value, "element-id", int, "a list"),
            element_type=parse_type(_required_value(json_value, "element", "a list")),
            element_required=_require_value(json_value, "element-required", bool, "a list"),
        )
    if kind == "map":
        return MapType(
            key_id=_require_value(json_value, "key-id", int, "a map"),
            key_type=parse_type(_required_value(json_value, "key", "a map")),
            value_id=_require_value(json_value, "value-id", int, "a map"),
            value_type=parse_type(_required_value(json_value, "value", "a map")),
            value_required=_require_value(json_value, "value-required", bool, "a map"),
        )
    raise InvalidMetadataError(f"{kind!r} is not a nested type; expected struct, list or map")


def _default_to_json(field: NestedField, value: Any) -> Any:
    if isinstance(field.field_type, StructType) and value == ():
        return {}
    return to_json(field.field_type, value)


def _default_from_json(
    json_value: Mapping[str, Any], key: str, field_type: IcebergType, name: str
) -> Any:
    value = json_value.get(key)
    if value is None or (isinstance(field_type, StructType) and value == {}):
        return None if value is None else ()
    try:
        return from_json(field_type, value)
    except InvalidFormatError as error:
        raise InvalidMetadataError(
            f"the {key} of {name!r} is wrong: {error.reason}", field=name
        ) from error


def _required_value(json_value: Mapping[str, Any], key: str, holder: str) -> Any:
    if key not in json_value:
        raise InvalidMetadataError(f"{holder} has no {key!r}", field=key)
    return json_value[key]


def _require_value(json_value: Mapping[str, Any], key: str, kind: type, holder: str) -> Any:
    value = _required_value(json_value, key, holder)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidMetadataError(
            f"the {key!r} of {holder} is {value!r}, which is not of type {kind.__name__}", field=key
        )
    return value
