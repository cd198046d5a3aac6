"""SnapshotProducer: what every operation that makes a snapshot has in common."""

from __future__ import annotations

import dataclasses
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TypedDict

from frazil.errors import NoSuchRefError, ValidationException
from frazil.format.changes import AddSnapshot, SetSnapshotRef, Update
from frazil.format.manifests import (
    ManifestFile,
    assign_first_row_ids,
    assign_sequence_numbers,
)
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import MAIN_BRANCH, Snapshot, SnapshotRef
from frazil.storage.files import FileIO
from frazil.table.manifest_files import ManifestFiles
from frazil.table.operation import Changes

ENGINE = {"engine-name": "frazil", "engine-version": version("frazil")}


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    """Where a snapshot goes and what its summary says besides the counts.

    Attributes:
        branch: the branch that the snapshot becomes the head of; it must exist, except `main`.
        snapshot_properties: entries for the summary; the counts of the specification win.
        wap_id: when set, the snapshot is staged: part of the table, but of no branch, until
            `publish_changes` or `cherrypick_snapshot` makes it so.
    """

    branch: str = MAIN_BRANCH
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    wap_id: str | None = None

    def __post_init__(self) -> None:
        if "operation" in self.snapshot_properties:
            raise ValidationException(
                "snapshot property 'operation' is the specification's own (rule 155); "
                "choose another name"
            )
        for name, value in self.snapshot_properties.items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise ValidationException(
                    f"snapshot property {name!r}: names and values are strings, not {value!r}"
                )


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
    """

    wap_id: str | None


def snapshot_options(
    *,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    wap_id: str | None = None,
) -> SnapshotOptions:
    """The options that a commit's keywords say.

    Raises:
        ValidationException: the snapshot is staged and goes to a branch, or a property is unusable.
    """
    if wap_id is not None and branch not in (None, MAIN_BRANCH):
        raise ValidationException(
            f"a snapshot is either staged (WAP id {wap_id!r}) or goes to branch {branch!r}"
        )
    return SnapshotOptions(
        branch=branch if branch is not None else MAIN_BRANCH,
        snapshot_properties=dict(snapshot_properties or {}),
        wap_id=wap_id,
    )


class SnapshotProducer(ABC):
    """An operation whose result is one snapshot.

    A subclass says which manifests the snapshot has and what its summary counts. Manifests are
    written once and serve every try; the manifest list is written anew for each (rules 136, 216).
    """

    def __init__(self, io: FileIO, options: SnapshotOptions = DEFAULT_OPTIONS) -> None:
        self.options = options
        self.files = ManifestFiles(io)
        self.snapshot_id: int = new_snapshot_id()
        self._used: tuple[str, ...] = ()
        self._list: str | None = None

    def head(self, base: TableMetadata) -> Snapshot | None:
        """The snapshot to build on: the head of the branch, None if that is empty."""
        return branch_head(base, self.options.branch)

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:  # noqa: B027
        """Check the operation against what was committed since; by default there is nothing."""

    @abstractmethod
    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """The manifests of the snapshot; new ones have no sequence number yet."""

    @abstractmethod
    def summary(self, base: TableMetadata, parent: Snapshot | None) -> Mapping[str, str]:
        """The snapshot's summary, with its `operation`; asked for after `manifests`."""

    def changes(self, base: TableMetadata) -> Changes:
        """One more snapshot on the branch, or beside it when it is staged."""
        parent = self.head(base)
        self.validate(base, parent)
        while self.snapshot_id in base.snapshots_by_id and not self.files.written:
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
            updates.append(move_branch(base, self.options.branch, self.snapshot_id))
        return Changes.of(base, updates)

    def is_in(self, metadata: TableMetadata) -> bool | None:
        """Whether the table has the snapshot."""
        return self.snapshot_id in metadata.snapshots_by_id

    def on_committed(self, metadata: TableMetadata) -> None:
        """Remove the manifests and lists of earlier tries that the snapshot does not use."""
        self.files.keep_only(self._used, self._list)

    def on_abandoned(self) -> None:
        """Remove every manifest and list of this operation."""
        self.files.remove_all()

    def _properties(self) -> Mapping[str, str]:
        staged = {} if self.options.wap_id is None else {"wap.id": self.options.wap_id}
        return {**ENGINE, **self.options.snapshot_properties, **staged}


def branch_head(base: TableMetadata, branch: str) -> Snapshot | None:
    """The snapshot that a commit to the branch builds on; None for `main` of an empty table.

    Raises:
        NoSuchRefError: there is no such branch.
        ValidationException: the name is a tag's.
    """
    ref = base.refs.get(branch)
    if ref is None:
        if branch == MAIN_BRANCH:
            return base.current_snapshot
        raise NoSuchRefError(
            f"the table has no branch {branch!r}; create it first, it has {sorted(base.refs)}"
        )
    if not ref.is_branch:
        raise ValidationException(f"{branch!r} is a tag, and tags do not move; write to a branch")
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
