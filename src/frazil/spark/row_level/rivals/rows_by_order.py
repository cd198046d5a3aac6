"""Rows found by their order: a file that was copied says in its footer where its rows come from.

It serves rows without ids, as those of version 2 are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from frazil.spark.deletes.bitmap import Longs
from frazil.storage.files import FileIO
from frazil.storage.parquet.row_sources import row_sources
from frazil.storage.side_by_side import in_threads


@dataclass(frozen=True, slots=True, eq=False)
class CopiedPlaces:
    """Where rows are by now; the arrays are as long as each other.

    Attributes:
        old: the path of the file that each was in.
        new: the path of the file that each is in.
        positions: the position of each there.
    """

    old: npt.NDArray[np.object_]
    new: npt.NDArray[np.object_]
    positions: Longs

    def by_file(self) -> dict[str, BitMap64]:
        """Return the positions by the paths of the new files."""
        return {path: BitMap64(self.positions[self.new == path]) for path in set(self.new)}


def copied_places(
    io: FileIO, rows: Mapping[str, BitMap64], files: Collection[str]
) -> CopiedPlaces | None:
    """Find where rows were copied to; None where that is not said of all of them.

    Args:
        io: opens the files.
        rows: positions by the files that they were in.
        files: Parquet files that the rows may be in.

    Raises:
        InvalidDataFileError, MissingFileError, StorageError: a file cannot be read.
    """
    wanted = {path: np.asarray(bitmap.to_array(), np.int64) for path, bitmap in rows.items()}
    old: list[str] = []
    new: list[str] = []
    positions: list[Longs] = [np.empty(0, dtype=np.int64)]
    paths = list(files)
    found = in_threads(lambda path: row_sources(io, path), paths, name="frazil-row-sources")
    for path, sources in zip(paths, found, strict=True):
        start = 0
        for source in sources:
            here = wanted.get(source.path)
            if here is not None:
                first, last = np.searchsorted(here, [source.first, source.first + source.count])
                positions.append(here[first:last] - source.first + start)
                old += [source.path] * int(last - first)
                new += [path] * int(last - first)
            start += source.count
    if len(old) != sum(map(len, wanted.values())):
        return None
    return CopiedPlaces(
        np.array(old, dtype=object), np.array(new, dtype=object), np.concatenate(positions)
    )
