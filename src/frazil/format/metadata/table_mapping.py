"""The name mapping of a table, as its property and its schemas say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from frazil.errors import InvalidMetadataError
from frazil.format.metadata.table_metadata import TableMetadata
from frazil.format.properties.table import NAME_MAPPING
from frazil.format.schema import Schema
from frazil.format.schema.name_mapping import (
    NAME_MAPPING_PROPERTY,
    MappedField,
    NameMapping,
    evolved_mapping,
)
from frazil.format.types import NestedField
from frazil.format.types.inside import fields_inside


def name_mapping_of(metadata: TableMetadata) -> NameMapping | None:
    """Return the table's name mapping; None where it has none (rule 58).

    Hive's migration numbers the fields of the schema level by level, and those of the mapping in
    depth first: the ids of such a mapping stand for other fields than its names. A field never
    moves to another parent, so that can be told, and then the names count.
    Raises InvalidMetadataError where its ids contradict the schema and its names do not say which
    fields it means.
    """
    mapping = NAME_MAPPING.of(metadata.properties)
    if mapping is None:
        return None
    if all(_agrees_with(mapping.fields, None, schema) for schema in metadata.schemas):
        return mapping
    return NameMapping(_by_names(mapping.fields, (), metadata.schemas))


def evolved_mapping_property(metadata: TableMetadata, schema: Schema) -> dict[str, str]:
    """Return the property of the name mapping as it is to be under another schema.

    It is empty where the table has no mapping, or where nothing changes.
    """
    mapping = name_mapping_of(metadata)
    if mapping is None:
        return {}
    evolved = evolved_mapping(mapping, metadata.schema, schema)
    if evolved == NAME_MAPPING.of(metadata.properties):
        return {}
    return {NAME_MAPPING.name: evolved.to_json()}


def _agrees_with(fields: Sequence[MappedField], parent: int | None, schema: Schema) -> bool:
    for mapped in fields:
        field_id = mapped.field_id
        if field_id in schema.field_ids and schema.parent_ids.get(field_id) != parent:
            return False
        if field_id is not None and not _agrees_with(mapped.fields, field_id, schema):
            return False
    return True


def _by_names(
    fields: Sequence[MappedField], parents: tuple[str, ...], schemas: Sequence[Schema]
) -> tuple[MappedField, ...]:
    return tuple(_by_name(mapped, parents, schemas) for mapped in fields)


def _by_name(
    mapped: MappedField, parents: tuple[str, ...], schemas: Sequence[Schema]
) -> MappedField:
    if mapped.field_id is None:
        return mapped
    paths = [(*parents, name) for name in mapped.names]
    found = {
        field.field_id: path
        for schema in schemas
        for path in paths
        if (field := _field_at(path, schema)) is not None
    }
    if len(found) != 1:
        meant = f"the fields {sorted(found)}" if found else "no field"
        raise InvalidMetadataError(
            f"the name mapping gives {'.'.join(paths[0]) if paths else mapped!r} the id "
            f"{mapped.field_id}, which is elsewhere in the table's schema, and by its names it is "
            f"{meant}: set the property anew, with the ids of the schema",
            field=NAME_MAPPING_PROPERTY,
        )
    ((field_id, path),) = found.items()
    return replace(mapped, field_id=field_id, fields=_by_names(mapped.fields, path, schemas))


def _field_at(path: tuple[str, ...], schema: Schema) -> NestedField | None:
    fields: Sequence[NestedField] = schema.fields
    found: NestedField | None = None
    for name in path:
        found = next((field for field in fields if field.name == name), None)
        if found is None:
            return None
        fields = fields_inside(found.field_type)
    return found
