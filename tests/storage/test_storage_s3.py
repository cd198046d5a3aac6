"""FileIO against a server of the S3 protocol, where S3 has ways of its own."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from remote_stores import S3, check_literal_name

from frazil.errors import AlreadyExistsError, MissingFileError, StorageError, UnsupportedError
from frazil.storage.files import FileIO


@pytest.fixture
def store(s3: Any) -> S3:
    return S3(s3)


def test_empty_parts_of_names_stay(store: S3, io: FileIO, bucket: str) -> None:
    check_literal_name(store, io, bucket, "a//b")


@pytest.mark.parametrize("name", ["q?versionId=1", "a/./b", "a/../b", "\x01\x7f"])
def test_names_are_taken_as_they_are(s3: Any, io: FileIO, bucket: str, name: str) -> None:
    paths = [f"{bucket}/d/{name}", f"{bucket}/d/{name}{name}"]
    for path in paths:
        io.create(path, b"1")
    assert s3.keys(bucket) == [path.removeprefix(f"{bucket}/") for path in paths]
    assert [found.path for found in io.list(bucket)] == paths
    assert io.delete_many(paths) == {}
    assert s3.keys(bucket) == []


@pytest.mark.parametrize("start", [3, 5 << 20, (5 << 20) + 1])
def test_a_file_goes_on_with_other_bytes(
    s3: Any, io: FileIO, bucket: str, start: int, tmp_path: Path
) -> None:
    """The store copies a long beginning by itself."""
    path, head = f"{bucket}/d/f", bytes(range(256)) * (start // 256) + bytes(start % 256)
    io.create(path, head + b"old end")
    asked: list[int] = []

    def read_head() -> bytes:
        asked.append(start)
        return io.read_range(path, offset=0, length=start)

    assert io.replaces_ends(path)
    io.replace_end(path, start=start, end=b"a new end", read_head=read_head)
    assert io.read(path) == head + b"a new end"
    assert asked == ([start] if start < 5 << 20 else [])
    assert list(io.unfinished_uploads(bucket)) == []
    assert not io.replaces_ends(f"{tmp_path}/f")
    with pytest.raises(UnsupportedError):
        io.replace_end(f"{tmp_path}/f", start=0, end=b"", read_head=bytes)


def test_answers_follow_changes_by_others(s3: Any, io: FileIO, bucket: str) -> None:
    name = bucket.removeprefix("s3://")
    assert list(io.list(f"{bucket}/d")) == []
    assert not io.is_folder(f"{bucket}/d")
    s3.client.put_object(Bucket=name, Key="d/f", Body=b"1")
    assert io.is_folder(f"{bucket}/d")
    assert io.list_folder(f"{bucket}/d") == (("f", False),)
    s3.client.put_object(Bucket=name, Key="d/f", Body=b"four")
    assert io.size(f"{bucket}/d/f") == 4
    assert io.read(f"{bucket}/d/f") == b"four"
    s3.client.put_object(Bucket=name, Key="d/g", Body=b"")
    assert {found.path for found in io.list(f"{bucket}/d")} == {f"{bucket}/d/f", f"{bucket}/d/g"}
    io.delete(f"{bucket}/d/g")
    s3.client.delete_object(Bucket=name, Key="d/f")
    assert not io.is_folder(f"{bucket}/d")
    assert not io.exists(f"{bucket}/d/f")


def test_failures_show_no_credentials(s3: Any, caplog: pytest.LogCaptureFixture) -> None:
    nowhere = {"s3.endpoint": "http://127.0.0.1:9", "s3.retry.num-retries": "0"}
    io = FileIO({**s3.properties, **nowhere})
    with caplog.at_level(logging.INFO), pytest.raises(StorageError) as caught:
        io.read("s3://bucket/made-up-secret-of-tests")
    shown = f"{caught.value} {caught.value!r} {caught.value.__cause__} {io!r} {caplog.text}"
    for secret in (s3.properties["s3.access-key-id"], s3.properties["s3.secret-access-key"]):
        assert secret not in shown


def test_refused_credentials_are_a_storage_error(s3: Any, io: FileIO, bucket: str) -> None:
    policy = '{"Statement": [{"Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"}]}'
    io.create(f"{bucket}/f", b"1")
    s3.client.put_bucket_policy(Bucket=bucket.removeprefix("s3://"), Policy=policy)
    for call in (io.read, lambda path: io.create(path, b"2")):
        with pytest.raises(StorageError) as caught:
            call(f"{bucket}/f")
        assert not isinstance(caught.value, MissingFileError | AlreadyExistsError)
