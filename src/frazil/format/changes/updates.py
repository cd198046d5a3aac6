"""What a commit changes: updates of the REST catalog as values, their JSON (rules 210-216)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from frazil.errors import UnsupportedError
from frazil.format.json_fields import JsonObject, json_fields, without_nulls
from frazil.format.metadata.json_form import encrypted_key_from_json, encrypted_key_to_json
from frazil.format.metadata.statistics import (
    PartitionStatisticsFile,
    StatisticsFile,
    partition_statistics_file_from_json,
    partition_statistics_file_to_json,
    statistics_file_from_json,
    statistics_file_to_json,
)
from frazil.format.metadata.table_metadata import EncryptedKey
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot, SnapshotRef
from frazil.format.snapshots.json_form import (
    ref_from_json,
    ref_to_json,
    snapshot_from_json,
    snapshot_to_json,
)
from frazil.format.sorting import SortOrder

LAST_ADDED = -1
"""The id that means: the schema, spec or order that was added last in the same commit."""


class TableUpdate:
    """An update has an `action`, and REST fields by the names of its own."""

    __slots__ = ()
    action: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """The REST object."""
        return {"action": self.action, **self._fields()}

    def _fields(self) -> dict[str, Any]:
        """The REST fields beside the action."""
        return without_nulls(json_fields(self))


@dataclass(frozen=True, slots=True)
class AssignUUID(TableUpdate):
    """Give the table a uuid."""

    uuid: str
    action: ClassVar[str] = "assign-uuid"


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersion(TableUpdate):
    """Raise the format version (rules 150, 293)."""

    format_version: int
    action: ClassVar[str] = "upgrade-format-version"


@dataclass(frozen=True, slots=True)
class AddSchema(TableUpdate):
    """Add a schema; `last_column_id` where it is beyond the schema's highest id."""

    schema: Schema
    last_column_id: int | None = None
    action: ClassVar[str] = "add-schema"


@dataclass(frozen=True, slots=True)
class SetCurrentSchema(TableUpdate):
    """Make a schema the current one."""

    schema_id: int = LAST_ADDED
    action: ClassVar[str] = "set-current-schema"


@dataclass(frozen=True, slots=True)
class AddSpec(TableUpdate):
    """Add a partition spec."""

    spec: PartitionSpec
    action: ClassVar[str] = "add-spec"


@dataclass(frozen=True, slots=True)
class SetDefaultSpec(TableUpdate):
    """Make a partition spec the one that new files are written with."""

    spec_id: int = LAST_ADDED
    action: ClassVar[str] = "set-default-spec"


@dataclass(frozen=True, slots=True)
class AddSortOrder(TableUpdate):
    """Add a sort order."""

    sort_order: SortOrder
    action: ClassVar[str] = "add-sort-order"


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder(TableUpdate):
    """Make a sort order the one that new files are written in."""

    sort_order_id: int = LAST_ADDED
    action: ClassVar[str] = "set-default-sort-order"


@dataclass(frozen=True, slots=True)
class AddSnapshot(TableUpdate):
    """Add a snapshot; a reference makes it reachable."""

    snapshot: Snapshot
    action: ClassVar[str] = "add-snapshot"

    def _fields(self) -> dict[str, Any]:
        return {"snapshot": snapshot_to_json(self.snapshot, format_version=2)}


@dataclass(frozen=True, slots=True)
class SetSnapshotRef(TableUpdate):
    """Create or move a branch or tag; `main` is the current snapshot (rule 185)."""

    name: str
    ref: SnapshotRef
    action: ClassVar[str] = "set-snapshot-ref"

    def _fields(self) -> dict[str, Any]:
        return {"ref-name": self.name, **ref_to_json(self.ref)}


@dataclass(frozen=True, slots=True)
class RemoveSnapshots(TableUpdate):
    """Forget snapshots, with their statistics; references to them must go in the same commit."""

    snapshot_ids: tuple[int, ...]
    action: ClassVar[str] = "remove-snapshots"


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRef(TableUpdate):
    """Drop a branch or tag."""

    name: str
    action: ClassVar[str] = "remove-snapshot-ref"

    def _fields(self) -> dict[str, Any]:
        return {"ref-name": self.name}


@dataclass(frozen=True, slots=True)
class SetLocation(TableUpdate):
    """Where new files go unless properties say otherwise."""

    location: str
    action: ClassVar[str] = "set-location"


@dataclass(frozen=True, slots=True)
class SetProperties(TableUpdate):
    """Set table properties."""

    updates: Mapping[str, str]
    action: ClassVar[str] = "set-properties"


@dataclass(frozen=True, slots=True)
class RemoveProperties(TableUpdate):
    """Remove table properties; absent ones are no error."""

    removals: tuple[str, ...]
    action: ClassVar[str] = "remove-properties"


@dataclass(frozen=True, slots=True)
class SetStatistics(TableUpdate):
    """Register the statistics file of its snapshot (rule 203)."""

    statistics: StatisticsFile
    action: ClassVar[str] = "set-statistics"

    def _fields(self) -> dict[str, Any]:
        return {
            "snapshot-id": self.statistics.snapshot_id,
            "statistics": statistics_file_to_json(self.statistics),
        }


@dataclass(frozen=True, slots=True)
class RemoveStatistics(TableUpdate):
    """Forget the statistics file of a snapshot."""

    snapshot_id: int
    action: ClassVar[str] = "remove-statistics"


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics(TableUpdate):
    """Register the partition statistics file of its snapshot (rule 205)."""

    partition_statistics: PartitionStatisticsFile
    action: ClassVar[str] = "set-partition-statistics"

    def _fields(self) -> dict[str, Any]:
        return {
            "partition-statistics": partition_statistics_file_to_json(self.partition_statistics)
        }


@dataclass(frozen=True, slots=True)
class RemovePartitionStatistics(TableUpdate):
    """Forget the partition statistics file of a snapshot."""

    snapshot_id: int
    action: ClassVar[str] = "remove-partition-statistics"


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecs(TableUpdate):
    """Forget partition specs that no manifest uses."""

    spec_ids: tuple[int, ...]
    action: ClassVar[str] = "remove-partition-specs"


@dataclass(frozen=True, slots=True)
class RemoveSchemas(TableUpdate):
    """Forget schemas that no snapshot uses."""

    schema_ids: tuple[int, ...]
    action: ClassVar[str] = "remove-schemas"


@dataclass(frozen=True, slots=True)
class AddEncryptionKey(TableUpdate):
    """Add a wrapped encryption key (rule 201)."""

    encryption_key: EncryptedKey
    action: ClassVar[str] = "add-encryption-key"

    def _fields(self) -> dict[str, Any]:
        return {"encryption-key": encrypted_key_to_json(self.encryption_key)}


@dataclass(frozen=True, slots=True)
class RemoveEncryptionKey(TableUpdate):
    """Forget an encryption key."""

    key_id: str
    action: ClassVar[str] = "remove-encryption-key"


Update = (
    AssignUUID
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshots
    | RemoveSnapshotRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemovePartitionSpecs
    | RemoveSchemas
    | AddEncryptionKey
    | RemoveEncryptionKey
)

_READERS: dict[str, Callable[[JsonObject], Update]] = {
    AssignUUID.action: lambda f: AssignUUID(f.string("uuid")),
    UpgradeFormatVersion.action: lambda f: UpgradeFormatVersion(f.integer("format-version")),
    AddSchema.action: lambda f: AddSchema(
        f.value_of("schema", Schema.from_json), f.optional_integer("last-column-id")
    ),
    SetCurrentSchema.action: lambda f: SetCurrentSchema(f.integer("schema-id")),
    AddSpec.action: lambda f: AddSpec(f.value_of("spec", PartitionSpec.from_json)),
    SetDefaultSpec.action: lambda f: SetDefaultSpec(f.integer("spec-id")),
    AddSortOrder.action: lambda f: AddSortOrder(f.value_of("sort-order", SortOrder.from_json)),
    SetDefaultSortOrder.action: lambda f: SetDefaultSortOrder(f.integer("sort-order-id")),
    AddSnapshot.action: lambda f: AddSnapshot(
        snapshot_from_json(f.object("snapshot"), format_version=2)
    ),
    SetSnapshotRef.action: lambda f: SetSnapshotRef(f.string("ref-name"), ref_from_json(f)),
    RemoveSnapshots.action: lambda f: RemoveSnapshots(f.snapshot_ids("snapshot-ids")),
    RemoveSnapshotRef.action: lambda f: RemoveSnapshotRef(f.string("ref-name")),
    SetLocation.action: lambda f: SetLocation(f.string("location")),
    SetProperties.action: lambda f: SetProperties(f.string_map("updates")),
    RemoveProperties.action: lambda f: RemoveProperties(f.strings("removals")),
    SetStatistics.action: lambda f: SetStatistics(
        statistics_file_from_json(f.object("statistics"))
    ),
    RemoveStatistics.action: lambda f: RemoveStatistics(f.snapshot_id("snapshot-id")),
    SetPartitionStatistics.action: lambda f: SetPartitionStatistics(
        partition_statistics_file_from_json(f.object("partition-statistics"))
    ),
    RemovePartitionStatistics.action: lambda f: RemovePartitionStatistics(
        f.snapshot_id("snapshot-id")
    ),
    RemovePartitionSpecs.action: lambda f: RemovePartitionSpecs(f.integers("spec-ids")),
    RemoveSchemas.action: lambda f: RemoveSchemas(f.integers("schema-ids")),
    AddEncryptionKey.action: lambda f: AddEncryptionKey(
        encrypted_key_from_json(f.object("encryption-key"))
    ),
    RemoveEncryptionKey.action: lambda f: RemoveEncryptionKey(f.string("key-id")),
}


def update_from_json(value: Any) -> Update:
    """The update of a REST object."""
    fields = JsonObject(value, path="update")
    action = fields.string("action")
    reader = _READERS.get(action)
    if reader is None:
        raise UnsupportedError(f"unknown update {action!r}; known are {sorted(_READERS)}")
    return reader(fields)
