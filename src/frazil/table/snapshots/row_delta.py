"""RowDelta: rows added by data files and removed by delete files, in one snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from frazil.errors import ConflictError, ValidationError
from frazil.format.manifests import Content, DataFile, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import APPEND, DELETE, OVERWRITE, Snapshot
from frazil.format.snapshots.summaries import (
    MOVED_ROWS,
    RIVAL_SNAPSHOTS,
    SHARED_FILES,
    TESTED_FILES,
)
from frazil.storage.files import FileIO
from frazil.table.conflicts.history import EVERYWHERE, History, Scope
from frazil.table.conflicts.rows import AddedData
from frazil.table.conflicts.validation import (
    Validation,
    check_data_files_exist,
    check_no_added_deletes,
    check_no_added_vectors,
    check_no_new_deletes_for,
    check_reads,
    check_replaced_files_exist,
    check_rows_not_deleted_by_equality,
)
from frazil.table.manifests.file_keys import PartitionSet, file_key, referenced_data_file
from frazil.table.manifests.row_filter import RowFilter
from frazil.table.snapshots.joined_deletes import JoinedDeletes, live_deletes_about
from frazil.table.snapshots.merging import MergingProducer
from frazil.table.snapshots.producer import DEFAULT_OPTIONS, SnapshotOptions


class RowDelta(MergingProducer):
    """Merge-on-read changes: new data files, new delete files or vectors, replaced deletes.

    A new deletion vector replaces the vector (and the position delete files about that data file
    alone) that was there; name those in `removed_deletes` (rule 217). What others delete of the
    same data files meanwhile is taken in where the validation has `rows`.

    Args:
        changed: the data files whose rows were read to make the new ones. Where they are named,
            deletes that others added meanwhile conflict for these files only, else for every file
            that the validation's filter leaves.
    """

    operation_name = OVERWRITE

    def __init__(
        self,
        io: FileIO,
        *,
        added: Iterable[DataFile] = (),
        added_deletes: Iterable[DataFile] = (),
        removed: Iterable[DataFile] = (),
        removed_deletes: Iterable[DataFile] = (),
        referenced_data_files: Iterable[str] = (),
        changed: Iterable[DataFile] | None = None,
        validation: Validation | None = None,
        options: SnapshotOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__(io, options)
        self._validation = validation
        self._new_vectors: dict[str, DataFile] = {}
        self._about: set[str] = set(referenced_data_files)
        self._changed = None if changed is None else tuple(changed)
        self._added_by_others = AddedData(None if validation is None else validation.rows)
        for file in added:
            self.added_data.add(file)
        for file in added_deletes:
            self.added_deletes.add(file)
            self._note(file)
        self._removed = tuple(removed)
        for file in self._removed:
            self.removed_data.choose_file(file)
        for file in removed_deletes:
            self.removed_deletes.choose_file(file)
        self._joined: JoinedDeletes | None = None
        if validation is not None and validation.rows is not None:
            self._joined = JoinedDeletes(
                validation.rows,
                added=self.added_deletes.files,
                removed=self.removed_deletes.chosen_files,
            )
        self._rivals = 0
        both = self._about & {file.file_path for file in self.removed_data.chosen_files}
        if both:
            raise ValidationError(
                f"{min(both)} is removed, and new deletes are about it; drop the deletes"
            )

    @property
    def summary_operation(self) -> str:
        """append if only data is added, delete if only deletes are, else overwrite."""
        removes = not (self.removed_data.is_empty and self.removed_deletes.is_empty)
        if self.added_data and not self.added_deletes and not removes:
            return APPEND
        return DELETE if not self.added_data and self.added_deletes else OVERWRITE

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """Check what was committed since the operation read the table, as its isolation asks."""
        options = self._validation
        if options is None:
            return
        history = self.history(base, parent, options.from_snapshot, operation=options.operation)
        if not history.snapshots:
            return
        changed = (self._changed or ()) if options.check_deletes else ()
        gone = self._move_deletes(history, changed, base, parent)
        changed = tuple(file for file in changed if file.file_path not in gone)
        check_data_files_exist(history, self._about - gone)
        check_replaced_files_exist(history, data_files=self.removed_data.chosen_files)
        partitions = None if options.partitions is None else PartitionSet(options.partitions)
        scope = Scope(
            RowFilter(options.conflict_filter, case_sensitive=options.case_sensitive), partitions
        )
        check_reads(history, options, scope, self._added_by_others, metadata=base, head=parent)
        if options.check_deletes:
            if self._changed is None:
                check_no_added_deletes(history, scope)
            check_no_new_deletes_for(
                history, self.removed_data.chosen_files, equality_deletes_still_apply=False
            )
        if self._joined is not None and options.rows is not None:
            check_rows_not_deleted_by_equality(
                history, changed, options.rows, metadata=base, head=parent
            )
            self._follow(self._joined, history, base, parent, changed, gone)
            return
        check_no_new_deletes_for(history, changed, equality_deletes_still_apply=False)
        # The last: who deletes rows alone may do so again where nothing else contradicts.
        check_no_added_vectors(history, self._new_vectors)
        check_replaced_files_exist(
            history, data_files=(), deletes=self.removed_deletes.chosen_files
        )

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """Manifests of the snapshot, after the check that no data file gets a second vector."""
        if self._new_vectors:
            self._check_one_vector_a_file(base, parent)
        return super().manifests(base, parent)

    def summary(self, base: TableMetadata, parent: Snapshot | None) -> Mapping[str, str]:
        """The counts, and what was compared with the changes of others."""
        counts = super().summary(base, parent)
        if not self._rivals or self._joined is None:
            return counts
        return {
            **counts,
            RIVAL_SNAPSHOTS: str(self._rivals),
            SHARED_FILES: str(len(self._joined.shared)),
            TESTED_FILES: str(self._added_by_others.tested_files),
            **({MOVED_ROWS: str(moved)} if (moved := self._joined.moved.count) else {}),
        }

    def on_committed(self, metadata: TableMetadata) -> None:
        """Remove what earlier tries wrote, and deletes that others' were joined with."""
        super().on_committed(metadata)
        if self._joined is not None and self._joined.unused_paths:
            self.files.io.delete_many(self._joined.unused_paths)

    def on_abandoned(self) -> None:
        """Remove what tries wrote too."""
        super().on_abandoned()
        if self._joined is not None and self._joined.made_paths:
            self.files.io.delete_many(self._joined.made_paths)

    def _note(self, delete: DataFile) -> None:
        if delete.content is not Content.POSITION_DELETES:
            return
        about = referenced_data_file(delete)
        if about is None:
            return
        self._about.add(about)
        if delete.is_deletion_vector:
            if about in self._new_vectors:
                raise ValidationError(f"two deletion vectors were given for {about}; merge them")
            self._new_vectors[about] = delete

    def _move_deletes(
        self,
        history: History,
        changed: Sequence[DataFile],
        base: TableMetadata,
        parent: Snapshot | None,
    ) -> frozenset[str]:
        """Files that others removed and whose rows were found in the files that these wrote."""
        if self._joined is None:
            return frozenset()
        about = self._about | {file.file_path for file in self._removed}
        gone = frozenset(each.path for each in history.removed_data(EVERYWHERE)) & about
        if not self._joined.move(history, gone, changed, base, parent):
            gone = frozenset()
        self.removed_data.choose_only_files(
            file for file in self._removed if file.file_path not in gone
        )
        return gone

    def _follow(
        self,
        joined: JoinedDeletes,
        history: History,
        base: TableMetadata,
        parent: Snapshot | None,
        changed: Sequence[DataFile],
        gone: Collection[str],
    ) -> None:
        """Take in what others deleted of the same data files."""
        live = self._live_deletes(base, parent, self._about)
        joined.follow(history, live, base, changed, gone)
        self.added_deletes.hold(joined.added)
        self.removed_deletes.choose_only_files(joined.removed)
        self._new_vectors = {
            file.referenced_data_file: file
            for file in joined.added
            if file.is_deletion_vector and file.referenced_data_file is not None
        }
        self._rivals = len(history.snapshots)

    def _live_deletes(
        self, base: TableMetadata, parent: Snapshot | None, about: Collection[str]
    ) -> list[DataFile]:
        partitions = PartitionSet(
            (each.spec_id, each.partition) for each in self.added_deletes.files
        )
        manifests = self.files.manifests_of(parent)
        return live_deletes_about(self.files, base, manifests, about, partitions)

    def _check_one_vector_a_file(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """Look through live deletes by referenced file alone: rule 217 knows no filter."""
        replaced = {file_key(file) for file in self.removed_deletes.chosen_files}
        for file in self._live_deletes(base, parent, self._new_vectors):
            if file.is_deletion_vector and file_key(file) not in replaced:
                raise ConflictError(
                    f"{file.referenced_data_file} has a deletion vector in {file.file_path} that "
                    "this operation does not replace; there is at most one a data file, merge the "
                    "two"
                )
