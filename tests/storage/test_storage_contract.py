"""What FileIO promises of every store: on a disk, in memory, in three clouds, by Hadoop's systems.

Hadoop's are tried beside the session, and again as an executor has them.
"""

from __future__ import annotations

import os
import pickle
import uuid
from pathlib import Path

import pytest
from remote_stores import S3

from ci_share import in_circles
from frazil.errors import AlreadyExistsError, MissingFileError
from frazil.spark.hadoop.from_elsewhere import StoresElsewhere
from frazil.storage.files import FileIO

KINDS = ("local", "memory", "s3", "azure", "gcs", "hadoop", "hadoop elsewhere")


@pytest.fixture(params=KINDS)
def at(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileIO, str]:
    """The files of a store, and the URI of a folder that holds nothing."""
    kind = request.param
    if kind == "local":
        return FileIO(), str(tmp_path / "lake")
    if kind == "memory":
        return FileIO(), f"memory://b{uuid.uuid4().hex}"
    if kind.startswith("hadoop"):
        base, _ = request.getfixturevalue("place")
        here: FileIO = request.getfixturevalue("here")
        if kind == "hadoop":
            return here, base
        sent: FileIO = pickle.loads(pickle.dumps(here))
        assert isinstance(sent.stores, StoresElsewhere)
        return sent, base
    server = request.getfixturevalue(kind)
    store = S3(server) if kind == "s3" else server
    drivers = request.getfixturevalue("drivers")
    io = drivers.setdefault(frozenset(store.properties.items()), FileIO(store.properties))
    return io, store.new_bucket()


def test_a_name_is_taken_once(at: tuple[FileIO, str], tmp_path: Path) -> None:
    io, base = at
    (tmp_path / "other").write_bytes(b"other")
    io.create(f"{base}/f", b"first")
    io.create(f"{base}/g", b"g")
    for make in (
        lambda: io.create(f"{base}/f", b"second"),
        lambda: io.write(f"{base}/f", b"second"),
        lambda: io.upload(str(tmp_path / "other"), f"{base}/f"),
        lambda: io.rename_if_absent(f"{base}/g", f"{base}/f"),
    ):
        with pytest.raises(AlreadyExistsError, match="exists"):
            make()
    io.create_unique(f"{base}/f", b"first")
    assert io.read(f"{base}/f") == b"first"
    io.rename_if_absent(f"{base}/g", f"{base}/h")
    io.move(f"{base}/h", f"{base}/f")
    assert io.read(f"{base}/f") == b"g"
    io.move(f"{base}/f", f"{base}/new/folder/f")
    assert [found.path for found in io.list(base)] == [f"{base}/new/folder/f"]


@pytest.mark.parametrize("size", in_circles([0, 5, (9 << 20) + 1], test=2))
def test_content_comes_back(at: tuple[FileIO, str], tmp_path: Path, size: int) -> None:
    io, base = at
    content = os.urandom(size)
    source = tmp_path / "a%20 b"
    source.write_bytes(content)
    io.create(f"{base}/d/a", content)
    io.upload(str(source), f"{base}/d/b")
    io.write(f"{base}/d/c", b"before")
    io.write(f"{base}/d/c", content, overwrite=True)
    for name in "abc":
        path = f"{base}/d/{name}"
        assert io.read(path) == content
        assert io.size(path) == size
        with io.open_input(path) as stream:
            stream.seek(-min(size, 3), 2)
            assert stream.read() == content[-3:]
    assert io.list_folder(f"{base}/d") == tuple((name, False) for name in "abc")
    with pytest.raises(MissingFileError):
        io.upload(f"{tmp_path}/none", f"{base}/none")
    assert not io.exists(f"{base}/none")


RANGES = {
    (0, 5): b"01234", (3, 100): b"3456789", (9, 1): b"9", (0, 0): b"", (4, 0): b"", (10, 1): b"",
    (10, 0): b"", (25, 5): b"",
}  # fmt: skip


def test_ranges_end_with_the_file(at: tuple[FileIO, str]) -> None:
    io, base = at
    io.create(f"{base}/f", b"0123456789")
    for (offset, length), expected in RANGES.items():
        assert io.read_range(f"{base}/f", offset=offset, length=length) == expected
        with pytest.raises(MissingFileError):
            io.read_range(f"{base}/none", offset=offset, length=length)


def test_what_is_missing_is_typed(at: tuple[FileIO, str]) -> None:
    io, base = at
    for path in (f"{base}/none", f"{base}/d/none"):
        for call in (io.read, io.size, io.delete, io.open_input):
            with pytest.raises(MissingFileError, match="none"):
                call(path)
        assert not io.exists(path)
        assert list(io.list(path)) == []
        assert io.delete_many([path]) == {}
        if base.startswith("/"):  # A disk has folders, so that one is missing is seen.
            with pytest.raises(MissingFileError, match="none"):
                io.delete_folder(path)
        else:
            io.delete_folder(path)


def test_many_files_go_at_once(at: tuple[FileIO, str]) -> None:
    io, base = at
    for number in range(40):
        io.create(f"{base}/d/{number:02}", b"1")
    gone = [f"{base}/d/{number:02}" for number in range(20)]
    assert io.delete_many([*gone, f"{base}/d/none"]) == {}
    assert io.list_folder(f"{base}/d") == tuple((str(number), False) for number in range(20, 40))
    io.delete_folder(f"{base}/d")
    assert list(io.list(base)) == []
