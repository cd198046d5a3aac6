"""Which requirements a list of updates puts on the metadata it was made from (REST semantics)."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.format.changes import (
    AddSchema,
    AddSnapshot,
    AddSpec,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    Requirement,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetSnapshotRef,
    Update,
)
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import MAIN_BRANCH


def requirements_for(base: TableMetadata, updates: Sequence[Update]) -> tuple[Requirement, ...]:
    """What must still hold of the table for updates made from `base` to be right (rule 213).

    The table is the same table; every reference that is set or removed still points where it did;
    ids that the updates hand out are still free; what they replace as current or default still is.
    New files were written for the current schema. Removing snapshots, schemas or specs asks that no
    reference moved, since a moved reference could reach what is removed; where `main` is not there,
    that it still is not.
    """
    found: dict[tuple[str, str], Requirement] = {}

    def require(kind: str, requirement: Requirement, name: str = "") -> None:
        found.setdefault((kind, name), requirement)

    def require_ref(name: str) -> None:
        require("ref", AssertRefSnapshotId(name, ref_snapshot_id(base, name)), name)

    if base.table_uuid is not None:
        require("uuid", AssertTableUUID(base.table_uuid))
    for update in updates:
        match update:
            case SetSnapshotRef() | RemoveSnapshotRef():
                require_ref(update.name)
            case AddSnapshot():
                require("schema", AssertCurrentSchemaId(base.current_schema_id))
            case AddSchema():
                require("field", AssertLastAssignedFieldId(base.last_column_id))
            case SetCurrentSchema():
                require("schema", AssertCurrentSchemaId(base.current_schema_id))
            case AddSpec():
                require("partition", AssertLastAssignedPartitionId(base.last_partition_id))
            case SetDefaultSpec():
                require("spec", AssertDefaultSpecId(base.default_spec_id))
            case SetDefaultSortOrder():
                require("order", AssertDefaultSortOrderId(base.default_sort_order_id))
            case RemoveSnapshots() | RemovePartitionSpecs() | RemoveSchemas():
                for name in (MAIN_BRANCH, *base.refs):
                    require_ref(name)
                if isinstance(update, RemovePartitionSpecs):
                    require("spec", AssertDefaultSpecId(base.default_spec_id))
                if isinstance(update, RemoveSchemas):
                    require("schema", AssertCurrentSchemaId(base.current_schema_id))
            case _:
                pass
    return tuple(found.values())


def ref_snapshot_id(metadata: TableMetadata, name: str) -> int | None:
    """The snapshot that a reference points at; `main` is the current snapshot (rule 185)."""
    ref = metadata.refs.get(name)
    if ref is not None:
        return ref.snapshot_id
    return metadata.current_snapshot_id if name == MAIN_BRANCH else None
