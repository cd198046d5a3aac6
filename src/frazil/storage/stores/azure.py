"""Azure: containers are listed here, because the driver's own listings leave things out."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from fsspec.asyn import sync

from frazil.storage.stores.remote import PARTS_AT_ONCE, RemoteStore
from frazil.storage.stores.store import raised_as

_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class _Blob:
    """One entry of a listing; a common prefix is a folder."""

    name: str
    size: int
    modified_ms: int
    is_folder: bool


class AzureStore(RemoteStore):
    """A RemoteStore over blobs.

    A folder is what lies before a slash in a blob's name, an empty blob whose name ends in a slash,
    or, where the account has a hierarchy, a blob that is marked as one.
    """

    def creates_atomically(self, path: str) -> bool:
        """Whether the store refuses, by itself, to create a file whose name is taken."""
        return True

    def replace(self, path: str, data: bytes) -> None:
        """Write a blob, taking the place of one that is there."""
        with raised_as(FileNotFoundError, path, _is_missing):
            super().replace(path, data)

    def make_folder(self, path: str) -> None:
        """Make the empty blob that stands for a folder."""
        with raised_as(FileNotFoundError, path, _is_missing):
            super().make_folder(path)

    def exists(self, path: str) -> bool:
        """Whether a blob or folder has this name."""
        return super().exists(path) if self._split(path)[1] else self.is_folder(path)

    def is_folder(self, path: str) -> bool:
        """Whether blobs lie below this name, or it is a folder's or an existing container's."""
        key = self._split(path)[1]
        try:
            if self._blobs_with_prefix(path, self._prefix(path), first_only=True) or not key:
                return True
            own = self._blobs_with_prefix(path, key, first_only=True)
        except FileNotFoundError:
            return False
        return any(blob.name == key and blob.is_folder for blob in own)

    def children(self, path: str) -> Iterator[tuple[str, bool]]:
        """(name, is a folder) of what lies directly in a folder."""
        prefix = self._prefix(path)
        found = self._blobs_with_prefix(path, prefix, one_level=True)
        if not found and not self.is_folder(path):
            raise FileNotFoundError(path)
        tails = {(blob.name[len(prefix) :].rstrip("/"), blob.is_folder) for blob in found}
        yield from (child for child in tails if child[0])

    def list_folder(self, path: str) -> Iterator[tuple[str, int, int]]:
        """(name, bytes, modified ms) of what lies directly in a folder; folders have -1 bytes."""
        prefix = self._prefix(path)
        for blob in self._blobs_with_prefix(path, prefix, one_level=True):
            name = blob.name[len(prefix) :].rstrip("/")
            yield name, -1 if blob.is_folder else blob.size, blob.modified_ms

    def walk(self, path: str) -> Iterator[tuple[str, int, int]]:
        """(path, bytes, modified ms) of every blob below a folder."""
        prefix = self._prefix(path)
        for blob in self._blobs_with_prefix(path, prefix):
            if not blob.is_folder:
                at = f"{path.rstrip('/')}/{blob.name[len(prefix) :]}"
                yield at, blob.size, blob.modified_ms

    def delete_folder(self, path: str) -> None:
        """Remove every blob below a folder, and the folder."""
        with contextlib.suppress(FileNotFoundError):
            below = self._blobs_with_prefix(path, self._prefix(path))
            self._remove(path, [blob.name for blob in below if not blob.is_folder])
            self._delete_markers(path)

    def _delete_one(self, path: str) -> None:
        # Older drivers take the name for a pattern.
        container, key, _ = self._fs.split_path(self._driver_path(path))
        if not key:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)

        async def delete() -> None:
            async with self._fs.service_client.get_container_client(container) as client:
                await client.delete_blob(key)

        with raised_as(FileNotFoundError, path, _is_missing):
            sync(self._fs.loop, delete)

    def _put_new(self, path: str, data: bytes) -> None:
        with raised_as(FileNotFoundError, path, _is_missing):
            self._fs.pipe_file(self._driver_path(path), data, overwrite=False)

    def _send_new(self, source: str, path: str) -> None:
        with raised_as(FileNotFoundError, path, _is_missing):
            self._fs.put_file(
                source, self._driver_path(path), overwrite=False, max_concurrency=PARTS_AT_ONCE
            )

    def _delete_markers(self, path: str) -> None:
        key = self._split(path)[1]
        own = self._blobs_with_prefix(path, key, first_only=True) if key else []
        found = [
            *self._blobs_with_prefix(path, self._prefix(path)),
            *(blob for blob in own if blob.name == key),
        ]
        folders = (blob.name for blob in found if blob.is_folder)
        for name in sorted(folders, key=len, reverse=True):
            self._remove(path, [name])

    def _split(self, path: str) -> tuple[str, str]:
        """The container and the blob's name, without slashes at its end."""
        container, key, _ = self._fs.split_path(self._driver_path(path).rstrip("/"))
        return container, key

    def _prefix(self, path: str) -> str:
        """What the names of all blobs that lie in a folder begin with."""
        key = self._split(path)[1]
        return f"{key}/" if key else ""

    def _blobs_with_prefix(
        self, path: str, prefix: str, *, one_level: bool = False, first_only: bool = False
    ) -> list[_Blob]:
        """The blobs of the path's container whose names begin so.

        Raises FileNotFoundError: there is no such container.
        """
        container = self._split(path)[0]
        paging = {"results_per_page": 1} if first_only else {}

        async def collect() -> list[_Blob]:
            async with self._fs.service_client.get_container_client(container) as client:
                listing = client.walk_blobs if one_level else client.list_blobs
                blobs = []
                async for blob in listing(name_starts_with=prefix, include=["metadata"], **paging):
                    blobs.append(_entry(blob))
                    if first_only:
                        break
                return blobs

        with raised_as(FileNotFoundError, path, _is_missing):
            return cast(list[_Blob], sync(self._fs.loop, collect))

    def _remove(self, path: str, names: Sequence[str]) -> None:
        """Remove blobs of the path's container, taking the names literally."""
        container = self._split(path)[0]

        async def remove() -> list[BaseException | None]:
            async with self._fs.service_client.get_container_client(container) as client:
                results: list[BaseException | None] = []
                for start in range(0, len(names), _AT_ONCE):
                    some = (client.delete_blob(name) for name in names[start : start + _AT_ONCE])
                    results += await asyncio.gather(*some, return_exceptions=True)
                return results

        for result in sync(self._fs.loop, remove):
            if isinstance(result, BaseException) and not _is_missing(result):
                raise result


def _entry(blob: Any) -> _Blob:
    """A blob's or a common prefix's facts."""
    modified = getattr(blob, "last_modified", None)
    marked = (getattr(blob, "metadata", None) or {}).get("hdi_isfolder") == "true"
    return _Blob(
        name=blob.name,
        size=int(getattr(blob, "size", None) or 0),
        modified_ms=int(modified.timestamp() * 1000) if modified else 0,
        is_folder=marked or blob.name.endswith("/"),
    )


def _is_missing(error: BaseException) -> bool:
    """Whether the store says that a resource is not found."""
    return any(kind.__name__ == "ResourceNotFoundError" for kind in type(error).__mro__)
