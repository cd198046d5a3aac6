"""Every other store, through fsspec: one file system a scheme and account, made when needed."""

from __future__ import annotations

import contextlib
import errno
import inspect
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO, cast

import fsspec

from frazil.errors import ConfigurationError, UnsupportedError
from frazil.storage.paths import parent_of, scheme_of
from frazil.storage.remote_options import (
    ADLS_SCHEMES,
    EXTRA_OF,
    GCS_SCHEMES,
    S3_SCHEMES,
    storage_options,
)

_CONDITIONAL_PUT = S3_SCHEMES | GCS_SCHEMES | ADLS_SCHEMES | {"memory"}
_VERSION = "?versionId="
_TAKEN = ("PreconditionFailed", "ConditionalRequestConflict", "BlobAlreadyExists")


class RemoteStore:
    """File operations of one scheme; paths are full URIs, taken literally."""

    def __init__(self, scheme: str, authority: str, properties: Mapping[str, str]) -> None:
        self._scheme = scheme
        self._fs = _file_system(scheme, authority, properties)

    @property
    def creates_atomically(self) -> bool:
        """Whether the store refuses, by itself, to create a file whose name is taken."""
        if self._scheme not in _CONDITIONAL_PUT:
            return False
        method = getattr(self._fs, "_pipe_file", None) or self._fs.pipe_file
        return "mode" in inspect.signature(method).parameters

    def read(self, path: str) -> bytes:
        """The whole object."""
        return cast(bytes, self._fs.cat_file(path))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """At most ``length`` bytes from ``offset``; none past the end."""
        if length == 0:
            # Drivers take an empty range for the whole object.
            self.size(path)
            return b""
        try:
            return cast(bytes, self._fs.cat_file(path, start=offset, end=offset + length))
        except FileNotFoundError:
            raise
        except Exception:
            # Object stores refuse a range that starts at the end or behind it.
            if offset >= self.size(path):
                return b""
            raise

    def open_input(self, path: str) -> BinaryIO:
        """A seekable stream."""
        return cast(BinaryIO, self._fs.open(path, "rb"))

    def create(self, path: str, data: bytes) -> None:
        """Write an object that must not exist; FileExistsError if it does."""
        if not self.creates_atomically:
            if self._fs.exists(path):
                raise FileExistsError(path)
            self.replace(path, data)
            return
        try:
            self._fs.pipe_file(path, data, mode="create")
        except FileExistsError:
            raise
        except Exception as error:
            if any(code in f"{error!r} {error.__cause__!r}" for code in _TAKEN):
                raise FileExistsError(path) from None
            raise

    def replace(self, path: str, data: bytes) -> None:
        """Write an object, taking the place of one that is there."""
        if self._scheme not in EXTRA_OF:
            self._fs.makedirs(parent_of(path), exist_ok=True)
        self._fs.pipe_file(path, data)

    def exists(self, path: str) -> bool:
        """Whether an object or folder has this name."""
        self._forget(path)
        return bool(self._fs.exists(path))

    def size(self, path: str) -> int:
        """The length in bytes."""
        self._forget(path)
        return int(self._fs.info(path)["size"])

    def delete(self, path: str) -> None:
        """Remove one object."""
        if not self.exists(path):
            raise FileNotFoundError(path)
        self._fs.rm_file(path)

    def delete_folder(self, path: str) -> None:
        """Remove every object below a folder, and the folder."""
        for found, _, _ in list(self.walk(path)):
            self._fs.rm_file(found)
        if self._scheme in EXTRA_OF:
            self._delete_markers(path)
        elif self._fs.isdir(path):
            self._fs.rm(path, recursive=True)

    def delete_empty_folder(self, path: str) -> None:
        """Remove a folder that holds nothing; OSError if it holds something."""
        if not self.is_folder(path):
            return
        if self._scheme not in EXTRA_OF:
            self._fs.rmdir(path)
            return
        if any(self.children(path)):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
        self._delete_markers(path)

    def rename_if_absent(self, source: str, target: str) -> None:
        """Give an object another name by copying; FileExistsError if that name is taken."""
        self.create(target, self.read(source))
        self._fs.rm_file(source)

    def move(self, source: str, target: str) -> None:
        """Give an object another name, taking the place of one that is there."""
        self._fs.cp_file(source, target)
        self._fs.rm_file(source)

    def make_folder(self, path: str) -> None:
        """Make a folder where the store has folders; object stores need a marker object."""
        if self._scheme in EXTRA_OF:
            self._fs.pipe_file(path.rstrip("/") + "/", b"")
        else:
            self._fs.makedirs(path, exist_ok=True)

    def is_folder(self, path: str) -> bool:
        """Whether objects lie below this name."""
        self._forget(path)
        return bool(self._fs.isdir(path))

    def children(self, path: str) -> Iterator[tuple[str, bool]]:
        """(name, is a folder) of what lies directly in a folder."""
        own = self._fs._strip_protocol(path).strip("/")
        for info in self._fs.ls(path, detail=True, refresh=True):
            name = info["name"].strip("/")
            if name != own:
                yield name.rpartition("/")[2], info["type"] == "directory"

    def walk(self, path: str) -> Iterator[tuple[str, int, int]]:
        """(path, bytes, modified ms) of every object below a folder."""
        self._forget(path)
        own = self._fs._strip_protocol(path.rstrip("/"))
        for name, info in self._fs.find(path, detail=True).items():
            tail = name[len(own) :] if name.startswith(own) else None
            if tail and tail.startswith("/") and not tail.endswith("/"):
                yield path.rstrip("/") + tail, int(info["size"]), _modified_ms(info)

    def _delete_markers(self, path: str) -> None:
        """Remove the empty objects that stand for folders: this one and those below it."""
        own = self._fs._strip_protocol(path.rstrip("/"))
        found = self._fs.find(path, withdirs=True, detail=True)
        folders = {
            name.rstrip("/")
            for name, info in found.items()
            if name.endswith("/") or info["type"] == "directory"
        }
        tails = {name[len(own) :] for name in folders if name.startswith(f"{own}/")}
        for tail in sorted({"", *tails}, key=len, reverse=True):
            with contextlib.suppress(FileNotFoundError):
                self._fs.rm_file(f"{path.rstrip('/')}{tail}/")

    def _forget(self, path: str) -> None:
        self._fs.invalidate_cache(parent_of(path))


def authority_of(path: str) -> str:
    """The bucket, container or host of a URI."""
    return path.partition("://")[2].partition("/")[0]


def store_key(path: str) -> tuple[str, str]:
    """What decides which file system serves a path: (scheme, account or host where it matters).

    Raises:
        UnsupportedError: the store's driver would not take the path literally.
    """
    scheme = scheme_of(path)
    if scheme in S3_SCHEMES and _VERSION in path:
        raise UnsupportedError(
            f"{path} cannot be used: the driver of {scheme}:// takes {_VERSION!r} for the version "
            f"of another object"
        )
    if scheme in ADLS_SCHEMES:
        container, at, account = authority_of(path).rpartition("@")
        return scheme, account if at and container else ""
    if scheme in EXTRA_OF or scheme == "memory":
        return scheme, ""
    return scheme, authority_of(path)


def _file_system(scheme: str, authority: str, properties: Mapping[str, str]) -> Any:
    options = storage_options(scheme, properties)
    if scheme in ADLS_SCHEMES and authority and "connection_string" not in options:
        options.setdefault("account_name", authority.partition(".")[0])
    if scheme in EXTRA_OF:
        # Other processes change the store: an answer from an earlier listing may be wrong.
        options["use_listings_cache"] = False
    try:
        # A fresh instance keeps one catalog's credentials out of another's file system.
        return fsspec.filesystem(EXTRA_OF.get(scheme, scheme), skip_instance_cache=True, **options)
    except ImportError:
        extra = EXTRA_OF.get(scheme)
        advice = (
            f"install frazil[{extra}]" if extra else f"install the fsspec driver of {scheme}://"
        )
        raise ConfigurationError(f"no driver for {scheme}:// is installed: {advice}") from None
    except ValueError as error:
        if "Protocol not known" in str(error):
            raise UnsupportedError(f"no driver knows the scheme {scheme}://") from None
        raise


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
