"""Files by Hadoop's file systems: a view over the local disk, which needs no server.

Each case runs beside the session, and again as an executor would: through what is sent to it.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import pytest

from ci_share import in_circles
from frazil.catalog.config import open_catalog, resolve
from frazil.errors import (
    AlreadyExistsError,
    ConfigurationError,
    FrazilError,
    MissingFileError,
    StorageError,
    UnsupportedError,
)
from frazil.spark.hadoop.from_elsewhere import StoresElsewhere
from frazil.spark.hadoop.statuses import FileStatus, alternatives, marks_of, statuses_of
from frazil.spark.hadoop.store import python_error
from frazil.spark.hadoop.stores import HadoopStores, stores_of
from frazil.spark.hadoop.wire import prove_as_client
from frazil.spark.lake import connect
from frazil.spark.session import costs
from frazil.storage.files import FileIO

# Hadoop itself takes no colon.
ODD_NAMES = ["a b", "a%20b", "a%2Fb", "[x]", "{y}", "k=v", "ü", "#1", "q?x", "*", "~", "a'b"]
ODD_NAMES += ["x; isDirectory=true; modification_time=1; access_time=2", "a\nb", "-", "\\"]
VIEW = "fs.viewfs.mounttable.{}.link./lake"


@pytest.fixture(params=["here", "elsewhere"])
def io(request: pytest.FixtureRequest, here: FileIO) -> FileIO:
    """The files, beside the session and as an executor has them."""
    if request.param == "here":
        return here
    sent: FileIO = pickle.loads(pickle.dumps(here))
    assert isinstance(sent.stores, StoresElsewhere)
    return sent


def names_in(folder: Path) -> list[str]:
    """What lies in a folder, without the checksums of Hadoop's local file system."""
    return sorted(name for name in os.listdir(folder) if not name.endswith(".crc"))


def test_names_are_literal(io: FileIO, place: tuple[str, Path]) -> None:
    base, folder = place
    for name in ODD_NAMES:
        path = f"{base}/{name}/file {name}"
        io.create(path, b"1")
        assert (folder / name / f"file {name}").read_bytes() == b"1"
        assert io.read(path) == b"1"
        assert [(found.path, found.size) for found in io.list(base)] == [(path, 1)]
        assert io.list_folder(base) == ((name, True),)
        assert io.list_level(base) == ([], [f"{base}/{name}"])
        io.delete(path)
        assert not io.exists(path)
        io.delete_empty_folder(f"{base}/{name}")
        assert names_in(folder) == []


def test_a_file_of_a_killed_writer_is_written_anew(io: FileIO, place: tuple[str, Path]) -> None:
    base, folder = place
    for left in (b"", b"ha"):
        io.write(f"{base}/f", left, overwrite=True)
        io.create_unique(f"{base}/f", b"half")
        assert io.read(f"{base}/f") == b"half"
    for other in (b"other", b"half and more"):
        io.write(f"{base}/f", other, overwrite=True)
        with pytest.raises(AlreadyExistsError, match="exists"):
            io.create_unique(f"{base}/f", b"half")
        assert io.read(f"{base}/f") == other
    assert names_in(folder) == ["f"]


def test_folders(io: FileIO, place: tuple[str, Path]) -> None:
    base, folder = place
    io.make_folder(f"{base}/a/b")
    io.make_folder(f"{base}/a/b")
    io.create(f"{base}/a/f", b"123")
    os.utime(folder / "a/f", (1_700_000_000, 1_700_000_000))
    assert io.list_folder(f"{base}/a") == (("b", True), ("f", False))
    assert [(f.path, f.size, f.modified_ms) for f in io.list(base)] == [
        (f"{base}/a/f", 3, 1_700_000_000_000)
    ]
    with pytest.raises(StorageError, match="not empty"):
        io.delete_empty_folder(f"{base}/a")
    for call in (io.delete, io.size, io.read):
        with pytest.raises(StorageError):
            call(f"{base}/a")
    io.delete_folder(f"{base}/a/f")
    io.delete_empty_folder(f"{base}/a/f")
    assert (io.is_folder(f"{base}/a"), io.is_folder(f"{base}/a/f")) == (True, False)
    assert list(io.list(f"{base}/a/f")) == []
    assert io.is_folder(f"{base.rpartition('/')[0]}/")
    assert io.list_folder(f"{base.rpartition('/')[0]}/") == (("lake", True),)
    io.delete_folder(f"{base}/a")
    assert names_in(folder) == []


def test_a_file_is_no_folder_that_holds_itself(io: FileIO, place: tuple[str, Path]) -> None:
    base, _ = place
    io.create(f"{base}/f/f", b"1")
    assert io.list_folder(f"{base}/f") == (("f", False),)
    with pytest.raises(MissingFileError):
        io.list_folder(f"{base}/f/f")
    # A view tells no marks: it may lead to a store whose times are coarse.
    assert io.marks(f"{base}/f", ["f"]) is None


def test_a_local_disk_takes_no_commits(io: FileIO, place: tuple[str, Path]) -> None:
    base, _ = place
    # Hadoop's local file system looks before it renames: another may come between.
    assert not io.creates_atomically(f"{base}/f")
    assert not io.creates_atomically(f"{base}/none/d/f")


@pytest.mark.parametrize(
    ("path", "error", "words"),
    [
        ("zz://a/b", UnsupportedError, "spark.hadoop.fs.zz.impl"),
        ("s3://bucket/b", ConfigurationError, "hadoop-aws"),
        ("viewfs://nowhere/b", StorageError, "mount table"),
        ("hdfs://127.0.0.1:1/b", StorageError, "127.0.0.1:1"),
    ],
)
def test_a_store_that_is_not_reached_is_named(
    spark: Any, session: Any, path: str, error: type[FrazilError], words: str
) -> None:
    session(**{"ipc.client.connect.max.retries": "0"})
    io = FileIO(stores=stores_of({"io": "hadoop"}, spark))
    with pytest.raises(error, match="(?i)" + words) as caught:
        io.read(path)
    assert path.partition("://")[0] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_lakes_do_not_share_settings(spark: Any, tmp_path: Path) -> None:
    """The second configuration counts for the second lake alone, though the names are the same."""
    key, found = VIEW.format("twice"), []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
        spark.conf.set(key, f"file://{tmp_path}/{name}")
        found.append(FileIO(stores=stores_of({"io": "hadoop"}, spark)))
        found[-1].read("viewfs://twice/lake/f")
    spark.conf.unset(key)
    assert [io.read("viewfs://twice/lake/f") for io in found] == [b"first", b"second"]


def test_nobody_without_the_key_is_answered(spark: Any, here: FileIO) -> None:
    sent = pickle.loads(pickle.dumps(here)).stores
    assert repr(sent.key) not in repr(sent)
    # One that says nothing keeps no other waiting.
    with (
        socket.create_connection(sent.address),
        Client(sent.address) as connection,
        pytest.raises((AuthenticationError, EOFError)),
    ):
        prove_as_client(connection, b"guessed")


def test_an_executor_that_does_not_reach_the_driver_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = taken.getsockname()
    io = FileIO(stores=StoresElsewhere(address, b"k"))
    with pytest.raises(StorageError, match=f"{address[1]}.*frazil.files.port"):
        io.read("hdfs://a/b")


@pytest.mark.parametrize("port", ["65536", "-1", "http"])
def test_what_is_no_port_is_refused(spark: Any, session: Any, port: str) -> None:
    session(frazil__files__port=port)
    with pytest.raises(ConfigurationError, match=f"'{port}': it must be a port"):
        pickle.dumps(stores_of({"io": "hadoop"}, spark))


def test_content_is_in_no_log(
    here: FileIO, place: tuple[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    here.create(f"{place[0]}/f", b"confidential")
    assert here.read(f"{place[0]}/f") == b"confidential"
    assert "confidential" not in caplog.text


def test_the_choice_is_checked(spark: Any) -> None:
    with pytest.raises(ConfigurationError, match="io is 'fsspec': it must be hadoop"):
        stores_of({"io": "fsspec"}, spark)
    assert stores_of({}, spark) is None
    assert isinstance(stores_of({"io": "hadoop"}), HadoopStores)


def test_without_a_session_the_error_says_what_to_do() -> None:
    catalog = open_catalog(
        resolve("c", {"type": "filesystem", "warehouse": "hdfs://n/w", "io": "hadoop"})
    )
    with pytest.raises(ConfigurationError, match=r"frazil\.connect\(spark"):
        catalog.list_namespaces()


@pytest.mark.parametrize("scheme", ["hdfs", "viewfs"])
def test_without_the_choice_the_error_names_it(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/none")
    with pytest.raises((StorageError, UnsupportedError), match="io=hadoop"):
        FileIO().read(f"{scheme}://127.0.0.1:1/f")


@pytest.mark.parametrize("version", in_circles(["2", "3"], test=1))
def test_a_lake_from_end_to_end(
    spark: Any, place: tuple[str, Path], tmp_path: Path, version: str, monkeypatch: Any
) -> None:
    base, folder = place
    # Footers are read by executors, through the driver.
    monkeypatch.setattr(costs, "REMOTE_FOOTERS", costs.Cost(here=0, a_task=1, threads=1))
    uri = f"sqlite:///{tmp_path}/catalog.db"
    with connect(spark, warehouse=base, uri=uri, io="hadoop") as lake:
        lake.create_namespace("db")
        properties = {"format-version": version, "write.delete.mode": "merge-on-read"}
        table = lake.create_table("db.t", "id bigint, name string", properties=properties)
        table.append(spark.range(20).selectExpr("id", "'a' as name"))
        table.append(spark.range(20, 30).selectExpr("id", "'b' as name"))
        first = table.metadata.snapshots[0].snapshot_id
        table.delete("id % 10 = 3")
        assert table.scan().count() == 27
        lake.call(
            "CALL system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))"
        )
        rows = lake.load_table("db.t").scan().to_df().collect()
        assert {row.id for row in rows} == set(range(30)) - {3, 13, 23}
        assert table.scan(snapshot_id=first).to_df().count() == 20
    metadata = names_in(folder / "db" / "t" / "metadata")
    assert not [name for name in metadata if name.endswith(".tmp")]


def test_statuses_are_read_from_the_end() -> None:
    """Of a name that looks like a status, the last one is Hadoop's."""
    name = "f; isDirectory=true; modification_time=7; access_time=1"
    rest = "; owner=o; group=g; permission=rw-; isSymlink=false; hasAcl=false}"
    text = (
        f"HdfsNamedFileStatus{{path=hdfs://n/{name}; isDirectory=false; length=3; replication=1; "
        f"blocksize=9; modification_time=5; access_time=0{rest}|"
        f"HdfsNamedFileStatus{{path=hdfs://n/d; isDirectory=true; modification_time=6; "
        f"access_time=0{rest}|"
    )
    assert list(statuses_of(text, "|")) == [
        FileStatus(f"hdfs://n/{name}", False, 3, 5),
        FileStatus("hdfs://n/d", True, 0, 6),
    ]
    assert list(statuses_of("", "|")) == []
    with pytest.raises(StorageError, match="unknown form"):
        list(statuses_of("org.x.Status@12|", "|"))


@pytest.mark.parametrize(
    ("kind", "message", "error", "words"),
    [
        ("java.io.FileNotFoundException", "no", FileNotFoundError, ""),
        ("org.apache.hadoop.fs.FileAlreadyExistsException", "it", FileExistsError, ""),
        ("org.apache.hadoop.fs.PathIsNotEmptyDirectoryException", "", OSError, "not empty"),
        (
            "org.apache.hadoop.security.AccessControlException",
            'Permission denied: user=u, access=WRITE, inode="/":root\n\tat x',
            OSError,
            "Permission denied: user=u",
        ),
        ("java.io.IOException", "", OSError, "IOException"),
    ],
)
def test_what_java_throws_is_pythons(
    kind: str, message: str, error: type[Exception], words: str
) -> None:
    found = python_error(kind, message, "hdfs://n/f")
    assert isinstance(found, error)
    assert words in str(found)
    assert "\tat" not in str(found)


HDFS_STATUS = (
    "HdfsNamedFileStatus{path=hdfs://h/t/metadata/%s; isDirectory=%s; length=%d; replication=1; "
    "blocksize=134217728; modification_time=%d; access_time=3; owner=o; group=g; "
    "permission=rw-r--r--; isSymlink=false; hasAcl=false; isEncrypted=false; isErasureCoded=false}"
)


def test_marks_are_of_files_by_their_whole_names() -> None:
    told = [("v1.json", "false", 5, 7), ("v11.json", "false", 6, 8), ("d", "true", 0, 9)]
    text = "{" + ",".join(HDFS_STATUS % each for each in told) + "}"
    found = marks_of(text, ["v1.json", "1.json", "v11.json", "d", "v2.json"])
    assert found == {"v1.json": "5 7", "v11.json": "6 8"}
    assert marks_of("{}", ["v1.json"]) == {}


def test_names_with_signs_of_a_pattern_have_no_marks() -> None:
    assert alternatives("hdfs://h/a b/c", ["f", "g"]) == "hdfs://h/a b/{c/f,c/g}"
    for sign in "\\*?[]{},;^":
        assert alternatives(f"hdfs://h/a{sign}/c", ["f"]) is None
        assert alternatives("hdfs://h/a/c", [f"f{sign}"]) is None
