"""S3: every operation by as few requests as the protocol has for it."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, BinaryIO, Final

from frazil.storage.side_by_side import in_threads
from frazil.storage.stores.range_input import tail_input
from frazil.storage.stores.s3_client import S3Client, code_of
from frazil.storage.stores.store import DELETED_AT_ONCE, UnfinishedUpload, raised_as

_ACCESS_POINT: Final = re.compile(r"(arn:aws[^/]*:accesspoint[:/][^/]+)/?(.*)", re.DOTALL)
_TAIL: Final = 64 << 10
_PART: Final = 50 << 20
_LARGEST_PUT: Final = 2 * _PART
_LARGEST_COPY: Final = 5 << 30
_PART_OF_COPY: Final = 1 << 30
_LEAST_PART: Final = 5 << 20
"""The fewest bytes of a part, but for the last one."""
_PARTS_AT_ONCE: Final = 2
"""Parts of a file that are in memory at once."""
_COPIES_AT_ONCE: Final = 16
_LISTED_AT_ONCE: Final = 1000
_MARKED: Final = 100
"""More names of one beginning than anybody asks for."""
_TAKEN: Final = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
# XML has no way to write these.
_NOT_IN_XML: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_NO_SUCH_RANGE: Final = ("InvalidRange", "416")
_ONE_BY_ONE: Final = frozenset(
    {
        *("MethodNotAllowed", "NotImplemented", "405", "501", "MalformedXML", "InvalidRequest"),
        *("AccessDenied", "403", "400", "InvalidArgument", "UnsupportedOperation"),
    }
)


@dataclass(frozen=True, slots=True)
class _Found:
    """One entry of a listing; a common prefix is a folder."""

    key: str
    size: int
    modified_ms: int
    tag: str = ""
    is_folder: bool = False


class S3Store:
    """File operations on objects; paths are full URIs, taken literally.

    A folder is what lies before a slash in a key, or an empty object whose key ends in one.
    """

    def __init__(self, client: S3Client) -> None:
        self._s3 = client

    def creates_atomically(self, path: str) -> bool:
        """Whether the store refuses, by itself, to create a file whose name is taken."""
        return True

    def read(self, path: str) -> bytes:
        """The whole object, by one request."""
        return self._s3.get(**_place(path))[0]

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """At most ``length`` bytes from ``offset``; none past the end."""
        if length == 0:
            self.size(path)
            return b""
        try:
            return self._s3.get(**_place(path), Range=f"bytes={offset}-{offset + length - 1}")[0]
        except Exception as error:
            if code_of(error) in _NO_SUCH_RANGE:
                return b""
            raise

    def open_input(self, path: str) -> BinaryIO:
        """A seekable stream; the request that tells its size brings the end of the object too."""
        try:
            tail, answer = self._s3.get(**_place(path), Range=f"bytes=-{_TAIL}")
        except Exception as error:
            if code_of(error) not in _NO_SUCH_RANGE:
                raise
            # An empty object has no range.
            tail, answer = b"", {}
        total = str(answer.get("ContentRange", "")).rpartition("/")[2]
        size = int(total) if total.isdigit() else len(tail)
        return tail_input(size, tail, partial(self.read_range, path))

    def create(self, path: str, data: bytes) -> None:
        """Write an object that must not exist; FileExistsError if it does."""
        with raised_as(FileExistsError, path, _is_taken):
            self._put(path, data, IfNoneMatch="*")

    def create_unique(self, path: str, data: bytes) -> None:
        """Write an object that must not exist; FileExistsError if it does."""
        self.create(path, data)

    def upload(self, source: str, path: str) -> None:
        """Write an object that must not exist from a local file; FileExistsError if it does."""
        size = os.path.getsize(source)
        with open(source, "rb") as stream, raised_as(FileExistsError, path, _is_taken):
            if size < _LARGEST_PUT:
                self._put(path, stream.read(), IfNoneMatch="*")
                return
            starts = range(0, size, _PART)
            parts = (
                (number, partial(os.pread, stream.fileno(), _PART, at))
                for number, at in enumerate(starts, 1)
            )
            self._put_parts(path, parts, IfNoneMatch="*")

    def replace(self, path: str, data: bytes) -> None:
        """Write an object, taking the place of one that is there."""
        self._put(path, data)

    def exists(self, path: str) -> bool:
        """Whether an object or folder has this name."""
        return self._size(path) is not None or self.is_folder(path)

    def marks(self, folder: str, names: Sequence[str]) -> Mapping[str, str] | None:
        """A mark of the content of each of these files that is there.

        A request for each beginning that their names have before a dot, beside each other.
        """
        bucket, prefix = _folder(folder)
        found = in_threads(
            lambda start: list(self._list(bucket, f"{prefix}{start}", at_most=_MARKED)),
            list(dict.fromkeys(f"{name.partition('.')[0]}." for name in names)),
            name="frazil-marks",
        )
        tags = {each.key.removeprefix(prefix): each.tag for each in chain.from_iterable(found)}
        return {name: tags[name] for name in names if name in tags}

    def size(self, path: str) -> int:
        """The length in bytes."""
        found = self._size(path)
        if found is None:
            if self.is_folder(path):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            raise FileNotFoundError(path)
        return found

    def delete(self, path: str) -> None:
        """Remove one object."""
        place = _place(path)
        # A deletion of nothing succeeds.
        if self._size(path) is None:
            raise FileNotFoundError(path)
        self._s3.ask("delete_object", **place)

    def delete_many(self, paths: Sequence[str]) -> Mapping[str, Exception]:
        """Remove objects, whether they are there or not; the failures by path."""
        failures: dict[str, Exception] = {}
        by_bucket: dict[str, dict[str, str]] = {}
        for path in paths:
            try:
                bucket, key = _object(path)
            except OSError as error:
                failures[path] = error
            else:
                by_bucket.setdefault(bucket, {})[key] = path
        for bucket, path_of in by_bucket.items():
            with contextlib.suppress(FileNotFoundError):
                for key, reason in self._remove(bucket, path_of):
                    failures[path_of.get(key, key)] = reason
        return failures

    def delete_folder(self, path: str) -> None:
        """Remove every object below a folder, and the folder."""
        bucket, prefix = _folder(path)
        with contextlib.suppress(FileNotFoundError):
            keys = [found.key for found in self._list(bucket, prefix)]
            for _, error in self._remove(bucket, keys):
                raise error

    def delete_empty_folder(self, path: str) -> None:
        """Remove a folder that holds nothing; OSError if it holds something."""
        bucket, marker = _folder(path)
        with contextlib.suppress(FileNotFoundError):
            found = [each.key for each in self._list(bucket, marker, at_most=2)]
            if any(each != marker for each in found):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
            if found:
                self._s3.ask("delete_object", Bucket=bucket, Key=marker)

    def rename_if_absent(self, source: str, target: str) -> None:
        """Give an object another name by copying; FileExistsError if that name is taken."""
        self.create(target, self.read(source))
        self._s3.ask("delete_object", **_place(source))

    def move(self, source: str, target: str) -> None:
        """Give an object another name, taking the place of one that is there."""
        copied, there, size = _place(source), _place(target), self.size(source)
        if size <= _LARGEST_COPY:
            self._s3.write("copy_object", CopySource=copied, **there)
        else:
            spans = (
                (at, min(at + _PART_OF_COPY, size) - 1) for at in range(0, size, _PART_OF_COPY)
            )
            self._in_parts(
                target, partial(self._copy_part, copied), enumerate(spans, 1), _COPIES_AT_ONCE
            )
        self._s3.ask("delete_object", **copied)

    def replace_end(
        self, path: str, start: int, end: bytes, read_head: Callable[[], bytes]
    ) -> None:
        """Let an object go on with other bytes; the store copies a long beginning by itself."""
        if start < _LEAST_PART:
            self.replace(path, read_head() + end)
            return
        copied, count = _place(path), -(-start // _PART_OF_COPY)
        spans = [
            (number * start // count, (number + 1) * start // count - 1) for number in range(count)
        ]

        def send(upload: Mapping[str, str], part: tuple[int, Any]) -> Any:
            if part[1] is None:
                return self._s3.ask("upload_part", PartNumber=part[0], Body=end, **upload)
            return self._copy_part(copied, upload, part)

        self._in_parts(path, send, enumerate([*spans, None], 1), _COPIES_AT_ONCE)

    def make_folder(self, path: str) -> None:
        """Make the empty object that stands for a folder."""
        bucket, marker = _folder(path)
        if marker:
            self._s3.write("put_object", Bucket=bucket, Key=marker, Body=b"")
        elif not self.is_folder(path):
            raise FileNotFoundError(path)

    def is_folder(self, path: str) -> bool:
        """Whether objects lie below this name, or it is an existing bucket's."""
        bucket, prefix = _folder(path)
        try:
            return any(True for _ in self._list(bucket, prefix, at_most=1)) or not prefix
        except FileNotFoundError:
            return False

    def children(self, path: str) -> Iterator[tuple[str, bool]]:
        """(name, is a folder) of what lies directly in a folder; FileNotFoundError without one."""
        bucket, prefix = _folder(path)
        is_there = not prefix
        for found in self._list(bucket, prefix, one_level=True):
            is_there = True
            if name := _name_below(found, prefix):
                yield name, found.is_folder
        if not is_there:
            raise FileNotFoundError(path)

    def list_folder(self, path: str) -> Iterator[tuple[str, int, int]]:
        """(name, bytes, modified ms) of what lies directly in a folder; folders have -1 bytes."""
        bucket, prefix = _folder(path)
        for found in self._list(bucket, prefix, one_level=True):
            if name := _name_below(found, prefix):
                yield name, -1 if found.is_folder else found.size, found.modified_ms

    def walk(self, path: str) -> Iterator[tuple[str, int, int]]:
        """(path, bytes, modified ms) of every object below a folder."""
        bucket, prefix = _folder(path)
        yield from _files(path, prefix, self._list(bucket, prefix))

    def list_at_once(self, path: str) -> list[tuple[str, int, int]] | None:
        """(path, bytes, modified ms) as of `walk`; None where one request tells not all."""
        bucket, prefix = _folder(path)
        found = list(self._list(bucket, prefix, at_most=_LISTED_AT_ONCE))
        return None if len(found) == _LISTED_AT_ONCE else list(_files(path, prefix, found))

    def unfinished_uploads(self, path: str) -> Iterator[UnfinishedUpload]:
        """What was begun below a folder, and neither ended nor taken back."""
        bucket, prefix = _folder(path)
        asked: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
        while True:
            page = self._s3.ask("list_multipart_uploads", **asked)
            for each in page.get("Uploads", ()):
                at, begun = _path_below(path, prefix, each["Key"]), each["Initiated"]
                yield UnfinishedUpload(at, each["UploadId"], int(begun.timestamp() * 1000))
            if not page.get("IsTruncated"):
                return
            asked["KeyMarker"] = page["NextKeyMarker"]
            asked["UploadIdMarker"] = page["NextUploadIdMarker"]

    def abort_upload(self, upload: UnfinishedUpload) -> None:
        """Remove what was sent; nothing happens where it is gone."""
        place = _place(upload.path)
        with contextlib.suppress(FileNotFoundError):
            self._s3.ask("abort_multipart_upload", **place, UploadId=upload.upload_id)

    # -- parts -----------------------------------------------------------------------------------

    def _size(self, path: str) -> int | None:
        """The length of an object; None where none has this name."""
        bucket, key = _split(path)
        if not key:
            return None
        try:
            return int(self._s3.ask("head_object", Bucket=bucket, Key=key)["ContentLength"])
        except FileNotFoundError:
            return None

    def _list(
        self, bucket: str, prefix: str, *, one_level: bool = False, at_most: int | None = None
    ) -> Iterator[_Found]:
        """The objects whose keys begin so, by key; the first of them where few are asked for.

        Raises FileNotFoundError: there is no such bucket.
        """
        asked: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
        if one_level:
            asked["Delimiter"] = "/"
        if at_most is not None:
            asked["MaxKeys"] = at_most
        while True:
            page = self._s3.ask("list_objects_v2", **asked)
            for folder in page.get("CommonPrefixes", ()):
                yield _Found(folder["Prefix"], 0, 0, is_folder=True)
            for entry in page.get("Contents", ()):
                modified = int(entry["LastModified"].timestamp() * 1000)
                tag = str(entry.get("ETag", ""))
                yield _Found(entry["Key"], int(entry["Size"]), modified, tag)
            token = page.get("NextContinuationToken")
            if at_most is not None or not page.get("IsTruncated") or not token:
                return
            asked["ContinuationToken"] = token

    def _remove(self, bucket: str, keys: Sequence[str] | Mapping[str, str]) -> Iterator[Any]:
        """Remove objects, many by one request; yields each that stays, with the reason."""
        together = [key for key in keys if not _NOT_IN_XML.search(key)]
        alone = [key for key in keys if _NOT_IN_XML.search(key)]
        for start in range(0, len(together), DELETED_AT_ONCE):
            some = together[start : start + DELETED_AT_ONCE]
            if len(some) == 1:
                alone += some
                continue
            listed = {"Objects": [{"Key": key} for key in some], "Quiet": True}
            try:
                answer = self._s3.ask("delete_objects", Bucket=bucket, Delete=listed)
            except FileNotFoundError:
                raise
            except Exception as error:
                # Not every store knows the request, and a policy may forbid it.
                if code_of(error) in _ONE_BY_ONE:
                    alone += some
                else:
                    yield from ((key, error) for key in some)
                continue
            for failed in answer.get("Errors", ()):
                if failed.get("Code") != "NoSuchKey":
                    said = f"{failed.get('Code')}: {failed.get('Message')}"
                    yield failed["Key"], OSError(said)
        failures = in_threads(
            partial(self._delete_one, bucket), alone, threads=_COPIES_AT_ONCE, name="frazil-delete"
        )
        yield from ((key, error) for key, error in zip(alone, failures, strict=True) if error)

    def _delete_one(self, bucket: str, key: str) -> Exception | None:
        try:
            self._s3.ask("delete_object", Bucket=bucket, Key=key)
        except FileNotFoundError:
            return None
        except Exception as error:
            return error
        return None

    def _put(self, path: str, data: bytes, **condition: str) -> None:
        if len(data) < _LARGEST_PUT:
            self._s3.write("put_object", **_place(path), Body=data, **condition)
            return
        view = memoryview(data)
        parts = (
            (number, partial(bytes, view[at : at + _PART]))
            for number, at in enumerate(range(0, len(data), _PART), 1)
        )
        self._put_parts(path, parts, **condition)

    def _put_parts(
        self, path: str, parts: Iterator[tuple[int, Callable[[], bytes]]], **condition: str
    ) -> None:
        def put(upload: Mapping[str, str], part: tuple[int, Callable[[], bytes]]) -> Any:
            return self._s3.ask("upload_part", PartNumber=part[0], Body=part[1](), **upload)

        self._in_parts(path, put, parts, _PARTS_AT_ONCE, **condition)

    def _copy_part(
        self, copied: Mapping[str, str], upload: Mapping[str, str], part: tuple[int, Any]
    ) -> Any:
        """Let the store copy the bytes from the first to the last of a part's span."""
        number, (first, last) = part
        return self._s3.ask(
            "upload_part_copy",
            CopySource=copied,
            CopySourceRange=f"bytes={first}-{last}",
            PartNumber=number,
            **upload,
        )["CopyPartResult"]

    def _in_parts(
        self,
        path: str,
        send: Callable[[Mapping[str, str], Any], Mapping[str, Any]],
        parts: Iterator[tuple[int, Any]],
        at_once: int,
        **condition: str,
    ) -> None:
        """Make an object of parts; what was sent is taken back where one cannot be."""
        place = _place(path)
        begun = self._s3.write("create_multipart_upload", **place)
        upload = {**place, "UploadId": begun["UploadId"]}
        try:
            made = in_threads(
                lambda part: {"PartNumber": part[0], "ETag": send(upload, part)["ETag"]},
                parts,
                threads=at_once,
                name="frazil-parts",
            )
            self._s3.ask(
                "complete_multipart_upload",
                MultipartUpload={"Parts": made},
                **upload,
                **condition,
            )
        except BaseException:
            with contextlib.suppress(Exception):
                self._s3.ask("abort_multipart_upload", **upload)
            raise


def _split(path: str) -> tuple[str, str]:
    """The bucket and the key, without slashes at its end."""
    place = path.partition("://")[2]
    if found := _ACCESS_POINT.fullmatch(place):
        return found[1], found[2].rstrip("/")
    bucket, _, key = place.partition("/")
    return bucket, key.rstrip("/")


def _object(path: str) -> tuple[str, str]:
    """The bucket and the key of an object; IsADirectoryError where only a bucket is named."""
    bucket, key = _split(path)
    if not key:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return bucket, key


def _place(path: str) -> dict[str, str]:
    """The object that `_object` finds, as a request names it."""
    bucket, key = _object(path)
    return {"Bucket": bucket, "Key": key}


def _folder(path: str) -> tuple[str, str]:
    """The bucket, and what the keys of all that lies in a folder begin with."""
    bucket, key = _split(path)
    return bucket, f"{key}/" if key else ""


def _files(path: str, prefix: str, found: Iterable[_Found]) -> Iterator[tuple[str, int, int]]:
    """The files among what lies below a folder: markers of folders are none."""
    for each in found:
        if not each.key.endswith("/"):
            yield _path_below(path, prefix, each.key), each.size, each.modified_ms


def _path_below(path: str, prefix: str, key: str) -> str:
    return f"{path.rstrip('/')}/{key[len(prefix) :]}"


def _name_below(found: _Found, prefix: str) -> str:
    tail = found.key[len(prefix) :]
    return tail[:-1] if found.is_folder else tail


def _is_taken(error: Exception) -> bool:
    """Whether the store says that a condition does not hold."""
    return code_of(error) in _TAKEN
