"""Applying updates to table metadata: the rules of every change (SPEC 2.D, 2.N, 2.O, 2.R, 2.S)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from frazil.errors import UnsupportedVersionError, ValidationError
from frazil.format.changes import updates as u
from frazil.format.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.format.metadata.table_metadata import (
    DEFAULT_FORMAT_VERSION,
    SUPPORTED_FORMAT_VERSIONS,
    EncryptedKey,
    TableMetadata,
)
from frazil.format.partitions.partitioning import FIRST_PARTITION_FIELD_ID, PartitionSpec
from frazil.format.schema import Schema
from frazil.format.snapshots import MAIN_BRANCH, Snapshot, SnapshotLogEntry, SnapshotRef
from frazil.format.sorting import reuse_order
from frazil.format.table_properties import stored_properties

_UNSET = -1


def apply_updates(
    metadata: TableMetadata | None,
    updates: Iterable[u.Update],
    *,
    now_ms: int | None = None,
) -> TableMetadata:
    """The metadata after the updates, in their order; the same object where nothing changes.

    Args:
        metadata: the table before, None to build a table from updates alone.
        updates: what changes.
        now_ms: the time of the change, unless a snapshot of it says; the clock where None.

    Raises:
        ValidationError: an update that contradicts the table or the specification.
        UnsupportedVersionError: an upgrade to a version that is not adopted.
    """
    changes = tuple(updates)
    moment = int(time.time() * 1000) if now_ms is None else now_ms
    state = _State(_empty(changes, moment) if metadata is None else metadata, moment)
    for update in changes:
        state.apply(update)
    return state.build(is_new=metadata is None)


def _empty(updates: tuple[u.Update, ...], now_ms: int) -> TableMetadata:
    """Metadata without content, of the version that the updates ask for."""
    versions = [each.format_version for each in updates if isinstance(each, u.UpgradeFormatVersion)]
    version = versions[0] if versions else DEFAULT_FORMAT_VERSION
    _check_supported(version)
    return TableMetadata(
        format_version=version,
        table_uuid=None,
        location="",
        last_updated_ms=now_ms,
        last_column_id=0,
        schemas=(),
        current_schema_id=_UNSET,
        partition_specs=(),
        default_spec_id=_UNSET,
        last_partition_id=FIRST_PARTITION_FIELD_ID - 1,
        sort_orders=(),
        default_sort_order_id=_UNSET,
    )


class _State:
    """The metadata while updates are applied to it."""

    def __init__(self, base: TableMetadata, now_ms: int) -> None:
        self._base = base
        self._now = base
        self._now_ms = now_ms
        self._updated_ms: int | None = None
        self._last_schema_id: int | None = None
        self._last_spec_id: int | None = None
        self._last_order_id: int | None = None
        self._added_snapshots: set[int] = set()
        self._set_as_main: set[int] = set()
        self._removed_snapshots = False

    def apply(self, update: u.Update) -> None:
        """Apply one update."""
        _APPLY[type(update)](self, update)

    def build(self, *, is_new: bool) -> TableMetadata:
        """The result: complete, with its logs put right and its time set."""
        if is_new:
            self._check_complete()
            if self._now.table_uuid is None:
                self._change(table_uuid=str(uuid.uuid4()))
        elif self._now == self._base:
            return self._base
        log = self._corrected_log()
        # Clocks differ between writers; readers refuse logs that run backwards.
        newest = max(
            self._now_ms if self._updated_ms is None else self._updated_ms,
            log[-1].timestamp_ms if log else 0,
            0 if is_new else self._base.last_updated_ms,
        )
        return replace(self._now, snapshot_log=log, last_updated_ms=newest)

    def _check_complete(self) -> None:
        for is_missing, what in (
            (not self._now.location, "location"),
            (self._now.current_schema_id == _UNSET, "current schema"),
            (self._now.default_spec_id == _UNSET, "default partition spec"),
            (self._now.default_sort_order_id == _UNSET, "default sort order"),
        ):
            if is_missing:
                raise ValidationError(f"a table cannot be created without a {what}")

    def _change(self, **fields: Any) -> None:
        self._now = replace(self._now, **fields)

    # -- the table itself

    def assign_uuid(self, update: u.AssignUUID) -> None:
        self._change(table_uuid=update.uuid)

    def upgrade(self, version: int) -> None:
        current = self._now.format_version
        _check_supported(version)
        if version < current:
            raise ValidationError(
                f"a table cannot be downgraded: it is of format version {current}, asked for was"
                f" {version}"
            )
        if version > current:
            self._change(
                format_version=version,
                # v1 tables may have none; v2 requires one (rule 191).
                table_uuid=self._now.table_uuid or str(uuid.uuid4()),
            )

    def upgrade_format_version(self, update: u.UpgradeFormatVersion) -> None:
        self.upgrade(update.format_version)

    def set_location(self, update: u.SetLocation) -> None:
        if not update.location:
            raise ValidationError("the location of a table cannot be empty")
        self._change(location=update.location)

    def set_properties(self, update: u.SetProperties) -> None:
        stored, version = stored_properties(update.updates)
        if version is not None:
            self.upgrade(version)
        self._change(properties={**self._now.properties, **stored})

    def remove_properties(self, update: u.RemoveProperties) -> None:
        gone = set(update.removals)
        kept = {name: text for name, text in self._now.properties.items() if name not in gone}
        self._change(properties=kept)

    # -- schemas, specs, orders

    def add_schema(self, update: u.AddSchema) -> None:
        schema, last_id = update.schema, self._now.last_column_id
        if update.last_column_id is not None and update.last_column_id < last_id:
            raise ValidationError(
                f"the last column id cannot go back from {last_id} to {update.last_column_id}"
            )
        schema.check_types_for(self._now.format_version)
        held = next((s for s in self._now.schemas if s.is_same_as(schema)), None)
        if held is None:
            held = schema.with_id(max((s.schema_id for s in self._now.schemas), default=-1) + 1)
            self._change(schemas=(*self._now.schemas, held))
        self._last_schema_id = held.schema_id
        self._change(
            last_column_id=max(last_id, schema.highest_field_id, update.last_column_id or 0)
        )

    def set_current_schema(self, update: u.SetCurrentSchema) -> None:
        schema_id = _resolved(update.schema_id, self._last_schema_id, "schema")
        self._now.schema_by_id(schema_id)
        self._change(current_schema_id=schema_id)

    def add_spec(self, update: u.AddSpec) -> None:
        spec = update.spec
        held = next((s for s in self._now.partition_specs if s.is_equivalent_to(spec)), None)
        if held is None:
            spec.check_against(self._current_schema("partition spec"))
            self._check_partition_ids(spec)
            specs = self._now.partition_specs
            held = spec.with_id(max((s.spec_id for s in specs), default=-1) + 1)
            self._change(
                partition_specs=(*specs, held),
                last_partition_id=max(self._now.last_partition_id, held.last_assigned_field_id),
            )
        self._last_spec_id = held.spec_id

    def _check_partition_ids(self, spec: PartitionSpec) -> None:
        ids = [field.field_id for field in spec.fields]
        expected = [FIRST_PARTITION_FIELD_ID + position for position in range(len(ids))]
        if self._now.format_version == 1 and ids != expected:
            raise ValidationError(
                f"partition field ids of a v1 table count on from {FIRST_PARTITION_FIELD_ID}:"
                f" expected {expected}, found {ids}"
            )

    def set_default_spec(self, update: u.SetDefaultSpec) -> None:
        spec_id = _resolved(update.spec_id, self._last_spec_id, "partition spec")
        self._now.spec_by_id(spec_id)
        self._change(default_spec_id=spec_id)

    def add_sort_order(self, update: u.AddSortOrder) -> None:
        order = reuse_order(self._now.sort_orders, update.sort_order)
        if all(held.order_id != order.order_id for held in self._now.sort_orders):
            if not order.is_unsorted:
                order.check_against(self._current_schema("sort order"))
            self._change(sort_orders=(*self._now.sort_orders, order))
        self._last_order_id = order.order_id

    def set_default_sort_order(self, update: u.SetDefaultSortOrder) -> None:
        order_id = _resolved(update.sort_order_id, self._last_order_id, "sort order")
        self._now.sort_order_by_id(order_id)
        self._change(default_sort_order_id=order_id)

    def remove_schemas(self, update: u.RemoveSchemas) -> None:
        if self._now.current_schema_id in update.schema_ids:
            raise ValidationError(
                f"the current schema {self._now.current_schema_id} cannot be removed"
            )
        gone = set(update.schema_ids)
        self._change(schemas=tuple(s for s in self._now.schemas if s.schema_id not in gone))

    def remove_partition_specs(self, update: u.RemovePartitionSpecs) -> None:
        if self._now.default_spec_id in update.spec_ids:
            raise ValidationError(
                f"the default partition spec {self._now.default_spec_id} cannot be removed"
            )
        gone = set(update.spec_ids)
        kept = tuple(spec for spec in self._now.partition_specs if spec.spec_id not in gone)
        self._change(partition_specs=kept)

    def _current_schema(self, for_what: str) -> Schema:
        if self._now.current_schema_id == _UNSET:
            raise ValidationError(f"a {for_what} needs a current schema first")
        return self._now.schema

    # -- snapshots and references

    def add_snapshot(self, update: u.AddSnapshot) -> None:
        snapshot = update.snapshot
        self._check_new(snapshot)
        if self._now.format_version == 1:
            snapshot = replace(snapshot, sequence_number=0)
        self._added_snapshots.add(snapshot.snapshot_id)
        self._updated_ms = snapshot.timestamp_ms
        self._change(
            snapshots=(*self._now.snapshots, snapshot),
            last_sequence_number=snapshot.sequence_number,
            next_row_id=self._next_row_id_after(snapshot),
        )

    def _check_new(self, snapshot: Snapshot) -> None:
        one = f"the snapshot {snapshot.snapshot_id} cannot be added"
        self._current_schema("snapshot")
        if snapshot.snapshot_id in self._now.snapshots_by_id:
            raise ValidationError(f"{one}: the table has it already")
        last = self._now.last_sequence_number
        if self._now.format_version == 1:
            return
        if snapshot.sequence_number <= last:
            raise ValidationError(
                f"{one}: its sequence number {snapshot.sequence_number} is not above the table's"
                f" last, {last}"
            )
        if snapshot.manifest_list is None:
            raise ValidationError(f"{one}: it has no manifest list")

    def _next_row_id_after(self, snapshot: Snapshot) -> int:
        next_row_id = self._now.next_row_id
        if self._now.format_version < 3:
            return next_row_id
        first, added = snapshot.first_row_id, snapshot.added_rows
        one = f"the snapshot {snapshot.snapshot_id} cannot be added"
        if first is None or added is None:
            raise ValidationError(f"{one}: v3 requires its first row id and its added rows")
        if first < next_row_id:
            raise ValidationError(
                f"{one}: its first row id {first} is behind the table's next row id {next_row_id}"
            )
        if added < 0:
            raise ValidationError(f"{one}: its number of added rows is negative: {added}")
        return first + added

    def set_snapshot_ref(self, update: u.SetSnapshotRef) -> None:
        name, ref = update.name, update.ref
        _check_ref(name, ref)
        if ref.snapshot_id not in self._now.snapshots_by_id:
            raise ValidationError(
                f"{ref.type} {name!r} cannot be set: there is no snapshot {ref.snapshot_id}"
            )
        if name == MAIN_BRANCH and ref.snapshot_id != self._now.current_snapshot_id:
            self._set_main(ref.snapshot_id)
        self._change(refs={**self._now.refs, name: ref})

    def _set_main(self, snapshot_id: int) -> None:
        added = snapshot_id in self._added_snapshots
        snapshot = self._now.snapshots_by_id[snapshot_id]
        moment = snapshot.timestamp_ms if added else self._now_ms
        self._updated_ms = moment if self._updated_ms is None else max(self._updated_ms, moment)
        log = self._now.snapshot_log
        moment = max(moment, log[-1].timestamp_ms) if log else moment
        self._set_as_main.add(snapshot_id)
        self._change(
            current_snapshot_id=snapshot_id,
            snapshot_log=(*log, SnapshotLogEntry(moment, snapshot_id)),
        )

    def remove_snapshot_ref(self, update: u.RemoveSnapshotRef) -> None:
        self._remove_refs({update.name})

    def _remove_refs(self, names: set[str]) -> None:
        kept = {name: ref for name, ref in self._now.refs.items() if name not in names}
        self._change(refs=kept)
        if MAIN_BRANCH in names:
            self._change(current_snapshot_id=None)

    def remove_snapshots(self, update: u.RemoveSnapshots) -> None:
        gone = set(update.snapshot_ids) & self._now.snapshots_by_id.keys()
        if not gone:
            return
        self._removed_snapshots = True
        self._change(
            snapshots=tuple(s for s in self._now.snapshots if s.snapshot_id not in gone),
            statistics=_without(self._now.statistics, gone),
            partition_statistics=_without(self._now.partition_statistics, gone),
        )
        self._remove_refs({name for name, ref in self._now.refs.items() if ref.snapshot_id in gone})

    def _corrected_log(self) -> tuple[SnapshotLogEntry, ...]:
        """The snapshot log without snapshots that were never current, and without gaps (rule 189).

        An entry of a removed snapshot takes the history before it along: time travel into a gap
        would find the wrong snapshot.
        """
        passed_through = (self._added_snapshots & self._set_as_main) - {
            self._now.current_snapshot_id
        }
        if not passed_through and not self._removed_snapshots:
            return self._now.snapshot_log
        log: list[SnapshotLogEntry] = []
        for entry in self._now.snapshot_log:
            if entry.snapshot_id in passed_through:
                continue
            if entry.snapshot_id in self._now.snapshots_by_id:
                log.append(entry)
            elif self._removed_snapshots:
                log.clear()
        return tuple(log)

    # -- statistics and keys

    def set_statistics(self, update: u.SetStatistics) -> None:
        new = update.statistics
        self._change(statistics=(*_without(self._now.statistics, {new.snapshot_id}), new))

    def remove_statistics(self, update: u.RemoveStatistics) -> None:
        self._change(statistics=_without(self._now.statistics, {update.snapshot_id}))

    def set_partition_statistics(self, update: u.SetPartitionStatistics) -> None:
        new = update.partition_statistics
        others = _without(self._now.partition_statistics, {new.snapshot_id})
        self._change(partition_statistics=(*others, new))

    def remove_partition_statistics(self, update: u.RemovePartitionStatistics) -> None:
        kept = _without(self._now.partition_statistics, {update.snapshot_id})
        self._change(partition_statistics=kept)

    def add_encryption_key(self, update: u.AddEncryptionKey) -> None:
        if self._now.format_version < 3:
            raise ValidationError(
                "encryption keys need format version 3, the table is of version"
                f" {self._now.format_version}"
            )
        key = update.encryption_key
        self._change(encryption_keys=(*self._keys_without(key.key_id), key))

    def remove_encryption_key(self, update: u.RemoveEncryptionKey) -> None:
        self._change(encryption_keys=self._keys_without(update.key_id))

    def _keys_without(self, key_id: str) -> tuple[EncryptedKey, ...]:
        return tuple(key for key in self._now.encryption_keys if key.key_id != key_id)


_Registered = TypeVar("_Registered", StatisticsFile, PartitionStatisticsFile)


def _without(entries: tuple[_Registered, ...], snapshot_ids: set[int]) -> tuple[_Registered, ...]:
    return tuple(entry for entry in entries if entry.snapshot_id not in snapshot_ids)


def _resolved(given: int, last_added: int | None, what: str) -> int:
    if given != u.LAST_ADDED:
        return given
    if last_added is None:
        raise ValidationError(f"there is no last added {what}: none was added in this commit")
    return last_added


def _check_supported(version: int) -> None:
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise UnsupportedVersionError(
            f"format version {version} is not supported; versions 1 to 3 are"
        )


def _check_ref(name: str, ref: SnapshotRef) -> None:
    if not name:
        raise ValidationError("a reference needs a name")
    if name == MAIN_BRANCH and not ref.is_branch:
        raise ValidationError("main is a branch and cannot be set to a tag")
    if not ref.is_branch and (
        ref.min_snapshots_to_keep is not None or ref.max_snapshot_age_ms is not None
    ):
        raise ValidationError(
            f"the tag {name!r} cannot say how many snapshots to keep: it has no history of its own"
        )
    for what, number in (
        ("min-snapshots-to-keep", ref.min_snapshots_to_keep),
        ("max-snapshot-age-ms", ref.max_snapshot_age_ms),
        ("max-ref-age-ms", ref.max_ref_age_ms),
    ):
        if number is not None and number <= 0:
            raise ValidationError(f"{what} of {ref.type} {name!r} is {number}; it must be > 0")


_APPLY: dict[type[Any], Callable[[_State, Any], None]] = {
    u.AssignUUID: _State.assign_uuid,
    u.UpgradeFormatVersion: _State.upgrade_format_version,
    u.AddSchema: _State.add_schema,
    u.SetCurrentSchema: _State.set_current_schema,
    u.AddSpec: _State.add_spec,
    u.SetDefaultSpec: _State.set_default_spec,
    u.AddSortOrder: _State.add_sort_order,
    u.SetDefaultSortOrder: _State.set_default_sort_order,
    u.AddSnapshot: _State.add_snapshot,
    u.SetSnapshotRef: _State.set_snapshot_ref,
    u.RemoveSnapshots: _State.remove_snapshots,
    u.RemoveSnapshotRef: _State.remove_snapshot_ref,
    u.SetLocation: _State.set_location,
    u.SetProperties: _State.set_properties,
    u.RemoveProperties: _State.remove_properties,
    u.SetStatistics: _State.set_statistics,
    u.RemoveStatistics: _State.remove_statistics,
    u.SetPartitionStatistics: _State.set_partition_statistics,
    u.RemovePartitionStatistics: _State.remove_partition_statistics,
    u.RemovePartitionSpecs: _State.remove_partition_specs,
    u.RemoveSchemas: _State.remove_schemas,
    u.AddEncryptionKey: _State.add_encryption_key,
    u.RemoveEncryptionKey: _State.remove_encryption_key,
}
