"""Applying updates to table metadata: the rules of every change (rules 43-51, 142-160, 184-202)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from frazil.errors import OutdatedUpdateError, UnsupportedVersionError, ValidationError
from frazil.format.changes import updates as u
from frazil.format.changes import value_checks
from frazil.format.metadata.referenced_snapshots import ReferencedSnapshots
from frazil.format.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.format.metadata.table_metadata import (
    DEFAULT_FORMAT_VERSION,
    SUPPORTED_FORMAT_VERSIONS,
    EncryptedKey,
    TableMetadata,
)
from frazil.format.partitions.partitioning import FIRST_PARTITION_FIELD_ID, PartitionSpec
from frazil.format.properties.table import stored_properties
from frazil.format.snapshots import MAIN_BRANCH, Snapshot, SnapshotLogEntry, SnapshotRef
from frazil.format.sorting import UNSORTED, reuse_order


def apply_updates(
    metadata: TableMetadata | None,
    updates: Iterable[u.Update],
    *,
    now_ms: int | None = None,
) -> TableMetadata:
    """The metadata after the updates, in their order; the same object where nothing changes.

    `metadata`: the table before, None to build a table from updates alone. `now_ms`: the time of
    the change, unless a snapshot of it says; the clock where None.
    Raises OutdatedUpdateError: one that contradicts what was committed since it was made.
    """
    changes = tuple(updates)
    moment = int(time.time() * 1000) if now_ms is None else now_ms
    state = MetadataState(
        _empty_metadata(changes, moment) if metadata is None else metadata, moment
    )
    for update in changes:
        _APPLY[type(update)](state, update)
    return _build(state, is_new=metadata is None)


def _empty_metadata(updates: tuple[u.Update, ...], now_ms: int) -> TableMetadata:
    """Metadata without content, of the version that the updates ask for."""
    versions = [each.format_version for each in updates if isinstance(each, u.UpgradeFormatVersion)]
    version = versions[0] if versions else DEFAULT_FORMAT_VERSION
    check_supported(version)
    return TableMetadata(
        format_version=version,
        table_uuid=None,
        location="",
        last_updated_ms=now_ms,
        last_column_id=0,
        schemas=(),
        current_schema_id=UNSET,
        partition_specs=(),
        default_spec_id=UNSET,
        last_partition_id=FIRST_PARTITION_FIELD_ID - 1,
        sort_orders=(),
        default_sort_order_id=UNSET,
    )


def _build(state: MetadataState, *, is_new: bool) -> TableMetadata:
    """The result: complete, with its logs put right and its time set."""
    if is_new:
        _check_complete(state)
    state.check_the_end()
    if is_new:
        if state.now.table_uuid is None:
            state.change(table_uuid=str(uuid.uuid4()))
    elif state.now == state.base:
        return state.base
    check_references(state)
    log = corrected_log(state)
    # Clocks differ between writers; readers refuse logs that run backwards.
    newest = max(
        state.now_ms if state.updated_ms is None else state.updated_ms,
        log[-1].timestamp_ms if log else 0,
        0 if is_new else state.base.last_updated_ms,
    )
    return replace(state.now, snapshot_log=log, last_updated_ms=newest)


def _check_complete(state: MetadataState) -> None:
    for is_missing, what in (
        (not state.now.location, "location"),
        (state.now.current_schema_id == UNSET, "current schema"),
        (state.now.default_spec_id == UNSET, "default partition spec"),
        (state.now.default_sort_order_id == UNSET, "default sort order"),
    ):
        if is_missing:
            raise ValidationError(f"a table cannot be created without a {what}")


def assign_uuid(state: MetadataState, update: u.AssignUUID) -> None:
    value_checks.check_uuid(update.uuid, "the table's uuid")
    state.change(table_uuid=update.uuid)


def upgrade(state: MetadataState, version: int) -> None:
    """Raise the format version, never lower it."""
    current = state.now.format_version
    check_supported(version)
    if version < current:
        raise ValidationError(
            f"a table cannot be downgraded: it is of format version {current}, asked for was"
            f" {version}"
        )
    if version > current:
        state.change(
            format_version=version,
            # v1 tables may have none; v2 requires one (rule 191).
            table_uuid=state.now.table_uuid or str(uuid.uuid4()),
        )


def upgrade_format_version(state: MetadataState, update: u.UpgradeFormatVersion) -> None:
    upgrade(state, update.format_version)


def set_location(state: MetadataState, update: u.SetLocation) -> None:
    if not update.location:
        raise ValidationError("the location of a table cannot be empty")
    state.change(location=update.location)


def set_properties(state: MetadataState, update: u.SetProperties) -> None:
    stored, version = stored_properties(update.updates)
    if version is not None:
        upgrade(state, version)
    state.change(properties={**state.now.properties, **stored})


def remove_properties(state: MetadataState, update: u.RemoveProperties) -> None:
    gone = set(update.removals)
    kept = {name: text for name, text in state.now.properties.items() if name not in gone}
    state.change(properties=kept)


def add_schema(state: MetadataState, update: u.AddSchema) -> None:
    schema, last_id = update.schema, state.now.last_column_id
    if update.last_column_id is not None and update.last_column_id < last_id:
        raise ValidationError(
            f"the last column id cannot go back from {last_id} to {update.last_column_id}"
        )
    state.check_now_or_at_the_end(lambda now: schema.check_types_for(now.format_version))
    held = state.now.as_added(schema)
    if held.schema_id not in state.now.schemas_by_id:
        value_checks.check_schema(held)
        state.change(schemas=(*state.now.schemas, held))
    value_checks.check_int(update.last_column_id, "the last column id")
    state.last_schema_id = held.schema_id
    state.change(last_column_id=max(last_id, schema.highest_field_id, update.last_column_id or 0))


def set_current_schema(state: MetadataState, update: u.SetCurrentSchema) -> None:
    schema_id = _resolve_id(update.schema_id, state.last_schema_id, "schema")
    _check_there(schema_id, state.now.schemas_by_id, "schema")
    state.change(current_schema_id=schema_id)


def add_spec(state: MetadataState, update: u.AddSpec) -> None:
    spec = update.spec
    held = next((s for s in state.now.partition_specs if s.is_equivalent_to(spec)), None)
    if held is None:
        value_checks.check_spec(spec)
        # The schema may become the current one only later in the same commit.
        state.check_now_or_at_the_end(lambda now: spec.check_against(now.schema))
        _check_partition_ids(state, spec)
        specs = state.now.partition_specs
        held = spec.with_id(max((s.spec_id for s in specs), default=-1) + 1)
        state.change(
            partition_specs=(*specs, held),
            last_partition_id=max(state.now.last_partition_id, held.last_assigned_field_id),
        )
    state.last_spec_id = held.spec_id


def _check_partition_ids(state: MetadataState, spec: PartitionSpec) -> None:
    ids = [field.field_id for field in spec.fields]
    expected = [FIRST_PARTITION_FIELD_ID + position for position in range(len(ids))]
    if state.now.format_version == 1 and ids != expected:
        raise ValidationError(
            f"partition field ids of a v1 table count on from {FIRST_PARTITION_FIELD_ID}:"
            f" expected {expected}, found {ids}"
        )


def set_default_spec(state: MetadataState, update: u.SetDefaultSpec) -> None:
    spec_id = _resolve_id(update.spec_id, state.last_spec_id, "partition spec")
    _check_there(spec_id, state.now.specs_by_id, "partition spec")
    state.change(default_spec_id=spec_id)


def add_sort_order(state: MetadataState, update: u.AddSortOrder) -> None:
    order = reuse_order(state.now.sort_orders, update.sort_order)
    if all(held.order_id != order.order_id for held in state.now.sort_orders):
        if not order.is_unsorted:
            value_checks.check_sort_order(order)
            state.check_now_or_at_the_end(lambda now: order.check_against(now.schema))
        state.change(sort_orders=(*state.now.sort_orders, order))
    state.last_order_id = order.order_id


def set_default_sort_order(state: MetadataState, update: u.SetDefaultSortOrder) -> None:
    order_id = _resolve_id(update.sort_order_id, state.last_order_id, "sort order")
    orders = state.now.sort_orders
    if order_id == UNSORTED.order_id and order_id not in state.now.sort_orders_by_id:
        # Order 0 is unsorted, listed or not; readers look the default up in the list.
        orders = (*orders, UNSORTED)
    else:
        _check_there(order_id, state.now.sort_orders_by_id, "sort order")
    state.change(sort_orders=orders, default_sort_order_id=order_id)


def remove_schemas(state: MetadataState, update: u.RemoveSchemas) -> None:
    if state.now.current_schema_id in update.schema_ids:
        raise ValidationError(f"the current schema {state.now.current_schema_id} cannot be removed")
    gone = set(update.schema_ids)
    state.change(schemas=tuple(s for s in state.now.schemas if s.schema_id not in gone))


def remove_partition_specs(state: MetadataState, update: u.RemovePartitionSpecs) -> None:
    if state.now.default_spec_id in update.spec_ids:
        raise ValidationError(
            f"the default partition spec {state.now.default_spec_id} cannot be removed"
        )
    gone = set(update.spec_ids)
    kept = tuple(spec for spec in state.now.partition_specs if spec.spec_id not in gone)
    state.change(partition_specs=kept)


def _resolve_id(given: int, last_added: int | None, what: str) -> int:
    if given != u.LAST_ADDED:
        return given
    if last_added is None:
        raise ValidationError(f"there is no last added {what}: none was added in this commit")
    return last_added


def _check_there(found_id: int, held: Container[int], what: str) -> None:
    if found_id not in held:
        raise OutdatedUpdateError(f"the table has no {what} {found_id}, which is to become its own")


def check_supported(version: int) -> None:
    """Raise `UnsupportedVersionError` for a format version that is not adopted."""
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise UnsupportedVersionError(
            f"format version {version} is not supported; versions 1 to 3 are"
        )


def add_snapshot(state: MetadataState, update: u.AddSnapshot) -> None:
    snapshot = update.snapshot
    _check_new(state, snapshot)
    if state.now.format_version == 1:
        snapshot = replace(snapshot, sequence_number=0)
    state.added_snapshots.add(snapshot.snapshot_id)
    state.updated_ms = snapshot.timestamp_ms
    state.change(
        snapshots=_with_added(state.now.snapshots, snapshot),
        last_sequence_number=snapshot.sequence_number,
        next_row_id=_next_row_id_after(state, snapshot),
    )


def _with_added(snapshots: Sequence[Snapshot], snapshot: Snapshot) -> Sequence[Snapshot]:
    if isinstance(snapshots, ReferencedSnapshots):
        return snapshots.with_added(snapshot)
    return (*snapshots, snapshot)


def _check_new(state: MetadataState, snapshot: Snapshot) -> None:
    one = f"the snapshot {snapshot.snapshot_id} cannot be added"
    if snapshot.snapshot_id in state.now.snapshots_at_hand:
        raise ValidationError(f"{one}: the table has it already")
    value_checks.check_snapshot(
        snapshot, state.now.snapshots_at_hand, format_version=state.now.format_version
    )
    last = state.now.last_sequence_number
    if state.now.format_version == 1:
        return
    if snapshot.sequence_number <= last:
        raise OutdatedUpdateError(
            f"{one}: its sequence number {snapshot.sequence_number} is not above the table's"
            f" last, {last}"
        )
    if snapshot.manifest_list is None:
        raise ValidationError(f"{one}: it has no manifest list")


def _next_row_id_after(state: MetadataState, snapshot: Snapshot) -> int:
    next_row_id = state.now.next_row_id
    if state.now.format_version < 3:
        return next_row_id
    first, added = snapshot.first_row_id, snapshot.added_rows
    one = f"the snapshot {snapshot.snapshot_id} cannot be added"
    if first is None or added is None:
        raise OutdatedUpdateError(f"{one}: v3 requires its first row id and its added rows")
    if first < next_row_id:
        raise OutdatedUpdateError(
            f"{one}: its first row id {first} is behind the table's next row id {next_row_id}"
        )
    if added < 0:
        raise ValidationError(f"{one}: its number of added rows is negative: {added}")
    return first + added


def set_snapshot_ref(state: MetadataState, update: u.SetSnapshotRef) -> None:
    name, ref = update.name, update.ref
    _check_ref(name, ref)
    value_checks.check_ref(name, ref)
    if ref.snapshot_id not in state.now.snapshots_by_id:
        raise OutdatedUpdateError(
            f"{ref.type} {name!r} cannot be set: there is no snapshot {ref.snapshot_id}"
        )
    if name == MAIN_BRANCH and ref.snapshot_id != state.now.current_snapshot_id:
        _set_main(state, ref.snapshot_id)
    state.change(refs={**state.now.refs, name: ref})


def _set_main(state: MetadataState, snapshot_id: int) -> None:
    added = snapshot_id in state.added_snapshots
    snapshot = state.now.snapshots_by_id[snapshot_id]
    moment = snapshot.timestamp_ms if added else state.now_ms
    state.updated_ms = moment if state.updated_ms is None else max(state.updated_ms, moment)
    log = state.now.snapshot_log
    moment = max(moment, log[-1].timestamp_ms) if log else moment
    state.set_as_main.add(snapshot_id)
    state.change(
        current_snapshot_id=snapshot_id,
        snapshot_log=(*log, SnapshotLogEntry(moment, snapshot_id)),
    )


def remove_snapshot_ref(state: MetadataState, update: u.RemoveSnapshotRef) -> None:
    kept = {name: ref for name, ref in state.now.refs.items() if name != update.name}
    state.change(refs=kept)
    if update.name == MAIN_BRANCH:
        state.change(current_snapshot_id=None)


def remove_snapshots(state: MetadataState, update: u.RemoveSnapshots) -> None:
    gone = set(update.snapshot_ids) & state.now.snapshots_by_id.keys()
    if not gone:
        return
    state.removed_snapshots = True
    state.change(
        snapshots=tuple(s for s in state.now.snapshots if s.snapshot_id not in gone),
        statistics=without_snapshots(state.now.statistics, gone),
        partition_statistics=without_snapshots(state.now.partition_statistics, gone),
    )


def check_references(state: MetadataState) -> None:
    """Check that no snapshot was removed that a branch or tag points at.

    A reference that another commit has made since is not named by the updates: it must not go with
    the snapshot.
    """
    if not state.removed_snapshots:
        return
    there = state.now.snapshots_by_id
    for name, ref in state.now.refs.items():
        if ref.snapshot_id not in there:
            raise OutdatedUpdateError(
                f"the snapshot {ref.snapshot_id} cannot be removed: the {ref.type} {name!r} points"
                f" at it"
            )
    current = state.now.current_snapshot_id
    if current is not None and current not in there:
        raise OutdatedUpdateError(f"the current snapshot {current} cannot be removed")


def corrected_log(state: MetadataState) -> tuple[SnapshotLogEntry, ...]:
    """The snapshot log without snapshots that were never current, and without gaps (rule 189).

    An entry of a removed snapshot takes the history before it along: time travel into a gap
    would find the wrong snapshot.
    """
    passed_through = (state.added_snapshots & state.set_as_main) - {state.now.current_snapshot_id}
    if not passed_through and not state.removed_snapshots:
        return state.now.snapshot_log
    log: list[SnapshotLogEntry] = []
    for entry in state.now.snapshot_log:
        if entry.snapshot_id in passed_through:
            continue
        if entry.snapshot_id in state.now.snapshots_by_id:
            log.append(entry)
        elif state.removed_snapshots:
            log.clear()
    return tuple(log)


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


_Registered = TypeVar("_Registered", StatisticsFile, PartitionStatisticsFile)


def set_statistics(state: MetadataState, update: u.SetStatistics) -> None:
    new = update.statistics
    value_checks.check_statistics(new, state.now.snapshots_at_hand)
    state.change(statistics=(*without_snapshots(state.now.statistics, {new.snapshot_id}), new))


def remove_statistics(state: MetadataState, update: u.RemoveStatistics) -> None:
    state.change(statistics=without_snapshots(state.now.statistics, {update.snapshot_id}))


def set_partition_statistics(state: MetadataState, update: u.SetPartitionStatistics) -> None:
    new = update.partition_statistics
    value_checks.check_statistics(new, state.now.snapshots_at_hand)
    others = without_snapshots(state.now.partition_statistics, {new.snapshot_id})
    state.change(partition_statistics=(*others, new))


def remove_partition_statistics(state: MetadataState, update: u.RemovePartitionStatistics) -> None:
    kept = without_snapshots(state.now.partition_statistics, {update.snapshot_id})
    state.change(partition_statistics=kept)


def add_encryption_key(state: MetadataState, update: u.AddEncryptionKey) -> None:
    if state.now.format_version < 3:
        raise ValidationError(
            "encryption keys need format version 3, the table is of version"
            f" {state.now.format_version}"
        )
    key = update.encryption_key
    value_checks.check_encryption_key(key)
    state.change(encryption_keys=(*_keys_without(state, key.key_id), key))


def remove_encryption_key(state: MetadataState, update: u.RemoveEncryptionKey) -> None:
    state.change(encryption_keys=_keys_without(state, update.key_id))


def _keys_without(state: MetadataState, key_id: str) -> tuple[EncryptedKey, ...]:
    return tuple(key for key in state.now.encryption_keys if key.key_id != key_id)


def without_snapshots(
    entries: tuple[_Registered, ...], snapshot_ids: set[int]
) -> tuple[_Registered, ...]:
    """Return the files that belong to none of the snapshots."""
    return tuple(entry for entry in entries if entry.snapshot_id not in snapshot_ids)


UNSET = -1


class MetadataState:
    """The metadata while updates are applied to it, and what the updates did so far.

    Attributes:
        base: the metadata before.
        now: the metadata so far.
        now_ms: the time of the change, unless a snapshot of it says.
        updated_ms: the time that a snapshot says.
        last_schema_id, last_spec_id, last_order_id: what "the last added" means.
        added_snapshots, set_as_main: ids of snapshots.
        removed_snapshots: whether any was removed.
    """

    def __init__(self, base: TableMetadata, now_ms: int) -> None:
        self.base = base
        self.now = base
        self.now_ms = now_ms
        self.updated_ms: int | None = None
        self.last_schema_id: int | None = None
        self.last_spec_id: int | None = None
        self.last_order_id: int | None = None
        self.added_snapshots: set[int] = set()
        self.set_as_main: set[int] = set()
        self.removed_snapshots = False
        self._checks: list[Callable[[TableMetadata], object]] = []

    def change(self, **fields: Any) -> None:
        """Set fields of the metadata."""
        self.now = replace(self.now, **fields)

    def check_now_or_at_the_end(self, check: Callable[[TableMetadata], object]) -> None:
        """Check the metadata; what does not hold yet must hold when all updates are applied.

        `check`: raises `ValidationError` where it does not hold.
        """
        try:
            check(self.now)
        except ValidationError:
            self._checks.append(check)

    def check_the_end(self) -> None:
        """Check what did not hold before; `ValidationError` where it does not hold now."""
        for check in self._checks:
            check(self.now)


_APPLY: dict[type[Any], Callable[[MetadataState, Any], None]] = {
    u.AssignUUID: assign_uuid,
    u.UpgradeFormatVersion: upgrade_format_version,
    u.AddSchema: add_schema,
    u.SetCurrentSchema: set_current_schema,
    u.AddSpec: add_spec,
    u.SetDefaultSpec: set_default_spec,
    u.AddSortOrder: add_sort_order,
    u.SetDefaultSortOrder: set_default_sort_order,
    u.AddSnapshot: add_snapshot,
    u.SetSnapshotRef: set_snapshot_ref,
    u.RemoveSnapshots: remove_snapshots,
    u.RemoveSnapshotRef: remove_snapshot_ref,
    u.SetLocation: set_location,
    u.SetProperties: set_properties,
    u.RemoveProperties: remove_properties,
    u.SetStatistics: set_statistics,
    u.RemoveStatistics: remove_statistics,
    u.SetPartitionStatistics: set_partition_statistics,
    u.RemovePartitionStatistics: remove_partition_statistics,
    u.RemovePartitionSpecs: remove_partition_specs,
    u.RemoveSchemas: remove_schemas,
    u.AddEncryptionKey: add_encryption_key,
    u.RemoveEncryptionKey: remove_encryption_key,
}
