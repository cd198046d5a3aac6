"""RewriteFiles: other files, the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from frazil.errors import ValidationError
from frazil.format.manifests import Content, DataFile, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import REPLACE, Snapshot
from frazil.storage.files import FileIO
from frazil.table.conflicts.validation import (
    check_data_files_exist,
    check_equality_deletes_not_needed,
    check_no_added_vectors,
    check_no_new_deletes_for,
)
from frazil.table.manifests.file_keys import file_key, referenced_data_file
from frazil.table.snapshots.merging import MergingProducer
from frazil.table.snapshots.producer import DEFAULT_OPTIONS, SnapshotOptions


class RewriteFiles(MergingProducer):
    """Replace data and delete files by files of the same rows (rules 155, 211).

    With `data_sequence_number` the new data files count as as old as that: equality deletes that
    arrive while the rewrite runs reach them (rule 133). Without it such deletes are a conflict.
    `from_snapshot` is the snapshot whose rows were read: whatever was committed since is checked.
    """

    operation_name = REPLACE

    def __init__(
        self,
        io: FileIO,
        *,
        removed: Iterable[DataFile] = (),
        added: Iterable[DataFile] = (),
        removed_deletes: Iterable[DataFile] = (),
        added_deletes: Iterable[DataFile] = (),
        data_sequence_number: int | None = None,
        delete_sequence_number: int | None = None,
        from_snapshot: int,
        options: SnapshotOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__(io, options)
        self._data_sequence_number = data_sequence_number
        self._from_snapshot = from_snapshot
        # A file that the table has twice is to be given twice.
        self._replaced = tuple(removed)
        for file in self._replaced:
            self.removed_data.choose_file(file)
        for file in removed_deletes:
            self.removed_deletes.choose_file(file)
        self.added_data.add_all(added, data_sequence_number=data_sequence_number)
        self.added_deletes.add_all(added_deletes, data_sequence_number=delete_sequence_number)
        self._check_is_rewrite()

    def manifests(self, base: TableMetadata, parent: Snapshot | None) -> Sequence[ManifestFile]:
        """Return the manifests without the replaced files and with the new ones.

        A replaced file that the table has more often than it was given is refused: the rows of the
        others would be lost.
        """
        made = super().manifests(base, parent)
        given = Counter(map(file_key, self._replaced))
        live = Counter(map(file_key, self.removed_data.removed))
        more = next((key for key, count in live.items() if count > given[key] > 0), None)
        if more is not None:
            raise ValidationError(
                f"the table has the file {more[0]} {live[more]} times and the rewrite replaces "
                f"{given[more]} of them, but all would go: rewrite them together"
            )
        return made

    def validate(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """Check that nothing was committed since that the new files contradict."""
        history = self.history(base, parent, self._from_snapshot)
        if not history.snapshots:
            return
        check_no_new_deletes_for(
            history,
            self.removed_data.chosen_files,
            equality_deletes_still_apply=self._data_sequence_number is not None,
        )
        check_no_added_vectors(
            history,
            (
                file.referenced_data_file
                for file in self.added_deletes.files
                if file.is_deletion_vector and file.referenced_data_file is not None
            ),
        )
        check_data_files_exist(
            history,
            (
                about
                for file in self.added_deletes.files
                if file.content is Content.POSITION_DELETES
                and (about := referenced_data_file(file)) is not None
            ),
        )
        if any(
            file.content is Content.EQUALITY_DELETES for file in self.removed_deletes.chosen_files
        ):
            check_equality_deletes_not_needed(history)

    def _check_is_rewrite(self) -> None:
        if self.removed_data.is_empty and self.removed_deletes.is_empty:
            raise ValidationError("a rewrite must remove files; to add files, append them")
        if self.removed_data.is_empty and self.added_data:
            raise ValidationError(
                "a rewrite that removes no data files cannot add any: that would add rows"
            )
        removed = sum(file.record_count for file in self._replaced)
        added = sum(file.record_count for file in self.added_data.files)
        if added > removed:
            raise ValidationError(f"a rewrite of {removed} rows cannot add {added} rows")
