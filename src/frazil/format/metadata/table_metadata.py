"""Table metadata of format versions 1 to 3 as one immutable value (rules 191-202)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from frazil.errors import NoSuchRefError, NoSuchSnapshotError, ValidationError
from frazil.format.metadata.referenced_snapshots import ReferencedSnapshots
from frazil.format.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.snapshots import (
    MAIN_BRANCH,
    MetadataLogEntry,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
)
from frazil.format.sorting import UNSORTED, SortOrder
from frazil.format.values.civil import NANOS_PER_MILLI, format_timestamp

T = TypeVar("T")

SUPPORTED_FORMAT_VERSIONS = (1, 2, 3)
DEFAULT_FORMAT_VERSION = 2
INITIAL_SEQUENCE_NUMBER = 0
INITIAL_ROW_ID = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptedKey:
    """A wrapped key of an encrypted table (rule 201); the metadata is base64 text as stored."""

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


# No slots: the lookups below are computed once and kept.
@dataclass(frozen=True, kw_only=True)
class TableMetadata:
    """A table at one moment: everything that a metadata file says (rule 191).

    Counters that a version does not know are 0: `last_sequence_number` in v1, `next_row_id` before
    v3. `table_uuid` is None only for v1 metadata that carries none. `refs` holds `main` whenever
    there is a current snapshot (rule 185). Times are milliseconds since the epoch.
    `snapshots` is a tuple, or `ReferencedSnapshots` where a server told of some of them.
    """

    format_version: int
    table_uuid: str | None
    location: str
    last_sequence_number: int = INITIAL_SEQUENCE_NUMBER
    last_updated_ms: int
    last_column_id: int
    schemas: tuple[Schema, ...]
    current_schema_id: int
    partition_specs: tuple[PartitionSpec, ...]
    default_spec_id: int
    last_partition_id: int
    properties: Mapping[str, str] = field(default_factory=dict)
    current_snapshot_id: int | None = None
    snapshots: Sequence[Snapshot] = ()
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    sort_orders: tuple[SortOrder, ...]
    default_sort_order_id: int
    refs: Mapping[str, SnapshotRef] = field(default_factory=dict)
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    next_row_id: int = INITIAL_ROW_ID
    encryption_keys: tuple[EncryptedKey, ...] = ()

    @cached_property
    def schemas_by_id(self) -> Mapping[int, Schema]:
        """Every schema that the table had, by its id."""
        return {schema.schema_id: schema for schema in self.schemas}

    @cached_property
    def specs_by_id(self) -> Mapping[int, PartitionSpec]:
        """Every partition spec that the table had, by its id."""
        return {spec.spec_id: spec for spec in self.partition_specs}

    @cached_property
    def sort_orders_by_id(self) -> Mapping[int, SortOrder]:
        """Every sort order that the metadata lists, by its id."""
        return {order.order_id: order for order in self.sort_orders}

    @cached_property
    def snapshots_by_id(self) -> Mapping[int, Snapshot]:
        """Every snapshot that is kept, by its id."""
        if isinstance(self.snapshots, ReferencedSnapshots):
            return self.snapshots.by_id
        return {snapshot.snapshot_id: snapshot for snapshot in self.snapshots}

    @property
    def snapshots_at_hand(self) -> Mapping[int, Snapshot]:
        """The snapshots that no request is needed for, by their ids: of most catalogs every one."""
        if isinstance(self.snapshots, ReferencedSnapshots):
            return {snapshot.snapshot_id: snapshot for snapshot in self.snapshots.at_hand}
        return self.snapshots_by_id

    @property
    def statistics_paths(self) -> tuple[str, ...]:
        """Where statistics files lie, of tables and of partitions."""
        return (
            *(file.statistics_path for file in self.statistics),
            *(file.statistics_path for file in self.partition_statistics),
        )

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.schema_by_id(self.current_schema_id)

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec that new files are written with."""
        return self.spec_by_id(self.default_spec_id)

    @property
    def sort_order(self) -> SortOrder:
        """The sort order that new files are written in."""
        return self.sort_order_by_id(self.default_sort_order_id)

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The newest snapshot of `main`, None in an empty table."""
        if self.current_snapshot_id is None:
            return None
        return self.snapshot_by_id(self.current_snapshot_id)

    def schema_by_id(self, schema_id: int) -> Schema:
        """The schema of that id; ValidationError where there is none."""
        return _value_of_id(self.schemas_by_id, schema_id, "schema")

    def schema_of(self, snapshot: Snapshot | None) -> Schema:
        """Return the schema that a snapshot was written with, or else the current one."""
        schema_id = None if snapshot is None else snapshot.schema_id
        return self.schema if schema_id is None else self.schemas_by_id.get(schema_id, self.schema)

    def as_added(self, schema: Schema) -> Schema:
        """Return the schema under the id that it has in the table, or that it gets when added."""
        held = next((each for each in self.schemas if each.is_same_as(schema)), None)
        if held is not None:
            return held
        return schema.with_id(max((each.schema_id for each in self.schemas), default=-1) + 1)

    def spec_by_id(self, spec_id: int) -> PartitionSpec:
        """The partition spec of that id; ValidationError where there is none."""
        return _value_of_id(self.specs_by_id, spec_id, "partition spec")

    def sort_order_by_id(self, order_id: int) -> SortOrder:
        """The sort order of that id; ValidationError where there is none.

        Order 0 is unsorted by definition, whether or not it is listed (rule 94).
        """
        if order_id == UNSORTED.order_id:
            return UNSORTED
        return _value_of_id(self.sort_orders_by_id, order_id, "sort order")

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot:
        """The snapshot of that id; NoSuchSnapshotError where it is unknown or expired."""
        try:
            return self.snapshots_by_id[snapshot_id]
        except KeyError:
            raise NoSuchSnapshotError(
                f"the table has no snapshot {snapshot_id}: it never had, or the snapshot expired"
                f" ({len(self.snapshots)} snapshots are kept)"
            ) from None

    def snapshot_as_of(self, timestamp_ms: int) -> Snapshot:
        """The snapshot that was current at that time, by the snapshot log (rule 188).

        NoSuchSnapshotError where the log does not reach back that far.
        """
        found: int | None = None
        for entry in self.snapshot_log:
            if entry.timestamp_ms <= timestamp_ms:
                found = entry.snapshot_id
        if found is None:
            oldest = self.snapshot_log[0].timestamp_ms if self.snapshot_log else None
            known = (
                f"its history begins at {_shown_time(oldest)}"
                if oldest is not None
                else "it has no history"
            )
            raise NoSuchSnapshotError(
                f"the table had no snapshot at {_shown_time(timestamp_ms)}; {known}"
            )
        return self.snapshot_by_id(found)

    def ref(self, name: str) -> SnapshotRef:
        """The branch or tag of that name; NoSuchRefError where there is none."""
        try:
            return self.refs[name]
        except KeyError:
            known = ", ".join(sorted(self.refs)) or "none"
            raise NoSuchRefError(
                f"the table has no branch or tag {name!r}; it has {known}"
            ) from None

    def ref_snapshot(self, name: str) -> Snapshot | None:
        """The snapshot that a branch or tag names; None for `main` of an empty table.

        NoSuchRefError where there is no such reference.
        """
        if name == MAIN_BRANCH and self.current_snapshot_id is None:
            return None
        return self.snapshot_by_id(self.ref(name).snapshot_id)

    def ancestors_of(self, snapshot_id: int) -> tuple[Snapshot, ...]:
        """The snapshot and its kept ancestors, newest first; ends where one has expired."""
        chain: list[Snapshot] = []
        seen: set[int] = set()
        next_id: int | None = snapshot_id
        while next_id is not None and next_id not in seen:
            snapshot = self.snapshots_by_id.get(next_id)
            if snapshot is None:
                break
            seen.add(next_id)
            chain.append(snapshot)
            next_id = snapshot.parent_snapshot_id
        return tuple(chain)

    @property
    def next_sequence_number(self) -> int:
        """The sequence number that the next snapshot takes; 0 in v1 (rule 292)."""
        if self.format_version == 1:
            return INITIAL_SEQUENCE_NUMBER
        return self.last_sequence_number + 1


def _value_of_id(held: Mapping[int, T], wanted: int, what: str) -> T:
    if wanted not in held:
        raise ValidationError(f"the table has no {what} {wanted}; it has {sorted(held)}")
    return held[wanted]


def _shown_time(timestamp_ms: int) -> str:
    return f"{format_timestamp(timestamp_ms * NANOS_PER_MILLI, 3)}Z"
