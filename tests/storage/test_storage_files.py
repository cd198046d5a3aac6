"""FileIO: whole files, literal paths, typed errors, and nothing secret in them."""

from __future__ import annotations

import errno
import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from frazil.errors import AlreadyExistsError, MissingFileError, StorageError, UnsupportedError
from frazil.storage.files import FileIO
from frazil.storage.stores import local as local_store
from programs import run_program

ODD_NAMES = ["a b", "a%20b", "a%2Fb", "[x]", "{y}", "k=v", "ü", "#1", "q?x", "*", "~", "a:b", "a'b"]


@pytest.fixture
def io() -> FileIO:
    return FileIO()


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("prefix", ["{}", "file://{}", "file:{}"])
def test_names_are_literal_in_every_spelling_of_a_path(
    io: FileIO, tmp_path: Path, name: str, prefix: str
) -> None:
    path = prefix.format(tmp_path) + f"/{name}/file {name}"
    io.create(path, b"x")
    assert (tmp_path / name / f"file {name}").read_bytes() == b"x"
    assert io.read(path) == b"x"
    assert [(found.path, found.size) for found in io.list(prefix.format(tmp_path))] == [(path, 1)]
    io.delete(path)
    assert not io.exists(path)


def test_one_of_many_creators_wins(io: FileIO, tmp_path: Path) -> None:
    won: list[int] = []
    gate = threading.Barrier(8)

    def creator(number: int) -> None:
        gate.wait()
        try:
            io.create(f"{tmp_path}/f", str(number).encode() * 10_000)
        except AlreadyExistsError:
            return
        won.append(number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(creator, range(8)))
    assert len(won) == 1
    assert io.read(f"{tmp_path}/f") == str(won[0]).encode() * 10_000
    assert os.listdir(tmp_path) == ["f"]


def test_a_killed_writer_leaves_no_half_file(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from frazil.storage.stores import local as local_store\n"
        "real = os.fsync\n"
        "os.fsync = lambda fd: os.kill(os.getpid(), 9)\n"
        f"local_store.create({str(tmp_path / 'f')!r}, b'x' * 100000)\n"
    )
    run_program(script, code=-9)
    assert not (tmp_path / "f").exists()


def test_create_works_where_there_are_no_hard_links(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "link", refuse)
    local_store.create(str(tmp_path / "f"), b"x")
    with pytest.raises(FileExistsError):
        local_store.create(str(tmp_path / "f"), b"y")
    local_store.rename_if_absent(str(tmp_path / "f"), str(tmp_path / "g"))
    assert (tmp_path / "g").read_bytes() == b"x"
    local_store.upload(str(tmp_path / "g"), str(tmp_path / "h"))
    assert (tmp_path / "h").read_bytes() == b"x"
    assert sorted(os.listdir(tmp_path)) == ["g", "h"]


@pytest.mark.parametrize(
    "path", ["\x00", "a\x00b", "x" * 5000, "/" + "y" * 300 + "/z", "\ud800"], ids=range(5)
)
def test_unusable_names_are_storage_errors(io: FileIO, tmp_path: Path, path: str) -> None:
    for call in (io.read, io.exists, io.size, lambda p: io.create(p, b""), io.delete):
        with pytest.raises(StorageError):
            call(f"{tmp_path}/{path}")


def test_reading_a_folder_is_a_storage_error(io: FileIO, tmp_path: Path) -> None:
    for call in (io.read, io.size):
        with pytest.raises(StorageError, match=str(tmp_path)):
            call(str(tmp_path))


def test_deleting_reports_failures_by_path(io: FileIO, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_bytes(b"")
    failures = io.delete_many([f"{tmp_path}/d", f"{tmp_path}/f", f"{tmp_path}/gone"])
    assert list(failures) == [f"{tmp_path}/d"]
    assert isinstance(failures[f"{tmp_path}/d"], StorageError)
    assert not (tmp_path / "f").exists()


def test_hadoop_checksums_do_not_outlive_their_file(io: FileIO, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / ".f.crc").write_bytes(b"crc of old")
    io.write(f"{tmp_path}/f", b"new", overwrite=True)
    assert os.listdir(tmp_path) == ["f"]


def test_listing_tells_times_and_skips_linked_folders(io: FileIO, tmp_path: Path) -> None:
    io.create(f"{tmp_path}/d/.hidden", b"12")
    (tmp_path / "d" / "loop").symlink_to(tmp_path)
    (found,) = io.list(f"file://{tmp_path}/d/")
    assert found.path == f"file://{tmp_path}/d/.hidden"
    assert abs(found.modified_ms - time.time() * 1000) < 60_000


def test_a_lock_is_of_the_folder_that_is_there(io: FileIO, tmp_path: Path) -> None:
    """Who waited for the lock of a folder that went meanwhile holds no lock."""
    folder = f"{tmp_path}/f"
    io.make_folder(folder)
    outcomes: list[str] = []

    def wait() -> None:
        try:
            with io.lock(folder):
                outcomes.append("locked")
        except MissingFileError:
            outcomes.append("gone")

    for makes_anew, expected in ((False, "gone"), (True, "locked")):
        io.make_folder(folder)
        with io.lock(folder):
            waiting = threading.Thread(target=wait)
            waiting.start()
            time.sleep(0.1)
            io.move_folder(folder, f"{tmp_path}/{expected}")
            if makes_anew:
                io.make_folder(folder)
        waiting.join()
        assert outcomes.pop() == expected


def test_one_place_by_several_names(io: FileIO, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    azure = "c@acc.dfs.core.windows.net/t"
    same = [
        (f"{tmp_path}/real/t", f"file://{tmp_path}/link/t/"),
        ("s3://b/t", "s3a://b/t/"),
        ("gs://b/t", "gcs://b/t"),
        (f"abfss://{azure}", f"wasbs://{azure.replace('dfs', 'blob')}"),
    ]
    others = [
        (f"{tmp_path}/real/t", f"{tmp_path}/real/u"),
        ("s3://b/t", "s3://c/t"),
        ("s3://b/t", "s3://b/T"),
        ("s3://b/t", "gs://b/t"),
        ("s3://b/t", "/b/t"),
        (f"abfss://{azure}", f"abfss://{azure.replace('acc', 'other')}"),
        ("hdfs://a/t", "hdfs://b/t"),
    ]
    assert [pair for pair in same if not io.is_same_place(*pair)] == []
    assert [pair for pair in others if io.is_same_place(*pair)] == []


def test_a_path_of_no_driver_keeps_no_other_from_being_deleted(io: FileIO, tmp_path: Path) -> None:
    io.create(f"{tmp_path}/f", b"")
    failures = io.delete_many(["oss://bucket/x", "file://otherhost/x", f"{tmp_path}/f"])
    assert sorted(failures) == ["file://otherhost/x", "oss://bucket/x"]
    assert not io.exists(f"{tmp_path}/f")


def test_the_lock_keeps_others_out(io: FileIO, tmp_path: Path) -> None:
    """Read, add, write: without the lock, additions are lost."""
    counter = tmp_path / "counter"
    counter.write_text("0")

    def add(_: int) -> None:
        own = FileIO()
        for _ in range(100):
            with own.lock(str(tmp_path)):
                counter.write_text(str(int(counter.read_text()) + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert counter.read_text() == "400"
    with pytest.raises(MissingFileError), io.lock(f"{tmp_path}/none"):
        pass


def test_it_travels_to_other_processes(tmp_path: Path) -> None:
    io = FileIO({"s3.region": "x"})
    io.create("memory://p/f", b"")
    other = pickle.loads(pickle.dumps(io))
    other.create(f"{tmp_path}/f", b"1")
    assert other.properties == {"s3.region": "x"}


def test_a_missing_driver_is_named() -> None:
    script = (
        "import sys\n"
        "from frazil.errors import ConfigurationError\n"
        "from frazil.storage.files import FileIO\n"
        "sys.modules.update(dict.fromkeys(('botocore.session', 'gcsfs', 'adlfs')))\n"
        "for scheme in ('s3', 's3a', 'gs', 'abfss'):\n"
        "    try:\n"
        "        FileIO().read(f'{scheme}://bucket/x')\n"
        "    except ConfigurationError as error:\n"
        "        print(error)\n"
    )
    assert run_program(script).splitlines() == [
        f"no driver for {scheme}:// is installed: install frazil[{extra}]"
        for scheme, extra in (("s3", "s3"), ("s3a", "s3"), ("gs", "gcs"), ("abfss", "abfs"))
    ]


def test_an_unknown_scheme_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="nosuch"):
        FileIO().read("nosuch://bucket/x")


def test_another_store_is_no_place_to_rename_to(io: FileIO, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="stores differ"):
        io.move(f"{tmp_path}/b", "memory://x/b")
    for target in ("memory://x/f", "gs://c/f", "abfss://c@two.dfs.core.windows.net/f"):
        with pytest.raises(StorageError, match="stores differ"):
            io.move("abfss://c@one.dfs.core.windows.net/f", target)


def test_jars_on_the_path_are_not_asked_for_plug_ins(tmp_path: Path) -> None:
    """Of what the import of the stores costs in Python workers of Spark."""
    printed = run_program(Path(__file__).with_name("imported_stores.py"), tmp_path).split()
    assert "some.zip" in printed
    assert "some.jar" not in printed
