"""Spark's failures to read a file as Frazil's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import unquote

from frazil.errors import (
    FrazilError,
    InvalidDataFileError,
    MissingFileError,
    StorageError,
    UnsupportedError,
)
from frazil.spark.files.layout.trusted import FOOTERS_SETTING
from frazil.spark.files.lost_files import MISSING, READ_FILE
from frazil.spark.files.parquet.access import told_end
from frazil.spark.files.parquet.s3a import REFUSED, as_s3a
from frazil.spark.session.packages import packages_error

_UNREADABLE: Final = re.compile(r"FAILED_READ_FILE|InvalidDataFileError|CANNOT_READ_FILE")
_PYTHON: Final = re.compile(r"frazil\.errors\.(\w+): (.*)")
_OF_PYTHON: Final[Mapping[str, type[FrazilError]]] = {
    "MissingFileError": MissingFileError,
    "UnsupportedError": UnsupportedError,
}
_NO_IDS: Final = "Spark read schema expects field Ids"


@contextmanager
def naming_the_read(*, table: str, snapshot_id: int | None, operation: str) -> Iterator[None]:
    """Raise failures to read a file as errors that name the table, its snapshot and the file."""
    try:
        yield
    except Exception as error:
        known = read_failure(error, table=table, snapshot_id=snapshot_id, operation=operation)
        if known is None:
            raise
        raise known from error


def read_failure(
    error: Exception, *, table: str, snapshot_id: int | None, operation: str
) -> FrazilError | None:
    """The error to raise for a file that could not be read; None where it is about no file."""
    if isinstance(error, FrazilError):
        return None
    message = str(error)
    text = as_s3a(message)
    place = f"{operation} of {table} at snapshot {snapshot_id}"
    raised = _PYTHON.search(text)
    if raised is not None:
        kind, message = raised.groups()
        return _OF_PYTHON.get(kind, InvalidDataFileError)(f"{place} failed: {message}")
    lacking = packages_error(error)
    if lacking is not None:
        return lacking
    found = READ_FILE.search(text)
    file = unquote(found.group(1)) if found is not None else None
    if MISSING.search(text):
        return MissingFileError(f"{place} failed: the data file {file} does not exist")
    if _NO_IDS in text:
        return UnsupportedError(
            f"{place} failed: the data file {file} has no field ids and was not noticed as such; "
            f"set {FOOTERS_SETTING} to always, or the table property schema.name-mapping.default"
        )
    if text != message and REFUSED.search(text):
        return StorageError(
            f"{place} failed: the store refuses {file} with the credentials that the catalog gave"
            f"{told_end(message)}; where they have ended, make the DataFrame anew"
        )
    if _UNREADABLE.search(text):
        reason = text.split("\n", 1)[0][:500]
        return InvalidDataFileError(f"{place} failed: {reason}", file=file)
    return None
