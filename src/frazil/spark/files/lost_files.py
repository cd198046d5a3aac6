"""Files of tables that were gone when Spark read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from threading import Lock
from typing import Final
from urllib.parse import unquote

from frazil.errors import FrazilError
from frazil.format.metadata import TableMetadata
from frazil.spark.files.parquet.s3a import as_s3a
from frazil.storage.locations import data_location

READ_FILE: Final = re.compile(r"reading file (\S+?)\.(?: |$)")
"""How Spark names the file that it reads."""
MISSING: Final = re.compile(r"FILE_NOT_EXIST|FileNotFoundException|MissingFileError")
"""How Spark, Hadoop and our own tasks say that a file is not there."""
_OURS: Final = re.compile(r"MissingFileError: cannot [a-z ]+ (\S+): there is no such")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/*")
_MOST_FOLDERS: Final = 10_000

_LOCK: Final = Lock()
_READ: Final[dict[str, str]] = {}
"""The places of tables that this process has read, by the folders of their data."""


@dataclass(frozen=True, slots=True)
class LostFile:
    """A file that was not there to be read.

    Attributes:
        path: the file.
        table: the place of the table that it lies in.
    """

    path: str
    table: str


def note_read(metadata: TableMetadata) -> None:
    """Remember where a table's data lie, so that what is lost of them can be told from others."""
    with _LOCK:
        for folder in (metadata.location, data_location(metadata)):
            key = f"{_comparable_path(folder).rstrip('/')}/"
            _READ.pop(key, None)
            _READ[key] = metadata.location
        while len(_READ) > _MOST_FOLDERS:
            del _READ[next(iter(_READ))]


def lost_file(error: BaseException) -> LostFile | None:
    """Return the file of a table that was not there; None where an error is about another thing."""
    if isinstance(error, FrazilError):
        return None
    text = as_s3a(str(error))
    found = (READ_FILE.search(text) or _OURS.search(text)) if MISSING.search(text) else None
    if found is None:
        return None
    path = unquote(found.group(1))
    bare = _comparable_path(path)
    with _LOCK:
        tables = [folder for folder in _READ if bare.startswith(folder)]
        return LostFile(path, _READ[max(tables, key=len)]) if tables else None


def _comparable_path(path: str) -> str:
    """A path without what Spark's and the table's forms of it may differ in."""
    return _SCHEME.sub("", path, count=1).lstrip("/")
