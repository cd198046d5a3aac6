"""RowDelta: rows added by data files and removed by delete files, in one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frazil.errors import ConflictError, ValidationError
from frazil.format.manifests import Content, DataFile, ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import APPEND, DELETE, OVERWRITE, Snapshot
from frazil.storage.files import FileIO
from frazil.table.conflicts.history import Scope
from frazil.table.conflicts.validation import (
    Validation,
    check_data_files_exist,
    check_no_added_data,
    check_no_added_deletes,
    check_no_added_vectors,
    check_no_new_deletes_for,
    check_read_rows_stay,
    check_replaced_files_exist,
)
from frazil.table.manifests.entry_columns import ABOUT, is_live, is_vector, read_entry_columns
from frazil.table.manifests.file_keys import PartitionSet, file_key, referenced_data_file
from frazil.table.manifests.row_filter import RowFilter
from frazil.table.snapshots.merging import MergingProducer
from frazil.table.snapshots.producer import DEFAULT_OPTIONS, SnapshotOptions


class RowDelta(MergingProducer):
    """Merge-on-read changes: new data files, new delete files or vectors, replaced deletes.

    A new deletion vector replaces the vector (and the position delete files about that data file
    alone) that was there; name those in `removed_deletes` (rule 217).

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
        for file in added:
            self.added_data.add(file)
        for file in added_deletes:
            self.added_deletes.add(file)
            self._note(file)
        for file in removed:
            self.removed_data.choose_file(file)
        for file in removed_deletes:
            self.removed_deletes.choose_file(file)
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
        check_data_files_exist(history, self._about)
        check_replaced_files_exist(history, data_files=self.removed_data.chosen_files)
        partitions = None if options.partitions is None else PartitionSet(options.partitions)
        scope = Scope(
            RowFilter(options.conflict_filter, case_sensitive=options.case_sensitive), partitions
        )
        if options.isolation == "serializable":
            check_no_added_data(history, scope)
            check_read_rows_stay(history, options.read_files)
        if options.check_deletes:
            if self._changed is None:
                check_no_added_deletes(history, scope)
            check_no_new_deletes_for(
                history,
                (*self.removed_data.chosen_files, *(self._changed or ())),
                equality_deletes_still_apply=False,
            )
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

    def _check_one_vector_a_file(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """Look through live deletes by referenced file alone: rule 217 knows no filter."""
        replaced = {file_key(file) for file in self.removed_deletes.chosen_files}
        partitions = PartitionSet(
            (vector.spec_id, vector.partition) for vector in self._new_vectors.values()
        )
        for manifest in self.files.manifests_of(parent):
            if manifest.content is not ManifestContent.DELETES or not manifest.has_live_files:
                continue
            if not partitions.may_be_in(base, manifest):
                continue
            entries = read_entry_columns(self.files.io, base, manifest)
            about_ours = entries.filter(
                is_live(entries) & entries[ABOUT].is_in(list(self._new_vectors))
            ).filter(is_vector())
            for path, offset, about in about_ours.select(
                "file_path", "content_offset", ABOUT
            ).iter_rows():
                if (path, offset) not in replaced:
                    raise ConflictError(
                        f"{about} has a deletion vector in {path} that this operation does not "
                        "replace; there is at most one a data file, merge the two"
                    )
