"""The columns that partition specs are made of, those that were dropped too."""

from __future__ import annotations

from frazil.format.metadata.table_metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.format.types import NestedField


def schema_with_sources(metadata: TableMetadata, schema: Schema | None = None) -> Schema:
    """Return a schema with the sources of partition fields that it lacks after its columns.

    Such a source has the type that it had last, and a name that no column has. A source that no
    schema of the table holds any more is not there.
    `schema`: the current one unless given.
    """
    current = metadata.schema if schema is None else schema
    sources = {
        source_id
        for spec in metadata.partition_specs
        for field in spec.fields
        for source_id in field.source_ids
    }
    missing = sources - current.field_ids
    if not missing:
        return current
    dropped: dict[int, NestedField] = {}
    for earlier in metadata.schemas:
        found = {source_id: earlier.field_or_none(source_id) for source_id in missing}
        dropped |= {source_id: field for source_id, field in found.items() if field is not None}
    gone = [
        NestedField(field_id, f"{field.name} (dropped, field {field_id})", field.field_type)
        for field_id, field in sorted(dropped.items())
    ]
    return Schema((*current.fields, *gone), schema_id=current.schema_id)
