"""A group of files becomes other files of the same rows; nothing is committed here."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Final

from frazil.errors import FrazilError, InvalidDataFileError
from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.planning.removal import data_files
from frazil.spark.maintenance.compaction.arranging.arrangement import Arrangement, BinPack, SortBy
from frazil.spark.maintenance.compaction.copying import can_copy, copy_rows, is_little
from frazil.spark.maintenance.compaction.groups import FileGroup
from frazil.spark.maintenance.compaction.known_deletes import KnownDeletes
from frazil.spark.maintenance.compaction.options import CompactionOptions
from frazil.spark.maintenance.compaction.results import FailedGroup
from frazil.spark.row_level.target import Target
from frazil.spark.write.files import write_data_files
from frazil.spark.write.joined import pieces_of
from frazil.storage.files import FileIO

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenGroup:
    """A group and the files that can take its place.

    Attributes:
        group: what was read.
        removed: its files.
        added: the new files.
        deletes: of rows of the new files that others deleted since the old ones were read.
        moved_rows: how many rows these delete.
    """

    group: FileGroup
    removed: tuple[DataFile, ...]
    added: tuple[DataFile, ...]
    deletes: tuple[DataFile, ...] = ()
    moved_rows: int = 0

    def failed_group(self, reason: object, *, is_conflict: bool) -> FailedGroup:
        """Return what a result says of the group if it is given up."""
        text = str(reason).strip() or type(reason).__name__
        return FailedGroup(
            partition=self.group.partition,
            files_count=self.group.files_count,
            reason=text.splitlines()[0],
            is_conflict=is_conflict,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriter:
    """Rewrites groups of one plan; threads may share it.

    Attributes:
        target: the files, as they were at one snapshot.
        arrangement: of the rows in the new files.
        options: of the compaction.
        known: what is deleted of groups that may be copied all the same.
        write_options: the user's own, by the names of Java's write options.
    """

    target: Target
    arrangement: Arrangement
    options: CompactionOptions
    known: KnownDeletes = field(default_factory=KnownDeletes)
    write_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def metadata(self) -> TableMetadata:
        """The table as it was read."""
        return self.target.metadata

    @property
    def io(self) -> FileIO:
        """The table's files."""
        return self.target.io

    def knowing_deletes(self, groups: Iterable[FileGroup]) -> Rewriter:
        """Return the same, knowing what is deleted of those groups that may be copied then."""
        ordinals = [
            ordinal
            for group in groups
            if group.has_deletes and self._may_copy(group) and is_little(self.metadata, group)
            for ordinal in group.ordinals
        ]
        if not ordinals:
            return self
        return replace(self, known=KnownDeletes.of(self.target.restricted_to(ordinals)))

    def _may_copy(self, group: FileGroup) -> bool:
        return isinstance(self.arrangement, BinPack) and can_copy(self.metadata, group)

    def rewrite(self, group: FileGroup) -> RewrittenGroup:
        """Read a group, apply the deletes, and write its rows.

        Raises:
            InvalidDataFileError: the new files hold another number of rows than the group.
            FrazilError, PySparkException: a file cannot be read or written; nothing is left.
        """
        files = self.target.restricted_to(group.ordinals)
        sizes = self.options.sizes
        expected = group.size_in_bytes
        if isinstance(self.arrangement, SortBy):
            expected = ceil(expected * self.options.compression_factor)
        tasks = sizes.output_files(expected)
        # Rows of several partitions lie in tasks by their partition, not by their file.
        pieces = pieces_of(self.metadata, expected // tasks) if group.is_of_output_spec else 1
        _LOG.info(
            "rewriting %d files of %d bytes%s as %d files of %d pieces each",
            group.files_count,
            group.size_in_bytes,
            f" of {group.partition}" if group.partition else "",
            tasks,
            pieces,
        )
        options = {
            "target-file-size-bytes": str(sizes.most_written),
            "output-spec-id": str(self.options.spec_id),
            "distribution-mode": "none",
            **self.arrangement.write_options(),
            **self.write_options,
        }
        copied, left = list[DataFile](), files
        if self._may_copy(group):
            copied, left, tasks = copy_rows(
                files, group, options=options, tasks=tasks, known=self.known
            )
        try:
            written = self._write(left, group, options, tasks=tasks, pieces=pieces)
        except BaseException:
            self._remove(copied)
            raise
        done = RewrittenGroup(
            group=group,
            removed=tuple(data_files(self.metadata, files.plan, group.ordinals)),
            added=(*copied, *written),
        )
        self._check_rows(done)
        return done

    def _write(
        self,
        files: Target,
        group: FileGroup,
        options: Mapping[str, str],
        *,
        tasks: int,
        pieces: int,
    ) -> list[DataFile]:
        """What Spark makes of files of a group."""
        if files.plan.files.is_empty():
            return []
        placement = self.arrangement.placement(files, group, tasks * pieces)
        return write_data_files(
            self.target.spark,
            files.rows_without_places(),
            metadata=self.metadata,
            io=self.io,
            options=options,
            schema=files.written_schema,
            placement=replace(placement, pieces=pieces),
        )

    def discard(self, done: RewrittenGroup) -> None:
        """Remove the new files of a group that is given up, without hiding why it is."""
        self._remove(done.added)
        self.discard_deletes(done)

    def discard_deletes(self, done: RewrittenGroup) -> None:
        """Remove the deletes of a group's new files; several vectors may be in one file."""
        self._remove({file.file_path: file for file in done.deletes}.values())

    def _remove(self, files: Iterable[DataFile]) -> None:
        try:
            self.io.delete_many(file.file_path for file in files)
        except FrazilError as error:
            _LOG.warning("files of a group that was given up were left behind: %s", error)

    def _check_rows(self, done: RewrittenGroup) -> None:
        """Compare the rows: no more than there were, and all of them where nothing is deleted."""
        had = done.group.record_count
        have = sum(file.record_count for file in done.added)
        if have == had or (done.group.has_deletes and have < had):
            return
        self.discard(done)
        raise InvalidDataFileError(
            f"{done.group.files_count} files of {had} rows were rewritten as "
            f"{len(done.added)} files of {have} rows: nothing of this group was committed; the "
            f"first of its files is {done.removed[0].file_path}"
        )
