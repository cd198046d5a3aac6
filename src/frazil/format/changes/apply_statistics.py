"""Updates of statistics files and encryption keys."""

from __future__ import annotations

from typing import TypeVar

from frazil.errors import ValidationError
from frazil.format.changes import updates as u
from frazil.format.changes import value_checks
from frazil.format.changes.state import MetadataState
from frazil.format.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.format.metadata.table_metadata import (
    EncryptedKey,
)

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
