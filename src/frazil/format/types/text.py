"""Iceberg's types and their JSON (SPEC rules 14-29, 197, 198).

``str()`` of a primitive type is its JSON form; structs, lists and maps are JSON objects, made by
``type_to_json`` and read by ``parse_type``.
"""

from __future__ import annotations

import re

from frazil.errors import ValidationError
from frazil.format.types.forms import WITHOUT_PARAMETERS
from frazil.format.types.model import (
    DEFAULT_CRS,
    DEFAULT_EDGE_ALGORITHM,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
)

_PLAIN_TYPES: dict[str, IcebergType] = {
    str(plain): plain for plain in (form.kind() for form in WITHOUT_PARAMETERS)
}
_USERS_NAMES: dict[str, IcebergType] = {
    alias: form.kind() for form in WITHOUT_PARAMETERS for alias in form.aliases
}
_FIXED = re.compile(r"fixed\s*\[\s*(\d+)\s*\]", re.IGNORECASE)
_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.IGNORECASE)
_GEOMETRY = re.compile(r"geometry\s*\(\s*([^)]*?)\s*\)", re.IGNORECASE)
_GEOGRAPHY = re.compile(r"geography\s*\(\s*([^,)]*?)\s*(?:,\s*(\w+)\s*)?\)", re.IGNORECASE)


def as_type(given: IcebergType | str) -> IcebergType:
    """The type that a user names: a type itself, its JSON string, or a usual other name.

    Raises:
        ValidationError: where no primitive type or variant has that name.
    """
    if isinstance(given, IcebergType):
        return given
    if isinstance(given, str):
        alias = _USERS_NAMES.get(given.strip().lower())
        return type_named(given) if alias is None else alias
    raise ValidationError(
        f"{given!r} is not a type; give one of frazil.format.types or a string such as 'long'"
    )


def type_named(text: str) -> IcebergType:
    """Return the primitive type or variant that the specification gives this name (rule 197).

    Upper case and whitespace around parameters are accepted.

    Raises:
        ValidationError: where no type has it.
    """
    bare = text.strip()
    plain = _PLAIN_TYPES.get(bare.lower())
    if plain is not None:
        return plain
    if match := _DECIMAL.fullmatch(bare):
        return DecimalType(int(match[1]), int(match[2]))
    if match := _FIXED.fullmatch(bare):
        return FixedType(int(match[1]))
    if match := _GEOMETRY.fullmatch(bare):
        return GeometryType(match[1] or DEFAULT_CRS)
    if match := _GEOGRAPHY.fullmatch(bare):
        return GeographyType(match[1] or DEFAULT_CRS, (match[2] or DEFAULT_EDGE_ALGORITHM).lower())
    raise ValidationError(
        f"{text!r} is not a type of Iceberg; the primitive types are {', '.join(_PLAIN_TYPES)}, "
        "decimal(P, S) and fixed[L]"
    )
