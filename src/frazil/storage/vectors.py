"""Deletion vectors in their files."""

from __future__ import annotations

from pyroaring import BitMap64

from frazil.errors import InvalidDataFileError
from frazil.format.puffin.deletion_vectors import deletion_vector_from_bytes
from frazil.storage.files import FileIO

_LONGEST = 2**31 + 7
"""A blob states its length in 31 bits; four bytes before and after it do not count."""


def read_deletion_vector(
    io: FileIO, path: str, *, offset: int | None, length: int | None, cardinality: int | None
) -> BitMap64:
    """Return the positions of a deletion vector, given its place as a manifest states it."""
    if offset is None or length is None or offset < 0 or not 0 <= length <= _LONGEST:
        raise InvalidDataFileError(
            f"a manifest puts a deletion vector of {length} bytes at offset {offset}, which no"
            " file has",
            file=path,
        )
    blob = io.read_range(path, offset=offset, length=length)
    return deletion_vector_from_bytes(blob, file=path, cardinality=cardinality)
