"""The local disk: files that appear whole or not at all.

A new file is written under a temporary name beside the target, flushed to the disk and then linked
to its name: the link fails if the name is taken, and a writer that is killed leaves at most the
temporary file.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

_fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None
_COPIED_AT_ONCE = 1 << 20
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def read(path: str) -> bytes:
    """The whole file."""
    with open(path, "rb") as stream:
        return stream.read()


def read_range(path: str, offset: int, length: int) -> bytes:
    """At most ``length`` bytes from ``offset``."""
    with open(path, "rb") as stream:
        stream.seek(offset)
        return stream.read(length)


def open_input(path: str) -> BinaryIO:
    """A seekable stream of a regular file."""
    return open(path, "rb")


def create(path: str, data: bytes) -> None:
    """Write a file that must not exist; FileExistsError if it does."""
    _create(path, (data,))


def upload(source: str, path: str) -> None:
    """Copy a file to a name that must not exist; FileExistsError if it does."""
    with open(source, "rb") as stream:
        _create(path, _chunks(stream))


def replace(path: str, data: bytes) -> None:
    """Write a file, taking the place of the one that is there, in one step."""
    temporary = _write_temporary(path, (data,))
    try:
        _drop_checksum(path)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(path)


def exists(path: str) -> bool:
    """Whether a file or folder has this name."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def size(path: str) -> int:
    """The length in bytes of a regular file."""
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return status.st_size


def delete(path: str) -> None:
    """Remove a file, and the checksum that Hadoop may have left beside it."""
    os.unlink(path)
    _drop_checksum(path)


def delete_folder(path: str) -> None:
    """Remove a folder and everything below it; of a link to a folder, the link."""
    if os.path.islink(path):
        os.unlink(path)
    else:
        shutil.rmtree(path)


def move_folder(source: str, target: str) -> None:
    """Give a folder another name beside it, in one step."""
    os.rename(source, target)
    _sync_folder(target)


def delete_empty_folder(path: str) -> None:
    """Remove a folder that holds nothing."""
    os.rmdir(path)


def rename_if_absent(source: str, target: str) -> None:
    """Give a file another name; FileExistsError if that name is taken."""
    _link_or_fail(source, target)
    os.unlink(source)
    _drop_checksum(source)
    _sync_folder(target)


def move(source: str, target: str) -> None:
    """Give a file another name, taking the place of one that is there."""
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    _drop_checksum(target)
    os.replace(source, target)
    _drop_checksum(source)
    _sync_folder(target)


def make_folder(path: str) -> None:
    """Make a folder and its parents."""
    os.makedirs(path, exist_ok=True)


def is_folder(path: str) -> bool:
    """Whether a folder has this name."""
    return os.path.isdir(path)


def is_same_place(left: str, right: str) -> bool:
    """Whether two names lead to one place, through links or not."""
    return os.path.realpath(left) == os.path.realpath(right)


def children(path: str) -> Iterator[tuple[str, bool]]:
    """(name, is a folder) of what lies directly in a folder."""
    with os.scandir(path) as entries:
        for entry in entries:
            yield entry.name, entry.is_dir()


def list_folder(path: str) -> Iterator[tuple[str, int, int]]:
    """(name, bytes, modified ms) of what lies directly in a folder; folders have -1 bytes.

    Linked folders are left out, as in `walk`.
    """
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield entry.name, -1, 0
            else:
                yield from _file(entry, entry.name)


def walk(path: str) -> Iterator[tuple[str, int, int]]:
    """(path, bytes, modified ms) of every file below a folder; linked folders are not followed."""
    pending = [path]
    while pending:
        folder = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            else:
                yield from _file(entry, entry.path)


def _file(entry: os.DirEntry[str], name: str) -> Iterator[tuple[str, int, int]]:
    """(name, bytes, modified ms) of a regular file, if that is what is there."""
    with contextlib.suppress(FileNotFoundError):
        status = entry.stat()
        if stat.S_ISREG(status.st_mode):
            yield name, status.st_size, status.st_mtime_ns // 1_000_000


@contextlib.contextmanager
def lock(folder: str) -> Iterator[None]:
    """Hold the folder's advisory lock; the system releases it when the process dies.

    FileNotFoundError if the folder is not there, or no longer when the lock is had.
    """
    if _fcntl is None:
        yield
        return
    descriptor = _lock_folder(folder)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock_folder(folder: str) -> int:
    while True:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            _fcntl.flock(descriptor, _fcntl.LOCK_EX)
            # Who held the lock may have removed the folder, and another made it anew.
            if os.path.samestat(os.fstat(descriptor), os.stat(folder)):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _create(path: str, chunks: Iterable[bytes]) -> None:
    temporary = _write_temporary(path, chunks)
    try:
        _link_or_fail(temporary, path)
    finally:
        # A temporary file that stays does no harm, and does not undo the link.
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    _sync_folder(path)


def _write_temporary(path: str, chunks: Iterable[bytes]) -> str:
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name[-100:]}.{uuid.uuid4().hex}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        descriptor = os.open(temporary, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(folder or ".", exist_ok=True)
        descriptor = os.open(temporary, flags, 0o666)
    try:
        _write_and_sync(descriptor, chunks)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return temporary


def _write_and_sync(descriptor: int, chunks: Iterable[bytes]) -> None:
    with os.fdopen(descriptor, "wb") as stream:
        stream.writelines(chunks)
        stream.flush()
        os.fsync(stream.fileno())


def _link_or_fail(temporary: str, path: str) -> None:
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        _create_in_place(path, temporary)


def _create_in_place(path: str, source: str) -> None:
    # Without hard links the name is claimed first; a writer killed here leaves a short file.
    with open(source, "rb") as stream:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            _write_and_sync(descriptor, _chunks(stream))
        except BaseException:
            os.unlink(path)
            raise


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: stream.read(_COPIED_AT_ONCE), b"")


def _drop_checksum(path: str) -> None:
    # Hadoop's local file system verifies `.name.crc` where it exists, so a stale one breaks reads.
    folder, name = os.path.split(path)
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(folder, f".{name}.crc"))


def _sync_folder(path: str) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
