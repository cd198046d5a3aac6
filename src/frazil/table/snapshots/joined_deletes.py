"""The deletes of a row delta beside those that others committed meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from frazil.format.manifests import Content, DataFile, ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.table.conflicts.history import EVERYWHERE, History
from frazil.table.conflicts.rows import (
    MovedDeletes,
    MovedTo,
    OperationRows,
    SharedFile,
    rewritten_files,
    shared_files,
)
from frazil.table.conflicts.validation import FilePlace, Reached
from frazil.table.manifests.entry_columns import (
    ABOUT,
    is_live,
    partition_tuples,
    read_entry_columns,
)
from frazil.table.manifests.file_keys import (
    FileKey,
    PartitionSet,
    file_key,
    referenced_data_file,
)
from frazil.table.manifests.files import ManifestFiles

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
        moved = self._rows.moved(metadata, head, gone, _moved_to(history, gone), since)
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
            deletes = _rivals(history, map(FilePlace.of_file, changed))
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
            file.path: file.deleted
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


def _rivals(history: History, changed: Iterable[FilePlace]) -> list[DataFile]:
    return [
        each.as_position_deletes()
        for each in Reached(history, changed).added_deletes()
        if each.content is Content.POSITION_DELETES
    ]


def _moved_to(history: History, gone: Collection[str]) -> MovedTo:
    """Where rows of files that are gone may be."""
    copies = {file.path for file in history.rewritten_data()}
    added = {file.path for file in history.added_data(EVERYWHERE)}
    # Only rewrites took the files, and none took a file that was added since the read.
    same = rewritten_files(history, gone) == set(gone) and not rewritten_files(history, added)
    return MovedTo(added | copies, copies, copies if same else ())
