"""FileIO against a server of the S3 protocol: what the store decides, and what it never shows."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
from emulators import in_a_forked_child

from frazil.errors import AlreadyExistsError, MissingFileError, StorageError, UnsupportedError
from frazil.storage.files import FileIO

ODD_NAMES = [
    *("a b", "a%20b", "a%2Fb", "[x]", "{y}", "k=v", "ü", "#1", "q?x", "*", "~", "a:b", "a'b"),
    *("a+b", "a&b", "a//b"),
]


@pytest.fixture
def bucket(s3: Any, request: pytest.FixtureRequest) -> str:
    return str(s3.new_bucket(f"files-{abs(hash(request.node.nodeid))}"))


@pytest.fixture
def io(s3: Any) -> FileIO:
    return FileIO(s3.properties)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_are_literal(s3: Any, io: FileIO, bucket: str, name: str) -> None:
    path = f"{bucket}/d/{name}/file {name}"
    io.create(path, b"1")
    assert s3.keys(bucket) == [path.removeprefix(f"{bucket}/")]
    assert io.read(path) == b"1"
    assert [(found.path, found.size) for found in io.list(f"{bucket}/d")] == [(path, 1)]
    io.delete(path)
    assert not io.exists(path)


def test_create_keeps_the_object_that_is_there(io: FileIO, bucket: str) -> None:
    path = f"{bucket}/f"
    assert io.creates_atomically(path)
    io.create(path, b"first")
    with pytest.raises(AlreadyExistsError, match="exists"):
        io.create(path, b"second")
    assert io.read(path) == b"first"
    io.write(path, b"third", overwrite=True)
    assert io.read(path) == b"third"


def test_a_name_that_the_driver_reads_as_a_version_is_refused(
    s3: Any, io: FileIO, bucket: str
) -> None:
    path = f"{bucket}/d/q?versionId=1"
    io.create(f"{bucket}/d/q", b"1")
    for call in (io.read, io.exists, io.delete, lambda name: io.create(name, b"2")):
        with pytest.raises(UnsupportedError, match="versionId"):
            call(path)
    with pytest.raises(UnsupportedError, match="versionId"):
        io.move(f"{bucket}/d/q", path)
    assert s3.keys(bucket) == ["d/q"]


def test_of_many_creators_the_store_lets_one_win(s3: Any, bucket: str) -> None:
    won: list[int] = []
    gate = threading.Barrier(6)

    def creator(number: int) -> None:
        own = FileIO(s3.properties)
        own.exists(f"{bucket}/f")
        gate.wait()
        try:
            own.create(f"{bucket}/f", str(number).encode())
        except AlreadyExistsError:
            return
        won.append(number)

    threads = [threading.Thread(target=creator, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert FileIO(s3.properties).read(f"{bucket}/f") == str(won[0]).encode()


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, 5, b"01234"),
        (3, 100, b"3456789"),
        (9, 1, b"9"),
        (0, 0, b""),
        (4, 0, b""),
        (10, 1, b""),
        (10, 0, b""),
        (25, 5, b""),
    ],
)
def test_ranges_end_with_the_object(
    io: FileIO, bucket: str, offset: int, length: int, expected: bytes
) -> None:
    io.create(f"{bucket}/f", b"0123456789")
    assert io.read_range(f"{bucket}/f", offset=offset, length=length) == expected
    with pytest.raises(MissingFileError):
        io.read_range(f"{bucket}/none", offset=offset, length=length)


def test_a_stream_seeks(io: FileIO, bucket: str) -> None:
    io.create(f"{bucket}/f", b"0123456789")
    with io.open_input(f"{bucket}/f") as stream:
        stream.seek(-3, 2)
        assert stream.read() == b"789"


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


def test_folders_are_marked_and_markers_are_no_files(s3: Any, io: FileIO, bucket: str) -> None:
    io.make_folder(f"{bucket}/a")
    io.make_folder(f"{bucket}/a/b")
    io.create(f"{bucket}/a/b/f", b"1")
    assert s3.keys(bucket) == ["a/", "a/b/", "a/b/f"]
    assert [found.path for found in io.list(f"{bucket}/a")] == [f"{bucket}/a/b/f"]
    assert io.list_folder(f"{bucket}/a") == (("b", True),)
    with pytest.raises(StorageError, match="not empty"):
        io.delete_empty_folder(f"{bucket}/a")
    io.make_folder(f"{bucket}/ab")
    io.delete_folder(f"{bucket}/a")
    assert s3.keys(bucket) == ["ab/"]
    io.delete_empty_folder(f"{bucket}/ab")
    assert s3.keys(bucket) == []
    assert not io.is_folder(f"{bucket}/ab")


def test_many_objects_go_at_once(s3: Any, io: FileIO, bucket: str) -> None:
    for number in range(30):
        io.create(f"{bucket}/d/{number}", b"")
    gone = [f"{bucket}/d/{number}" for number in range(20)]
    assert io.delete_many([*gone, f"{bucket}/none"]) == {}
    assert s3.keys(bucket) == [f"d/{number}" for number in range(20, 30)]


def test_renames(io: FileIO, bucket: str) -> None:
    io.create(f"{bucket}/a", b"a")
    io.create(f"{bucket}/b", b"b")
    with pytest.raises(AlreadyExistsError, match=f"{bucket}/b exists"):
        io.rename_if_absent(f"{bucket}/a", f"{bucket}/b")
    io.rename_if_absent(f"{bucket}/a", f"{bucket}/c")
    io.move(f"{bucket}/c", f"{bucket}/b")
    assert [found.path for found in io.list(bucket)] == [f"{bucket}/b"]
    assert io.read(f"{bucket}/b") == b"a"


@pytest.mark.parametrize("place", ["none", "d/none"])
def test_missing_objects_and_buckets_are_typed(io: FileIO, bucket: str, place: str) -> None:
    for path in (f"{bucket}/{place}", f"s3://no-such-bucket/{place}"):
        for call in (io.read, io.size, io.delete, io.open_input, io.list_folder):
            with pytest.raises(MissingFileError, match=place):
                call(path)
        assert not io.exists(path)
        assert list(io.list(path)) == []
        assert io.delete_many([path]) == {}
    with pytest.raises(MissingFileError, match="no such bucket"):
        io.create(f"s3://no-such-bucket/{place}", b"")


def test_the_schemes_of_hadoop_name_the_same_objects(io: FileIO, bucket: str) -> None:
    other = bucket.replace("s3://", "s3a://")
    io.create(f"{other}/d/f", b"1")
    assert io.read(f"{bucket}/d/f") == b"1"
    assert [found.path for found in io.list(f"{other}/d")] == [f"{other}/d/f"]


def test_the_case_of_a_scheme_does_not_matter(io: FileIO, bucket: str) -> None:
    other = bucket.replace("s3://", "S3://")
    io.create(f"{other}/d/f", b"1")
    assert io.read(f"{bucket}/d/f") == b"1"
    assert [found.path for found in io.list(f"{other}/d")] == [f"{other}/d/f"]


def test_a_folder_has_no_size(io: FileIO, bucket: str) -> None:
    io.create(f"{bucket}/d/f", b"1")
    with pytest.raises(StorageError, match="directory"):
        io.size(f"{bucket}/d")


def test_it_works_in_a_forked_child(io: FileIO, bucket: str) -> None:
    io.create(f"{bucket}/f", b"1")
    assert in_a_forked_child(lambda: io.read(f"{bucket}/f")) == "b'1'"
    assert io.read(f"{bucket}/f") == b"1"


def test_failures_show_no_credentials(s3: Any, caplog: pytest.LogCaptureFixture) -> None:
    io = FileIO({**s3.properties, "s3.endpoint": "http://127.0.0.1:9", "s3.connect-timeout": "1"})
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
