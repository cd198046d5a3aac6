"""ReplaceDefinition: another schema, partitioning and order for a table that keeps its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from frazil.errors import ConflictError
from frazil.format.arguments import one_or_several
from frazil.format.changes import Update, apply_updates
from frazil.format.metadata import TableMetadata
from frazil.format.new_table import replacement_updates
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec, spec_for
from frazil.format.schema import Schema
from frazil.format.sorting import SortField, order_for
from frazil.table.commit.operation import MetadataOperation
from frazil.table.updates.properties import set_properties


class DefinitionKwargs(TypedDict, total=False):
    """Keywords of a table's definition beside its schema.

    Attributes:
        partition_by: expressions such as ``"month(ts)"``, ``"bucket(16, id)"``, ``"city"``.
        sort_by: expressions such as ``"ts desc nulls last"``.
        properties: table properties.
    """

    partition_by: str | Sequence[str | PartitionField]
    sort_by: str | Sequence[str | SortField]
    properties: Mapping[str, str] | None


class ReplaceDefinition(MetadataOperation):
    """Start the table over: `main` becomes empty, its snapshots stay in the history.

    Files are written with the ids of the first run, so a retry that would hand out other ids, after
    another commit changed the table's definition, is a ConflictError.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        partition_by: str | Sequence[str | PartitionField] = (),
        sort_by: str | Sequence[str | SortField] = (),
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._schema = schema
        self._partition_by = one_or_several(partition_by, PartitionField, argument="partition_by")
        self._sort_by = one_or_several(sort_by, SortField, argument="sort_by")
        self._properties = dict(properties or {})
        # Refuses reserved names before anything is written.
        set_properties(self._properties)
        self._first: tuple[Schema, PartitionSpec] | None = None
        super().__init__(self._replace)

    def _replace(self, base: TableMetadata) -> list[Update]:
        updates = replacement_updates(
            base,
            self._schema,
            spec_for(self._schema, self._partition_by),
            order_for(self._schema, self._sort_by),
            properties=self._properties,
        )
        after = apply_updates(base, updates)
        definition = (after.schema, after.spec)
        if self._first is None:
            self._first = definition
        elif self._first != definition:
            raise ConflictError(
                "another commit changed the table's definition while it was being replaced; "
                "replace it again"
            )
        return list(updates)
