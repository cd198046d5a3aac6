"""Expiry: which snapshots go, and which files then belong to nothing (SPEC rules 184-187)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from frazil.errors import ValidationError
from frazil.format.changes import (
    RemoveSnapshotRef,
    RemoveSnapshots,
    Update,
    apply_updates,
)
from frazil.format.html_text import ShownInNotebooks
from frazil.format.manifests import Content
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import GC_ENABLED
from frazil.format.snapshots import Snapshot, snapshots_to_expire
from frazil.planning.load import manifests_by_path
from frazil.storage.files import FileIO
from frazil.table.commit.operation import Changes, MetadataOperation
from frazil.table.maintenance.file_paths import FileDigests, LiveFiles
from frazil.table.maintenance.progress import Deletion, OnDelete
from frazil.table.snapshots.producer import now_ms


@dataclass(frozen=True, slots=True, repr=False)
class ExpireResult(ShownInNotebooks):
    """What an expiry removed, or in a dry run would remove.

    Attributes:
        snapshot_ids: the snapshots that are gone.
        ref_names: the branches and tags that are gone.
        deleted_data_files, deleted_position_delete_files, deleted_equality_delete_files,
        deleted_manifest_files, deleted_manifest_lists, deleted_statistics_files: how many files
            were deleted; a Puffin file of several vectors counts once, as position deletes.
        failures: files that could not be deleted, with the reason; the snapshots are gone all the
            same.
        is_dry_run: whether nothing was removed.
    """

    snapshot_ids: tuple[int, ...] = ()
    ref_names: tuple[str, ...] = ()
    deleted_data_files: int = 0
    deleted_position_delete_files: int = 0
    deleted_equality_delete_files: int = 0
    deleted_manifest_files: int = 0
    deleted_manifest_lists: int = 0
    deleted_statistics_files: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    is_dry_run: bool = False

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of files by the columns of Java's `expire_snapshots`."""
        return {
            "deleted_data_files_count": self.deleted_data_files,
            "deleted_position_delete_files_count": self.deleted_position_delete_files,
            "deleted_equality_delete_files_count": self.deleted_equality_delete_files,
            "deleted_manifest_files_count": self.deleted_manifest_files,
            "deleted_manifest_lists_count": self.deleted_manifest_lists,
            "deleted_statistics_files_count": self.deleted_statistics_files,
        }

    def __repr__(self) -> str:
        lines = [
            f"Expiry{' (dry run)' if self.is_dry_run else ''}",
            f"  snapshots  {len(self.snapshot_ids):,} expired",
        ]
        if self.ref_names:
            lines.append(f"  refs       {', '.join(self.ref_names)}")
        names = (
            (name.removeprefix("deleted_").removesuffix("_count").replace("_", " "), count)
            for name, count in self.counts.items()
        )
        lines += [f"  files      {count:,} {name} deleted" for name, count in names if count]
        lines += [f"  failed     {path}: {reason}" for path, reason in self.failures[:10]]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class UnreachableFiles:
    """Files that only expired snapshots reached.

    Attributes:
        held: data and delete files.
        manifests, manifest_lists, statistics_files: the paths of the others.
    """

    held: LiveFiles = field(default_factory=LiveFiles.empty)
    manifests: tuple[str, ...] = ()
    manifest_lists: tuple[str, ...] = ()
    statistics_files: tuple[str, ...] = ()

    @property
    def naming_files(self) -> tuple[tuple[str, ...], ...]:
        """Those that name others, after those that they name."""
        return self.manifests, self.manifest_lists, self.statistics_files

    @property
    def count(self) -> int:
        """The number of files of all kinds."""
        return len(self.held) + sum(map(len, self.naming_files))


class ExpireSnapshots(MetadataOperation):
    """Removes snapshots that retention no longer keeps, or that were named, and expired references.

    Every reference's snapshot is kept, of each branch the newest `retain_last` and those that are
    not older than `older_than_ms`; without those two, what the references and the
    `history.expire.*` properties say (rules 186, 187).
    """

    def __init__(
        self,
        *,
        older_than_ms: int | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] = (),
        clock: Callable[[], int] = now_ms,
    ) -> None:
        if retain_last is not None and retain_last < 1:
            raise ValidationError(f"retain_last is {retain_last}; at least 1 snapshot stays")
        self._older_than_ms = older_than_ms
        self._retain_last = retain_last
        self._snapshot_ids = frozenset(snapshot_ids)
        self._clock = clock
        self.base: TableMetadata | None = None
        self.after: TableMetadata | None = None
        self.expired: tuple[Snapshot, ...] = ()
        self.expired_refs: tuple[str, ...] = ()
        super().__init__(self._expire)

    def changes(self, base: TableMetadata, *, committed: TableMetadata | None = None) -> Changes:
        """Return the removal of snapshots and references from `base`, which is remembered."""
        self.base = base
        return super().changes(base, committed=committed)

    def on_committed(self, metadata: TableMetadata) -> None:
        """Remember the table as it was committed: only what it does not reach may be deleted."""
        self.after = metadata

    def _expire(self, base: TableMetadata) -> list[Update]:
        if not GC_ENABLED.of(base.properties):
            raise ValidationError(
                "cannot expire snapshots: gc.enabled is false, the table's files may belong to "
                "another table; set gc.enabled to true first"
            )
        expiry = snapshots_to_expire(
            base.snapshots,
            base.refs,
            base.properties,
            now_ms=self._clock(),
            older_than_ms=self._older_than_ms,
            retain_last=self._retain_last,
            snapshot_ids=self._snapshot_ids,
        )
        self.expired_refs = tuple(expiry.refs)
        gone = frozenset(expiry.snapshot_ids)
        self.expired = tuple(each for each in base.snapshots if each.snapshot_id in gone)
        updates: list[Update] = [RemoveSnapshotRef(name) for name in self.expired_refs]
        if self.expired:
            updates.append(RemoveSnapshots(tuple(s.snapshot_id for s in self.expired)))
        return updates


def unreachable_files(io: FileIO, before: TableMetadata, after: TableMetadata) -> UnreachableFiles:
    """The files that snapshots of `before` reach and no snapshot of `after` does.

    Of the kept snapshots those beside expired ones are looked at: a manifest that a commit leaves
    out never comes back in a later one. A data file may, when a staged snapshot is published or a
    removed file is added again, so where one is about to go every kept snapshot is asked.

    None are where another commit has set gc.enabled to false: they may be another table's by now.

    Raises:
        MissingFileError, InvalidManifestError: a manifest of a kept snapshot cannot be read, so
            nothing can be said to be unreachable.
    """
    if not GC_ENABLED.of_or_default(after.properties):
        return UnreachableFiles()
    kept = {snapshot.snapshot_id for snapshot in after.snapshots}
    expired = [snapshot for snapshot in before.snapshots if snapshot.snapshot_id not in kept]
    if not expired:
        return UnreachableFiles(statistics_files=_statistics_gone(before, after))
    expired_manifests = manifests_by_path(io, expired)
    beside = manifests_by_path(io, _neighbour_snapshots(expired, before, after))
    gone = [manifest for path, manifest in expired_manifests.items() if path not in beside]
    unreachable = FileDigests.of(io, before, gone).not_held(io, after, list(beside.values()))
    if unreachable:
        others = manifests_by_path(io, after.snapshots)
        left = [manifest for path, manifest in others.items() if path not in beside]
        unreachable = unreachable.not_held(io, after, left)
        gone = [manifest for manifest in gone if manifest.manifest_path not in others]
    kept_lists = {snapshot.manifest_list for snapshot in after.snapshots}
    return UnreachableFiles(
        held=unreachable.files(io, before),
        manifests=tuple(manifest.manifest_path for manifest in gone),
        manifest_lists=tuple(
            snapshot.manifest_list
            for snapshot in expired
            if snapshot.manifest_list is not None and snapshot.manifest_list not in kept_lists
        ),
        statistics_files=_statistics_gone(before, after),
    )


def delete_unreachable(
    files: UnreachableFiles, operation: ExpireSnapshots, io: FileIO, tell: OnDelete
) -> ExpireResult:
    """Delete the files, those that name others after those, and count them.

    Args:
        files: data and delete files go together, then manifests, then their lists.
        operation: the expiry, which is committed.
        io: the files.
        tell: called with what it is at.
    """
    failures: dict[str, str] = {}
    deletion = Deletion(io, tell, files.count)
    for paths in (*files.held.paths(), *files.naming_files):
        failures.update(deletion.delete(paths))
    deletion.end()
    return expiry_result(operation, files, failures)


def planned_expiry(io: FileIO, before: TableMetadata, operation: ExpireSnapshots) -> ExpireResult:
    """Return what an expiry would remove from a table as it is, and remove nothing."""
    after = apply_updates(before, operation.changes(before).updates)
    return replace(
        expiry_result(operation, unreachable_files(io, before, after), {}), is_dry_run=True
    )


def expiry_result(
    operation: ExpireSnapshots, files: UnreachableFiles, failures: Mapping[str, str]
) -> ExpireResult:
    """What an expiry forgot and how many files go with it, but for those that failed to."""

    def deleted_count(paths: Sequence[str]) -> int:
        return len(paths) - sum(path in failures for path in paths)

    return ExpireResult(
        snapshot_ids=tuple(snapshot.snapshot_id for snapshot in operation.expired),
        ref_names=operation.expired_refs,
        deleted_data_files=files.held.count_of(Content.DATA, failures),
        deleted_position_delete_files=files.held.count_of(Content.POSITION_DELETES, failures),
        deleted_equality_delete_files=files.held.count_of(Content.EQUALITY_DELETES, failures),
        deleted_manifest_files=deleted_count(files.manifests),
        deleted_manifest_lists=deleted_count(files.manifest_lists),
        deleted_statistics_files=deleted_count(files.statistics_files),
        failures=tuple(failures.items()),
    )


def _neighbour_snapshots(
    expired: Sequence[Snapshot], before: TableMetadata, after: TableMetadata
) -> list[Snapshot]:
    """Kept snapshots of which one has every manifest that a kept and an expired snapshot share.

    The snapshots that hold a manifest are linked from parent to child. Where a link is missing,
    since its snapshot expired long ago, what may be on its other side is taken: children of missing
    parents, and whatever is older than an expired snapshot whose parent is missing.
    """
    here = {snapshot.snapshot_id for snapshot in before.snapshots}
    gone = {snapshot.snapshot_id for snapshot in expired}
    parents = {snapshot.parent_snapshot_id for snapshot in expired}
    cut_off = [each.sequence_number for each in expired if each.parent_snapshot_id not in here]
    newest_cut_off = max(cut_off, default=-1)
    return [
        snapshot
        for snapshot in after.snapshots
        if snapshot.snapshot_id in parents
        or snapshot.parent_snapshot_id in gone
        or snapshot.parent_snapshot_id not in here
        or snapshot.sequence_number <= newest_cut_off
    ]


def _statistics_gone(before: TableMetadata, after: TableMetadata) -> tuple[str, ...]:
    kept = set(after.statistics_paths)
    return tuple(path for path in dict.fromkeys(before.statistics_paths) if path not in kept)
