"""The live files of many manifests as columns of paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from frazil.format.manifests import Content, EntryStatus, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.planning.load import ManifestLoader, batches_of_files
from frazil.storage.files import FileIO

_DTYPES = {"content": pl.Int32(), "file_path": pl.String()}


@dataclass(frozen=True, slots=True)
class LiveFiles:
    """Distinct files: a frame of `content` (as `Content`) and `file_path`."""

    frame: pl.DataFrame

    @classmethod
    def none(cls) -> LiveFiles:
        """No files."""
        return cls(pl.DataFrame(schema=_DTYPES))

    def __bool__(self) -> bool:
        return not self.frame.is_empty()

    def without(self, others: LiveFiles) -> LiveFiles:
        """The files whose path the others do not hold."""
        return LiveFiles(self.frame.join(others.frame, on="file_path", how="anti"))

    @property
    def data(self) -> tuple[str, ...]:
        """Paths of data files."""
        return self._of(Content.DATA)

    @property
    def position_deletes(self) -> tuple[str, ...]:
        """Paths of position delete files and of Puffin files with deletion vectors."""
        return self._of(Content.POSITION_DELETES)

    @property
    def equality_deletes(self) -> tuple[str, ...]:
        """Paths of equality delete files."""
        return self._of(Content.EQUALITY_DELETES)

    def _of(self, content: Content) -> tuple[str, ...]:
        return tuple(self.frame.filter(pl.col("content") == int(content))["file_path"].to_list())


def live_files(io: FileIO, metadata: TableMetadata, manifests: Iterable[ManifestFile]) -> LiveFiles:
    """The files that the manifests hold and have not removed, each once."""
    found = [LiveFiles.none().frame, *_live(io, metadata, manifests)]
    return LiveFiles(pl.concat(found).unique(maintain_order=True))


def not_held(
    files: LiveFiles, io: FileIO, metadata: TableMetadata, manifests: Iterable[ManifestFile]
) -> LiveFiles:
    """The files that the manifests do not hold or have removed.

    Manifests are read until no file is left, some at a time: of a large table not all of its paths
    are in memory.
    """
    left = files
    for held in _live(io, metadata, manifests):
        if not left:
            break
        left = left.without(LiveFiles(held))
    return left


def _live(
    io: FileIO, metadata: TableMetadata, manifests: Iterable[ManifestFile]
) -> Iterator[pl.DataFrame]:
    """The live files of some manifests at a time: of each only two columns stay."""
    loader = ManifestLoader.of(metadata, io)
    for batch in batches_of_files([each for each in manifests if each.has_live_files]):
        frames = [
            frame.filter(pl.col("status") != int(EntryStatus.DELETED)).select(*_DTYPES)
            for frame in loader.entries(batch)
        ]
        yield pl.concat(frames)
