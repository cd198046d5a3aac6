"""Overwrites and metadata-only deletes: whole files go, by predicate, by name or by partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from frazil.errors import ConflictError, ValidationError
from frazil.format.manifests import DataFile, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import AlwaysTrue
from frazil.format.snapshots import APPEND, DELETE, OVERWRITE, Snapshot
from frazil.format.snapshots.summaries import MOVED_ROWS, REPLACE_PARTITIONS, RIVAL_SNAPSHOTS
from frazil.storage.files import FileIO
from frazil.table.conflicts.history import History, Scope
from frazil.table.conflicts.rows import AddedData, OperationRows
from frazil.table.conflicts.validation import (
    Reached,
    Validation,
    check_no_added_deletes,
    check_no_new_deletes_for,
    check_no_removed_data,
    check_reads,
    check_replaced_files_exist,
)
from frazil.table.manifests.file_keys import PartitionSet
from frazil.table.manifests.row_filter import Predicate, RowFilter
from frazil.table.snapshots.merging import MergingProducer
from frazil.table.snapshots.producer import DEFAULT_OPTIONS, SnapshotOptions


class OverwriteFiles(MergingProducer):
    """Remove files by predicate or by name and add others, in one snapshot.

    A predicate removes the files whose rows all match, by partition or by metrics; a file that
    may hold other rows as well is an error. A copy-on-write change names the files that it
    rewrote instead, and adds those that take their place.
    """

    operation_name = OVERWRITE

    def __init__(
        self,
        io: FileIO,
        *,
        added: Iterable[DataFile] = (),
        removed: Iterable[DataFile] = (),
        removed_paths: Iterable[str] = (),
        where: Predicate | None = None,
        validation: Validation | None = None,
        case_sensitive: bool = True,
        options: SnapshotOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__(io, options)
        self._where = None if where is None else RowFilter(where, case_sensitive=case_sensitive)
        self._validation = validation
        self._added_by_others = AddedData(None if validation is None else validation.rows)
        self._removes_by_name = False
        self.added_data.add_all(added)
        for file in removed:
            self._removes_by_name = True
            self.removed_data.choose_file(file)
        for path in removed_paths:
            self._removes_by_name = True
            self.removed_data.choose_path(path)
        if self._where is not None:
            self.removed_data.choose_rows(self._where)
            self.removed_deletes.choose_rows(self._where)
        self._copied: CopiedRows | None = None
        if validation is not None and validation.rows is not None and self._removes_by_name:
            self._copied = CopiedRows(
                validation.rows,
                replaced=self.removed_data.chosen_files,
                copies=self.added_data.files,
                # To delete what is deleted is no contradiction, unless the first is to win.
                twice=validation.operation == "delete" and validation.isolation == "serializable",
            )

    @property
    def summary_operation(self) -> str:
        """delete if nothing is added, append if nothing can be removed, else overwrite."""
        if not self.added_data:
            return DELETE
        return APPEND if self.removed_data.is_empty else OVERWRITE

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """Check what was committed since the operation read the table, as its isolation asks."""
        options = self._validation
        if options is None:
            return
        self.note_read(base, options.from_snapshot)
        if not (options.isolation == "serializable" or options.check_deletes):
            return
        history = self.history(base, parent, options.from_snapshot, operation=options.operation)
        if not history.snapshots:
            return
        scope = self._scope(options)
        check_reads(history, options, scope, self._added_by_others, metadata=base, head=parent)
        if not options.check_deletes:
            return
        check_replaced_files_exist(history, data_files=self.removed_data.chosen_files)
        if self._where is not None:
            check_no_added_deletes(history, scope)
            check_no_removed_data(history, scope)
        # An operation that replaces the new files would not see deletes that a later try adds.
        if self._copied is not None and not self.is_built_on:
            self._copied.follow(history, base, parent)
            self.added_deletes.hold(self._copied.deletes)
            return
        check_no_new_deletes_for(
            history, self.removed_data.chosen_files, equality_deletes_still_apply=False
        )

    def summary(self, base: TableMetadata, parent: Snapshot | None) -> Mapping[str, str]:
        """The counts, and how many rows of the new files others had deleted."""
        counts = super().summary(base, parent)
        if self._copied is None or not self._copied.rivals:
            return counts
        return {**counts, **self._copied.summary()}

    def on_committed(self, metadata: TableMetadata) -> None:
        """Remove what earlier tries wrote."""
        super().on_committed(metadata)
        if self._copied is not None and self._copied.unused_paths:
            self.files.io.delete_many(self._copied.unused_paths)

    def on_abandoned(self) -> None:
        """Remove what tries wrote too."""
        super().on_abandoned()
        if self._copied is not None and self._copied.made_paths:
            self.files.io.delete_many(self._copied.made_paths)

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """Kept, filtered, new and merged manifests.

        Raises ConflictError: a named file is gone, or others have added a file that matches in
        part; ValidationError: one that was there when the table was read matches in part.
        """
        try:
            return super().manifests(base, parent)
        except ConflictError:
            raise
        except ValidationError as error:
            options = self._validation
            # The commit loop knows what later tries meet.
            if options is None or not self.history(base, parent, options.from_snapshot).snapshots:
                raise
            raise ConflictError(
                f"another commit changed the table since it was read: {error}; "
                "run the operation again"
            ) from error

    def _scope(self, options: Validation) -> Scope:
        partitions = None if options.partitions is None else PartitionSet(options.partitions)
        # A pure overwrite by predicate has read what the predicate matches.
        given = not isinstance(options.conflict_filter, AlwaysTrue)
        if not given and self._where is not None and not self._removes_by_name:
            return Scope(self._where, partitions)
        row_filter = RowFilter(options.conflict_filter, case_sensitive=options.case_sensitive)
        return Scope(row_filter, partitions)


class ReplacePartitions(MergingProducer):
    """Dynamic partition overwrite: the partitions that get new files lose their old ones.

    Every file of the new data must be of one spec; files of other specs stay where they are,
    unless the table is unpartitioned, where everything is replaced.
    """

    operation_name = OVERWRITE

    def __init__(
        self,
        io: FileIO,
        added: Iterable[DataFile],
        *,
        validation: Validation | None = None,
        options: SnapshotOptions = DEFAULT_OPTIONS,
    ) -> None:
        snapshot_properties = {**options.snapshot_properties, REPLACE_PARTITIONS: "true"}
        super().__init__(io, replace(options, snapshot_properties=snapshot_properties))
        self._validation = validation
        self._added_by_others = AddedData(None)
        self._touched = PartitionSet()
        self._chosen_for_spec: int | None = None
        for file in added:
            self.added_data.add(file)
            self._touched.add(file.spec_id, file.partition)
        if len(self._touched.spec_ids) > 1:
            raise ValidationError(
                "files of one dynamic overwrite must be of one partition spec, not of "
                f"{sorted(self._touched.spec_ids)}"
            )

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """Check the partitions that are replaced, as the isolation asks."""
        options = self._validation
        if options is None or not self._touched:
            return
        history = self.history(base, parent, options.from_snapshot, operation=options.operation)
        scope = self._scope(base)
        if options.isolation == "serializable":
            self._added_by_others.check(history, scope, base, parent)
        if options.check_deletes:
            check_no_removed_data(history, scope)
            check_no_added_deletes(history, scope)

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """Manifests without the replaced partitions, and those of the new files."""
        for spec_id in self._touched.spec_ids:
            if self._chosen_for_spec == spec_id:
                continue
            self._chosen_for_spec = spec_id
            if base.spec_by_id(spec_id).is_unpartitioned:
                everything = RowFilter(AlwaysTrue())
                self.removed_data.choose_rows(everything)
                self.removed_deletes.choose_rows(everything)
                continue
            for file in self.added_data.files:
                self.removed_data.choose_partition(file.spec_id, file.partition)
                self.removed_deletes.choose_partition(file.spec_id, file.partition)
        return super().manifests(base, parent)

    def _scope(self, base: TableMetadata) -> Scope:
        unpartitioned = any(
            base.spec_by_id(spec_id).is_unpartitioned for spec_id in self._touched.spec_ids
        )
        return Scope(RowFilter(AlwaysTrue()), None if unpartitioned else self._touched)


# -- rows that were copied -------------------------------------------------------------------------


class CopiedRows:
    """Deletes of rows that others deleted while their files were copied.

    Args:
        rows: finds rows in files, and writes deletes.
        replaced: the data files that the operation removes.
        copies: the data files that it adds.
        twice: whether others may have deleted rows that the operation deletes as well.

    Attributes:
        deletes: what to add in this try.
        rivals: how many snapshots of others this try comes after.
    """

    def __init__(
        self,
        rows: OperationRows,
        *,
        replaced: Sequence[DataFile],
        copies: Sequence[DataFile],
        twice: bool,
    ) -> None:
        self._rows = rows
        self._replaced = tuple(replaced)
        self._copies = tuple(copies)
        self._twice = twice
        self._made: list[DataFile] = []
        self._count = 0
        self.deletes: tuple[DataFile, ...] = ()
        self.rivals = 0

    @property
    def made_paths(self) -> set[str]:
        """Files that were written for tries."""
        return {file.file_path for file in self._made}

    @property
    def unused_paths(self) -> set[str]:
        """Those of them that this try does not add."""
        return self.made_paths - {file.file_path for file in self.deletes}

    def summary(self) -> Mapping[str, str]:
        """Return entries of the snapshot's summary."""
        return {RIVAL_SNAPSHOTS: str(self.rivals), MOVED_ROWS: str(self._count)}

    def follow(self, history: History, metadata: TableMetadata, head: Snapshot | None) -> None:
        """Delete what others deleted.

        Raises ConflictError: they deleted or changed a row that the operation changes, or nobody
        can tell which rows these are.
        """
        self.deletes, self._count = (), 0
        self.rivals = len(history.snapshots)
        replaced = {file.file_path: file for file in self._replaced}
        reached = Reached(history, self._replaced)
        if next(reached.added_deletes(), None) is None:
            return
        since = history.sequence_number_read
        deleted = self._rows.deleted_since(metadata, head, replaced, since)
        found = None
        if deleted is not None:
            found = self._rows.deletes_of_copies(metadata, deleted, self._copies)
        if found is None:
            check_no_new_deletes_for(history, self._replaced, equality_deletes_still_apply=False)
            return
        self._made += found.added
        for path, count in found.changed_by_both.items():
            history.refuse_rows(count, path)
        if not self._twice:
            for path, count in found.deleted_by_both.items():
                history.refuse_rows(count, path)
        self.deletes, self._count = found.added, found.count
