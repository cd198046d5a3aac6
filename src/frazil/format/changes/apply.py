"""Applying updates to table metadata: the rules of every change (rules 43-51, 142-160, 184-202)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from frazil.errors import ValidationError
from frazil.format.changes import apply_definition as definition
from frazil.format.changes import apply_snapshots as snapshots
from frazil.format.changes import apply_statistics as statistics
from frazil.format.changes import updates as u
from frazil.format.changes.state import UNSET, MetadataState
from frazil.format.metadata.table_metadata import (
    DEFAULT_FORMAT_VERSION,
    TableMetadata,
)
from frazil.format.partitions.partitioning import FIRST_PARTITION_FIELD_ID


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
    state = MetadataState(_empty(changes, moment) if metadata is None else metadata, moment)
    for update in changes:
        _APPLY[type(update)](state, update)
    return _build(state, is_new=metadata is None)


def _empty(updates: tuple[u.Update, ...], now_ms: int) -> TableMetadata:
    """Metadata without content, of the version that the updates ask for."""
    versions = [each.format_version for each in updates if isinstance(each, u.UpgradeFormatVersion)]
    version = versions[0] if versions else DEFAULT_FORMAT_VERSION
    definition.check_supported(version)
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
    snapshots.check_references(state)
    log = snapshots.corrected_log(state)
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


_APPLY: dict[type[Any], Callable[[MetadataState, Any], None]] = {
    u.AssignUUID: definition.assign_uuid,
    u.UpgradeFormatVersion: definition.upgrade_format_version,
    u.AddSchema: definition.add_schema,
    u.SetCurrentSchema: definition.set_current_schema,
    u.AddSpec: definition.add_spec,
    u.SetDefaultSpec: definition.set_default_spec,
    u.AddSortOrder: definition.add_sort_order,
    u.SetDefaultSortOrder: definition.set_default_sort_order,
    u.AddSnapshot: snapshots.add_snapshot,
    u.SetSnapshotRef: snapshots.set_snapshot_ref,
    u.RemoveSnapshots: snapshots.remove_snapshots,
    u.RemoveSnapshotRef: snapshots.remove_snapshot_ref,
    u.SetLocation: definition.set_location,
    u.SetProperties: definition.set_properties,
    u.RemoveProperties: definition.remove_properties,
    u.SetStatistics: statistics.set_statistics,
    u.RemoveStatistics: statistics.remove_statistics,
    u.SetPartitionStatistics: statistics.set_partition_statistics,
    u.RemovePartitionStatistics: statistics.remove_partition_statistics,
    u.RemovePartitionSpecs: definition.remove_partition_specs,
    u.RemoveSchemas: definition.remove_schemas,
    u.AddEncryptionKey: statistics.add_encryption_key,
    u.RemoveEncryptionKey: statistics.remove_encryption_key,
}
