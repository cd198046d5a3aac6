"""SnapshotProducer: what every operation that makes a snapshot has in common."""

from __future__ import annotations

import dataclasses
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict

from frazil.errors import NoSuchRefError, ValidationError
from frazil.format.changes import AddSnapshot, SetSnapshotRef, Update
from frazil.format.manifests import (
    DataFile,
    ManifestFile,
    assign_first_row_ids,
    assign_sequence_numbers,
)
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import SUMMARY_PARTITION_LIMIT
from frazil.format.snapshots import MAIN_BRANCH, Snapshot, SnapshotRef, SummaryBuilder
from frazil.storage.files import FileIO
from frazil.table.commit.definition import Definition
from frazil.table.commit.operation import Changes
from frazil.table.conflicts.history import History
from frazil.table.manifests.files import ManifestFiles
from frazil.version import FRAZIL_VERSION

RUNTIME = {"iceberg-version": f"Frazil {FRAZIL_VERSION}"}
ENGINE = {"engine-name": "frazil", "engine-version": FRAZIL_VERSION}


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    """Where a snapshot goes and what its summary says besides the counts.

    Attributes:
        branch: the branch that the snapshot becomes the head of; it must exist, except `main`.
        snapshot_properties: entries for the summary; the counts of the specification win.
        wap_id: when set, the snapshot is staged: part of the table, but of no branch, until
            `publish_changes` or `cherrypick_snapshot` makes it so.
        starts_branch: a branch that is not there begins at the head of `main`, in this commit.
        definition: what the new files were written for; the table that the first try sees unless
            given.
        own_files: paths of files that were written for this commit alone and go with it when it
            does not take place.
    """

    branch: str = MAIN_BRANCH
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    wap_id: str | None = None
    starts_branch: bool = False
    definition: Definition | None = None
    own_files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if "operation" in self.snapshot_properties:
            raise ValidationError(
                "snapshot property 'operation' is the specification's own; choose another name"
            )
        for name, value in self.snapshot_properties.items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise ValidationError(
                    f"snapshot property {name!r}: names and values are strings, not {value!r}"
                )

    def with_summary(self, entries: Mapping[str, str]) -> SnapshotOptions:
        """Return the options with more entries for the summary; a later one of a name wins."""
        return replace(self, snapshot_properties={**self.snapshot_properties, **entries})


DEFAULT_OPTIONS = SnapshotOptions()


class BranchSettings(TypedDict, total=False):
    """Keywords of a commit that cannot be staged.

    Attributes:
        branch: the branch that the snapshot becomes the head of; None is `main`.
        snapshot_properties: entries for the summary.
    """

    branch: str | None
    snapshot_properties: Mapping[str, str] | None


class SnapshotSettings(BranchSettings, total=False):
    """Keywords of a commit.

    Attributes:
        wap_id: stage the snapshot under this id in place of making it a branch's head.
        starts_branch: let a branch that is not there begin at the head of `main`.
        definition: what the new files were written for.
        own_files: paths of files to remove when the commit does not take place.
    """

    wap_id: str | None
    starts_branch: bool
    definition: Definition | None
    own_files: tuple[str, ...]


def snapshot_options(
    *,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    wap_id: str | None = None,
    starts_branch: bool = False,
    definition: Definition | None = None,
    own_files: tuple[str, ...] = (),
) -> SnapshotOptions:
    """Return the options that a commit's keywords say."""
    if wap_id is not None and branch not in (None, MAIN_BRANCH):
        raise ValidationError(
            f"a snapshot is either staged (WAP id {wap_id!r}) or goes to branch {branch!r}"
        )
    return SnapshotOptions(
        branch=branch if branch is not None else MAIN_BRANCH,
        snapshot_properties=dict(snapshot_properties or {}),
        wap_id=wap_id,
        starts_branch=starts_branch,
        definition=definition,
        own_files=own_files,
    )


class BranchOperation:
    """An operation on the head of a branch, compared with what others committed there."""

    def __init__(self, io: FileIO, options: SnapshotOptions = DEFAULT_OPTIONS) -> None:
        self.options = options
        self.files = ManifestFiles(io)
        self._read: dict[int | None, int | None] = {}
        self.own_snapshots: frozenset[int] = frozenset()

    def head(self, base: TableMetadata) -> Snapshot | None:
        """Return the snapshot to build on: the head of the branch, None if that is empty.

        A staged snapshot builds on what its own transaction staged under the same id.
        """
        if self.options.wap_id is not None:
            staged = staged_head(base, self.options.wap_id, self.own_snapshots)
            if staged is not None:
                return staged
        if self.options.starts_branch and self.options.branch not in base.refs:
            return base.current_snapshot
        return branch_head(base, self.options.branch)

    @property
    def name_in_errors(self) -> str:
        """What errors call the operation."""
        return "operation"

    def history(
        self,
        base: TableMetadata,
        parent: Snapshot | None,
        from_snapshot: int | None,
        *,
        operation: str | None = None,
    ) -> History:
        """Return what others committed since the operation read `from_snapshot`.

        A snapshot of the operation's own transaction stands for the last one before it that others
        see, as it was in the first try: later tries build on what others committed since.
        `operation`: what errors call the operation; what its summary says unless given.
        """
        start = self.note_read(base, from_snapshot)
        return History(
            self.files,
            base,
            parent,
            start,
            own=self.own_snapshots,
            operation=operation or self.name_in_errors,
        )

    def note_read(self, base: TableMetadata, from_snapshot: int | None) -> int | None:
        """Return the committed snapshot that `from_snapshot` stood for in the first try."""
        if from_snapshot not in self._read:
            self._read[from_snapshot] = self._committed_ancestor(base, from_snapshot)
        return self._read[from_snapshot]

    def _committed_ancestor(self, base: TableMetadata, snapshot_id: int | None) -> int | None:
        """The snapshot, or the nearest before it that is not of the operation's transaction."""
        if snapshot_id not in self.own_snapshots:
            return snapshot_id
        chain = (snapshot.snapshot_id for snapshot in base.ancestors_of(snapshot_id))
        return next((found for found in chain if found not in self.own_snapshots), None)


class SnapshotProducer(BranchOperation, ABC):
    """An operation whose result is one snapshot.

    A subclass says which manifests the snapshot has and what its summary counts. Manifests are
    written once and serve every try; the manifest list is written anew for each (rules 136, 216).
    """

    def __init__(self, io: FileIO, options: SnapshotOptions = DEFAULT_OPTIONS) -> None:
        super().__init__(io, options)
        self.snapshot_id: int = new_snapshot_id()
        self._used: tuple[str, ...] = ()
        self._list: str | None = None
        self.is_built_on = False

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """Check the operation against what was committed since; by default there is nothing."""

    @abstractmethod
    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """The manifests of the snapshot; new ones have no sequence number yet."""

    @abstractmethod
    def summary(self, base: TableMetadata, parent: Snapshot | None) -> Mapping[str, str]:
        """The snapshot's summary, with its `operation`; asked for after `manifests`."""

    def changes(self, base: TableMetadata, *, committed: TableMetadata | None = None) -> Changes:
        """Return one more snapshot on the branch, or beside it when it is staged."""
        self.own_snapshots = snapshots_of_transaction(base, committed)
        parent = self.head(base)
        self.validate(base, parent)
        while self.snapshot_id in base.snapshots_at_hand and not self.files.written_paths:
            self.snapshot_id = new_snapshot_id()
        sequence_number = base.next_sequence_number
        manifests = assign_sequence_numbers(
            self.manifests(base, parent), sequence_number=sequence_number
        )
        self._used = tuple(manifest.manifest_path for manifest in manifests)
        first_row_id: int | None = None
        added_rows: int | None = None
        if base.format_version >= 3:
            first_row_id = base.next_row_id
            manifests, next_row_id = assign_first_row_ids(manifests, next_row_id=first_row_id)
            added_rows = next_row_id - first_row_id
        parent_id = None if parent is None else parent.snapshot_id
        self._list = self.files.write_list(
            base,
            manifests,
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=sequence_number,
            first_row_id=first_row_id,
        )
        snapshot = Snapshot(
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=sequence_number,
            # A clock that is behind must not break the order of the snapshot log.
            timestamp_ms=max(now_ms(), base.last_updated_ms),
            manifest_list=self._list,
            summary={**self._properties(), **self.summary(base, parent)},
            schema_id=base.current_schema_id,
            first_row_id=first_row_id,
            added_rows=added_rows,
        )
        updates: list[Update] = [AddSnapshot(snapshot)]
        if self.options.wap_id is None:
            updates.append(self.moved_branch(base))
        return Changes.of(base, updates)

    def moved_branch(self, base: TableMetadata) -> Update:
        """Return the update that makes the snapshot the head of its branch."""
        return move_branch(base, self.options.branch, self.snapshot_id)

    @property
    def made_snapshots(self) -> frozenset[int]:
        """The one snapshot."""
        return frozenset({self.snapshot_id})

    def is_in(self, metadata: TableMetadata) -> bool | None:
        """Whether the table has the snapshot."""
        return self.snapshot_id in metadata.snapshots_by_id

    def on_committed(self, metadata: TableMetadata) -> None:
        """Remove the manifests and lists of earlier tries that the snapshot does not use."""
        self.files.keep_only(self._used, self._list)

    def before_another(self) -> None:
        """Hear that another operation builds on this one."""
        self.is_built_on = True

    def on_abandoned(self) -> None:
        """Remove every manifest and list of this operation, and the files that are its own."""
        self.files.keep_only((), None)
        if self.options.own_files:
            self.files.io.delete_many(dict.fromkeys(self.options.own_files))

    def _properties(self) -> Mapping[str, str]:
        staged = {} if self.options.wap_id is None else {"wap.id": self.options.wap_id}
        return {**ENGINE, **RUNTIME, **self.options.snapshot_properties, **staged}


def snapshots_of_transaction(
    base: TableMetadata, committed: TableMetadata | None
) -> frozenset[int]:
    """Return the snapshots that earlier steps of a transaction made and nobody else sees."""
    if committed is None or committed is base:
        return frozenset()
    return frozenset(base.snapshots_at_hand.keys() - committed.snapshots_at_hand.keys())


def staged_head(base: TableMetadata, wap_id: str, own: Collection[int]) -> Snapshot | None:
    """Return the newest snapshot of one's own transaction that is staged under a WAP id."""
    if not own:
        return None
    staged = (
        snapshot
        for snapshot in reversed(tuple(base.snapshots_at_hand.values()))
        if snapshot.snapshot_id in own and (snapshot.summary or {}).get("wap.id") == wap_id
    )
    return next(staged, None)


def branch_head(base: TableMetadata, branch: str) -> Snapshot | None:
    """The snapshot that a commit to the branch builds on; None for `main` of an empty table."""
    ref = base.refs.get(branch)
    if ref is None:
        if branch == MAIN_BRANCH:
            return base.current_snapshot
        raise NoSuchRefError(
            f"the table has no branch {branch!r}; create it first, it has {sorted(base.refs)}"
        )
    if not ref.is_branch:
        raise ValidationError(f"{branch!r} is a tag, and tags do not move; write to a branch")
    return base.snapshot_by_id(ref.snapshot_id)


def move_branch(base: TableMetadata, branch: str, snapshot_id: int) -> SetSnapshotRef:
    """Point a branch at a snapshot, keeping its retention."""
    ref = base.refs.get(branch)
    moved = (
        SnapshotRef(snapshot_id=snapshot_id, type="branch")
        if ref is None
        else dataclasses.replace(ref, snapshot_id=snapshot_id)
    )
    return SetSnapshotRef(branch, moved)


def new_snapshot_id() -> int:
    """A random positive 63-bit id (rules 159, 309)."""
    number = uuid.uuid4().int
    return ((number >> 64) ^ number) & 0x7FFF_FFFF_FFFF_FFFF or 1


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def summarize(
    operation: str,
    *,
    metadata: TableMetadata,
    parent: Snapshot | None,
    added: Iterable[DataFile],
    removed: Iterable[DataFile],
) -> dict[str, str]:
    """The operation, what was added and removed, and totals that go on from the parent's."""
    builder = SummaryBuilder(
        specs=metadata.specs_by_id,
        schema=metadata.schema,
        partition_limit=SUMMARY_PARTITION_LIMIT.of(metadata.properties),
    )
    for file in added:
        builder.add_file(file)
    for file in removed:
        builder.remove_file(file)
    return builder.build(operation, previous=parent)
