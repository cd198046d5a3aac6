"""A table's metadata for another place: staged beside it, with a list of what is to be copied.

The table itself stays as it is. Files are told apart: what names other files is written anew below
the staging folder; data files and equality deletes are copied as they are.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import polars as pl

from frazil.catalog.metadata_files import metadata_files_of, read_metadata
from frazil.catalog.protocol import LoadedTable
from frazil.errors import ValidationError
from frazil.format.html_text import ShownInNotebooks
from frazil.format.manifests import Content, EntryStatus, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.planning.load import ManifestLoader, lists_of_manifests
from frazil.storage.files import FileIO
from frazil.storage.locations import metadata_location
from frazil.storage.path_rewriting import (
    PathPrefix,
    RewrittenDeletes,
    rewritten_deletes,
    rewritten_manifest,
    rewritten_manifest_list,
    rewritten_metadata,
)
from frazil.storage.paths import join, name_of
from frazil.storage.side_by_side import in_threads
from frazil.table.port import HandlePort

_FILE_LIST: Final = "file-list"
_PLAN: Final = {"source": pl.String(), "target": pl.String()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewriteTablePathResult(ShownInNotebooks):
    """What a rewrite of paths staged; the first four are the columns of Java's procedure.

    Attributes:
        latest_version: the name of the newest metadata file.
        file_list_location: a CSV file of sources and targets; None where none was asked for.
        rewritten_manifest_file_paths_count: manifests that were written anew.
        rewritten_delete_file_paths_count: delete files that were written anew.
        staging_location: the folder that they are in.
        file_list: a Polars frame of `source` and `target`: what is to be copied where.
    """

    latest_version: str
    file_list_location: str | None
    rewritten_manifest_file_paths_count: int
    rewritten_delete_file_paths_count: int
    staging_location: str
    file_list: pl.DataFrame

    def __repr__(self) -> str:
        return (
            f"Rewrite of table paths\n"
            f"  latest version  {self.latest_version}\n"
            f"  staged in       {self.staging_location}\n"
            f"  rewritten       {self.rewritten_manifest_file_paths_count:,} manifests, "
            f"{self.rewritten_delete_file_paths_count:,} delete files\n"
            f"  to copy         {len(self.file_list):,} files"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Versions:
    """Metadata files of the table: the newest to write, and those before it since the start."""

    end: str
    between: tuple[str, ...]
    metadata: TableMetadata
    before: TableMetadata | None

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """Those that were added since the start."""
        known = set() if self.before is None else set(self.before.snapshots_by_id)
        return tuple(each for each in self.metadata.snapshots if each.snapshot_id not in known)


@dataclass(slots=True)
class _Staging:
    """Files that are staged, and what is to be copied in the end."""

    io: FileIO
    prefix: PathPrefix
    folder: str
    plan: list[pl.DataFrame] = field(default_factory=list)

    def put(self, path: str, data: bytes) -> None:
        """Stage the new content of a file."""
        staged = f"{self.folder}{self.prefix.tail(path)}"
        self.io.write(staged, data, overwrite=True)
        self._note([staged], [self.prefix.moved(path)])

    def copy(self, paths: Sequence[str]) -> None:
        """Note files that are copied as they are."""
        self._note(list(paths), [self.prefix.moved(path) for path in paths])

    def _note(self, sources: list[str], targets: list[str]) -> None:
        self.plan.append(pl.DataFrame({"source": sources, "target": targets}, schema=_PLAN))


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteTablePath:
    """Stage a table's metadata for another place, with a list of what is to be copied.

    Attributes:
        source_prefix: what all paths of the table begin with, as its location has it.
        target_prefix: what takes its place.
        start_version: the metadata file that was copied last; the whole table unless given.
        end_version: the newest metadata file to stage; the current one unless given.
        staging_location: the folder for files that are written anew; a fresh one unless given.
        create_file_list: whether the list is written as a CSV file too.
    """

    source_prefix: str
    target_prefix: str
    start_version: str | None = None
    end_version: str | None = None
    staging_location: str | None = None
    create_file_list: bool = True

    def run(self, port: HandlePort) -> RewriteTablePathResult:
        """Run it; see `Maintenance.rewrite_table_path`."""
        io, table = port.io, port.refresh()
        prefix = _prefix(self.source_prefix, self.target_prefix)
        versions = _versions(io, table, self.start_version, self.end_version)
        metadata = versions.metadata
        folder = self.staging_location or join(
            metadata_location(metadata), f"copy-table-staging-{uuid.uuid4()}"
        )
        staging = _Staging(io, prefix, folder.rstrip("/"))
        new = {snapshot.snapshot_id for snapshot in versions.snapshots}
        lists = lists_of_manifests(io, versions.snapshots)
        manifests = {each.manifest_path: each for each in chain.from_iterable(lists)}
        entries = _entries(io, metadata, list(manifests.values()))
        deletes = _rewrite_deletes(io, prefix, entries)
        rewritten = _rewrite_manifests(io, prefix, list(manifests.values()), deletes)
        staged = [
            path
            for path, manifest in manifests.items()
            if versions.before is None or manifest.added_snapshot_id in new
        ]
        staged_deletes = _staged_deletes(entries, staged, new)
        for path in staged:
            staging.put(path, rewritten[path])
        for path in staged_deletes:
            staging.put(path, deletes[path].data)
        lengths = {path: len(data) for path, data in rewritten.items()}
        for snapshot in versions.snapshots:
            if snapshot.manifest_list is not None:
                data = io.read(snapshot.manifest_list)
                staging.put(snapshot.manifest_list, rewritten_manifest_list(data, prefix, lengths))
        for path in (*versions.between, versions.end):
            staging.put(path, rewritten_metadata(io.read(path), prefix))
        staging.copy(_copied(entries, staged, new))
        staging.copy(_statistics(versions))
        plan = pl.concat([pl.DataFrame(schema=_PLAN), *staging.plan]).unique(maintain_order=True)
        file_list = None
        if self.create_file_list:
            file_list = join(staging.folder, _FILE_LIST)
            io.write(file_list, plan.write_csv(include_header=False).encode(), overwrite=True)
        return RewriteTablePathResult(
            latest_version=name_of(versions.end),
            file_list_location=file_list,
            rewritten_manifest_file_paths_count=len(staged),
            rewritten_delete_file_paths_count=len(staged_deletes),
            staging_location=staging.folder,
            file_list=plan,
        )


def _prefix(source: str, target: str) -> PathPrefix:
    for name, given in (("source_prefix", source), ("target_prefix", target)):
        if not given.strip("/ "):
            raise ValidationError(f"{name} is empty: give the beginning of the table's paths")
    prefix = PathPrefix(source.rstrip("/"), target.rstrip("/"))
    if prefix.source == prefix.target:
        raise ValidationError(f"source_prefix and target_prefix are both {prefix.source}")
    return prefix


def _versions(
    io: FileIO, table: LoadedTable, start_version: str | None, end_version: str | None
) -> _Versions:
    files = metadata_files_of(io, table.metadata, table.metadata_location)
    known = sorted(files, key=name_of)
    end = table.metadata_location if end_version is None else _named(known, end_version)
    metadata = table.metadata if end_version is None else read_metadata(io, end)
    log = [entry.metadata_file for entry in metadata.metadata_log]
    if start_version is None:
        return _Versions(end=end, between=_there(io, log), metadata=metadata, before=None)
    start = _named(known, start_version)
    if start not in log:
        raise ValidationError(
            f"start_version {start_version} is no version before {name_of(end)}; its log has "
            f"{', '.join(map(name_of, log)) or 'none'}"
        )
    between = _there(io, log[log.index(start) + 1 :])
    return _Versions(end=end, between=between, metadata=metadata, before=read_metadata(io, start))


def _named(known: Sequence[str], version: str) -> str:
    found = [path for path in known if version in (path, name_of(path))]
    if not found:
        raise ValidationError(
            f"the table has no metadata file {version}; it has {', '.join(map(name_of, known))}"
        )
    return found[0]


def _there(io: FileIO, paths: Sequence[str]) -> tuple[str, ...]:
    """Those that are not gone: writers may remove old ones."""
    found = in_threads(io.exists, paths, name="frazil-paths")
    return tuple(path for path, is_there in zip(paths, found, strict=True) if is_there)


def _entries(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile]
) -> dict[str, pl.DataFrame]:
    """The entries of each manifest that are live."""
    frames = ManifestLoader.of(metadata, io).entries(manifests)
    return {
        manifest.manifest_path: frame.filter(pl.col("status") != int(EntryStatus.DELETED))
        for manifest, frame in zip(manifests, frames, strict=True)
    }


_NAMES_FILES: Final = pl.col("content") == int(Content.POSITION_DELETES)


def _rewrite_deletes(
    io: FileIO, prefix: PathPrefix, entries: Mapping[str, pl.DataFrame]
) -> dict[str, RewrittenDeletes]:
    files = dict(
        chain.from_iterable(
            frame.filter(_NAMES_FILES).select("file_path", "file_format").rows()
            for frame in entries.values()
        )
    )

    def rewrite(path: str) -> RewrittenDeletes:
        return rewritten_deletes(io.read(path), files[path], prefix)

    made = in_threads(rewrite, files, name="frazil-paths")
    return dict(zip(files, made, strict=True))


def _rewrite_manifests(
    io: FileIO,
    prefix: PathPrefix,
    manifests: Sequence[ManifestFile],
    deletes: Mapping[str, RewrittenDeletes],
) -> dict[str, bytes]:
    def rewrite(manifest: ManifestFile) -> bytes:
        return rewritten_manifest(io.read(manifest.manifest_path), prefix, deletes)

    made = in_threads(rewrite, manifests, name="frazil-paths")
    return {each.manifest_path: data for each, data in zip(manifests, made, strict=True)}


def _chosen(
    entries: Mapping[str, pl.DataFrame], staged: Sequence[str], new: set[int], which: pl.Expr
) -> Iterator[str]:
    """Files of the staged manifests that snapshots since the start have added."""
    for path in staged:
        found = entries[path].filter(which, pl.col("snapshot_id").is_in(list(new)))
        yield from found["file_path"].unique(maintain_order=True)


def _staged_deletes(
    entries: Mapping[str, pl.DataFrame], staged: Sequence[str], new: set[int]
) -> list[str]:
    return list(dict.fromkeys(_chosen(entries, staged, new, _NAMES_FILES)))


def _copied(entries: Mapping[str, pl.DataFrame], staged: Sequence[str], new: set[int]) -> list[str]:
    return list(dict.fromkeys(_chosen(entries, staged, new, ~_NAMES_FILES)))


def _statistics(versions: _Versions) -> list[str]:
    def paths(metadata: TableMetadata) -> list[str]:
        of_partitions = (file.statistics_path for file in metadata.partition_statistics)
        return [*(file.statistics_path for file in metadata.statistics), *of_partitions]

    known = set() if versions.before is None else set(paths(versions.before))
    return [path for path in paths(versions.metadata) if path not in known]
