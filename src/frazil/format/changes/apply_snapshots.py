"""Updates of snapshots and references, and what they make of the snapshot log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from frazil.errors import OutdatedUpdateError, ValidationError
from frazil.format.changes import updates as u
from frazil.format.changes import value_checks
from frazil.format.changes.apply_statistics import without_snapshots
from frazil.format.changes.state import MetadataState
from frazil.format.metadata.referenced_snapshots import ReferencedSnapshots
from frazil.format.snapshots import MAIN_BRANCH, Snapshot, SnapshotLogEntry, SnapshotRef


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
    _remove_refs(state, {update.name})


def _remove_refs(state: MetadataState, names: set[str]) -> None:
    kept = {name: ref for name, ref in state.now.refs.items() if name not in names}
    state.change(refs=kept)
    if MAIN_BRANCH in names:
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
