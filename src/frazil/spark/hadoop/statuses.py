"""What Hadoop says of a file, as text: one call brings that of a whole folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from frazil.errors import StorageError

# A name may hold any of this itself: what counts is the last, which Hadoop has written.
_STATUS: Final = re.compile(
    r"\w+\{path=(?P<path>.*); isDirectory=(?P<folder>true|false)"
    r"(?:; length=(?P<size>\d+); replication=\d+; blocksize=\d+)?"
    r"; modification_time=(?P<modified>\d+); access_time=",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One file or folder.

    Attributes:
        path: as Hadoop spells it.
        is_folder: whether it is one.
        size: in bytes; 0 of a folder.
        modified_ms: milliseconds since the epoch; 0 where the store tells none.
    """

    path: str
    is_folder: bool
    size: int
    modified_ms: int


def statuses_of(text: str, end: str) -> Iterator[FileStatus]:
    """Read statuses as text.

    Args:
        text: of all, one after the other.
        end: stands behind each of them, and in none.

    Raises:
        StorageError: Hadoop wrote them in another form.
    """
    for part in text.split(end)[:-1]:
        found = _STATUS.match(part)
        if found is None:
            raise StorageError(f"Hadoop describes a file in an unknown form: {part[:200]!r}")
        yield FileStatus(
            path=found["path"],
            is_folder=found["folder"] == "true",
            size=int(found["size"] or 0),
            modified_ms=int(found["modified"]),
        )
