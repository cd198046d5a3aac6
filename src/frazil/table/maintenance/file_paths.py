"""The live files of many manifests as columns of paths."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from frazil.format.manifests import Content, EntryStatus, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.storage.avro.columns import read_manifest_columns
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import in_threads

_READ_THREADS = 8
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

    def read(manifest: ManifestFile) -> pl.DataFrame:
        frame = read_manifest_columns(
            io, manifest, specs=metadata.specs_by_id, schema=metadata.schema, statistics=()
        )
        live = frame.filter(pl.col("status") != int(EntryStatus.DELETED))
        return live.select("content", "file_path")

    wanted = [manifest for manifest in manifests if manifest.has_live_files]
    if not wanted:
        return LiveFiles.none()
    frames = in_threads(read, wanted, threads=_READ_THREADS, name="frazil-manifests")
    return LiveFiles(pl.concat(frames).unique(maintain_order=True))
