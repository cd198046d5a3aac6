"""What lies in a store under the name of a data or delete file: bytes and rows, by looking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

import fastavro
import pyarrow as pa
import pyarrow.orc as orc

from frazil.errors import InvalidDataFileError, MissingFileError
from frazil.storage.files import FileIO
from frazil.storage.parquet.footer import read_description
from frazil.storage.side_by_side import WAITING_THREADS, in_threads

_BROKEN: Final = (pa.ArrowException, InvalidDataFileError, ValueError, EOFError, IndexError)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as it is.

    Attributes:
        size: in bytes; None where there is no such file.
        record_count: its rows; None where its format does not tell, or it cannot be read.
        reason: why it cannot be read; None where it can.
    """

    size: int | None = None
    record_count: int | None = None
    reason: str | None = None


def stored_files(io: FileIO, files: Sequence[tuple[str, str]]) -> list[StoredFile]:
    """Return what lies under each path, given with its format; looked up beside each other.

    Raises StorageError: the store does not answer; that says nothing of a file.
    """
    return in_threads(
        lambda file: stored_file(io, *file), files, threads=WAITING_THREADS, name="frazil-check"
    )


def stored_file(io: FileIO, path: str, file_format: str) -> StoredFile:
    """Return what lies under a path.

    Raises StorageError where the store does not answer.
    """
    try:
        size = io.size(path)
        count = _COUNTS.get(file_format.lower())
        if count is None:
            return StoredFile(size)
        with io.open_input(path) as stream:
            return StoredFile(size, count(stream))
    except MissingFileError:
        return StoredFile()
    except _BROKEN as error:
        return StoredFile(size, reason=str(error))


def _rows_of_parquet(stream: BinaryIO) -> int:
    return int(read_description(stream).num_rows)


def _rows_of_orc(stream: BinaryIO) -> int:
    return int(orc.ORCFile(stream).nrows)


def _rows_of_avro(stream: BinaryIO) -> int:
    return sum(block.num_records for block in fastavro.block_reader(stream))


_COUNTS: Final = {"parquet": _rows_of_parquet, "orc": _rows_of_orc, "avro": _rows_of_avro}
