"""A table's metadata for another place: staged beside it, with a list of what is to be copied.

The table itself stays as it is. Files are told apart: what names other files is written anew below
the staging folder; data files and equality deletes are copied as they are.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import polars as pl

from frazil.catalog.metadata_files import metadata_files_of, read_metadata
from frazil.catalog.protocol import LoadedTable
from frazil.errors import MissingFileError, ValidationError
from frazil.format.html_text import ShownInNotebooks
from frazil.format.manifests import Content, EntryStatus, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.planning.load import ManifestLoader, listed_manifests, manifests_by_path
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

_THREADS: Final = "frazil-paths"
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
        self._note([staged], [self.prefix.target_of(path)])

    def copy(self, paths: Sequence[str]) -> None:
        """Note files that are copied as they are."""
        self._note(list(paths), [self.prefix.target_of(path) for path in paths])

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
        copied_manifests, copied_files = _reached_before(io, versions)
        manifests = manifests_by_path(io, versions.snapshots)
        entries = _entries(io, metadata, list(manifests.values()))
        deletes = _rewrite_deletes(io, prefix, entries)
        rewritten = _rewrite_manifests(io, prefix, list(manifests.values()), deletes)
        staged = [path for path in manifests if path not in copied_manifests]
        staged_deletes = _new_files(entries, staged, copied_files, _NAMES_FILES)
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
        staging.copy(_new_files(entries, staged, copied_files, ~_NAMES_FILES))
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
    end = table.metadata_location if end_version is None else _file_name(known, end_version)
    metadata = table.metadata if end_version is None else read_metadata(io, end)
    log = [entry.metadata_file for entry in metadata.metadata_log]
    if start_version is None:
        return _Versions(end=end, between=_existing_paths(io, log), metadata=metadata, before=None)
    start = _file_name(known, start_version)
    if start not in log:
        raise ValidationError(
            f"start_version {start_version} is no version before {name_of(end)}; its log has "
            f"{', '.join(map(name_of, log)) or 'none'}"
        )
    between = _existing_paths(io, log[log.index(start) + 1 :])
    return _Versions(end=end, between=between, metadata=metadata, before=read_metadata(io, start))


def _file_name(known: Sequence[str], version: str) -> str:
    found = [path for path in known if version in (path, name_of(path))]
    if not found:
        raise ValidationError(
            f"the table has no metadata file {version}; it has {', '.join(map(name_of, known))}"
        )
    return found[0]


def _existing_paths(io: FileIO, paths: Sequence[str]) -> tuple[str, ...]:
    """Those that are not gone: writers may remove old ones."""
    found = in_threads(io.exists, paths, name=_THREADS)
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

    made = in_threads(rewrite, files, name=_THREADS)
    return dict(zip(files, made, strict=True))


def _rewrite_manifests(
    io: FileIO,
    prefix: PathPrefix,
    manifests: Sequence[ManifestFile],
    deletes: Mapping[str, RewrittenDeletes],
) -> dict[str, bytes]:
    def rewrite(manifest: ManifestFile) -> bytes:
        return rewritten_manifest(io.read(manifest.manifest_path), prefix, deletes)

    made = in_threads(rewrite, manifests, name=_THREADS)
    return {each.manifest_path: data for each, data in zip(manifests, made, strict=True)}


def _new_files(
    entries: Mapping[str, pl.DataFrame],
    staged: Sequence[str],
    copied: Collection[str],
    which: pl.Expr,
) -> list[str]:
    """Files of the staged manifests that were not reached before, whichever snapshot added them."""
    found: dict[str, None] = {}
    for path in staged:
        chosen = entries[path].filter(which)["file_path"]
        found.update((file, None) for file in chosen if file not in copied)
    return list(found)


def _reached_before(io: FileIO, versions: _Versions) -> tuple[frozenset[str], frozenset[str]]:
    """The manifests and the files that the start version reaches, so were copied with it.

    Of snapshots that have expired since much may be gone: what cannot be told is copied again.
    """
    before = versions.before
    if before is None:
        return frozenset(), frozenset()
    lists = in_threads(
        lambda each: _list_if_there(io, versions.metadata, each), before.snapshots, name=_THREADS
    )
    manifests = {each.manifest_path: each for each in chain.from_iterable(lists)}
    found = in_threads(
        lambda each: _entries_if_there(io, before, each), manifests.values(), name=_THREADS
    )
    known = [frame for frame in found if frame is not None]
    files = chain.from_iterable(frame["file_path"] for frame in known)
    there = (path for path, frame in zip(manifests, found, strict=True) if frame is not None)
    return frozenset(there), frozenset(files)


def _list_if_there(
    io: FileIO, metadata: TableMetadata, snapshot: Snapshot
) -> tuple[ManifestFile, ...]:
    try:
        return listed_manifests(io, snapshot)
    except MissingFileError:
        if snapshot.snapshot_id in metadata.snapshots_by_id:
            raise
        return ()


def _entries_if_there(
    io: FileIO, metadata: TableMetadata, manifest: ManifestFile
) -> pl.DataFrame | None:
    try:
        return _entries(io, metadata, [manifest])[manifest.manifest_path]
    except MissingFileError:
        return None


def _statistics(versions: _Versions) -> list[str]:
    known = set() if versions.before is None else set(versions.before.statistics_paths)
    return [path for path in versions.metadata.statistics_paths if path not in known]
