"""Delete files of a snapshot: those that apply to nothing, and others in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from frazil.errors import ConflictError
from frazil.format.manifests import Content, DataFile, ManifestContent
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.planning.frames import live_entries
from frazil.planning.load import entries, listed_manifests
from frazil.planning.plan import plan
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.delete_files.write import WrittenDeletes
from frazil.spark.port import SparkPort
from frazil.storage.avro.manifest_layout import PARTITION_PREFIX
from frazil.storage.files import FileIO
from frazil.table.commit.definition import Definition
from frazil.table.commit.retries import run_with_retries
from frazil.table.manifests.entry_columns import partition_tuples
from frazil.table.snapshots.producer import SnapshotOptions, branch_head
from frazil.table.snapshots.rewrite import RewriteFiles

KEY: Final = ["file_path", "content_offset"]
NO_DELETES: Final = WrittenDeletes()


def live_deletes(metadata: TableMetadata, snapshot: Snapshot, io: FileIO) -> pl.DataFrame:
    """Return every delete file and vector of a snapshot, also those that apply to nothing."""
    manifests = [
        manifest
        for manifest in listed_manifests(io, snapshot)
        if manifest.content is ManifestContent.DELETES and manifest.has_live_files
    ]
    found = entries(metadata, snapshot, io, manifests=manifests, statistics=())
    return live_entries(found)


def dangling_deletes(
    metadata: TableMetadata, snapshot: Snapshot, whole: ScanPlan, io: FileIO
) -> pl.DataFrame:
    """Return the delete files that no data file of the snapshot has rows for.

    Args:
        whole: the plan of the snapshot without a predicate.
    """
    applied = whole.deletes.select(KEY)
    live = live_deletes(metadata, snapshot, io)
    return live.join(applied, on=KEY, how="anti", nulls_equal=True)


def needed_elsewhere(whole: ScanPlan, some: ScanPlan) -> pl.Series:
    """Return those of a plan's deletes that apply to files which another plan leaves out."""
    outside = whole.files.select("ordinal", "file_path").join(
        some.files.select("file_path"), on="file_path", how="anti"
    )
    return whole.delete_index.for_files(outside["ordinal"]).deletes()


def delete_file_entries(metadata: TableMetadata, deletes: pl.DataFrame) -> list[DataFile]:
    """Return what a commit needs to remove delete files, rows of `live_deletes`."""
    found: list[DataFile] = []
    for (spec_id,), members in deletes.group_by("spec_id", maintain_order=True):
        partitions = partition_tuples(metadata, int(str(spec_id)), _unpack(members))
        rows = members.select(
            "content",
            "file_path",
            "file_format",
            "record_count",
            "file_size_in_bytes",
            "equality_ids",
            "referenced_data_file",
            "content_offset",
            "content_size_in_bytes",
        ).iter_rows(named=True)
        found += [
            DataFile(
                content=Content(row["content"]),
                file_path=row["file_path"],
                file_format=row["file_format"],
                spec_id=int(str(spec_id)),
                partition=partition,
                record_count=row["record_count"],
                file_size_in_bytes=row["file_size_in_bytes"],
                equality_ids=None if row["equality_ids"] is None else tuple(row["equality_ids"]),
                referenced_data_file=row["referenced_data_file"],
                content_offset=row["content_offset"],
                content_size_in_bytes=row["content_size_in_bytes"],
            )
            for row, partition in zip(rows, partitions, strict=True)
        ]
    return found


def replace_delete_files(
    port: SparkPort,
    base: TableMetadata,
    head: Snapshot,
    removed: Sequence[DataFile],
    *,
    written: WrittenDeletes = NO_DELETES,
    options: SnapshotOptions,
) -> RewriteFiles:
    """Commit other delete files in the place of these; no row of the table changes.

    Args:
        base: the metadata that they were found by.
        head: the snapshot that they were found in.
        removed: what goes, as of `delete_file_entries`.
        written: what comes, and what else goes; it is deleted if nothing is committed.
        options: where the snapshot goes, and what its summary says.

    Raises:
        ConflictError: others rewrote data files that the deletes may apply to.
    """
    operation = RewriteFiles(
        port.io,
        removed_deletes=[*removed, *written.removed],
        added_deletes=written.added,
        from_snapshot=head.snapshot_id,
        options=replace(options, definition=Definition.of(base), own_files=written.paths),
    )
    port.run(operation)
    return operation


def remove_dangling_deletes(port: SparkPort, options: SnapshotOptions) -> int:
    """Remove the delete files that apply to nothing, in one commit; return how many.

    Raises:
        ConflictError: others rewrote data files in every try that such deletes may apply to.
    """

    def run_once() -> int:
        base = port.newest()
        head = branch_head(base, options.branch)
        if head is None:
            return 0
        found = dangling_deletes(base, head, plan(base, head, port.io), port.io)
        if found.is_empty():
            return 0
        removed = delete_file_entries(base, found)
        operation = replace_delete_files(port, base, head, removed, options=options)
        return len(operation.removed_deletes.removed)

    return run_with_retries(run_once, lambda _: port.retries, after=(ConflictError,))


def _unpack(deletes: pl.DataFrame) -> pl.DataFrame:
    kind = deletes.schema["partition"]
    if not isinstance(kind, pl.Struct):
        return deletes
    return deletes.with_columns(
        pl.col("partition").struct.field(each.name).alias(f"{PARTITION_PREFIX}{each.name}")
        for each in kind.fields
    )
