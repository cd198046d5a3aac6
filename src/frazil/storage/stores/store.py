"""What a store can do, whoever reaches it, and who opens stores in place of fsspec."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol, runtime_checkable

IO_PROPERTY: Final = "io"
"""The property that says who opens the files of other stores than the local disk."""
HADOOP: Final = "hadoop"
"""Its value for the file systems of Spark's Hadoop; without it files are opened by fsspec."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One listed file.

    Attributes:
        path: in the spelling of the prefix that was listed.
        size: in bytes.
        modified_ms: of the last change, milliseconds since the epoch; 0 where the store tells none.
    """

    path: str
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class UnfinishedUpload:
    """A file whose parts were sent and never became one: nobody sees it, and it is paid for.

    Attributes:
        path: of the file that it was to be.
        upload_id: the store's name for it.
        begun_ms: milliseconds since the epoch.
    """

    path: str
    upload_id: str
    begun_ms: int


class Store(Protocol):
    """File operations of one store; paths are full URIs, taken literally.

    Methods raise FileNotFoundError and FileExistsError, and anything else for other failures.
    """

    def creates_atomically(self, path: str) -> bool:
        """Whether the store refuses, by itself, to create a file whose name is taken."""

    def read(self, path: str) -> bytes:
        """The whole file."""

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """At most ``length`` bytes from ``offset``; none past the end."""

    def open_input(self, path: str) -> BinaryIO:
        """A seekable stream."""

    def create(self, path: str, data: bytes) -> None:
        """Write a file that must not exist; FileExistsError if it does."""

    def create_unique(self, path: str, data: bytes) -> None:
        """Write a file that must not exist, and that nobody looks for before this has returned.

        So it may have its name while it is written; FileExistsError if it exists.
        """

    def upload(self, source: str, path: str) -> None:
        """Write a file that must not exist from a local file; FileExistsError if it does."""

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, taking the place of one that is there."""

    def exists(self, path: str) -> bool:
        """Whether a file or folder has this name."""

    def marks(self, folder: str, names: Sequence[str]) -> Mapping[str, str] | None:
        """A mark of the content of each of these files that is there; None where none is told.

        One request, or a few beside each other. A file that takes the place of another has another
        mark.
        """

    def size(self, path: str) -> int:
        """The length in bytes."""

    def delete(self, path: str) -> None:
        """Remove one file."""

    def delete_folder(self, path: str) -> None:
        """Remove a folder and everything below it."""

    def delete_empty_folder(self, path: str) -> None:
        """Remove a folder that holds nothing; OSError if it holds something."""

    def rename_if_absent(self, source: str, target: str) -> None:
        """Give a file another name; FileExistsError if that name is taken."""

    def move(self, source: str, target: str) -> None:
        """Give a file another name, taking the place of one that is there."""

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents."""

    def is_folder(self, path: str) -> bool:
        """Whether a folder has this name."""

    def children(self, path: str) -> Iterator[tuple[str, bool]]:
        """(name, is a folder) of what lies directly in a folder; FileNotFoundError without one."""

    def list_folder(self, path: str) -> Iterator[tuple[str, int, int]]:
        """(name, bytes, modified ms) of what lies directly in a folder; folders have -1 bytes."""

    def walk(self, path: str) -> Iterator[tuple[str, int, int]]:
        """(path, bytes, modified ms) of every file below a folder."""


DELETED_AT_ONCE: Final = 1000
"""So many files a store removes by one request at most."""


@runtime_checkable
class DeletesMany(Protocol):
    """What a store can do besides that takes many files by one request."""

    def delete_many(self, paths: Sequence[str]) -> Mapping[str, Exception]:
        """Remove files, whether they are there or not; return the failures by path."""


@runtime_checkable
class ReplacesEnds(Protocol):
    """What a store can do besides that copies a part of a file by itself."""

    def replace_end(
        self, path: str, start: int, end: bytes, read_head: Callable[[], bytes]
    ) -> None:
        """Let a file go on with other bytes from ``start``; what lies before is not sent, if long.

        `read_head` gives what lies before, where that is less than the store copies.
        """


@runtime_checkable
class TakesParts(Protocol):
    """What a store can do besides that makes a file of parts."""

    def unfinished_uploads(self, path: str) -> Iterator[UnfinishedUpload]:
        """What was begun below a folder, and neither ended nor taken back."""

    def abort_upload(self, upload: UnfinishedUpload) -> None:
        """Remove what was sent; nothing happens where it is gone."""


@runtime_checkable
class ListsAtOnce(Protocol):
    """What a store can do besides that lists files of all folders below one by one request."""

    def list_at_once(self, path: str) -> list[tuple[str, int, int]] | None:
        """(path, bytes, modified ms) as of `Store.walk`; None where one request tells not all."""


@contextmanager
def raised_as(
    kind: type[OSError], path: str, means_it: Callable[[Exception], bool]
) -> Iterator[None]:
    """Raise an error of this kind for what a driver raises of a path, where that means the same."""
    try:
        yield
    except Exception as error:
        if means_it(error):
            raise kind(path) from None
        raise


class Stores(Protocol):
    """Opens stores; what is pickled of it opens them in the process that it is sent to."""

    def open(self, scheme: str) -> Store:
        """Return the store of the paths of a scheme."""
