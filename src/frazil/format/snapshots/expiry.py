"""Which snapshots and references a table no longer keeps (rules 185-187)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from frazil.errors import ValidationError
from frazil.format.properties.table import MAX_REF_AGE, MAX_SNAPSHOT_AGE, MIN_SNAPSHOTS
from frazil.format.snapshots.model import MAIN_BRANCH, Snapshot, SnapshotRef


@dataclass(frozen=True, slots=True)
class Expired:
    """What to remove: ids in the order of the table's snapshots, and names of references."""

    snapshot_ids: tuple[int, ...]
    refs: tuple[str, ...]


def snapshots_to_expire(
    snapshots: Sequence[Snapshot],
    refs: Mapping[str, SnapshotRef],
    properties: Mapping[str, str],
    *,
    now_ms: int,
    older_than_ms: int | None = None,
    retain_last: int | None = None,
    snapshot_ids: Iterable[int] = (),
) -> Expired:
    """The snapshots and references that expire at a moment.

    References older than their maximum age go, but never `main`; what the rest point to stays; a
    branch keeps its newest `min-snapshots-to-keep` ancestors and those younger than its
    `max-snapshot-age-ms`; snapshots that no reference reaches stay while they are younger than the
    table's limit. Defaults are the table's `history.expire.*` properties (rule 187).
    `now_ms`: the moment, in milliseconds since the epoch. `older_than_ms`: a moment in place of now
    less the table's maximum snapshot age. `retain_last`: a number in place of the table's minimum
    of snapshots to keep.
    """
    if retain_last is not None and retain_last < 1:
        raise ValidationError(f"at least 1 snapshot is retained, asked for was {retain_last}")
    oldest_ms = now_ms - MAX_SNAPSHOT_AGE.of(properties) if older_than_ms is None else older_than_ms
    minimum = MIN_SNAPSHOTS.of(properties) if retain_last is None else retain_last
    held = {snapshot.snapshot_id: snapshot for snapshot in snapshots}
    retained = dict(_retained_refs(refs, MAX_REF_AGE.of(properties), held, now_ms))
    heads = {ref.snapshot_id for ref in retained.values()}
    named = set(snapshot_ids)
    _check_not_referenced(named, retained)

    kept, reached = set(heads), set(heads)
    for ref in retained.values():
        if not ref.is_branch:
            continue
        branch_oldest = (
            oldest_ms if ref.max_snapshot_age_ms is None else now_ms - ref.max_snapshot_age_ms
        )
        branch_minimum = minimum if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
        retaining = True
        for position, ancestor in enumerate(_ancestors(ref.snapshot_id, held)):
            reached.add(ancestor.snapshot_id)
            retaining = retaining and (
                position < branch_minimum or ancestor.timestamp_ms >= branch_oldest
            )
            if retaining:
                kept.add(ancestor.snapshot_id)
    kept.update(
        snapshot_id
        for snapshot_id, snapshot in held.items()
        if snapshot_id not in reached and snapshot.timestamp_ms >= oldest_ms
    )
    kept -= named
    return Expired(
        snapshot_ids=tuple(snapshot_id for snapshot_id in held if snapshot_id not in kept),
        refs=tuple(name for name in refs if name not in retained),
    )


def _retained_refs(
    refs: Mapping[str, SnapshotRef], longest_ms: int, held: Mapping[int, Snapshot], now_ms: int
) -> Iterator[tuple[str, SnapshotRef]]:
    for name, ref in refs.items():
        snapshot = held.get(ref.snapshot_id)
        limit = longest_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        if name == MAIN_BRANCH or (
            snapshot is not None and now_ms - snapshot.timestamp_ms <= limit
        ):
            yield name, ref


def _check_not_referenced(named: set[int], refs: Mapping[str, SnapshotRef]) -> None:
    for name, ref in refs.items():
        if ref.snapshot_id in named:
            raise ValidationError(
                f"the snapshot {ref.snapshot_id} cannot expire: {ref.type} {name!r} points to it"
            )


def _ancestors(snapshot_id: int, held: Mapping[int, Snapshot]) -> Iterator[Snapshot]:
    seen: set[int] = set()
    current = held.get(snapshot_id)
    while current is not None and current.snapshot_id not in seen:
        seen.add(current.snapshot_id)
        yield current
        parent_id = current.parent_snapshot_id
        current = None if parent_id is None else held.get(parent_id)
