"""Delete files that go without a row of the table changing, where a check found too many."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

import polars as pl

from frazil.errors import InvalidDataFileError, MissingFileError
from frazil.format.manifests import EntryStatus, ManifestContent, ManifestEntry
from frazil.format.metadata import TableMetadata
from frazil.planning.deletes.own_files import Rule
from frazil.storage.files import FileIO
from frazil.storage.vectors import read_deletion_vector
from frazil.table.maintenance.checks.deletes import IN_CURRENT
from frazil.table.manifests.file_keys import FileKey, file_key
from frazil.table.manifests.files import ManifestFiles, entries_in
from frazil.table.port import HandlePort
from frazil.table.snapshots.rewrite import RewriteFiles

_KEY: Final = ("file_path", "content_offset")


def remove_superfluous(table: HandlePort, problems: pl.DataFrame) -> tuple[int, pl.Series]:
    """Remove deletes that others of the same data file make superfluous, in one commit.

    Of several vectors of one data file that is the newest, if it has all positions of the others;
    beside a vector position delete files go, which no reader applies.

    Returns:
        How many went, and for each problem whether it is gone with them.

    Raises:
        ConflictError, CommitFailedError: others changed the table meanwhile.
    """
    told = {
        rule: {
            (row["file_path"], row["content_offset"])
            for row in problems.filter(IN_CURRENT, pl.col("problem") == rule.value).to_dicts()
        }
        for rule in (Rule.TWO_VECTORS, Rule.BESIDE_A_VECTOR)
    }
    metadata = table.metadata
    snapshot = metadata.current_snapshot
    none = pl.repeat(False, len(problems), dtype=pl.Boolean, eager=True)
    if snapshot is None or not any(told.values()):
        return 0, none
    vectors = _entries(table.io, metadata, told[Rule.TWO_VECTORS])
    removed, settled = [], set[FileKey]()
    for several in _by_data_file(vectors):
        older = _older(table.io, several)
        removed += older
        settled |= {file_key(each.data_file) for each in several} if older else set()
    ignored = _entries(table.io, metadata, told[Rule.BESIDE_A_VECTOR])
    removed += ignored
    settled |= {file_key(each.data_file) for each in ignored}
    if not removed:
        return 0, none
    files = [each.data_file for each in removed]
    table.run(RewriteFiles(table.io, removed_deletes=files, from_snapshot=snapshot.snapshot_id))
    rules = {rule.value for rule in told}
    gone = [
        row["problem"] in rules and row[IN_CURRENT] and tuple(row[n] for n in _KEY) in settled
        for row in problems.to_dicts()
    ]
    return len(removed), pl.Series(gone, dtype=pl.Boolean)


def _entries(io: FileIO, metadata: TableMetadata, keys: Collection[FileKey]) -> list[ManifestEntry]:
    """The live entries of the current snapshot's delete files with these keys."""
    if not keys:
        return []
    files = ManifestFiles(io)
    manifests = [
        each
        for each in files.manifests_of(metadata.current_snapshot)
        if each.content is ManifestContent.DELETES and each.has_live_files
    ]
    return [
        entry
        for opened in files.open_manifests(metadata, manifests)
        for entry in entries_in(metadata, opened)
        if entry.status is not EntryStatus.DELETED and file_key(entry.data_file) in keys
    ]


def _by_data_file(vectors: Sequence[ManifestEntry]) -> Iterator[list[ManifestEntry]]:
    found: dict[str | None, list[ManifestEntry]] = {}
    for each in vectors:
        found.setdefault(each.data_file.referenced_data_file, []).append(each)
    yield from found.values()


def _older(io: FileIO, vectors: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    """All but the newest of a data file's vectors; none where that lacks positions of others."""
    *older, newest = sorted(vectors, key=lambda each: each.sequence_number or 0)
    if file_key(newest.data_file) in {file_key(each.data_file) for each in older}:
        return []
    try:
        kept, *others = (
            read_deletion_vector(
                io,
                each.data_file.file_path,
                offset=each.data_file.content_offset,
                length=each.data_file.content_size_in_bytes,
                cardinality=each.data_file.record_count,
            )
            for each in (newest, *older)
        )
    except (InvalidDataFileError, MissingFileError):
        return []
    return older if all(each <= kept for each in others) else []
