"""Which requirements a list of updates puts on the metadata it was made from (REST semantics)."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.format.changes import (
    AddSchema,
    AddSnapshot,
    AddSortOrder,
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
from frazil.format.snapshots import MAIN_BRANCH, SnapshotRef


def requirements_for(base: TableMetadata, updates: Sequence[Update]) -> tuple[Requirement, ...]:
    """What must still hold of the table for updates made from `base` to be right (rule 213).

    They are enough by themselves: a REST catalog checks nothing else. The table is the same table;
    every reference that is set or removed still points where it did; ids that the updates hand out
    are still free; what they replace as current or default still is. Beside that:

    - New files were written for the current schema, which is asked for, and by the default spec,
      which is asked for as well: nobody removes a spec that is the default.
    - A snapshot builds on the head of a reference, also one that becomes the head of another or of
      none; while that is there, so are the manifests that it carries on.
    - Columns that partition fields and sort keys are made from stay, and these are made from
      columns that are there: each of the three kinds of definition asks for the other two.
    - Removing snapshots, schemas or specs asks that no reference moved, since a moved reference
      could reach what is removed; where `main` is not there, that it still is not.
    """
    found: dict[tuple[str, str], Requirement] = {}
    added: set[int] = set()

    def require(kind: str, requirement: Requirement, name: str = "") -> None:
        found.setdefault((kind, name), requirement)

    def require_ref(name: str) -> None:
        require("ref", AssertRefSnapshotId(name, ref_snapshot_id(base, name)), name)

    def require_schema() -> None:
        require("schema", AssertCurrentSchemaId(base.current_schema_id))

    def require_spec() -> None:
        require("spec", AssertDefaultSpecId(base.default_spec_id))

    def require_partition_ids() -> None:
        require("partition", AssertLastAssignedPartitionId(base.last_partition_id))

    def require_order() -> None:
        require("order", AssertDefaultSortOrderId(base.default_sort_order_id))

    if base.table_uuid is not None:
        require("uuid", AssertTableUUID(base.table_uuid))
    for update in updates:
        match update:
            case SetSnapshotRef() | RemoveSnapshotRef():
                require_ref(update.name)
            case AddSnapshot():
                require_schema()
                require_spec()
                added.add(update.snapshot.snapshot_id)
                parent = update.snapshot.parent_snapshot_id
                if parent is not None and parent not in added:
                    require_ref(_name_at(base, parent))
            case AddSchema() | SetCurrentSchema():
                require("field", AssertLastAssignedFieldId(base.last_column_id))
                require_schema()
                require_spec()
                require_partition_ids()
                require_order()
            case AddSpec() | SetDefaultSpec():
                require_partition_ids()
                require_spec()
                require_schema()
            case AddSortOrder() | SetDefaultSortOrder():
                require_order()
                require_schema()
            case RemoveSnapshots() | RemovePartitionSpecs() | RemoveSchemas():
                for name in (MAIN_BRANCH, *base.refs):
                    require_ref(name)
                if isinstance(update, RemovePartitionSpecs):
                    require_spec()
                if isinstance(update, RemoveSchemas):
                    require_schema()
            case _:
                pass
    return tuple(found.values())


def updates_requiring(base: TableMetadata, snapshot_id: int) -> tuple[Update, ...]:
    """Updates that change nothing, and that fail where the table does not have a snapshot.

    No requirement asks for a snapshot that is no reference's head. A tag can only be set where
    there is one: it comes and goes in the same commit.
    """
    name = f"requires-{snapshot_id}"
    while name in base.refs:
        name += "-"
    return (
        SetSnapshotRef(name, SnapshotRef(snapshot_id=snapshot_id, type="tag")),
        RemoveSnapshotRef(name),
    )


def _name_at(base: TableMetadata, snapshot_id: int) -> str:
    """The reference whose head a snapshot is, `main` before others; `main` where there is none."""
    if ref_snapshot_id(base, MAIN_BRANCH) == snapshot_id:
        return MAIN_BRANCH
    at = (name for name, ref in base.refs.items() if ref.snapshot_id == snapshot_id)
    return next(at, MAIN_BRANCH)


def ref_snapshot_id(metadata: TableMetadata, name: str) -> int | None:
    """The snapshot that a reference points at; `main` is the current snapshot (rule 185)."""
    ref = metadata.refs.get(name)
    if ref is not None:
        return ref.snapshot_id
    return metadata.current_snapshot_id if name == MAIN_BRANCH else None
