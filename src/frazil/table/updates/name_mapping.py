"""The name mapping, by which readers find the columns of files without field ids (rules 54-62)."""

from __future__ import annotations

from frazil.errors import ConflictError
from frazil.format.changes import AddSchema, SetProperties, Update
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.table_mapping import name_mapping_of
from frazil.format.properties.table import NAME_MAPPING
from frazil.format.schema.name_mapping import FileNames, mapping_for, with_names
from frazil.table.commit.operation import MetadataOperation


def learn_names(start: TableMetadata, names: FileNames) -> MetadataOperation:
    """Give the table's name mapping the names of files that were matched with `start`.

    A table without a mapping gets that of its schema. What other commits added to the mapping
    meanwhile stays.
    Raises ConflictError: when run on metadata whose schema another commit changed: the files'
    columns were matched with another one.
    """

    def updates(base: TableMetadata) -> list[Update]:
        if not base.schema.is_same_as(start.schema):
            raise ConflictError(
                "another commit changed the table's schema while the columns of files were matched "
                "with it; add the files again"
            )
        held = name_mapping_of(base)
        before = mapping_for(base.schema) if held is None else held
        mapping = with_names(before, names, last_column_id=base.last_column_id)
        if mapping == held:
            return []
        new = mapping.field_ids - before.field_ids
        return [
            # The same schema: what is new is the last id.
            *([AddSchema(base.schema, max(new))] if new else []),
            SetProperties({NAME_MAPPING.name: mapping.to_json()}),
        ]

    return MetadataOperation(updates)
