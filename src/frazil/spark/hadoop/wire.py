"""How a process without a virtual machine asks the one of the session for files.

A question is two messages: JSON of what is asked, then bytes. So is an answer. Both sides prove
that they know the key before the first of them.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any, Final

from frazil.storage.stores.store import Store

Operation = Callable[[Store, str, Mapping[str, Any], bytes], Any]
"""Does what was asked, given the store, the path, all that was said, and bytes."""

PART: Final = 8 << 20
"""So many bytes of an upload are in one message."""


UPLOAD: Final = "upload"
"""Its bytes follow in parts, an empty one last."""

OPERATIONS: Final[Mapping[str, Operation]] = {
    "creates_atomically": lambda store, path, _, __: store.creates_atomically(path),
    "read": lambda store, path, _, __: store.read(path),
    "read_range": lambda store, path, said, _: store.read_range(
        path, int(said["offset"]), int(said["length"])
    ),
    "create": lambda store, path, _, data: store.create(path, data),
    "create_unique": lambda store, path, _, data: store.create_unique(path, data),
    "replace": lambda store, path, _, data: store.replace(path, data),
    # The source is the file of the bytes that came, never a path that the question names.
    UPLOAD: lambda store, path, said, _: store.upload(said["source"], path),
    "exists": lambda store, path, _, __: store.exists(path),
    "marks": lambda store, path, said, _: store.marks(path, said["names"]),
    "size": lambda store, path, _, __: store.size(path),
    "delete": lambda store, path, _, __: store.delete(path),
    "delete_folder": lambda store, path, _, __: store.delete_folder(path),
    "delete_empty_folder": lambda store, path, _, __: store.delete_empty_folder(path),
    "rename_if_absent": lambda store, path, said, _: store.rename_if_absent(path, said["target"]),
    "move": lambda store, path, said, _: store.move(path, said["target"]),
    "make_folder": lambda store, path, _, __: store.make_folder(path),
    "is_folder": lambda store, path, _, __: store.is_folder(path),
    "children": lambda store, path, _, __: list(store.children(path)),
    "list_folder": lambda store, path, _, __: list(store.list_folder(path)),
    "walk": lambda store, path, _, __: list(store.walk(path)),
}
"""What can be asked for, by its name."""

_ERRORS: Final[Mapping[str, type[Exception]]] = {
    each.__name__: each
    for each in (FileNotFoundError, FileExistsError, IsADirectoryError, PermissionError, EOFError)
}


def prove_as_server(connection: Connection, key: bytes) -> None:
    """Let both sides prove that they know a key; AuthenticationError where one does not."""
    deliver_challenge(connection, key)
    answer_challenge(connection, key)


def prove_as_client(connection: Connection, key: bytes) -> None:
    """Do the other side's part of it."""
    answer_challenge(connection, key)
    deliver_challenge(connection, key)


def send(connection: Connection, said: Mapping[str, Any], data: bytes = b"") -> None:
    """Send a question or an answer."""
    connection.send_bytes(json.dumps(said).encode())
    connection.send_bytes(data)


def send_at_once(connection: Connection) -> None:
    """Let no message wait until the other side has confirmed the one before."""
    with socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def receive(connection: Connection) -> tuple[dict[str, Any], bytes]:
    """Return the next question or answer; EOFError where the other side has gone."""
    said = json.loads(connection.recv_bytes())
    return said, connection.recv_bytes()


def parts(connection: Connection) -> Iterator[bytes]:
    """Yield the bytes of an upload."""
    while part := connection.recv_bytes():
        yield part


def error_answer(error: Exception) -> dict[str, Any]:
    """Return an error as an answer."""
    number = getattr(error, "errno", None)
    reason = getattr(error, "strerror", None) or str(error)
    return {"error": type(error).__name__, "number": number, "reason": str(reason)}


def error_of(answer: Mapping[str, Any]) -> Exception:
    """Return the error of an answer."""
    kind = _ERRORS.get(str(answer["error"]), OSError)
    reason, number = str(answer["reason"]), answer.get("number")
    return kind(reason) if number is None else OSError(int(number), reason)
