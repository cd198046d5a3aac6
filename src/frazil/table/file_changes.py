"""FileChanges: commits of files that are already written, as methods of `table.files`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from frazil.format.arguments import SnapshotId, snapshot_id_of
from frazil.format.manifests import DataFile
from frazil.storage.on_driver import OnDriver
from frazil.table.conflicts.validation import Validation
from frazil.table.manifests.row_filter import Predicate
from frazil.table.port import TablePort
from frazil.table.snapshots.append import FastAppend, MergeAppend
from frazil.table.snapshots.overwrite import OverwriteFiles, ReplacePartitions
from frazil.table.snapshots.producer import (
    BranchSettings,
    SnapshotProducer,
    SnapshotSettings,
    snapshot_options,
)
from frazil.table.snapshots.rewrite import RewriteFiles
from frazil.table.snapshots.row_delta import RowDelta


class FileChanges(OnDriver):
    """Which files a table has: what engines build their writes on.

    Every method takes files that are already written, and returns the id of the snapshot that it
    made. All but `rewrite` take the keywords of `SnapshotSettings`, `branch`, `snapshot_properties`
    and `wap_id` among them.
    """

    def __init__(self, port: TablePort) -> None:
        self._port = port

    def _run(self, operation: SnapshotProducer) -> int:
        self._port.run(operation)
        return operation.snapshot_id

    def append(
        self,
        files: Iterable[DataFile],
        **snapshot: Unpack[SnapshotSettings],
    ) -> int:
        """Add data files; manifests are merged when enough small ones are there (rule 210)."""
        return self._run(MergeAppend(self._port.io, files, snapshot_options(**snapshot)))

    def fast_append(
        self,
        files: Iterable[DataFile],
        **snapshot: Unpack[SnapshotSettings],
    ) -> int:
        """Add data files and leave every manifest as it is: the shortest commit (rule 210)."""
        return self._run(FastAppend(self._port.io, files, snapshot_options(**snapshot)))

    def overwrite(
        self,
        added: Iterable[DataFile] = (),
        *,
        removed: Iterable[DataFile] = (),
        removed_paths: Iterable[str] = (),
        where: Predicate | None = None,
        validation: Validation | None = None,
        case_sensitive: bool = True,
        **snapshot: Unpack[SnapshotSettings],
    ) -> int:
        """Remove files by name or by a predicate that all of their rows match, and add others.

        Raises:
            ValidationError: a file holds rows that match `where` and others.
            ConflictError: `validation` found a conflict, or a named file is gone.
        """
        return self._run(
            OverwriteFiles(
                self._port.io,
                added=added,
                removed=removed,
                removed_paths=removed_paths,
                where=where,
                validation=validation,
                case_sensitive=case_sensitive,
                options=snapshot_options(**snapshot),
            )
        )

    def replace_partitions(
        self,
        added: Iterable[DataFile],
        *,
        validation: Validation | None = None,
        **snapshot: Unpack[SnapshotSettings],
    ) -> int:
        """Dynamic overwrite: the partitions of the new files lose their old ones."""
        options = snapshot_options(**snapshot)
        return self._run(
            ReplacePartitions(self._port.io, added, validation=validation, options=options)
        )

    def delete(
        self,
        *,
        where: Predicate | None = None,
        removed: Iterable[DataFile] = (),
        removed_paths: Iterable[str] = (),
        validation: Validation | None = None,
        case_sensitive: bool = True,
        **snapshot: Unpack[SnapshotSettings],
    ) -> int:
        """Remove whole files, by a predicate that all of their rows match or by name (rule 212).

        Raises:
            ValidationError: a file holds rows that match `where` and others.
            ConflictError: `validation` found a conflict, or a named file is gone.
        """
        return self._run(
            OverwriteFiles(
                self._port.io,
                where=where,
                removed=removed,
                removed_paths=removed_paths,
                validation=validation,
                case_sensitive=case_sensitive,
                options=snapshot_options(**snapshot),
            )
        )

    def row_delta(
        self,
        *,
        added: Iterable[DataFile] = (),
        added_deletes: Iterable[DataFile] = (),
        removed: Iterable[DataFile] = (),
        removed_deletes: Iterable[DataFile] = (),
        referenced_data_files: Iterable[str] = (),
        changed: Iterable[DataFile] | None = None,
        validation: Validation | None = None,
        **snapshot: Unpack[SnapshotSettings],
    ) -> int:
        """Merge-on-read change: add data files and delete files, replace earlier deletes.

        `referenced_data_files` are those that position deletes of several files are about; they
        must still be there if `validation` is given. `changed` are data files whose rows were read
        to make the added ones.
        """
        return self._run(
            RowDelta(
                self._port.io,
                added=added,
                added_deletes=added_deletes,
                removed=removed,
                removed_deletes=removed_deletes,
                referenced_data_files=referenced_data_files,
                changed=changed,
                validation=validation,
                options=snapshot_options(**snapshot),
            )
        )

    def rewrite(
        self,
        *,
        removed: Iterable[DataFile] = (),
        added: Iterable[DataFile] = (),
        removed_deletes: Iterable[DataFile] = (),
        added_deletes: Iterable[DataFile] = (),
        data_sequence_number: int | None = None,
        delete_sequence_number: int | None = None,
        from_snapshot: SnapshotId,
        **snapshot: Unpack[BranchSettings],
    ) -> int:
        """Replace files by files of the same rows, as they were at `from_snapshot`.

        With `data_sequence_number`, that of the snapshot which was read, later equality deletes
        apply to the new files as well.

        Raises:
            ConflictError: a file to replace is gone, or others committed deletes or rewrites since
                `from_snapshot` that the new files contradict.
        """
        return self._run(
            RewriteFiles(
                self._port.io,
                removed=removed,
                added=added,
                removed_deletes=removed_deletes,
                added_deletes=added_deletes,
                data_sequence_number=data_sequence_number,
                delete_sequence_number=delete_sequence_number,
                from_snapshot=snapshot_id_of(from_snapshot, "from_snapshot"),
                options=snapshot_options(**snapshot),
            )
        )
