"""The live files of many manifests as columns of paths."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from frazil.format.manifests import Content, EntryStatus, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.planning.load import ManifestLoader
from frazil.storage.files import FileIO

_MANIFESTS_AT_ONCE = 256
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

    loader = ManifestLoader.of(metadata, io)
    wanted = [manifest for manifest in manifests if manifest.has_live_files]
    found = [LiveFiles.none().frame]
    # Some at a time: of each only two columns stay.
    for start in range(0, len(wanted), _MANIFESTS_AT_ONCE):
        for frame in loader.entries(wanted[start : start + _MANIFESTS_AT_ONCE]):
            live = frame.filter(pl.col("status") != int(EntryStatus.DELETED))
            found.append(live.select("content", "file_path"))
    return LiveFiles(pl.concat(found).unique(maintain_order=True))
