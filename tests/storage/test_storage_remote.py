"""FileIO against servers of S3's, Azure's and Google's protocols: one behaviour over all three."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulators import in_a_forked_child, winners
from remote_stores import RemoteStore, check_literal_name

from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.errors import AlreadyExistsError, MissingFileError, NamespaceNotEmptyError, StorageError
from frazil.storage.files import FileIO

ODD_NAMES = [
    *("a b", "a%20b", "a%2Fb", "[x]", "{y}", "k=v", "ü", "#1", "q?x", "*", "~", "a:b", "a'b"),
    *("a+b", "a&b", "a@b", "x#1"),
]


def put(io: FileIO, base: str, names: list[str]) -> None:
    """Make files of one byte, and folders for the names that end in a slash."""
    for name in names:
        if name.endswith("/"):
            io.make_folder(f"{base}/{name}")
        else:
            io.create(f"{base}/{name}", b"1")


def test_names_are_literal(store: RemoteStore, io: FileIO, bucket: str) -> None:
    for name in ODD_NAMES:
        check_literal_name(store, io, bucket, name)
        io.create(f"{bucket}/d/{name}/f", b"1")
        assert io.list_folder(f"{bucket}/d") == ((name, True),)
        io.delete(f"{bucket}/d/{name}/f")


def test_a_store_creates_in_one_step(io: FileIO, bucket: str) -> None:
    assert io.creates_atomically(f"{bucket}/f")


@pytest.mark.parametrize("size", [110 << 20])
def test_an_upload_keeps_the_object_that_is_there(
    store: RemoteStore, io: FileIO, bucket: str, tmp_path: Path, size: int
) -> None:
    content = (bytes(range(251)) * (size // 251 + 1))[:size]
    (tmp_path / "a").write_bytes(content)
    (tmp_path / "b").write_bytes(content[::-1] + b"other")
    io.upload(str(tmp_path / "a"), f"{bucket}/d/f")
    with pytest.raises(AlreadyExistsError, match="exists"):
        io.upload(str(tmp_path / "b"), f"{bucket}/d/f")
    assert io.read(f"{bucket}/d/f") == content
    assert store.names(bucket) == ["d/f"]


def test_an_upload_needs_a_bucket(store: RemoteStore, io: FileIO, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1")
    with pytest.raises(MissingFileError, match="no such bucket"):
        io.upload(str(tmp_path / "f"), f"{store.no_bucket}/f")


@pytest.mark.parametrize(("creators", "size"), [(6, 1), (3, 70 << 20)])
def test_of_many_creators_the_store_lets_one_win(
    store: RemoteStore, io: FileIO, bucket: str, creators: int, size: int
) -> None:
    (winner,) = winners(store.properties, f"{bucket}/f", creators, size)
    found = io.read(f"{bucket}/f")
    assert len(found) == size
    assert set(found) == {winner}


@pytest.mark.parametrize(
    ("names", "folder", "expected"),
    [
        (["a/f", "a/b/g"], "a", (("b", True), ("f", False))),
        (["a/", "a/f"], "a", (("f", False),)),
        (["a/", "a/b/"], "a", (("b", True),)),
        (["a/", "a/b/f"], "a", (("b", True),)),
        (["a/b/"], "a", (("b", True),)),
        (["a/f", "ab", "ac/f"], "a", (("f", False),)),
        (["a", "a/f"], "a", (("f", False),)),
        (["a", "a/f", "b"], "", (("a", False), ("a", True), ("b", False))),
        (["x/y/z/f"], "x/y", (("z", True),)),
        (["a/"], "a", ()),
    ],
)
def test_one_level_is_listed(
    io: FileIO,
    bucket: str,
    names: list[str],
    folder: str,
    expected: tuple[tuple[str, bool], ...],
) -> None:
    put(io, bucket, names)
    path = f"{bucket}/{folder}".rstrip("/")
    assert io.list_folder(path) == expected
    assert io.is_folder(path)


def test_folders_are_marked_and_markers_are_no_files(
    store: RemoteStore, io: FileIO, bucket: str
) -> None:
    put(io, bucket, ["a/", "a/b/", "a/b/f", "ab/"])
    assert store.names(bucket) == ["a/", "a/b/", "a/b/f", "ab/"]
    assert [(found.path, found.size) for found in io.list(f"{bucket}/a")] == [
        (f"{bucket}/a/b/f", 1)
    ]
    with pytest.raises(StorageError, match="not empty"):
        io.delete_empty_folder(f"{bucket}/a")
    assert store.names(bucket) == ["a/", "a/b/", "a/b/f", "ab/"]
    io.delete_folder(f"{bucket}/a")
    assert store.names(bucket) == ["ab/"]
    io.delete_empty_folder(f"{bucket}/ab")
    assert store.names(bucket) == []
    assert not io.is_folder(f"{bucket}/ab")


def test_a_file_is_no_folder(store: RemoteStore, io: FileIO, bucket: str) -> None:
    put(io, bucket, ["d/f"])
    path = f"{bucket}/d/f"
    assert list(io.list(path)) == []
    assert not io.is_folder(path)
    io.delete_folder(path)
    io.delete_empty_folder(path)
    with pytest.raises(MissingFileError):
        io.list_folder(path)
    assert store.names(bucket) == ["d/f"]
    with pytest.raises(StorageError, match="directory"):
        io.size(f"{bucket}/d")


def test_a_name_can_be_a_file_and_a_folder(io: FileIO, bucket: str) -> None:
    put(io, bucket, ["d/f", "d/f/g"])
    assert io.is_folder(f"{bucket}/d/f")
    assert io.exists(f"{bucket}/d/f")


def test_a_bucket_is_no_file(io: FileIO, bucket: str) -> None:
    for path in (bucket, f"{bucket}/"):
        with pytest.raises(StorageError, match="directory"):
            io.delete(path)
    assert io.is_folder(bucket)


def test_namespaces_of_the_filesystem_catalog_stay_while_they_hold_something(
    store: RemoteStore, bucket: str
) -> None:
    catalog = FilesystemCatalog("c", {"warehouse": f"{bucket}/w", **store.properties})
    catalog.create_namespace("db")
    catalog.create_namespace("db.sub")
    assert catalog.list_namespaces("db") == [("db", "sub")]
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("db")
    catalog.drop_namespace("db.sub")
    catalog.drop_namespace("db")
    assert store.names(bucket) == []


@pytest.mark.parametrize("place", ["none", "d/none"])
def test_missing_objects_and_buckets_are_typed(
    store: RemoteStore, io: FileIO, bucket: str, place: str
) -> None:
    for path in (f"{bucket}/{place}", f"{store.no_bucket}/{place}"):
        for call in (io.read, io.list_folder):
            with pytest.raises(MissingFileError, match=place):
                call(path)
        assert not io.is_folder(path)
    for make in (
        lambda path: io.create(path, b""),
        lambda path: io.write(path, b"", overwrite=True),
        io.make_folder,
    ):
        with pytest.raises(MissingFileError, match="no such bucket"):
            make(f"{store.no_bucket}/{place}")
    assert not io.exists(store.no_bucket)
    assert io.exists(bucket)


def test_every_scheme_names_the_same_objects(store: RemoteStore, io: FileIO, bucket: str) -> None:
    for scheme in store.schemes:
        other = f"{scheme}://{bucket.partition('://')[2]}"
        io.create(f"{other}/d/f", b"1")
        assert io.read(f"{bucket}/d/f") == b"1"
        assert [found.path for found in io.list(f"{other}/d")] == [f"{other}/d/f"]
        assert io.list_folder(f"{other}/d") == (("f", False),)
        io.delete_folder(f"{other}/d")
        assert not io.is_folder(f"{bucket}/d")


def test_it_works_in_a_forked_child(io: FileIO, bucket: str) -> None:
    io.create(f"{bucket}/f", b"1")
    assert in_a_forked_child(lambda: io.read(f"{bucket}/f")) == "b'1'"
    assert io.read(f"{bucket}/f") == b"1"
