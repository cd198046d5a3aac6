"""Name mappings: field ids for files that carry none (SPEC rules 54, 58-63)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from frazil.errors import InvalidFormatError, InvalidMetadataError
from frazil.format.schema import Schema
from frazil.format.types import IcebergType, NestedField
from frazil.format.types.inside import fields_inside

NAME_MAPPING_PROPERTY = "schema.name-mapping.default"
"""The table property that holds a mapping as JSON."""


@dataclass(frozen=True, slots=True)
class MappedField:
    """Names that stand for one field of a struct, list or map.

    Attributes:
        names: every name that the field has in files; a dot in one is literal (rules 59, 61).
        field_id: None for a field that is in files only (rule 62).
        fields: what is in it; ``element`` of a list, ``key`` and ``value`` of a map (rule 60).
    """

    names: tuple[str, ...]
    field_id: int | None = None
    fields: tuple[MappedField, ...] = ()


@dataclass(frozen=True, slots=True)
class FileNames:
    """Names of columns in files without field ids that a mapping is to have besides its own.

    Attributes:
        spellings: a field's id, and a name that it has in a file.
        of_files_only: the id of the field around a column, None at the top, and the name of the
            column, which the table does not have.
    """

    spellings: frozenset[tuple[int, str]] = frozenset()
    of_files_only: frozenset[tuple[int | None, str]] = frozenset()

    def __or__(self, other: FileNames) -> FileNames:
        """The names of both."""
        return FileNames(self.spellings | other.spellings, self.of_files_only | other.of_files_only)


@dataclass(frozen=True)
class NameMapping:
    """The names that a table's fields have in files without field ids.

    Raises:
        InvalidMetadataError: where two fields of one parent share a name, or two fields an id.
    """

    fields: tuple[MappedField, ...] = ()

    def __post_init__(self) -> None:
        _index_ids(self.fields, "", {})

    @cached_property
    def _ids(self) -> Mapping[int, tuple[str, ...]]:
        ids: dict[int, tuple[str, ...]] = {}
        _index_ids(self.fields, "", ids)
        return ids

    @classmethod
    def from_json(cls, value: str | bytes | Sequence[Any]) -> NameMapping:
        """The mapping of its JSON, as text or parsed (rule 58)."""
        parsed: Any = value
        if isinstance(value, str | bytes):
            try:
                parsed = json.loads(value)
            except (ValueError, RecursionError) as error:
                raise InvalidMetadataError(
                    f"the name mapping is not JSON: {error}", field=NAME_MAPPING_PROPERTY
                ) from error
        return cls(_fields_from_json(parsed, ""))

    def to_json(self) -> str:
        """The mapping as JSON text."""
        return json.dumps(_fields_to_json(self.fields), ensure_ascii=False)

    @property
    def field_ids(self) -> frozenset[int]:
        """The ids of all fields that are mapped."""
        return frozenset(self._ids)

    def names_of(self, field_id: int) -> tuple[str, ...]:
        """All names of a field id; none where it is not mapped."""
        return self._ids.get(field_id, ())

    def field_id(self, path: Sequence[str]) -> int | None:
        """The id of a file's column by its names from the top down; None where it has none.

        What a list and a map hold is named ``element``, ``key`` and ``value`` (rule 60).
        """
        fields, found = self.fields, None
        for name in path:
            found = next((mapped for mapped in fields if name in mapped.names), None)
            if found is None:
                return None
            fields = found.fields
        return None if found is None else found.field_id


def mapping_for(schema: Schema) -> NameMapping:
    """The mapping of a schema's own names, for files that are imported into its table."""
    return NameMapping(_mapped_fields(schema.fields))


def with_names(mapping: NameMapping, names: FileNames, *, last_column_id: int) -> NameMapping:
    """The mapping that has these names, too; a name that it has already stays where it is.

    A column of files only gets an id that no field will have, as if it were a deleted one. Rule 62
    would have it without an id, which the Java runtime cannot read.
    `last_column_id`: the highest id ever used in the table; new ids follow it.
    """
    spellings: dict[int | None, list[str]] = {}
    for field_id, name in sorted(names.spellings):
        spellings.setdefault(field_id, []).append(name)
    others: dict[int | None, list[str]] = {}
    for parent, name in sorted(names.of_files_only, key=lambda each: (each[0] or 0, each[1])):
        others.setdefault(parent, []).append(name)
    fresh = itertools.count(last_column_id + 1)
    return NameMapping(_with_names(mapping.fields, None, spellings, others, fresh))


def evolved_mapping(mapping: NameMapping, base: Schema, evolved: Schema) -> NameMapping:
    """The mapping after its schema changed, by which every file is read as it was before.

    A field keeps its names, one that is deleted too. A renamed field has its new name as well, and
    an added field its own, but for a name that the mapping has for another column of the same
    parent: files may have that column, and its values are not those of the field.
    """
    return NameMapping(_evolved_fields(mapping.fields, base.as_struct(), evolved.as_struct()))


def _index_ids(fields: Sequence[MappedField], path: str, ids: dict[int, tuple[str, ...]]) -> None:
    seen: set[str] = set()
    for mapped in fields:
        for name in mapped.names:
            if name in seen:
                raise InvalidMetadataError(
                    f"the name mapping has two fields named {name!r}" + (path and f" in {path!r}"),
                    field=NAME_MAPPING_PROPERTY,
                )
            seen.add(name)
        if mapped.field_id is not None:
            if mapped.field_id in ids:
                raise InvalidMetadataError(
                    f"the name mapping maps the field id {mapped.field_id} twice: "
                    f"{list(ids[mapped.field_id])} and {list(mapped.names)}",
                    field=NAME_MAPPING_PROPERTY,
                )
            ids[mapped.field_id] = mapped.names
        own = mapped.names[0] if mapped.names else "?"
        _index_ids(mapped.fields, f"{path}.{own}" if path else own, ids)


def _fields_from_json(value: Any, path: str) -> tuple[MappedField, ...]:
    if not isinstance(value, list):
        raise _malformed_error(f"{value!r} is not a list of mapped fields", path)
    return tuple(_field_from_json(item, path) for item in value)


def _field_from_json(value: Any, path: str) -> MappedField:
    if not isinstance(value, dict):
        raise _malformed_error(f"{value!r} is not a mapped field: expected an object", path)
    names, field_id = value.get("names"), value.get("field-id")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _malformed_error(f"a mapped field needs a list of names, not {names!r}", path)
    if field_id is not None and (not isinstance(field_id, int) or isinstance(field_id, bool)):
        raise _malformed_error(f"the field id {field_id!r} is no number", path)
    nested = value.get("fields")
    own = names[0] if names else "?"
    inside = f"{path}.{own}" if path else own
    fields = () if nested is None else _fields_from_json(nested, inside)
    return MappedField(tuple(dict.fromkeys(names)), field_id, fields)


def _malformed_error(message: str, path: str) -> InvalidFormatError:
    place = f"{NAME_MAPPING_PROPERTY} at {path}" if path else NAME_MAPPING_PROPERTY
    return InvalidMetadataError(message, field=place)


def _fields_to_json(fields: Iterable[MappedField]) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    for mapped in fields:
        value: dict[str, Any] = {"names": list(mapped.names)}
        if mapped.field_id is not None:
            value = {"field-id": mapped.field_id, **value}
        if mapped.fields:
            value["fields"] = _fields_to_json(mapped.fields)
        result.append(value)
    return result


def _with_names(
    fields: Sequence[MappedField],
    parent: int | None,
    spellings: Mapping[int | None, Sequence[str]],
    others: Mapping[int | None, Sequence[str]],
    fresh: Iterator[int],
) -> tuple[MappedField, ...]:
    found = [
        mapped
        if mapped.field_id is None
        else replace(
            mapped,
            names=tuple(dict.fromkeys((*mapped.names, *spellings.get(mapped.field_id, ())))),
            fields=_with_names(mapped.fields, mapped.field_id, spellings, others, fresh),
        )
        for mapped in fields
    ]
    known = {name for mapped in found for name in mapped.names}
    new = (name for name in others.get(parent, ()) if name not in known)
    return (*found, *(MappedField((name,), next(fresh)) for name in new))


def _mapped_fields(fields: Iterable[NestedField]) -> tuple[MappedField, ...]:
    return tuple(
        MappedField((each.name,), each.field_id, _mapped_fields(fields_inside(each.field_type)))
        for each in fields
    )


def _evolved_fields(
    mapped_fields: Sequence[MappedField], base: IcebergType | None, evolved: IcebergType
) -> tuple[MappedField, ...]:
    before = {} if base is None else {nested.field_id: nested for nested in fields_inside(base)}
    after = {nested.field_id: nested for nested in fields_inside(evolved)}
    taken = {name for mapped in mapped_fields for name in mapped.names}
    result: list[MappedField] = []
    for mapped in mapped_fields:
        now = None if mapped.field_id is None else after.get(mapped.field_id)
        if now is None:
            result.append(mapped)
            continue
        was = before.get(now.field_id)
        is_named_anew = was is None or was.name != now.name
        new = (now.name,) if is_named_anew and now.name not in taken else ()
        type_before = None if was is None else was.field_type
        inside = _evolved_fields(mapped.fields, type_before, now.field_type)
        result.append(replace(mapped, names=(*mapped.names, *new), fields=inside))
    known = {mapped.field_id for mapped in mapped_fields}
    added = (nested for field_id, nested in after.items() if field_id not in {*before, *known})
    free = (
        replace(mapped, names=tuple(name for name in mapped.names if name not in taken))
        for mapped in _mapped_fields(added)
    )
    return (*result, *free)
