"""Which snapshots lie between two moments of a table's history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frazil.errors import NoSuchSnapshotError, ValidationError
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot


@dataclass(frozen=True, slots=True)
class SnapshotRange:
    """The snapshots of one ancestry after a start, up to and with an end.

    Attributes:
        start_id: the snapshot before the first one, not part of the range; None where the range
            starts with the table's first snapshot.
        start: that snapshot; None where there is none, or where it has expired.
        end: the last snapshot, also of an empty range; None in a table without snapshots.
        snapshots: those between, oldest first.
    """

    start_id: int | None
    start: Snapshot | None
    end: Snapshot | None
    snapshots: tuple[Snapshot, ...]

    def parent_of(self, ordinal: int) -> Snapshot | None:
        """The snapshot before the one at this place of the range; None before the first of all.

        Raises:
            NoSuchSnapshotError: it has expired, so that what was changed is not known.
        """
        if ordinal > 0:
            return self.snapshots[ordinal - 1]
        if self.start is None and self.start_id is not None:
            first = self.snapshots[0].snapshot_id
            raise NoSuchSnapshotError(
                f"snapshot {self.start_id} has expired; what snapshot {first} changed can be told "
                "only from both: start from a snapshot that is kept"
            )
        return self.start


def snapshot_range(
    metadata: TableMetadata,
    *,
    from_snapshot_id: int | None = None,
    to_snapshot_id: int | None = None,
    from_timestamp_ms: int | None = None,
    to_timestamp_ms: int | None = None,
) -> SnapshotRange:
    """The snapshots after a start (exclusive) up to an end (inclusive), along the end's ancestry.

    Args:
        from_snapshot_id: the start; an expired snapshot is allowed where the oldest one that is
            kept follows it. Without any start the range begins with the table's first snapshot.
        to_snapshot_id: the end; the current snapshot unless given.
        from_timestamp_ms: start after the newest snapshot that is not younger than this.
        to_timestamp_ms: end with the newest ancestor of the current snapshot that is not younger.

    Raises:
        NoSuchSnapshotError: a snapshot is unknown or has expired, or one between has.
        ValidationError: the start is not an ancestor of the end, or both an id and a time
            are given for one of them.
    """
    _check_one("from_snapshot_id", from_snapshot_id, "from_timestamp", from_timestamp_ms)
    _check_one("to_snapshot_id", to_snapshot_id, "to_timestamp", to_timestamp_ms)
    start_ms, end_ms = from_timestamp_ms, to_timestamp_ms
    if start_ms is not None and end_ms is not None and start_ms > end_ms:
        raise ValidationError(f"from_timestamp ({start_ms} ms) is after to_timestamp ({end_ms} ms)")
    chain = _chain(metadata, to_snapshot_id)
    if to_timestamp_ms is not None and chain:
        chain = _not_younger(chain, to_timestamp_ms)
        if not chain:
            return SnapshotRange(None, None, None, ())
    if not chain:
        if from_snapshot_id is not None:
            metadata.snapshot_by_id(from_snapshot_id)
        return SnapshotRange(None, None, None, ())
    if from_snapshot_id is not None:
        return _after_snapshot(metadata, chain, from_snapshot_id)
    if from_timestamp_ms is not None:
        return _after_time(chain, from_timestamp_ms)
    return _from_the_first(chain, "the start of the table")


def _check_one(id_name: str, snapshot_id: int | None, time_name: str, time: int | None) -> None:
    if snapshot_id is not None and time is not None:
        raise ValidationError(f"give one of {id_name} and {time_name}, not both")


def _chain(metadata: TableMetadata, to_snapshot_id: int | None) -> tuple[Snapshot, ...]:
    """The end and its ancestors, newest first."""
    if to_snapshot_id is not None:
        return metadata.ancestors_of(metadata.snapshot_by_id(to_snapshot_id).snapshot_id)
    current = metadata.current_snapshot
    return () if current is None else metadata.ancestors_of(current.snapshot_id)


def _not_younger(chain: Sequence[Snapshot], time_ms: int) -> tuple[Snapshot, ...]:
    for place, snapshot in enumerate(chain):
        if snapshot.timestamp_ms <= time_ms:
            return tuple(chain[place:])
    if chain[-1].parent_snapshot_id is not None:
        raise _cut_off(chain, f"at {time_ms} ms")
    return ()


def _after_snapshot(
    metadata: TableMetadata, chain: Sequence[Snapshot], start_id: int
) -> SnapshotRange:
    ids = [snapshot.snapshot_id for snapshot in chain]
    if start_id in ids:
        place = ids.index(start_id)
        return _range(chain[:place], chain[0], start_id, chain[place])
    if chain[-1].parent_snapshot_id == start_id:
        return _range(chain, chain[0], start_id, None)
    start = metadata.snapshot_by_id(start_id)
    oldest = chain[-1]
    is_cut = oldest.parent_snapshot_id is not None
    ages = [(each.sequence_number, each.timestamp_ms) for each in (start, oldest)]
    if is_cut and ages[0] < ages[1]:
        raise _cut_off(chain, f"after snapshot {start_id}")
    raise ValidationError(
        f"snapshot {start_id} is not an ancestor of snapshot {ids[0]}: there are no changes from "
        "the one to the other"
    )


def _after_time(chain: Sequence[Snapshot], time_ms: int) -> SnapshotRange:
    for place, snapshot in enumerate(chain):
        if snapshot.timestamp_ms <= time_ms:
            return _range(chain[:place], chain[0], snapshot.snapshot_id, snapshot)
    return _from_the_first(chain, f"{time_ms} ms")


def _from_the_first(chain: Sequence[Snapshot], since: str) -> SnapshotRange:
    if chain[-1].parent_snapshot_id is not None:
        raise _cut_off(chain, f"since {since}")
    return _range(chain, chain[0], None, None)


def _range(
    newest_first: Sequence[Snapshot], end: Snapshot, start_id: int | None, start: Snapshot | None
) -> SnapshotRange:
    return SnapshotRange(start_id, start, end, tuple(reversed(newest_first)))


def _cut_off(chain: Sequence[Snapshot], when: str) -> NoSuchSnapshotError:
    oldest = chain[-1]
    return NoSuchSnapshotError(
        f"what happened {when} is not known: snapshot {oldest.parent_snapshot_id}, the parent of "
        f"snapshot {oldest.snapshot_id}, has expired; that is the oldest ancestor of snapshot "
        f"{chain[0].snapshot_id} that is kept"
    )
