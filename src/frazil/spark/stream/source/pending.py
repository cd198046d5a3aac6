"""What of a table's history a stream has not seen yet, and what is to be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from frazil.errors import FrazilError, ValidationError
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import APPEND, DELETE, REPLACE, Snapshot
from frazil.planning.changes_range import SnapshotRange, snapshot_range
from frazil.spark.stream.source.log import Position
from frazil.spark.stream.source.options import Removal, StreamOptions


@dataclass(frozen=True, slots=True)
class PendingSnapshots:
    """Consecutive snapshots that are read in one way.

    Attributes:
        snapshots: the snapshots and the one before them.
        change_ordinal: of the first of them.
    """

    snapshots: SnapshotRange
    change_ordinal: int


@dataclass(frozen=True, slots=True)
class Pending:
    """What is to be read next.

    Attributes:
        initial: the snapshot whose whole content comes first, only when a stream begins.
        parts: then these snapshots.
        position: how far that leads.
        refusal: why it leads no further; None where it leads to the current snapshot.
    """

    initial: Snapshot | None
    parts: tuple[PendingSnapshots, ...]
    position: Position
    refusal: FrazilError | None = None


def first_pending(metadata: TableMetadata, options: StreamOptions, *, now_ms: int) -> Pending:
    """What a new stream starts with: the table's content, or nothing but a place in its history.

    Raises:
        NoSuchSnapshotError: the snapshot to start from is unknown, or what followed has expired.
        ValidationError: it is not an ancestor of the current one, or the time is to come.
    """
    if options.from_snapshot_id is not None:
        found = snapshot_range(metadata, from_snapshot_id=options.from_snapshot_id)
        return Pending(None, (), Position(found.start_id))
    if options.from_timestamp_ms is not None:
        if options.from_timestamp_ms > now_ms:
            raise ValidationError(
                f"from_timestamp ({options.from_timestamp_ms} ms) is still to come"
            )
        found = snapshot_range(metadata, from_timestamp_ms=options.from_timestamp_ms)
        return Pending(None, (), Position(found.start_id))
    current = metadata.current_snapshot
    if current is None:
        return Pending(None, (), Position(None))
    return Pending(current, (), Position(current.snapshot_id, 1))


def pending_since(
    metadata: TableMetadata, position: Position, options: StreamOptions, *, name: str
) -> Pending:
    """What came after a position.

    Snapshots that only rewrite files (`replace`) hold nothing new and are passed over.

    Raises:
        NoSuchSnapshotError: a snapshot that was not read yet has expired.
        ValidationError: the table was rolled back behind the position.
    """
    if metadata.current_snapshot_id == position.snapshot_id:
        return Pending(None, (), position)
    found = snapshot_range(metadata, from_snapshot_id=position.snapshot_id)
    kept: list[Snapshot] = []
    parts: list[PendingSnapshots] = []
    refusal: FrazilError | None = None
    place = 0
    for place, snapshot in enumerate(found.snapshots):
        what = _treatment(snapshot, options)
        if what is Removal.FAIL:
            refusal = _refusal(snapshot, name)
            break
        if what is Removal.SKIP:
            parts += _part(found, place, kept, position)
            kept = []
            continue
        kept.append(snapshot)
        if options.reads_changes and options.is_limited:
            parts += _part(found, place + 1, kept, position)
            kept = []
    else:
        place = len(found.snapshots)
    parts += _part(found, place, kept, position)
    end = found.snapshots[place - 1].snapshot_id if place else position.snapshot_id
    reached = Position(end, position.change_ordinal + place)
    return Pending(None, tuple(parts), reached, refusal)


def _treatment(snapshot: Snapshot, options: StreamOptions) -> Removal | None:
    """None for a snapshot whose rows are read."""
    if snapshot.operation == REPLACE:
        return None if options.reads_changes else Removal.SKIP
    if snapshot.operation in (None, APPEND):
        return None
    asked = options.on_delete if snapshot.operation == DELETE else options.on_overwrite
    return None if asked is Removal.CHANGES else asked


def _part(
    found: SnapshotRange, end: int, kept: Sequence[Snapshot], position: Position
) -> list[PendingSnapshots]:
    """The kept snapshots, which are those right before a place of the range."""
    if not kept:
        return []
    start = end - len(kept)
    before = found.start if start == 0 else found.snapshots[start - 1]
    before_id = found.start_id if start == 0 else found.snapshots[start - 1].snapshot_id
    chosen = replace(found, start_id=before_id, start=before, end=kept[-1], snapshots=tuple(kept))
    return [PendingSnapshots(chosen, position.change_ordinal + start)]


def _refusal(snapshot: Snapshot, name: str) -> ValidationError:
    keyword = "on_delete" if snapshot.operation == DELETE else "on_overwrite"
    return ValidationError(
        f"the stream of {name} has come to snapshot {snapshot.snapshot_id}, whose "
        f"operation is {snapshot.operation!r}: rows that were read are no longer in the table. "
        f"Give {keyword}='skip' to pass over such snapshots, or start another stream with "
        f"{keyword}='changes' to read them as changes"
    )
