"""What Hadoop says of a file, as text: one call brings that of a whole folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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


_NOT_PLAIN: Final = re.compile(r"[\\*?\[\]{},;^]")


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


def alternatives(folder: str, names: Sequence[str]) -> str | None:
    """Return a pattern of Hadoop's of files in a folder; None where a name has signs of a pattern.

    Alternatives with a slash in them are looked up one by one, not found in a listing.
    """
    above, _, last = folder.rpartition("/")
    if any(map(_NOT_PLAIN.search, (folder, *names))):
        return None
    return f"{above}/{{{','.join(f'{last}/{name}' for name in names)}}}"


def marks_of(text: str, names: Sequence[str]) -> dict[str, str]:
    """Read what tells the files of a folder from others of their names.

    Args:
        text: the statuses of those that are there.
        names: of all.
    """
    found = {
        name: re.search(
            rf"/{re.escape(name)}; isDirectory=false; length=(\d+); .*?modification_time=(\d+);",
            text,
        )
        for name in names
    }
    return {name: " ".join(each.groups()) for name, each in found.items() if each is not None}
