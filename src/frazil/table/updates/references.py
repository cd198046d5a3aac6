"""Branches, tags, and which snapshot is current (rules 184-190)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frazil.errors import (
    AlreadyExistsError,
    NoSuchRefError,
    NoSuchSnapshotError,
    ValidationError,
)
from frazil.format.arguments import SnapshotId, optional_snapshot_id_of, snapshot_id_of
from frazil.format.changes import RemoveSnapshotRef, SetSnapshotRef, Update
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import MAIN_BRANCH, RefType, Snapshot, SnapshotRef
from frazil.later import later
from frazil.table.commit.operation import MetadataOperation

if TYPE_CHECKING:
    from frazil.table.snapshots.producer import move_branch
else:
    move_branch = later("frazil.table.snapshots.producer", "move_branch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long a reference and its snapshots are kept (rule 184); None is the table's default.

    Attributes:
        min_snapshots_to_keep: at least this many snapshots of a branch.
        max_snapshot_age_ms: snapshots of a branch that are younger, in milliseconds.
        max_ref_age_ms: the reference itself, while its snapshot is younger, in milliseconds.
    """

    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None

    def __post_init__(self) -> None:
        for name in ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValidationError(f"{name} is {value}; it must be positive")

    def check_for_tag(self) -> None:
        """Refuse what only branches have."""
        if self.min_snapshots_to_keep is not None or self.max_snapshot_age_ms is not None:
            raise ValidationError(
                "min_snapshots_to_keep and max_snapshot_age_ms are for branches; "
                "a tag has max_ref_age_ms"
            )


DEFAULT_RETENTION = Retention()


def create_branch(
    name: str, *, snapshot_id: SnapshotId | None = None, retention: Retention = DEFAULT_RETENTION
) -> MetadataOperation:
    """A new branch at a snapshot, by default the current one.

    Raises (when run):
        AlreadyExistsError: the name is taken.
        NoSuchSnapshotError: there is no such snapshot.
    """
    return _create_operation("branch", name, snapshot_id, retention)


def branch_ref(name: str, snapshot_id: int, retention: Retention) -> SetSnapshotRef:
    """Return the update that points a branch at a snapshot."""
    return SetSnapshotRef(name, _ref("branch", snapshot_id, retention))


def create_tag(
    name: str, *, snapshot_id: SnapshotId | None = None, retention: Retention = DEFAULT_RETENTION
) -> MetadataOperation:
    """A new tag at a snapshot, by default the current one.

    Raises (when run):
        AlreadyExistsError: the name is taken.
        NoSuchSnapshotError: there is no such snapshot.
    """
    retention.check_for_tag()
    return _create_operation("tag", name, snapshot_id, retention)


def replace_branch(
    name: str, *, snapshot_id: SnapshotId | None = None, retention: Retention | None = None
) -> MetadataOperation:
    """Point a branch at any snapshot, by default the current one, or change its retention."""
    return _replace_operation("branch", name, snapshot_id, retention)


def replace_tag(
    name: str, *, snapshot_id: SnapshotId | None = None, retention: Retention | None = None
) -> MetadataOperation:
    """Point a tag at any snapshot, by default the current one, or change its retention."""
    if retention is not None:
        retention.check_for_tag()
    return _replace_operation("tag", name, snapshot_id, retention)


def set_retention(name: str, retention: Retention) -> MetadataOperation:
    """Change how long a branch or tag and its snapshots are kept; `main` has no ref age."""

    def updates(base: TableMetadata) -> list[Update]:
        ref = base.ref(name)
        if not ref.is_branch:
            retention.check_for_tag()
        if name == MAIN_BRANCH and retention.max_ref_age_ms is not None:
            raise ValidationError("main never expires; leave max_ref_age_ms out")
        replaced = _ref(ref.type, ref.snapshot_id, retention)
        return [SetSnapshotRef(name, replaced)] if replaced != ref else []

    return MetadataOperation(updates)


def remove_branch(name: str) -> MetadataOperation:
    """Remove a branch; its snapshots stay until they expire."""
    if name == MAIN_BRANCH:
        raise ValidationError("main cannot be removed")
    return _remove_operation("branch", name)


def remove_tag(name: str) -> MetadataOperation:
    """Remove a tag; its snapshot stays until it expires."""
    return _remove_operation("tag", name)


def rename_branch(name: str, new_name: str) -> MetadataOperation:
    """Give a branch another name; it keeps its snapshot and its retention."""
    _check_name(new_name)
    if name == MAIN_BRANCH:
        raise ValidationError("main cannot be renamed; create a branch beside it")

    def updates(base: TableMetadata) -> list[Update]:
        ref = _existing_ref(base, name, "branch")
        _check_free(base, new_name)
        return [SetSnapshotRef(new_name, ref), RemoveSnapshotRef(name)]

    return MetadataOperation(updates)


def fast_forward(branch: str, to: str) -> MetadataOperation:
    """Move a branch to the snapshot of another reference that builds on it.

    A branch that is not there is made. Raises ValidationError when run if the branch has
    snapshots that `to` does not.
    """
    _check_name(branch)

    def updates(base: TableMetadata) -> list[Update]:
        target = base.ref_snapshot(to)
        if target is None:
            raise NoSuchSnapshotError(f"{to!r} has no snapshot yet")
        ref = base.refs.get(branch)
        if ref is not None and not ref.is_branch:
            raise ValidationError(f"{branch!r} is a tag, and tags do not move")
        if ref is not None and ref.snapshot_id == target.snapshot_id:
            return []
        if ref is not None and ref.snapshot_id not in _ancestor_ids(base, target.snapshot_id):
            raise ValidationError(
                f"cannot fast-forward {branch!r} to {to!r}: snapshot {ref.snapshot_id} of "
                f"{branch!r} is not an ancestor of {target.snapshot_id}"
            )
        return [move_branch(base, branch, target.snapshot_id)]

    return MetadataOperation(updates)


def set_current_snapshot(
    given: SnapshotId | None = None, *, ref: str | None = None
) -> MetadataOperation:
    """Make a snapshot, or that of a reference, the current one; it need not be an ancestor."""
    snapshot_id = optional_snapshot_id_of(given)
    if (snapshot_id is None) == (ref is None):
        raise ValidationError("give either snapshot_id or ref")

    def updates(base: TableMetadata) -> list[Update]:
        if snapshot_id is not None:
            target: Snapshot | None = base.snapshot_by_id(snapshot_id)
        else:
            target = base.ref_snapshot(ref or "")
        if target is None:
            raise NoSuchSnapshotError(f"{ref!r} has no snapshot yet")
        return _move_main(base, target)

    return MetadataOperation(updates)


def rollback_to_snapshot(given: SnapshotId) -> MetadataOperation:
    """Make an ancestor of the current snapshot the current one.

    Raises ValidationError when run if it is no ancestor.
    """
    snapshot_id = snapshot_id_of(given)

    def updates(base: TableMetadata) -> list[Update]:
        target = base.snapshot_by_id(snapshot_id)
        current = base.current_snapshot_id
        if current is None or snapshot_id not in _ancestor_ids(base, current):
            raise ValidationError(
                f"cannot roll back to snapshot {snapshot_id}: it is not an ancestor of the "
                f"current snapshot {current}; set_current_snapshot moves to any snapshot"
            )
        return _move_main(base, target)

    return MetadataOperation(updates)


def rollback_to_timestamp(timestamp_ms: int) -> MetadataOperation:
    """Make the newest ancestor that is older than a time (in milliseconds) the current one."""

    def updates(base: TableMetadata) -> list[Update]:
        current = base.current_snapshot_id
        chain = () if current is None else base.ancestors_of(current)
        target = next(
            (snapshot for snapshot in chain if snapshot.timestamp_ms < timestamp_ms), None
        )
        if target is None:
            oldest = f"the oldest is of {chain[-1].timestamp_ms}" if chain else "the table is empty"
            raise NoSuchSnapshotError(
                f"no ancestor of the current snapshot is older than {timestamp_ms} ms; {oldest}"
            )
        return _move_main(base, target)

    return MetadataOperation(updates)


def _create_operation(
    kind: RefType, name: str, given: SnapshotId | None, retention: Retention
) -> MetadataOperation:
    _check_name(name)
    snapshot_id = optional_snapshot_id_of(given)

    def updates(base: TableMetadata) -> list[Update]:
        _check_free(base, name)
        target = _snapshot_or_current(base, snapshot_id, f"{kind} {name!r}")
        return [SetSnapshotRef(name, _ref(kind, target.snapshot_id, retention))]

    return MetadataOperation(updates)


def _replace_operation(
    kind: RefType, name: str, given: SnapshotId | None, retention: Retention | None
) -> MetadataOperation:
    snapshot_id = optional_snapshot_id_of(given)

    def updates(base: TableMetadata) -> list[Update]:
        ref = _existing_ref(base, name, kind)
        target = _snapshot_or_current(base, snapshot_id, f"{kind} {name!r}").snapshot_id
        replaced = dataclasses.replace(ref, snapshot_id=target)
        if retention is not None:
            replaced = _ref(kind, target, retention)
        return [SetSnapshotRef(name, replaced)] if replaced != ref else []

    return MetadataOperation(updates)


def _remove_operation(kind: RefType, name: str) -> MetadataOperation:
    def updates(base: TableMetadata) -> list[Update]:
        _existing_ref(base, name, kind)
        return [RemoveSnapshotRef(name)]

    return MetadataOperation(updates)


def _move_main(base: TableMetadata, target: Snapshot) -> list[Update]:
    if base.current_snapshot_id == target.snapshot_id:
        return []
    return [move_branch(base, MAIN_BRANCH, target.snapshot_id)]


def _ancestor_ids(base: TableMetadata, snapshot_id: int) -> frozenset[int]:
    return frozenset(snapshot.snapshot_id for snapshot in base.ancestors_of(snapshot_id))


def _check_name(name: str) -> None:
    if not name or not name.strip():
        raise ValidationError(f"{name!r} is no name for a branch or tag")


def _check_free(base: TableMetadata, name: str) -> None:
    if name in base.refs or name == MAIN_BRANCH:
        raise AlreadyExistsError(f"the table has a branch or tag {name!r}; replace it instead")


def _existing_ref(base: TableMetadata, name: str, kind: str) -> SnapshotRef:
    ref = base.ref(name)
    if ref.type != kind:
        raise NoSuchRefError(f"{name!r} is a {ref.type}, not a {kind}")
    return ref


def _snapshot_or_current(base: TableMetadata, snapshot_id: int | None, what: str) -> Snapshot:
    if snapshot_id is not None:
        return base.snapshot_by_id(snapshot_id)
    current = base.current_snapshot
    if current is None:
        raise NoSuchSnapshotError(
            f"the table is empty, so {what} has no snapshot to point at; append something first"
        )
    return current


def _ref(kind: RefType, snapshot_id: int, retention: Retention) -> SnapshotRef:
    return SnapshotRef(
        snapshot_id=snapshot_id,
        type=kind,
        min_snapshots_to_keep=retention.min_snapshots_to_keep,
        max_snapshot_age_ms=retention.max_snapshot_age_ms,
        max_ref_age_ms=retention.max_ref_age_ms,
    )
