"""CherryPick: the changes of a snapshot of another branch, or of a staged one, on `main`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

from frazil.errors import ConflictError, NoSuchSnapshotError, ValidationError
from frazil.format.changes import Update
from frazil.format.manifests import DataFile, EntryStatus, ManifestContent
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import AlwaysTrue
from frazil.format.snapshots import APPEND, OVERWRITE, Snapshot
from frazil.format.snapshots.summaries import REPLACE_PARTITIONS
from frazil.storage.files import FileIO
from frazil.table.commit.operation import Changes, CompositeOperation, Operation
from frazil.table.commit.requirements import updates_requiring
from frazil.table.conflicts.history import Scope
from frazil.table.conflicts.rows import AddedData
from frazil.table.manifests.file_keys import PartitionSet
from frazil.table.manifests.files import read_entries
from frazil.table.manifests.row_filter import RowFilter
from frazil.table.snapshots.merging import MergingProducer
from frazil.table.snapshots.producer import SnapshotOptions, branch_head, move_branch

WAP_ID = "wap.id"
PUBLISHED_WAP_ID = "published-wap-id"
SOURCE_SNAPSHOT_ID = "source-snapshot-id"


class CherryPick(MergingProducer):
    """Apply an append or a dynamic overwrite again; a child of the head becomes the head itself.

    `published_with` are snapshots of the same WAP id that are published in the same commit.
    """

    def __init__(
        self,
        io: FileIO,
        base: TableMetadata,
        snapshot_id: int,
        *,
        published_with: Collection[int] = (),
    ) -> None:
        picked = base.snapshot_by_id(snapshot_id)
        self._published_with = frozenset(published_with)
        summary = dict(picked.summary or {})
        properties = {SOURCE_SNAPSHOT_ID: str(snapshot_id)}
        self._wap_id = summary.get(WAP_ID)
        if self._wap_id is not None:
            properties[PUBLISHED_WAP_ID] = self._wap_id
        self._replaces_partitions = summary.get(REPLACE_PARTITIONS) == "true"
        if self._replaces_partitions:
            properties[REPLACE_PARTITIONS] = "true"
        super().__init__(io, SnapshotOptions(snapshot_properties=properties))
        self._picked = picked
        self._moves_only = False
        self._is_collected = False

    @property
    def summary_operation(self) -> str:
        """append or overwrite, as the picked snapshot."""
        return OVERWRITE if self._replaces_partitions else APPEND

    def changes(self, base: TableMetadata, *, committed: TableMetadata | None = None) -> Changes:
        """Return a new snapshot with the same changes, or `main` moved to the picked one.

        Raises ConflictError: the snapshot or its WAP id is part of `main`, or what it replaces has
        changed since; ValidationError: it is neither an append, nor a dynamic overwrite, nor a
        child of the current snapshot.
        """
        picked = base.snapshot_by_id(self._picked.snapshot_id)
        head = branch_head(base, self.options.branch)
        self._check_not_published(base, head)
        self._moves_only = picked.parent_snapshot_id == (None if head is None else head.snapshot_id)
        if self._moves_only:
            updates: list[Update] = [move_branch(base, self.options.branch, picked.snapshot_id)]
            return Changes.of(base, updates)
        if picked.operation != APPEND and not self._replaces_partitions:
            raise ValidationError(
                f"cannot cherry-pick snapshot {picked.snapshot_id}: it is neither an append nor a "
                f"dynamic overwrite ({picked.operation}), nor a child of the current snapshot"
            )
        self._collect(base)
        changes = super().changes(base, committed=committed)
        # Its data files are carried on: an expiry of the picked snapshot would delete them.
        needed = updates_requiring(base, picked.snapshot_id)
        return Changes.of(base, [*needed, *changes.updates])

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """A dynamic overwrite must find the partitions as they were when it was made."""
        if not self._replaces_partitions:
            return
        ancestors = () if parent is None else base.ancestors_of(parent.snapshot_id)
        start = self._picked.parent_snapshot_id
        if start is not None and all(snapshot.snapshot_id != start for snapshot in ancestors):
            raise ValidationError(
                f"cannot cherry-pick the overwrite {self._picked.snapshot_id}: the snapshot that "
                f"it is based on, {start}, is not an ancestor of the current one"
            )
        partitions = PartitionSet((file.spec_id, file.partition) for file in self.added_data.files)
        everything = any(base.spec_by_id(spec).is_unpartitioned for spec in partitions.spec_ids)
        scope = Scope(RowFilter(AlwaysTrue()), None if everything else partitions)
        AddedData(None).check(self.history(base, parent, start), scope, base, parent)

    @property
    def made_snapshots(self) -> frozenset[int]:
        """The new snapshot, and the picked one that may become the head."""
        return frozenset({self.snapshot_id, self._picked.snapshot_id})

    def is_in(self, metadata: TableMetadata) -> bool | None:
        """Whether `main` has the new snapshot, or the picked one."""
        return None if self._moves_only else super().is_in(metadata)

    def _collect(self, base: TableMetadata) -> None:
        if self._is_collected:
            return
        self._is_collected = True
        for status, file in self._changed_files(base):
            if status is EntryStatus.ADDED:
                self.added_data.add(file)
            else:
                self.removed_data.choose_file(file)

    def _changed_files(self, base: TableMetadata) -> Iterator[tuple[EntryStatus, DataFile]]:
        picked = self._picked
        for manifest in self.files.manifests_of(picked):
            if manifest.added_snapshot_id != picked.snapshot_id:
                continue
            if manifest.content is ManifestContent.DELETES and not manifest.has_added_files:
                # Merged, or without deletes that apply to nothing: no row was deleted by it.
                continue
            for entry in read_entries(self.files.io, base, manifest):
                if entry.snapshot_id != picked.snapshot_id or entry.status is EntryStatus.EXISTING:
                    continue
                if manifest.content is ManifestContent.DATA:
                    yield entry.status, entry.data_file
                elif entry.status is EntryStatus.ADDED:
                    raise ValidationError(
                        f"cannot cherry-pick snapshot {picked.snapshot_id}: it has delete files"
                    )

    def _check_not_published(self, base: TableMetadata, head: Snapshot | None) -> None:
        picked_id = self._picked.snapshot_id
        for ancestor in () if head is None else base.ancestors_of(head.snapshot_id):
            summary = ancestor.summary or {}
            source = summary.get(SOURCE_SNAPSHOT_ID, str(ancestor.snapshot_id))
            if source in map(str, self._published_with):
                continue
            if ancestor.snapshot_id == picked_id:
                raise ConflictError(f"snapshot {picked_id} is part of main already")
            if summary.get(SOURCE_SNAPSHOT_ID) == str(picked_id):
                raise ConflictError(
                    f"snapshot {picked_id} was picked already, as {ancestor.snapshot_id}"
                )
            if self._wap_id is not None and self._wap_id in (
                summary.get(WAP_ID),
                summary.get(PUBLISHED_WAP_ID),
            ):
                raise ConflictError(
                    f"the changes of WAP id {self._wap_id!r} were published already, "
                    f"as snapshot {ancestor.snapshot_id}"
                )


def publication(io: FileIO, base: TableMetadata, wap_id: str) -> Operation:
    """Return the operation that applies what was staged under a WAP id to `main`.

    A transaction stages a snapshot a write, each on the one before: all are published, in order.
    """
    found = [
        snapshot for snapshot in base.snapshots if (snapshot.summary or {}).get(WAP_ID) == wap_id
    ]
    if not found:
        raise NoSuchSnapshotError(f"no snapshot is staged under the WAP id {wap_id!r}")
    ids = [snapshot.snapshot_id for snapshot in found]
    if any(after.parent_snapshot_id != before.snapshot_id for before, after in pairwise(found)):
        raise ValidationError(
            f"{len(found)} snapshots are staged under the WAP id {wap_id!r}: {ids}; cherry-pick "
            "one by its id"
        )
    return CompositeOperation(
        [
            CherryPick(io, base, snapshot_id, published_with=ids[:place])
            for place, snapshot_id in enumerate(ids)
        ]
    )
