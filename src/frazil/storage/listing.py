"""Everything below a folder, its sub-folders listed beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import polars as pl

from frazil.errors import MissingFileError, ValidationError
from frazil.storage.files import FileInfo, FileIO
from frazil.storage.paths import is_local
from frazil.storage.side_by_side import WAITING_THREADS, in_threads

LISTED: Final = {"path": pl.String(), "size": pl.Int64(), "modified_ms": pl.Int64()}
"""The columns of a listing: paths in the spelling of the folder, bytes, and milliseconds since the
epoch, 0 where the store tells no time."""

_ENOUGH_FOLDERS: Final = 64
_LEVELS: Final = 4


@dataclass(frozen=True, slots=True)
class Beginning:
    """The upper levels of a folder.

    Attributes:
        files: that lie in them.
        folders: below which nothing is listed yet; together they are the rest.
    """

    files: pl.DataFrame
    folders: tuple[str, ...]


def list_beginning(io: FileIO, folder: str) -> Beginning:
    """List levels of a folder until there are folders enough to share the rest of the work."""
    with suppress(MissingFileError):
        few = io.list_at_once(folder)
        if few is not None:
            return Beginning(frame_of(few), ())
    found: list[FileInfo] = []
    folders = [folder]
    for _ in range(_LEVELS):
        if not folders or len(folders) >= _ENOUGH_FOLDERS:
            break
        levels = in_threads(io.list_level, folders, threads=_threads(folders), name="frazil-list")
        found += chain.from_iterable(files for files, _ in levels)
        folders = list(chain.from_iterable(below for _, below in levels))
    return Beginning(frame_of(found), tuple(folders))


def list_folders(io: FileIO, folders: Sequence[str]) -> pl.DataFrame:
    """List everything below each of the folders."""
    frames = in_threads(
        lambda folder: frame_of(io.list(folder)),
        folders,
        threads=_threads(folders),
        name="frazil-list",
    )
    return pl.concat([pl.DataFrame(schema=LISTED), *frames])


def _threads(folders: Sequence[str]) -> int:
    # A disk answers at once: threads would only wait for each other.
    return 1 if all(map(is_local, folders)) else WAITING_THREADS


def frame_of(files: Iterable[FileInfo]) -> pl.DataFrame:
    """Return listed files as columns."""
    listed = list(files)
    columns = {
        "path": [file.path for file in listed],
        "size": [file.size for file in listed],
        "modified_ms": [file.modified_ms for file in listed],
    }
    return pl.DataFrame(columns, schema=LISTED)


def listing_of(given: Any) -> pl.DataFrame:
    """Return a list of files that the user made as a listing."""
    if not isinstance(given, pl.DataFrame):
        raise ValidationError(f"file_list is a {type(given).__name__}; give a frame of Polars")
    kinds = {"file_path": (pl.String,), "last_modified": (pl.Datetime,)}
    for name, wanted in kinds.items():
        found = given.schema.get(name)
        if found is None or not isinstance(found, wanted):
            raise ValidationError(
                f"file_list needs a column {name} of type {wanted[0].__name__}; it has "
                f"{dict(given.schema)}"
            )
    size = pl.col("size") if "size" in given.columns else pl.lit(0)
    return given.select(
        pl.col("file_path").alias("path"),
        size.cast(pl.Int64).alias("size"),
        pl.col("last_modified").dt.epoch("ms").alias("modified_ms"),
    )
