"""Hadoop's file systems as stores: what calls them in the virtual machine.

Bytes go through files of a folder that this user alone can open: the bridge to the machine would
send them as text, which takes many times as long for megabytes, and longer from 8 KB on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final, TypeVar

from pyspark.errors import PySparkException

from frazil.errors import ConfigurationError, UnsupportedError
from frazil.spark.gateway_errors import Py4JError, Py4JJavaError, Py4JNetworkError
from frazil.spark.hadoop.statuses import FileStatus, alternatives, marks_of, statuses_of
from frazil.spark.hadoop.systems import HadoopFileSystems
from frazil.storage.paths import name_of, parent_of, scheme_of
from frazil.storage.side_by_side import WAITING_THREADS, in_threads
from frazil.storage.stores.range_input import range_input
from frazil.storage.stores.remote_options import ADLS_SCHEMES, GCS_SCHEMES, S3_SCHEMES

_OBJECT_STORES: Final = S3_SCHEMES | GCS_SCHEMES | ADLS_SCHEMES
"""Their connectors copy a file to rename it, or rename it in no single step."""
_ATOMIC_RENAMES: Final = frozenset({"hdfs", "webhdfs", "swebhdfs"})
"""The name node takes a rename as one step, and refuses one whose target is there."""
_VIEW: Final = "viewfs"
_CONDITIONAL: Final = "fs.option.create.conditional.overwrite"
_SENT_AS_TEXT: Final = 8 << 10
_COPIED_AT_ONCE: Final = 64 << 10

T = TypeVar("T")


class HadoopStore:
    """File operations of one scheme.

    A file of a file system gets its name when it is whole: it is written beside it and renamed. Of
    an object store it is visible when it is closed.
    """

    def __init__(self, systems: HadoopFileSystems, scheme: str) -> None:
        self._systems = systems
        self._scheme = systems.scheme(scheme)
        self._is_of_objects = self._scheme in _OBJECT_STORES

    def creates_atomically(self, path: str) -> bool:
        """Whether the store refuses, by itself, to create a file whose name is taken."""
        return self._call(path, self._creates_atomically)

    def read(self, path: str) -> bytes:
        """The whole file."""
        return self._call(path, self._read)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """At most ``length`` bytes from ``offset``; none past the end."""
        try:
            return self._call(path, lambda at: self._read_range(at, offset, length))
        except EOFError:
            return b""

    def open_input(self, path: str) -> BinaryIO:
        """A seekable stream."""
        return range_input(self.size(path), lambda *part: self.read_range(path, *part))

    def create(self, path: str, data: bytes) -> None:
        """Write a file that must not exist; FileExistsError if it does."""
        self._call(path, lambda at: self._create(at, lambda out: self._send(out, data)))

    def create_unique(self, path: str, data: bytes) -> None:
        """Write a file that must not exist, and that nobody looks for before this has returned."""
        self._call(path, lambda at: self._create_in_place(at, lambda out: self._send(out, data)))

    def upload(self, source: str, path: str) -> None:
        """Write a file that must not exist from a local file; FileExistsError if it does."""
        self._call(path, lambda at: self._create(at, lambda out: self._send_file(out, source)))

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, taking the place of one that is there."""
        self._call(path, lambda at: self._replace(at, data))

    def exists(self, path: str) -> bool:
        """Whether a file or folder has this name."""
        return self._call(path, self._is_there)

    def marks(self, folder: str, names: Sequence[str]) -> Mapping[str, str] | None:
        """A mark of the content of each of these files that is there; None where none is told."""
        return self._call(folder, lambda at: self._marks(at, names))

    def size(self, path: str) -> int:
        """The length in bytes."""
        return self._call(path, lambda at: int(self._file(at).getLen()))

    def delete(self, path: str) -> None:
        """Remove one file."""
        self._call(path, self._delete)

    def delete_folder(self, path: str) -> None:
        """Remove a folder and everything below it."""
        self._call(path, lambda at: self._delete_folder(at, True))

    def delete_empty_folder(self, path: str) -> None:
        """Remove a folder that holds nothing; OSError if it holds something."""
        self._call(path, lambda at: self._delete_folder(at, False))

    def rename_if_absent(self, source: str, target: str) -> None:
        """Give a file another name; FileExistsError if that name is taken."""
        self._call(source, lambda at: self._rename(at, self._connector_path(target), "NONE"))

    def move(self, source: str, target: str) -> None:
        """Give a file another name, taking the place of one that is there."""
        self._call(source, lambda at: self._rename(at, self._connector_path(target), "OVERWRITE"))

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents."""
        self._call(path, lambda at: self._systems.system_of(at).mkdirs(self._java(at)))

    def is_folder(self, path: str) -> bool:
        """Whether a folder has this name."""
        return self._call(path, self._is_folder)

    def children(self, path: str) -> Iterator[tuple[str, bool]]:
        """(name, is a folder) of what lies directly in a folder; FileNotFoundError without one."""
        for each in self._call(path, self._list):
            yield name_of(each.path), each.is_folder

    def list_folder(self, path: str) -> Iterator[tuple[str, int, int]]:
        """(name, bytes, modified ms) of what lies directly in a folder; folders have -1 bytes."""
        for each in self._call(path, self._list):
            size, at = (-1, 0) if each.is_folder else (each.size, each.modified_ms)
            yield name_of(each.path), size, at

    def walk(self, path: str) -> Iterator[tuple[str, int, int]]:
        """(path, bytes, modified ms) of every file below a folder."""
        pending = [path.rstrip("/")]
        while pending:
            folder = pending.pop()
            for each in self._listed_if_there(folder):
                below = f"{folder}/{name_of(each.path)}"
                if each.is_folder:
                    pending.append(below)
                else:
                    yield below, each.size, each.modified_ms

    def _listed_if_there(self, path: str) -> list[FileStatus]:
        try:
            return self._call(path, self._list)
        except FileNotFoundError:
            return []

    # -- one step each, with the path as Hadoop has it -------------------------------------------

    def _creates_atomically(self, path: str) -> bool:
        scheme = scheme_of(path)
        if scheme in S3_SCHEMES:
            return self._has_conditions(path)
        return (self._scheme_behind(path) if scheme == _VIEW else scheme) in _ATOMIC_RENAMES

    def _scheme_behind(self, path: str) -> str:
        """The scheme that a view leads to."""
        while not self._is_there(path) and "/" in path.partition("://")[2]:
            path = parent_of(path)
        return scheme_of(
            str(self._systems.system_of(path).resolvePath(self._java(path)).toString())
        )

    def _has_conditions(self, path: str) -> bool:
        return bool(self._systems.system_of(path).hasPathCapability(self._java(path), _CONDITIONAL))

    def _read(self, path: str) -> bytes:
        with self._systems.exchange_file() as local:
            source = self._systems.system_of(path).open(self._java(path))
            try:
                target = self._systems.to_file(local)
            except BaseException:
                source.close()
                raise
            self._systems.copy_and_close(source, target, _COPIED_AT_ONCE, True)
            with open(local, "rb") as stream:
                return stream.read()

    def _read_range(self, path: str, offset: int, length: int) -> bytes:
        with self._systems.exchange_file() as local:
            source = self._systems.system_of(path).open(self._java(path))
            try:
                target = self._systems.to_file(local)
                try:
                    if offset:
                        source.seek(offset)
                    self._systems.copy(source, target, 0, length)
                finally:
                    target.close()
            finally:
                source.close()
            with open(local, "rb") as stream:
                return stream.read()

    def _create(self, path: str, send: Callable[[Any], None]) -> None:
        if not self._is_of_objects:
            self._write_and_rename(path, send, "NONE")
            return
        builder = self._systems.system_of(path).createFile(self._java(path)).overwrite(True)
        if scheme_of(path) in S3_SCHEMES and self._has_conditions(path):
            # The store refuses a name that is taken by the request that would write it.
            builder = builder.must(_CONDITIONAL, True)
        elif self._is_there(path):
            raise FileExistsError(path)
        send(builder.build())

    def _create_in_place(self, path: str, send: Callable[[Any], None]) -> None:
        """Write a file under its own name from the beginning."""
        if self._is_of_objects:
            self._create(path, send)
            return
        system, place = self._systems.system_of(path), self._java(path)
        out = system.create(place, False)
        try:
            send(out)
        except BaseException:
            with contextlib.suppress(Exception):
                system.delete(place, False)
            raise

    def _replace(self, path: str, data: bytes) -> None:
        if self._is_of_objects:
            self._send(self._systems.system_of(path).create(self._java(path), True), data)
        else:
            self._write_and_rename(path, lambda out: self._send(out, data), "OVERWRITE")

    def _write_and_rename(self, path: str, send: Callable[[Any], None], option: str) -> None:
        system = self._systems.system_of(path)
        temporary = self._java(f"{parent_of(path)}/.{name_of(path)[-100:]}.{uuid.uuid4().hex}.tmp")
        try:
            send(system.create(temporary, True))
            self._rename_in_place(temporary, path, option)
        except BaseException:
            # A temporary file that stays does no harm.
            with contextlib.suppress(Exception):
                system.delete(temporary, False)
            raise

    def _rename_in_place(self, source: Any, target: str, option: str) -> None:
        """Rename by what the file system itself makes of a name that is taken."""
        self._systems.context(target).rename(
            source, self._java(target), self._systems.rename_option(option)
        )

    def _rename(self, source: str, target: str, option: str) -> None:
        if not self._is_of_objects:
            try:
                self._rename_in_place(self._java(source), target, option)
            except Py4JJavaError as error:
                if not isinstance(_typed_error(error, source), FileNotFoundError):
                    raise
                # It is the target's folder that is missing, or the source.
                self._file(source)
                self._systems.system_of(target).mkdirs(self._java(parent_of(target)))
                self._rename_in_place(self._java(source), target, option)
            return
        system = self._systems.system_of(target)
        there = self._status(target)
        if there is not None and (option == "NONE" or there.isDirectory()):
            raise FileExistsError(target)
        self._file(source)
        system.mkdirs(self._java(parent_of(target)))
        if there is not None:
            system.delete(self._java(target), False)
        if not system.rename(self._java(source), self._java(target)):
            raise OSError(f"{target} was not made")

    def _delete(self, path: str) -> None:
        self._file(path)
        if not self._systems.system_of(path).delete(self._java(path), False):
            raise FileNotFoundError(path)

    def _delete_folder(self, path: str, recursive: bool) -> None:
        if self._is_folder(path):
            self._systems.system_of(path).delete(self._java(path), recursive)

    def _is_folder(self, path: str) -> bool:
        status = self._status(path)
        return status is not None and bool(status.isDirectory())

    def _list(self, path: str) -> list[FileStatus]:
        found = self._statuses(path)
        # Hadoop lists a file as itself.
        may_be_file = [name_of(each.path) for each in found] == [name_of(path.rstrip("/"))]
        if may_be_file and not self._is_folder(path):
            raise FileNotFoundError(path)
        return found

    def _statuses(self, path: str) -> list[FileStatus]:
        system, place = self._systems.system_of(path), self._java(path)
        if scheme_of(path) == _VIEW:
            # What a view says of its files tells neither names nor sizes as text.
            place = system.resolvePath(place)
            target = str(place.toString())
            if scheme_of(target) == _VIEW:
                return [_mount(each) for each in system.listStatus(place)]
            system = self._systems.system_of(target)
        found = self._systems.to_list(system.listStatusIterator(place))
        end = f"\n{uuid.uuid4().hex}\n"
        with self._systems.exchange_file() as local:
            target = self._systems.to_file(local)
            try:
                self._systems.write_lines(found, end, target, "UTF-8")
            finally:
                target.close()
            with open(local, encoding="utf-8", errors="replace", newline="") as stream:
                return list(statuses_of(stream.read(), end))

    def _marks(self, folder: str, names: Sequence[str]) -> Mapping[str, str] | None:
        pattern = alternatives(folder, names)
        # Times of other stores are too coarse, or those of a copy.
        if pattern is None or scheme_of(folder) not in _ATOMIC_RENAMES:
            return None
        found = self._systems.system_of(folder).globStatus(self._java(pattern))
        return marks_of(self._systems.text_of(found), names)

    def _is_there(self, path: str) -> bool:
        """Whether a file or folder has this name, by one call: an error of Java's takes dozens."""
        try:
            return bool(self._systems.system_of(path).exists(self._java(path)))
        except Py4JJavaError as error:
            if isinstance(_typed_error(error, path), FileNotFoundError):
                return False
            raise

    def _status(self, path: str) -> Any:
        """What Hadoop says of a file or folder; None if there is none."""
        try:
            return self._systems.system_of(path).getFileStatus(self._java(path))
        except Py4JJavaError as error:
            if isinstance(_typed_error(error, path), FileNotFoundError):
                return None
            raise

    def _file(self, path: str) -> Any:
        status = self._systems.system_of(path).getFileStatus(self._java(path))
        if status.isDirectory():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return status

    def _send(self, out: Any, data: bytes) -> None:
        if len(data) > _SENT_AS_TEXT:
            with self._systems.exchange_file() as local:
                with open(local, "xb") as stream:
                    stream.write(data)
                self._send_file(out, local)
            return
        try:
            out.write(data)
        except BaseException:
            _abandon(out)
            raise
        out.close()

    def _send_file(self, out: Any, source: str) -> None:
        stream = self._systems.of_file(source)
        if not self._is_of_objects:
            self._systems.copy_and_close(stream, out, _COPIED_AT_ONCE, True)
            return
        try:
            try:
                self._systems.copy(stream, out)
            finally:
                stream.close()
        except BaseException:
            _abandon(out)
            raise
        out.close()

    def _java(self, path: str) -> Any:
        return self._systems.path(path)

    def _connector_path(self, path: str) -> str:
        """The path by the scheme of Hadoop's connector."""
        return f"{self._scheme}:{path.partition(':')[2]}"

    def _call(self, path: str, step: Callable[[str], T]) -> T:
        try:
            return step(self._connector_path(path))
        except Py4JJavaError as error:
            raise _typed_error(error, path) from None
        except Py4JNetworkError:
            raise OSError("the Spark session that reaches it has ended") from None
        except (Py4JError, PySparkException) as error:
            raise OSError(str(error).strip().splitlines()[0]) from None


class HadoopObjectStore(HadoopStore):
    """File operations of S3, whose connector removes many files by one request."""

    def delete_many(self, paths: Sequence[str]) -> Mapping[str, Exception]:
        """Remove files of one bucket, whether they are there or not; return the failures."""
        size = self._call(paths[0], self._systems.deleted_at_once)
        parts = [paths[start : start + size] for start in range(0, len(paths), size)]
        failures = in_threads(
            self._delete_part, parts, threads=WAITING_THREADS, name="frazil-delete"
        )
        return {path: error for found in failures for path, error in found.items()}

    def _delete_part(self, paths: Sequence[str]) -> dict[str, Exception]:
        places = [self._connector_path(path) for path in paths]
        try:
            failed = self._call(paths[0], lambda _: self._systems.delete_together(places))
        except OSError:
            # Not every store knows the request, and a policy may forbid it.
            alone = ((path, self._delete_alone(path)) for path in paths)
            return {path: error for path, error in alone if error is not None}
        return {paths[number]: OSError(reason) for number, reason in failed.items()}

    def _delete_alone(self, path: str) -> Exception | None:
        try:
            self.delete(path)
        except FileNotFoundError:
            return None
        except Exception as error:
            return error
        return None


def _abandon(out: Any) -> None:
    # Of an object store this would make the file visible, cut off.
    with contextlib.suppress(Exception):
        out.abort()
    with contextlib.suppress(Exception):
        out.close()


def _mount(status: Any) -> FileStatus:
    # A view says of a folder of another store that it is a link.
    return FileStatus(str(status.getPath().toString()), is_folder=True, size=0, modified_ms=0)


def _typed_error(error: Py4JJavaError, path: str) -> Exception:
    thrown = error.java_exception
    return python_error(thrown.getClass().getName(), thrown.getMessage() or "", path)


_MISSING: Final = frozenset({"FileNotFoundException", "NoSuchFileException"})
_TAKEN: Final = frozenset({"FileAlreadyExistsException", "RemoteFileChangedException"})
_NUMBERS: Final[Mapping[str, int]] = {
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
    "DirectoryNotEmptyException": errno.ENOTEMPTY,
}
_NO_CLASS: Final = ("ClassNotFoundException", "NoClassDefFoundError")


def python_error(kind: str, message: str, path: str) -> Exception:
    """Return the error to raise.

    Args:
        kind: the name of the Java class.
        message: what it says; its first line is kept.
        path: of the file.
    """
    name = kind.rpartition(".")[2]
    said = (message.strip().splitlines() or [""])[0]
    scheme = path.partition(":")[0]
    if name in _MISSING:
        return FileNotFoundError(path)
    if name in _TAKEN:
        return FileExistsError(path)
    if name == "EOFException":
        return EOFError(said)
    if name in _NUMBERS:
        return OSError(_NUMBERS[name], os.strerror(_NUMBERS[name]))
    if name == "UnsupportedFileSystemException":
        return UnsupportedError(
            f"Spark's Hadoop knows no file system for {path}: {said}. Name its class in "
            f"spark.hadoop.fs.{scheme}.impl, and bring its jar by spark.jars.packages"
        )
    if name in _NO_CLASS or any(each in said for each in _NO_CLASS):
        return ConfigurationError(
            f"Spark has not the connector that reaches {path}: {said}. Bring its jar by "
            "spark.jars.packages, such as org.apache.hadoop:hadoop-aws of the version of Spark's "
            "own Hadoop for s3a://"
        )
    return OSError(f"{name}: {said}" if said else name)
