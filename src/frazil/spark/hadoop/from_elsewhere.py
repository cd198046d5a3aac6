"""Stores of a session, for a process that the session's virtual machine is not beside."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Connection
from typing import Any, BinaryIO, Final

from frazil.errors import StorageError
from frazil.spark.hadoop.wire import (
    PART,
    UPLOAD,
    error_of,
    prove_as_client,
    receive,
    send,
    send_at_once,
)
from frazil.storage.stores.range_input import range_input
from frazil.storage.stores.store import Store


@dataclass(frozen=True, slots=True)
class StoresElsewhere:
    """The stores of the process that listens at an address.

    Attributes:
        address: its host and port.
        key: which it wants to be known.
    """

    address: tuple[str, int]
    key: bytes = field(repr=False)

    def open(self, scheme: str) -> Store:
        """Return the store of the paths of a scheme."""
        return StoreElsewhere(self, scheme)


class StoreElsewhere:
    """File operations of one scheme; each is a question to that process."""

    def __init__(self, stores: StoresElsewhere, scheme: str) -> None:
        self._stores = stores
        self._scheme = scheme

    def creates_atomically(self, path: str) -> bool:
        """Whether the store refuses, by itself, to create a file whose name is taken."""
        return bool(self._find("creates_atomically", path))

    def read(self, path: str) -> bytes:
        """The whole file."""
        return self._bytes("read", path)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """At most ``length`` bytes from ``offset``; none past the end."""
        return self._bytes("read_range", path, offset=offset, length=length)

    def open_input(self, path: str) -> BinaryIO:
        """A seekable stream."""
        return range_input(self.size(path), lambda *part: self.read_range(path, *part))

    def create(self, path: str, data: bytes) -> None:
        """Write a file that must not exist; FileExistsError if it does."""
        self._ask("create", path, data)

    def create_unique(self, path: str, data: bytes) -> None:
        """Write a file that must not exist, and that nobody looks for before this has returned."""
        self._ask("create_unique", path, data)

    def upload(self, source: str, path: str) -> None:
        """Write a file that must not exist from a local file; FileExistsError if it does."""
        with open(source, "rb") as stream:
            connection = _connect(self._stores)
            with _close_on_failure(connection):
                send(connection, {"do": UPLOAD, "scheme": self._scheme, "path": path})
                while part := stream.read(PART):
                    connection.send_bytes(part)
                connection.send_bytes(b"")
                answer, _ = receive(connection)
        _check(answer)

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, taking the place of one that is there."""
        self._ask("replace", path, data)

    def exists(self, path: str) -> bool:
        """Whether a file or folder has this name."""
        return bool(self._find("exists", path))

    def marks(self, folder: str, names: Sequence[str]) -> Mapping[str, str] | None:
        """A mark of the content of each of these files that is there; None where none is told."""
        found: Mapping[str, str] | None = self._ask("marks", folder, names=list(names))[0]["found"]
        return found

    def size(self, path: str) -> int:
        """The length in bytes."""
        return int(self._find("size", path))

    def delete(self, path: str) -> None:
        """Remove one file."""
        self._ask("delete", path)

    def delete_folder(self, path: str) -> None:
        """Remove a folder and everything below it."""
        self._ask("delete_folder", path)

    def delete_empty_folder(self, path: str) -> None:
        """Remove a folder that holds nothing; OSError if it holds something."""
        self._ask("delete_empty_folder", path)

    def rename_if_absent(self, source: str, target: str) -> None:
        """Give a file another name; FileExistsError if that name is taken."""
        self._ask("rename_if_absent", source, target=target)

    def move(self, source: str, target: str) -> None:
        """Give a file another name, taking the place of one that is there."""
        self._ask("move", source, target=target)

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents."""
        self._ask("make_folder", path)

    def is_folder(self, path: str) -> bool:
        """Whether a folder has this name."""
        return bool(self._find("is_folder", path))

    def children(self, path: str) -> Iterator[tuple[str, bool]]:
        """(name, is a folder) of what lies directly in a folder; FileNotFoundError without one."""
        yield from ((name, is_folder) for name, is_folder in self._find("children", path))

    def list_folder(self, path: str) -> Iterator[tuple[str, int, int]]:
        """(name, bytes, modified ms) of what lies directly in a folder; folders have -1 bytes."""
        yield from ((name, size, at) for name, size, at in self._find("list_folder", path))

    def walk(self, path: str) -> Iterator[tuple[str, int, int]]:
        """(path, bytes, modified ms) of every file below a folder."""
        yield from ((name, size, at) for name, size, at in self._find("walk", path))

    def _find(self, name: str, path: str) -> Any:
        return self._ask(name, path)[0]["found"]

    def _bytes(self, name: str, path: str, **said: Any) -> bytes:
        return self._ask(name, path, **said)[1]

    def _ask(
        self, name: str, path: str, data: bytes = b"", **said: Any
    ) -> tuple[dict[str, Any], bytes]:
        question = {"do": name, "scheme": self._scheme, "path": path, **said}
        connection = _connect(self._stores)
        with _close_on_failure(connection):
            send(connection, question, data)
            answer, found = receive(connection)
        return _check(answer), found


class _Connections(threading.local):
    """Of one thread: by process and address, for a forked child shares none."""

    def __init__(self) -> None:
        self.by_place: dict[tuple[int, tuple[str, int]], Connection] = {}


_connections: Final = _Connections()


def _connect(stores: StoresElsewhere) -> Connection:
    place = (os.getpid(), stores.address)
    known = _connections.by_place
    if place not in known or known[place].closed:
        try:
            made = Client(stores.address)
            send_at_once(made)
            prove_as_client(made, stores.key)
        except OSError as error:
            host, port = stores.address
            raise StorageError(
                f"the driver that reaches the files of io=hadoop is not reached at {host}:{port}: "
                f"{error.strerror or error}; executors must be let to this port, which the "
                "session setting frazil.files.port chooses"
            ) from None
        known[place] = made
    return known[place]


@contextlib.contextmanager
def _close_on_failure(connection: Connection) -> Iterator[None]:
    """Close the connection where a question is left without its answer."""
    try:
        yield
    except EOFError:
        connection.close()
        raise OSError("the driver that reaches the files of io=hadoop has ended") from None
    except BaseException:
        connection.close()
        raise


def _check(answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        raise error_of(answer)
    return answer
