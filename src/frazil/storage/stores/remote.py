"""Stores that fsspec has a driver for, as far as the drivers behave alike."""

from __future__ import annotations

import contextlib
import errno
import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final, cast

from frazil.storage.paths import parent_of
from frazil.storage.stores.remote_options import EXTRA_OF, GCS_SCHEMES
from frazil.storage.stores.store import raised_as

_CONDITIONAL_PUT = GCS_SCHEMES | {"memory"}
PARTS_AT_ONCE: Final = 2
"""Parts of a file, of 50 MB and less, that a driver holds in memory while it sends them."""

_TAKEN = (
    "PreconditionFailed",
    "ConditionalRequestConflict",
    "BlobAlreadyExists",
    "ConditionNotMet",
    "InvalidBlockList",
)


class RemoteStore:
    """File operations of one scheme; paths are full URIs, taken literally."""

    def __init__(self, scheme: str, file_system: Any) -> None:
        self._scheme = scheme
        self._fs = file_system

    def creates_atomically(self, path: str) -> bool:
        """Whether the store refuses, by itself, to create a file whose name is taken."""
        if self._scheme not in _CONDITIONAL_PUT:
            return False
        method = getattr(self._fs, "_pipe_file", None) or self._fs.pipe_file
        return "mode" in inspect.signature(method).parameters

    def read(self, path: str) -> bytes:
        """The whole object."""
        return cast(bytes, self._fs.cat_file(self._driver_path(path)))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """At most ``length`` bytes from ``offset``; none past the end."""
        if length == 0:
            # Drivers take an empty range for the whole object.
            self.size(path)
            return b""
        try:
            return cast(
                bytes, self._fs.cat_file(self._driver_path(path), start=offset, end=offset + length)
            )
        except FileNotFoundError:
            raise
        except Exception:
            # Object stores refuse a range that starts at the end or behind it.
            if offset >= self.size(path):
                return b""
            raise

    def open_input(self, path: str) -> BinaryIO:
        """A seekable stream."""
        return cast(BinaryIO, self._fs.open(self._driver_path(path), "rb"))

    def create(self, path: str, data: bytes) -> None:
        """Write an object that must not exist; FileExistsError if it does."""
        if not self.creates_atomically(path):
            self._refuse_taken(path)
            self.replace(path, data)
            return
        with raised_as(FileExistsError, path, _is_taken):
            self._put_new(path, data)

    def create_unique(self, path: str, data: bytes) -> None:
        """Write an object that must not exist; FileExistsError if it does."""
        self.create(path, data)

    def upload(self, source: str, path: str) -> None:
        """Write an object that must not exist from a local file; FileExistsError if it does."""
        self._make_parents(path)
        with raised_as(FileExistsError, path, _is_taken):
            self._send_new(source, path)

    def replace(self, path: str, data: bytes) -> None:
        """Write an object, taking the place of one that is there."""
        self._make_parents(path)
        self._fs.pipe_file(self._driver_path(path), data)

    def exists(self, path: str) -> bool:
        """Whether an object or folder has this name."""
        self._forget(path)
        return bool(self._fs.exists(self._driver_path(path)))

    def size(self, path: str) -> int:
        """The length in bytes."""
        self._forget(path)
        info = self._fs.info(self._driver_path(path))
        if info["type"] == "directory":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return int(info["size"])

    def delete(self, path: str) -> None:
        """Remove one object."""
        if not self.exists(path):
            raise FileNotFoundError(path)
        self._delete_one(path)

    def delete_folder(self, path: str) -> None:
        """Remove every object below a folder, and the folder."""
        try:
            below = list(self.walk(path))
        except FileNotFoundError:
            # There is no such bucket.
            return
        for found, _, _ in below:
            self._delete_one(found)
        if self._scheme in EXTRA_OF:
            self._delete_markers(path)
        elif self._fs.isdir(self._driver_path(path)):
            self._fs.rm(self._driver_path(path), recursive=True)

    def delete_empty_folder(self, path: str) -> None:
        """Remove a folder that holds nothing; OSError if it holds something."""
        if not self.is_folder(path):
            return
        if self._scheme not in EXTRA_OF:
            self._fs.rmdir(self._driver_path(path))
            return
        if any(self.children(path)):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
        self._delete_markers(path)

    def rename_if_absent(self, source: str, target: str) -> None:
        """Give an object another name by copying; FileExistsError if that name is taken."""
        self.create(target, self.read(source))
        self._delete_one(source)

    def move(self, source: str, target: str) -> None:
        """Give an object another name, taking the place of one that is there."""
        self._fs.cp_file(self._driver_path(source), self._driver_path(target))
        self._delete_one(source)

    def make_folder(self, path: str) -> None:
        """Make a folder where the store has folders; object stores need a marker object."""
        if self._scheme in EXTRA_OF:
            self._fs.pipe_file(self._driver_path(path).rstrip("/") + "/", b"")
        else:
            self._fs.makedirs(self._driver_path(path), exist_ok=True)

    def marks(self, folder: str, names: Sequence[str]) -> Mapping[str, str] | None:
        """None: an object store tells of one object by a request."""
        return None

    def is_folder(self, path: str) -> bool:
        """Whether objects lie below this name."""
        self._forget(path)
        return bool(self._fs.isdir(self._driver_path(path)))

    def children(self, path: str) -> Iterator[tuple[str, bool]]:
        """(name, is a folder) of what lies directly in a folder; FileNotFoundError without one."""
        found = list(self._direct_children(path))
        # Drivers list a file as itself.
        if not found and not self.is_folder(path):
            raise FileNotFoundError(path)
        yield from found

    def _direct_children(self, path: str) -> Iterator[tuple[str, bool]]:
        own, infos = self._infos(path)
        for name, info in infos:
            if name != own:
                yield name.rpartition("/")[2], info["type"] == "directory"

    def _infos(self, path: str) -> tuple[str, Iterator[tuple[str, Mapping[str, Any]]]]:
        """The driver's name for a folder, and what it tells of all in it by its names for these."""
        found = self._fs.ls(self._driver_path(path), detail=True, refresh=True)
        own = self._fs._strip_protocol(self._driver_path(path)).strip("/")
        return own, ((info["name"].strip("/"), info) for info in found)

    def list_folder(self, path: str) -> Iterator[tuple[str, int, int]]:
        """(name, bytes, modified ms) of what lies directly in a folder; folders have -1 bytes."""
        own, infos = self._infos(path)
        for name, info in infos:
            if info["type"] == "directory":
                yield name.rpartition("/")[2], -1, 0
            elif name != own and not info["name"].endswith("/"):
                yield name.rpartition("/")[2], int(info["size"]), _modified_ms(info)

    def walk(self, path: str) -> Iterator[tuple[str, int, int]]:
        """(path, bytes, modified ms) of every object below a folder."""
        self._forget(path)
        own = self._fs._strip_protocol(self._driver_path(path.rstrip("/")))
        for name, info in self._fs.find(self._driver_path(path), detail=True).items():
            tail = name[len(own) :] if name.startswith(own) else None
            if tail and tail.startswith("/") and not tail.endswith("/"):
                yield path.rstrip("/") + tail, int(info["size"]), _modified_ms(info)

    def _delete_one(self, path: str) -> None:
        """Remove an object that is there; FileNotFoundError if it is not."""
        # Drivers would delete the bucket, or send a request without a name.
        if self._scheme in EXTRA_OF and "/" not in path.partition("://")[2].rstrip("/"):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self._fs.rm_file(self._driver_path(path))

    def _put_new(self, path: str, data: bytes) -> None:
        """Write an object on the condition that its name is free."""
        self._fs.pipe_file(self._driver_path(path), data, mode="create")

    def _send_new(self, source: str, path: str) -> None:
        """Write an object from a local file, on the condition that its name is free."""
        method = getattr(self._fs, "_put_file", None) or self._fs.put_file
        known = inspect.signature(method).parameters
        if "mode" not in known:
            self._refuse_taken(path)
        asked = {"mode": "create", "max_concurrency": PARTS_AT_ONCE}
        options = {name: value for name, value in asked.items() if name in known}
        self._fs.put_file(source, self._driver_path(path), **options)

    def _refuse_taken(self, path: str) -> None:
        if self._fs.exists(self._driver_path(path)):
            raise FileExistsError(path)

    def _make_parents(self, path: str) -> None:
        if self._scheme not in EXTRA_OF:
            self._fs.makedirs(self._driver_path(parent_of(path)), exist_ok=True)

    def _delete_markers(self, path: str) -> None:
        """Remove the empty objects that stand for folders: this one and those below it."""
        own = self._fs._strip_protocol(self._driver_path(path.rstrip("/")))
        found = self._fs.find(self._driver_path(path), withdirs=True, detail=True)
        folders = {
            name.rstrip("/")
            for name, info in found.items()
            if name.endswith("/") or info["type"] == "directory"
        }
        tails = {name[len(own) :] for name in folders if name.startswith(f"{own}/")}
        for tail in sorted({"", *tails}, key=len, reverse=True):
            with contextlib.suppress(FileNotFoundError):
                self._fs.rm_file(f"{self._driver_path(path).rstrip('/')}{tail}/")

    def _driver_path(self, path: str) -> str:
        """The path as the driver spells it: drivers know schemes in lower case only."""
        return f"{self._scheme}:{path.partition(':')[2]}"

    def _forget(self, path: str) -> None:
        self._fs.invalidate_cache(parent_of(self._driver_path(path)))


def _is_taken(error: Exception) -> bool:
    """Whether a store says that a condition does not hold."""
    return any(code in f"{error!r} {error.__cause__!r}" for code in _TAKEN)


def _modified_ms(info: Mapping[str, Any]) -> int:
    for key in ("LastModified", "mtime", "last_modified", "updated", "modified", "created"):
        value = info.get(key)
        if isinstance(value, datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return int(aware.timestamp() * 1000)
        if isinstance(value, str):
            return int(datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp() * 1000)
        if isinstance(value, int | float):
            return int(value * 1000)
    return 0
