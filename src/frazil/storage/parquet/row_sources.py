"""Where the rows of a file were copied from, as its footer says.

A file that holds rows of others in the order in which they came says so: then a row that was at a
place in another file can be found without a look at the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.errors import InvalidDataFileError
from frazil.storage.files import FileIO

FOOTER_KEY: Final = b"frazil.copied-from"


@dataclass(frozen=True, slots=True)
class RowSource:
    """Rows of a file that come from another file.

    Attributes:
        path: of the other file.
        first: the position of the first of the rows there.
        count: how many rows follow each other.
    """

    path: str
    first: int
    count: int


class RowSources:
    """The sources of a file's rows, noted as the file is written."""

    def __init__(self) -> None:
        self._sources: list[RowSource] = []

    def add(self, source: RowSource) -> None:
        """Note where the next rows come from."""
        last = self._sources[-1] if self._sources else None
        if last is not None and (last.path, last.first + last.count) == (source.path, source.first):
            self._sources[-1] = RowSource(last.path, last.first, last.count + source.count)
        else:
            self._sources.append(source)

    def footer(self) -> dict[bytes, bytes]:
        """Return the entry of the footer that says it; none where nothing was noted."""
        if not self._sources:
            return {}
        text = json.dumps([[each.path, each.first, each.count] for each in self._sources])
        return {FOOTER_KEY: text.encode()}


def row_sources(io: FileIO, path: str) -> Sequence[RowSource]:
    """Read where the rows of a Parquet file come from, in their order; empty where it is silent."""
    try:
        with io.open_input(path) as stream:
            footer = pq.read_metadata(stream)
    except pa.ArrowInvalid as error:
        raise InvalidDataFileError(f"the file cannot be read: {error}", file=path) from error
    text = (footer.metadata or {}).get(FOOTER_KEY)
    if text is None:
        return ()
    sources = tuple(_parse_sources(text, path))
    if sum(each.count for each in sources) != footer.num_rows:
        raise InvalidDataFileError(
            f"the file has {footer.num_rows} rows, and its footer says where "
            f"{sum(each.count for each in sources)} rows come from",
            file=path,
        )
    return sources


def _parse_sources(text: bytes, path: str) -> Iterable[RowSource]:
    try:
        listed = json.loads(text)
        for source, first, count in listed:
            if not (isinstance(source, str) and type(first) is int and type(count) is int):
                raise TypeError(f"{source!r}, {first!r}, {count!r}")
            if first < 0 or count < 1:
                raise ValueError(f"{count} rows from {first} on")
            yield RowSource(source, first, count)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidDataFileError(
            f"the footer's {FOOTER_KEY.decode()} is malformed: {error}", file=path
        ) from error
