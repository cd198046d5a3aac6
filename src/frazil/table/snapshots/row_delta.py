"""RowDelta: rows added by data files and removed by delete files, in one snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from frazil.errors import ConflictError, ValidationError
from frazil.format.manifests import Content, DataFile, ManifestContent, ManifestFile
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
from frazil.table.conflicts.rows import (
    AddedData,
    MovedDeletes,
    MovedTo,
    OperationRows,
    SharedFile,
    rewritten_files,
    shared_files,
)
from frazil.table.conflicts.validation import (
    Reached,
    Validation,
    check_data_files_exist,
    check_no_added_deletes,
    check_no_added_vectors,
    check_no_new_deletes_for,
    check_reads,
    check_replaced_files_exist,
    check_rows_not_deleted_by_equality,
)
from frazil.table.manifests.entry_columns import (
    ABOUT,
    is_live,
    partition_tuples,
    read_entry_columns,
)
from frazil.table.manifests.file_keys import FileKey, PartitionSet, file_key, referenced_data_file
from frazil.table.manifests.files import ManifestFiles
from frazil.table.manifests.row_filter import RowFilter
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
        self.added_data.add_all(added)
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
        gone = frozenset(each.file_path for each in history.removed_data(EVERYWHERE)) & about
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


_READ = (
    "file_path",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "content_offset",
    "content_size_in_bytes",
    ABOUT,
)


class JoinedDeletes:
    """What a row delta adds and removes among the deletes of a table, with what others deleted.

    A data file has one deletion vector (rule 217): where others committed one, the operation's own
    takes in what theirs deletes and replaces it. Position delete files stand beside each other.
    Where others wrote the rows of a data file anew, the deletes are written anew for these.

    Args:
        rows: reads and writes positions.
        added: the deletes that the operation wrote.
        removed: the deletes that they replace.

    Attributes:
        added: the deletes to add in this try.
        removed: the deletes to remove in this try.
        shared: the data files of which others deleted rows too, as far as that was looked into.
        moved: the deletes of rows that others wrote anew.
    """

    def __init__(
        self, rows: OperationRows, *, added: Sequence[DataFile], removed: Sequence[DataFile]
    ) -> None:
        self._rows = rows
        self._given_added = tuple(added)
        self._given_removed = tuple(removed)
        self._vectors = {
            file.referenced_data_file: file
            for file in added
            if file.is_deletion_vector and file.referenced_data_file is not None
        }
        self._made: dict[tuple[str, FileKey], DataFile] = {}
        self._made_for_moved: list[DataFile] = []
        self.added = self._given_added
        self.removed = self._given_removed
        self.shared: tuple[SharedFile, ...] = ()
        self.moved = MovedDeletes()

    @property
    def unused_paths(self) -> set[str]:
        """Files that were written and that this try does not add."""
        written = {file.file_path for file in self._given_added} | self.made_paths
        return written - {file.file_path for file in self.added}

    @property
    def made_paths(self) -> set[str]:
        """Files that were written for tries."""
        return {file.file_path for file in (*self._made.values(), *self._made_for_moved)}

    def move(
        self,
        history: History,
        gone: Collection[str],
        changed: Collection[DataFile],
        metadata: TableMetadata,
        head: Snapshot | None,
    ) -> bool:
        """Write deletes of rows that others wrote anew; return whether these could be found.

        `gone` are the data files that these removed, of those that the operation deletes rows of;
        of the changed ones no row may be deleted by others too, which is a ConflictError.
        """
        self.moved = MovedDeletes()
        if not gone:
            return True
        since = history.sequence_number_read
        moved = self._rows.move_deletes(metadata, head, gone, _moved_to(history, gone), since)
        if moved is None:
            return False
        self._made_for_moved += moved.added
        must_stay = {file.file_path for file in changed}
        for path, count in moved.missing.items():
            if path in must_stay:
                history.refuse_rows(count, path)
        self.moved = moved
        return True

    def follow(
        self,
        history: History,
        live: Sequence[DataFile],
        metadata: TableMetadata,
        changed: Collection[DataFile],
        gone: Collection[str],
    ) -> None:
        """Take in what others committed.

        `live` are the table's position deletes and vectors about the operation's data files by now;
        of the changed files no row may be deleted by others too, which is a ConflictError; rows of
        the gone ones were moved.
        """
        live_keys = {file_key(file) for file in live}
        own_keys = {file_key(file) for file in self._given_removed}
        overtaken = {
            path: file
            for file in live
            if file.is_deletion_vector
            and (path := file.referenced_data_file) in self._vectors
            and file_key(file) not in own_keys
        }
        if self._vectors:
            self.shared = tuple(shared_files(self._rows, [*overtaken.values()], overtaken.keys()))
        else:
            deletes = [
                each.as_position_deletes()
                for each in Reached(history, changed).added_deletes()
                if each.content is Content.POSITION_DELETES
            ]
            paths = {file.file_path for file in changed}
            self.shared = tuple(shared_files(self._rows, deletes, paths) if deletes else ())
        must_stay = {file.file_path for file in changed}
        for file in self.shared:
            if file.path in must_stay:
                history.refuse_rows(file.deleted_by_both, file.path)
        self._join(overtaken, metadata)
        self.added = (
            *(file for file in self.added if referenced_data_file(file) not in gone),
            *self.moved.added,
        )
        self.removed = (
            *(file for file in self._given_removed if file_key(file) in live_keys),
            *overtaken.values(),
            *self.moved.removed,
        )

    def _join(self, overtaken: dict[str, DataFile], metadata: TableMetadata) -> None:
        """Have one vector for each data file, with what both delete."""
        keys = {path: (path, file_key(file)) for path, file in overtaken.items()}
        wanted = {
            file.path: file.all_deleted
            for file in self.shared
            if file.path in keys and keys[file.path] not in self._made
        }
        if wanted:
            for made in self._rows.write_vectors(metadata, wanted):
                assert made.referenced_data_file is not None
                self._made[keys[made.referenced_data_file]] = made
        self.added = tuple(
            self._made[keys[path]]
            if (path := file.referenced_data_file) in keys and file.is_deletion_vector
            else file
            for file in self._given_added
        )


def live_deletes_about(
    files: ManifestFiles,
    metadata: TableMetadata,
    manifests: Iterable[ManifestFile],
    data_files: Collection[str],
    partitions: PartitionSet,
) -> list[DataFile]:
    """Return the position deletes and vectors that are about one of these data files alone.

    `data_files`: their paths; no filter narrows them, since rule 217 knows none.
    """
    wanted = list(data_files)
    found: list[DataFile] = []
    for manifest in manifests:
        if manifest.content is not ManifestContent.DELETES or not manifest.has_live_files:
            continue
        if not partitions.may_be_in(metadata, manifest):
            continue
        entries = read_entry_columns(files.io, metadata, manifest)
        is_position = entries["content"] == int(Content.POSITION_DELETES)
        about = entries.filter(is_live(entries) & is_position & entries[ABOUT].is_in(wanted))
        spec_id = manifest.partition_spec_id
        found += [
            DataFile(
                content=Content.POSITION_DELETES,
                file_path=path,
                file_format=file_format,
                spec_id=spec_id,
                partition=partition,
                record_count=records,
                file_size_in_bytes=size,
                content_offset=offset,
                content_size_in_bytes=length,
                referenced_data_file=data_file,
            )
            for (path, file_format, records, size, offset, length, data_file), partition in zip(
                about.select(_READ).iter_rows(),
                partition_tuples(metadata, spec_id, about),
                strict=True,
            )
        ]
    return found


def _moved_to(history: History, gone: Collection[str]) -> MovedTo:
    """Where rows of files that are gone may be."""
    copies = {file.file_path for file in history.rewritten_data()}
    added = {file.file_path for file in history.added_data(EVERYWHERE)}
    # Only rewrites took the files, and none took a file that was added since the read.
    same = rewritten_files(history, gone) == set(gone) and not rewritten_files(history, added)
    return MovedTo(added | copies, copies, copies if same else ())
