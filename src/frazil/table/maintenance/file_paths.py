"""The live files of many manifests as columns of paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from frazil.format.manifests import Content, EntryStatus, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.planning.load import FILES_AT_ONCE, ManifestLoader, batches_of_files
from frazil.storage.files import FileIO

_DTYPES: Final = {"content": pl.Int32(), "file_path": pl.String()}
_DIGESTS: Final = {"digest": pl.UInt64(), "manifest": pl.Int32()}
_COMPARED: Final = 4_000_000
"""So many digests are compared at once: 32 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class LiveFiles:
    """Distinct files: a frame of `content` (as `Content`) and `file_path`."""

    frame: pl.DataFrame

    @classmethod
    def empty(cls) -> LiveFiles:
        """No files."""
        return cls(pl.DataFrame(schema=_DTYPES))

    def __len__(self) -> int:
        return len(self.frame)

    def count_of(self, content: Content, without: Mapping[str, object] | None = None) -> int:
        """How many files there are of a content, but for some by their paths.

        Puffin files with deletion vectors are position deletes.
        """
        files = self.frame.filter(pl.col("content") == int(content))["file_path"]
        if not without:
            return len(files)
        return len(files) - int(files.is_in(list(without)).sum())

    def paths(self) -> Iterator[list[str]]:
        """Yield the paths of some files at a time."""
        for some in self.frame["file_path"].to_frame().iter_slices(FILES_AT_ONCE):
            yield some["file_path"].to_list()


@dataclass(frozen=True, slots=True, eq=False)
class FileDigests:
    """Live files of manifests, 12 bytes each: a number made of the path stands for it.

    Two paths of one number, of ten million files once in some hundred thousand tables, count as
    one: a file that is held by others then, and stays.

    Attributes:
        frame: `digest` and `manifest`, the place of the one that has the file; a row for each that
            has it, in the order of the manifests.
        manifests: whose files they are.
    """

    frame: pl.DataFrame
    manifests: Sequence[ManifestFile]

    @classmethod
    def of(
        cls, io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile]
    ) -> FileDigests:
        """Return the files that the manifests hold and have not removed."""
        found = [pl.DataFrame(schema=_DIGESTS), *_digests(io, metadata, manifests)]
        return cls(pl.concat(found), manifests)

    def __bool__(self) -> bool:
        return not self.frame.is_empty()

    def not_held(
        self, io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile]
    ) -> FileDigests:
        """Return the files that the manifests do not hold or have removed.

        Manifests are read until no file is left, some at a time.
        """
        left = self.frame
        held: list[pl.Series] = []

        def without_held() -> pl.DataFrame:
            return left.join(
                pl.concat(held).to_frame(), on="digest", how="anti", maintain_order="left"
            )

        for some in _digests(io, metadata, manifests if len(left) else ()):
            held.append(some["digest"])
            if sum(map(len, held)) >= _COMPARED:
                left, held = without_held(), []
                if left.is_empty():
                    break
        return FileDigests(without_held() if held else left, self.manifests)

    def files(self, io: FileIO, metadata: TableMetadata) -> LiveFiles:
        """Return the files by their paths, each once; manifests that have some are read again."""
        once = self.frame.unique("digest", keep="first").sort("manifest")
        places = once["manifest"].unique().sort().to_list()
        found = []
        for live in _live_files(io, metadata, self.manifests, places):
            first, last = live["manifest"][0], live["manifest"][-1]
            low, high = (int(once["manifest"].search_sorted(place)) for place in (first, last + 1))
            some = once.slice(low, high - low)
            found.append(
                live.join(some, on=["digest", "manifest"], how="semi", maintain_order="left")
                .unique("digest", keep="first", maintain_order=True)
                .select(*_DTYPES)
            )
        return LiveFiles(pl.concat([LiveFiles.empty().frame, *found]))


def live_files(io: FileIO, metadata: TableMetadata, manifests: Iterable[ManifestFile]) -> LiveFiles:
    """The files that the manifests hold and have not removed, each once."""
    some = list(manifests)
    found = [live.select(*_DTYPES) for live in _live_files(io, metadata, some, range(len(some)))]
    return LiveFiles(pl.concat([LiveFiles.empty().frame, *found]).unique(maintain_order=True))


def _digests(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile]
) -> Iterator[pl.DataFrame]:
    for live in _live_files(io, metadata, manifests, range(len(manifests))):
        yield live.select(*_DIGESTS).rechunk()


def _live_files(
    io: FileIO,
    metadata: TableMetadata,
    manifests: Sequence[ManifestFile],
    places: Sequence[int],
) -> Iterator[pl.DataFrame]:
    """The live files of some manifests at a time: of each only few columns stay."""
    loader = ManifestLoader.of(metadata, io)
    chosen = [place for place in places if manifests[place].has_live_files]
    keep = loader.has_room([manifests[place] for place in chosen])
    rest = iter(chosen)
    for batch in batches_of_files([manifests[place] for place in chosen]):
        # The rest comes second, so that it does not lose a place to the end of the batch.
        frames = [
            frame.filter(pl.col("status") != int(EntryStatus.DELETED)).select(
                *_DTYPES,
                pl.col("file_path").hash(seed=0).alias("digest"),
                pl.lit(place, pl.Int32).alias("manifest"),
            )
            for frame, place in zip(loader.entries(batch, keep=keep), rest, strict=False)
        ]
        found = pl.concat(frames)
        if len(found):
            yield found
