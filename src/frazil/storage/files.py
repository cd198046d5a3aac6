"""FileIO: files of every store, with typed errors and no credentials in them.

Local files are written whole or not at all; S3 and the stores that fsspec has a driver for are
reached by PyIceberg's property names (``s3.endpoint``, ``gcs.oauth2.token``, …).
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, BinaryIO, Final, TypeVar

from frazil.errors import (
    AlreadyExistsError,
    FrazilError,
    MissingFileError,
    StorageError,
    UnsupportedError,
)
from frazil.storage.caches import Caches
from frazil.storage.paths import (
    is_inside,
    is_local,
    local_path,
    normalize_location,
    redact,
    redact_properties,
    same_location,
)
from frazil.storage.side_by_side import WAITING_THREADS, in_threads
from frazil.storage.stores import local as local_store
from frazil.storage.stores.open import are_of_one_store, open_store, store_key
from frazil.storage.stores.open import is_same_place as are_same_place
from frazil.storage.stores.range_input import input_of_known_end
from frazil.storage.stores.remote_options import StorageCredential
from frazil.storage.stores.store import (
    DELETED_AT_ONCE,
    DeletesMany,
    FileInfo,
    ListsAtOnce,
    ReplacesEnds,
    Store,
    Stores,
    TakesParts,
    UnfinishedUpload,
)

__all__ = ["FileIO", "FileInfo", "is_inside", "is_local", "local_path", "normalize_location"]
__all__ += ["redact", "redact_properties", "same_location"]

_COMPARED_BYTES = 8 * 1024 * 1024
_TAIL_BYTES: Final = 128 << 10
"""So much of a file's end is asked for at once: its footer is mostly there, of a small file all."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Batch:
    """Files of one bucket that go together: the path in the store, and as it was given."""

    store: DeletesMany
    names: dict[str, str]

    def parts(self) -> Iterator[_Batch]:
        """Batches of as many as one request takes."""
        names = list(self.names.items())
        for start in range(0, len(names), DELETED_AT_ONCE):
            yield _Batch(self.store, dict(names[start : start + DELETED_AT_ONCE]))


class FileIO:
    """Files by literal path; safe to share between threads and to send to other processes.

    Every method raises MissingFileError for a file that is not there and StorageError for every
    other failure of the store; both name the path.

    Attributes:
        properties: of the stores; secrets stay in them, so never print them (repr does not).
        caches: what is kept of files that never change; empty in a process that it is sent to.
        stores: opens every store but the local disk; fsspec does where it is None.
        signed_schemes: of paths whose every request a server signs, so that nobody else gets there.
        has_credentials: whether credentials came with a table, which others can be handed.
    """

    signed_schemes: Collection[str] = ()
    has_credentials: bool = False

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        caches: Caches | None = None,
        stores: Stores | None = None,
    ) -> None:
        self.properties: Mapping[str, str] = MappingProxyType(dict(properties or {}))
        self.caches = Caches(properties) if caches is None else caches
        self.stores = stores
        self._stores: dict[tuple[int, str, str], Store] = {}

    def __repr__(self) -> str:
        return f"FileIO({redact_properties(self.properties)})"

    def __getstate__(self) -> dict[str, Any]:
        return {"properties": dict(self.properties), "stores": self.stores}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.properties = MappingProxyType(dict(state["properties"]))
        self.caches = Caches(self.properties)
        self.stores = state["stores"]
        self._stores = {}

    @property
    def tag(self) -> str:
        """Text that changes with the credentials that came with a table, and tells none of them."""
        return ""

    def credentials(self) -> tuple[StorageCredential, ...]:
        """Return the credentials that came with a table, those of the longest prefixes first."""
        return ()

    def read(self, path: str) -> bytes:
        """The whole file."""
        return self._run("read", path, local_store.read, lambda store, remote: store.read(remote))

    def read_range(self, path: str, *, offset: int, length: int) -> bytes:
        """At most ``length`` bytes from ``offset``; fewer at the end of the file."""
        if offset < 0 or length < 0:
            raise StorageError(f"cannot read {length} bytes of {path} from {offset}")
        return self._run(
            "read",
            path,
            lambda local: local_store.read_range(local, offset, length),
            lambda store, remote: store.read_range(remote, offset, length),
        )

    def open_input(self, path: str) -> BinaryIO:
        """A seekable stream of the file; the caller closes it."""
        return self._run(
            "open", path, local_store.open_input, lambda store, remote: store.open_input(remote)
        )

    def open_footer(self, path: str, size: int, *, tail_bytes: int = _TAIL_BYTES) -> BinaryIO:
        """Return a stream of a file whose size is known; one request brings its footer.

        `tail_bytes`: so much of its end that request asks for.
        Raises StorageError: its end cannot be read, or is not there.
        """
        start = max(0, size - tail_bytes)
        tail = self.read_range(path, offset=start, length=size - start)
        if len(tail) != size - start:
            raise StorageError(f"{path} ends at {start + len(tail)} bytes, and not at {size}")
        return input_of_known_end(
            size, tail, lambda offset, length: self.read_range(path, offset=offset, length=length)
        )

    def create(self, path: str, data: bytes) -> None:
        """Write a file that must not exist yet; parents are made.

        On local disks, S3, GCS and Azure the store itself decides which of two writers is first
        (see creates_atomically); elsewhere the check comes before the write.
        Raises AlreadyExistsError: the name is taken; the file there is unchanged.
        """
        self._run(
            "create",
            path,
            lambda local: local_store.create(local, data),
            lambda store, remote: store.create(remote, data),
        )

    def create_unique(self, path: str, data: bytes) -> None:
        """Write a file under a name that no other writer makes, such as one with a UUID.

        A driver repeats a request whose answer was lost, and the store then refuses it for the file
        that the first one made: a file of this very content is the one that was to be written. A
        file that is the beginning of it is of a try that was killed, and is written anew.
        Raises AlreadyExistsError: the name is taken by another file, which is unchanged.
        """
        try:
            self._run(
                "create",
                path,
                lambda local: local_store.create(local, data),
                lambda store, remote: store.create_unique(remote, data),
            )
        except AlreadyExistsError:
            found = self.read(path)
            if not data.startswith(found):
                raise
            if found != data:
                self.write(path, data, overwrite=True)

    def upload(self, source: str, path: str) -> None:
        """Copy a file of the local disk, in parts, to a name that must not exist yet.

        Who is first is decided as in create; the copy is never in memory as a whole.
        Raises AlreadyExistsError: the name is taken; the file there is unchanged.
        """
        self._run(
            "create",
            path,
            lambda local: local_store.upload(source, local),
            lambda store, remote: store.upload(source, remote),
        )

    def upload_unique(self, source: str, path: str) -> None:
        """Copy a file of the local disk as upload does, with a name as create_unique takes.

        Raises AlreadyExistsError: the name is taken by another file, which is unchanged.
        """
        try:
            self.upload(source, path)
        except AlreadyExistsError:
            if not self._is_copy(path, source):
                raise

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        """Write a file; with ``overwrite`` it takes the place of the one there, in one step.

        Raises AlreadyExistsError: the name is taken and overwrite is not set.
        """
        if not overwrite:
            self.create(path, data)
            return
        self._run(
            "write",
            path,
            lambda local: local_store.replace(local, data),
            lambda store, remote: store.replace(remote, data),
        )

    def creates_atomically(self, path: str) -> bool:
        """Whether of two writers that create this path exactly one succeeds."""
        return self._run(
            "open", path, lambda _: True, lambda store, at: store.creates_atomically(at)
        )

    def exists(self, path: str) -> bool:
        """Whether a file or folder has this name."""
        return self._run("look up", path, local_store.exists, lambda store, at: store.exists(at))

    def marks(self, path: str, names: Sequence[str]) -> Mapping[str, str] | None:
        """A mark of each file of a folder, another for other content; None where none is told."""
        return self._run("look up", path, lambda _: None, lambda store, at: store.marks(at, names))

    def size(self, path: str) -> int:
        """The file's length in bytes."""
        return self._run("look up", path, local_store.size, lambda store, at: store.size(at))

    def delete(self, path: str) -> None:
        """Remove one file."""
        self._run("delete", path, local_store.delete, lambda store, remote: store.delete(remote))

    def delete_many(
        self,
        paths: Iterable[str],
        *,
        threads: int = WAITING_THREADS,
        on_each: Callable[[], None] | None = None,
    ) -> dict[str, StorageError]:
        """Remove files in parallel; what is not there counts as removed.

        A store that takes many by one request gets 1 000 at once.
        `on_each`: called after each file, by the thread that removed it or failed.
        Returns the failures by path; empty when everything is gone.
        """
        names = list(dict.fromkeys(paths))
        batches: dict[tuple[int, str], _Batch] = {}
        alone: list[str] = []
        for path in names:
            found = self._takes_many(path)
            if found is None:
                alone.append(path)
            else:
                store, at = found
                key = id(store), at.partition("://")[2].partition("/")[0]
                batches.setdefault(key, _Batch(store, {})).names[at] = path

        def delete(work: _Batch | str) -> dict[str, StorageError]:
            if isinstance(work, _Batch):
                failures = self._delete_together(work)
                done = len(work.names)
            else:
                failure = self._delete_quietly(work)
                failures, done = {} if failure is None else {work: failure}, 1
            if on_each is not None:
                for _ in range(done):
                    on_each()
            return failures

        parts = chain.from_iterable(batch.parts() for batch in batches.values())
        work: list[_Batch | str] = [*parts, *alone]
        failures = in_threads(delete, work, threads=threads, name="frazil-delete")
        return {path: error for found in failures for path, error in found.items()}

    @contextlib.contextmanager
    def remove_on_failure(self, paths: Iterable[str]) -> Iterator[None]:
        """Remove files where the block fails; which ones is looked up then."""
        try:
            yield
        except BaseException:
            self.delete_many(paths)
            raise

    def unfinished_uploads(self, prefix: str) -> list[UnfinishedUpload]:
        """What was begun below a folder and never became a file; none where a store knows none."""
        return self._run(
            "list",
            prefix,
            lambda _: [],
            lambda store, at: (
                list(store.unfinished_uploads(at)) if isinstance(store, TakesParts) else []
            ),
        )

    def abort_upload(self, upload: UnfinishedUpload) -> None:
        """Remove the parts of a file that was never made; nothing happens where they are gone."""
        self._run(
            "delete",
            upload.path,
            lambda _: None,
            lambda store, at: (
                store.abort_upload(replace(upload, path=at))
                if isinstance(store, TakesParts)
                else None
            ),
        )

    def delete_folder(self, path: str) -> None:
        """Remove a folder and everything below it."""
        self._run(
            "delete", path, local_store.delete_folder, lambda store, at: store.delete_folder(at)
        )

    def delete_empty_folder(self, path: str) -> None:
        """Remove a folder that holds nothing; StorageError if it holds something."""
        self._run(
            "delete",
            path,
            local_store.delete_empty_folder,
            lambda store, remote: store.delete_empty_folder(remote),
        )

    def list_level(self, folder: str) -> tuple[list[FileInfo], list[str]]:
        """Return the files directly in a folder, and the paths of its folders.

        Linked folders of a local disk are left out; a folder that is not there holds nothing.
        """
        base = folder.rstrip("/")
        try:
            found = self._run(
                "list",
                base or "/",
                lambda local: list(local_store.list_folder(local)),
                lambda store, remote: list(store.list_folder(remote)),
            )
        except MissingFileError:
            return [], []
        named = [each for each in found if each[0]]
        files = [FileInfo(f"{base}/{name}", size, at) for name, size, at in named if size >= 0]
        # A marker and what lies below it may both stand for a folder.
        return files, list(dict.fromkeys(f"{base}/{name}" for name, size, _ in named if size < 0))

    def list_at_once(self, prefix: str) -> Sequence[FileInfo] | None:
        """Every file below a folder; None where the store tells them not by one request."""
        base = prefix.rstrip("/")

        def list_files(store: Store, at: str) -> Sequence[FileInfo] | None:
            found = store.list_at_once(at) if isinstance(store, ListsAtOnce) else None
            if found is None:
                return None
            return [FileInfo(f"{base}{path[len(at) :]}", *rest) for path, *rest in found]

        return self._run("list", base, lambda _: None, list_files)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """Every file below a folder, at any depth, hidden ones too; none if there is no folder."""
        base = prefix.rstrip("/")
        local = local_path(base or "/")
        try:
            if local is None:
                for path, size, modified_ms in self._store(base).walk(base):
                    yield FileInfo(path, size, modified_ms)
                return
            root = local.rstrip("/")
            for path, size, modified_ms in local_store.walk(local):
                yield FileInfo(base + path[len(root) :], size, modified_ms)
        except FrazilError:
            raise
        except FileNotFoundError:
            return
        except Exception as error:
            raise typed_error("list", prefix, error, self.properties) from None

    def list_folder(self, path: str) -> tuple[tuple[str, bool], ...]:
        """(name, is a folder) of what lies directly in a folder, by name."""
        return self._run(
            "list",
            path,
            lambda local: tuple(sorted(local_store.children(local))),
            lambda store, remote: tuple(sorted(store.children(remote))),
        )

    def move_folder(self, source: str, target: str) -> None:
        """Give a folder of the local disk another name beside it, in one step."""
        there = local_path(target)
        if local_path(source) is None or there is None:
            raise UnsupportedError(f"cannot rename {source} to {target}: only local folders can be")
        on_disk = partial(local_store.move_folder, target=there)
        self._run("rename", source, on_disk, lambda *_: None)

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents; nothing happens if it is there."""
        self._run("make", path, local_store.make_folder, lambda store, at: store.make_folder(at))

    def is_same_place(self, left: str, right: str) -> bool:
        """Whether two paths name one place: through links, by another scheme of the same store."""
        if same_location(left, right):
            return True
        here, there = local_path(left), local_path(right)
        if here is None or there is None:
            return here is there and are_same_place(left, right)
        on_disk = partial(local_store.is_same_place, there)
        return self._run("look up", left, on_disk, lambda *_: False)

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder of this name."""
        return self._run(
            "look up", path, local_store.is_folder, lambda store, at: store.is_folder(at)
        )

    def rename_if_absent(self, source: str, target: str) -> None:
        """Give a file another name in the same store.

        Raises AlreadyExistsError: the target's name is taken; nothing changed.
        """
        self._rename(
            source,
            target,
            local_store.rename_if_absent,
            lambda store, *names: store.rename_if_absent(*names),
        )

    def move(self, source: str, target: str) -> None:
        """Give a file another name in the same store, taking the place of one that is there."""
        self._rename(source, target, local_store.move, lambda store, *names: store.move(*names))

    def replaces_ends(self, path: str) -> bool:
        """Whether `replace_end` works there: on S3."""
        return self._run(
            "write", path, lambda _: False, lambda store, _: isinstance(store, ReplacesEnds)
        )

    def replace_end(
        self, path: str, *, start: int, end: bytes, read_head: Callable[[], bytes]
    ) -> None:
        """Let a file go on with other bytes from ``start``, where `replaces_ends` says so.

        `read_head`: gives what lies before; a store that copies it by itself does not ask.
        """

        def refuse(at: str) -> None:
            raise UnsupportedError(f"the end of {at} cannot be replaced: only S3 does so")

        self._run(
            "write",
            path,
            refuse,
            lambda store, at: (
                store.replace_end(at, start, end, read_head)
                if isinstance(store, ReplacesEnds)
                else refuse(at)
            ),
        )

    @contextlib.contextmanager
    def lock(self, folder: str) -> Iterator[None]:
        """Keep other processes of this machine out while held; other stores have no such lock.

        Raises MissingFileError where there is no such folder, or no longer once the lock is had.
        """
        with contextlib.ExitStack() as held:
            self._run(
                "lock",
                folder,
                lambda local: held.enter_context(local_store.lock(local)),
                lambda store, remote: None,
            )
            yield

    def _is_copy(self, path: str, source: str) -> bool:
        """Whether the file holds what a file of the local disk does."""
        size = os.path.getsize(source)
        if self.size(path) != size:
            return False
        with open(source, "rb") as stream:
            return all(
                self.read_range(path, offset=offset, length=_COMPARED_BYTES)
                == stream.read(_COMPARED_BYTES)
                for offset in range(0, size, _COMPARED_BYTES)
            )

    def _delete_quietly(self, path: str) -> StorageError | None:
        try:
            self.delete(path)
        except MissingFileError:
            return None
        except StorageError as error:
            return error
        except FrazilError as error:
            # A path of a store without a driver, say: the others are removed all the same.
            return StorageError(f"cannot delete {redact(path, self.properties)}: {error}")
        return None

    def _takes_many(self, path: str) -> tuple[DeletesMany, str] | None:
        """The store that removes a file along with others, and its path there; None without one."""
        try:
            return self._run(
                "delete",
                path,
                lambda _: None,
                lambda store, at: (store, at) if isinstance(store, DeletesMany) else None,
            )
        except FrazilError:
            # Told of the file by its own deletion.
            return None

    def _delete_together(self, batch: _Batch) -> dict[str, StorageError]:
        try:
            failures = batch.store.delete_many(list(batch.names))
        except Exception as error:
            failures = dict.fromkeys(batch.names, error)
        found: dict[str, StorageError] = {}
        for at, reason in failures.items():
            told = typed_error("delete", at, reason, self.properties)
            if isinstance(told, StorageError) and not isinstance(told, MissingFileError):
                found[batch.names[at]] = told
        return found

    def _rename(
        self,
        source: str,
        target: str,
        on_disk: Callable[[str, str], None],
        on_store: Callable[[Store, str, str], None],
    ) -> None:
        target_local = local_path(target)
        is_other = (local_path(source) is None) != (target_local is None)
        if is_other or (target_local is None and not are_of_one_store(source, target)):
            raise StorageError(f"cannot rename {source} to {target}: the stores differ")
        try:
            self._run(
                "rename",
                source,
                lambda local: on_disk(local, target_local or target),
                lambda store, remote: on_store(store, remote, target),
            )
        except AlreadyExistsError:
            raise AlreadyExistsError(f"cannot rename {source}: {target} exists") from None

    def physical(self, path: str) -> str:
        """Where the file of this name lies."""
        return path

    def _store(self, path: str) -> Store:
        # A driver's thread and connections do not live on in a forked child.
        key = (os.getpid(), *store_key(path))
        if key not in self._stores:
            self._stores[key] = open_store(*key[1:], self.properties, self.stores)
        return self._stores[key]

    def _run(
        self,
        verb: str,
        path: str,
        on_disk: Callable[[str], T],
        on_store: Callable[[Store, str], T],
    ) -> T:
        path = self.physical(path)
        try:
            local = local_path(path)
            if local is not None:
                return on_disk(local)
            return on_store(self._store(path), path)
        except FrazilError:
            raise
        except Exception as error:
            raise typed_error(verb, path, error, self.properties) from None


# -- errors of stores ------------------------------------------------------------------------------


_LONGEST_REASON: Final = 500
_DETAILS: Final = ("RequestId:", "Time:", "ErrorCode:", "Content:", "<")
_MAKING: Final = ("create", "write", "make")


def typed_error(
    verb: str, path: str, error: Exception, properties: Mapping[str, str]
) -> FrazilError:
    """Return the error to raise for what a store raised.

    Secrets of `properties`, the store's settings, are left out of the message.
    """
    shown = redact(path, properties)
    if isinstance(error, FileNotFoundError):
        what = "bucket or folder" if verb in _MAKING else "file"
        return MissingFileError(f"cannot {verb} {shown}: there is no such {what}")
    if isinstance(error, FileExistsError):
        return AlreadyExistsError(f"cannot {verb} {shown}: it exists")
    reason = getattr(error, "strerror", None) or _reason(str(error)) or type(error).__name__
    return StorageError(f"cannot {verb} {shown}: {redact(str(reason), properties)}")


def _reason(text: str) -> str:
    """What a store says in words, on one line, without the headers and the XML behind it."""
    lines = [line.strip() for line in text.strip().splitlines()]
    details = itertools.takewhile(lambda line: not line.startswith(_DETAILS), lines[1:])
    said = "; ".join(line for line in (*lines[:1], *details) if line)
    return said if len(said) <= _LONGEST_REASON else f"{said[:_LONGEST_REASON]}…"
