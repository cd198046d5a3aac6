"""What must still hold for a commit: requirements, their REST JSON, the check (rules 210-216)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from frazil.errors import CommitFailedError, UnsupportedError
from frazil.format.json_fields import JsonObject, json_fields
from frazil.format.metadata.table_metadata import TableMetadata
from frazil.format.snapshots import MAIN_BRANCH


class CommitRequirement:
    """A requirement has a `type`, and REST fields by the names of its own."""

    __slots__ = ()
    type: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """The REST object; an absent reference is an explicit null."""
        return {"type": self.type, **json_fields(self)}


@dataclass(frozen=True, slots=True)
class AssertCreate(CommitRequirement):
    """The table does not exist yet."""

    type: ClassVar[str] = "assert-create"


@dataclass(frozen=True, slots=True)
class AssertTableUUID(CommitRequirement):
    """The table is the one that was read (rule 192)."""

    uuid: str
    type: ClassVar[str] = "assert-table-uuid"


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotId(CommitRequirement):
    """A branch or tag is at that snapshot; None: there is no such reference."""

    ref: str
    snapshot_id: int | None
    type: ClassVar[str] = "assert-ref-snapshot-id"


@dataclass(frozen=True, slots=True)
class AssertLastAssignedFieldId(CommitRequirement):
    """Nobody has given out column ids since."""

    last_assigned_field_id: int
    type: ClassVar[str] = "assert-last-assigned-field-id"


@dataclass(frozen=True, slots=True)
class AssertCurrentSchemaId(CommitRequirement):
    """The current schema is that one."""

    current_schema_id: int
    type: ClassVar[str] = "assert-current-schema-id"


@dataclass(frozen=True, slots=True)
class AssertLastAssignedPartitionId(CommitRequirement):
    """Nobody has given out partition field ids since."""

    last_assigned_partition_id: int
    type: ClassVar[str] = "assert-last-assigned-partition-id"


@dataclass(frozen=True, slots=True)
class AssertDefaultSpecId(CommitRequirement):
    """The default partition spec is that one."""

    default_spec_id: int
    type: ClassVar[str] = "assert-default-spec-id"


@dataclass(frozen=True, slots=True)
class AssertDefaultSortOrderId(CommitRequirement):
    """The default sort order is that one."""

    default_sort_order_id: int
    type: ClassVar[str] = "assert-default-sort-order-id"


Requirement = (
    AssertCreate
    | AssertTableUUID
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)

_READERS: dict[str, Callable[[JsonObject], Requirement]] = {
    AssertCreate.type: lambda _: AssertCreate(),
    AssertTableUUID.type: lambda fields: AssertTableUUID(fields.string("uuid")),
    AssertRefSnapshotId.type: lambda fields: AssertRefSnapshotId(
        fields.string("ref"), fields.optional_snapshot_id("snapshot-id")
    ),
    AssertLastAssignedFieldId.type: lambda fields: AssertLastAssignedFieldId(
        fields.integer("last-assigned-field-id")
    ),
    AssertCurrentSchemaId.type: lambda fields: AssertCurrentSchemaId(
        fields.integer("current-schema-id")
    ),
    AssertLastAssignedPartitionId.type: lambda fields: AssertLastAssignedPartitionId(
        fields.integer("last-assigned-partition-id")
    ),
    AssertDefaultSpecId.type: lambda fields: AssertDefaultSpecId(fields.integer("default-spec-id")),
    AssertDefaultSortOrderId.type: lambda fields: AssertDefaultSortOrderId(
        fields.integer("default-sort-order-id")
    ),
}


def requirement_from_json(value: Any) -> Requirement:
    """The requirement of a REST object."""
    fields = JsonObject(value, path="requirement")
    kind = fields.string("type")
    reader = _READERS.get(kind)
    if reader is None:
        raise UnsupportedError(f"unknown requirement {kind!r}; known are {sorted(_READERS)}")
    return reader(fields)


def check_requirements(metadata: TableMetadata | None, requirements: Iterable[Requirement]) -> None:
    """Check that every requirement holds."""
    for requirement in requirements:
        broken = _broken_by(metadata, requirement)
        if broken is not None:
            raise CommitFailedError(f"requirement failed: {broken}")


def _broken_by(metadata: TableMetadata | None, requirement: Requirement) -> str | None:
    """What contradicts the requirement, or None where it holds."""
    if isinstance(requirement, AssertCreate):
        return None if metadata is None else "expected no table, found that it already exists"
    if metadata is None:
        return f"{requirement.type} expected a table, found that there is none"
    match requirement:
        case AssertTableUUID(uuid):
            found = metadata.table_uuid
            same = found is not None and found.lower() == uuid.lower()
            return None if same else _change_message("table uuid", uuid, found)
        case AssertRefSnapshotId(ref, snapshot_id):
            return _broken_ref(metadata, ref, snapshot_id)
        case AssertLastAssignedFieldId(expected):
            return _difference("last assigned field id", expected, metadata.last_column_id)
        case AssertCurrentSchemaId(expected):
            return _difference("current schema id", expected, metadata.current_schema_id)
        case AssertLastAssignedPartitionId(expected):
            return _difference("last assigned partition id", expected, metadata.last_partition_id)
        case AssertDefaultSpecId(expected):
            return _difference("default partition spec id", expected, metadata.default_spec_id)
        case AssertDefaultSortOrderId(expected):
            return _difference("default sort order id", expected, metadata.default_sort_order_id)


def _broken_ref(metadata: TableMetadata, name: str, expected: int | None) -> str | None:
    ref = metadata.refs.get(name)
    found = None if ref is None else ref.snapshot_id
    if name == MAIN_BRANCH:
        found = metadata.current_snapshot_id
    if found == expected:
        return None
    kind = "tag" if ref is not None and not ref.is_branch else "branch"
    if found is None:
        return f"expected branch or tag {name!r} at snapshot {expected}, found no such reference"
    if expected is None:
        return f"expected no reference {name!r}, found a {kind} at snapshot {found}"
    return _change_message(f"snapshot of {kind} {name!r}", expected, found)


def _difference(what: str, expected: int, found: int) -> str | None:
    return None if expected == found else _change_message(what, expected, found)


def _change_message(what: str, expected: object, found: object) -> str:
    return f"expected {what} {expected}, found {found}"
