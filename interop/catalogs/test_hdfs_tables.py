"""Tables of the filesystem catalog on HDFS by ``io=hadoop``: commits, kills, turns with Java."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from catalog_cases import new_metadata, set_properties
from hdfs_server import Hdfs, hdfs
from killed_writers import killed_at_each
from py4j.java_gateway import JavaMember
from table_cases import data_file, short

from ci_share import only_in_soak
from frazil.catalog.config import CatalogConfig, open_catalog
from frazil.catalog.protocol import Catalog
from frazil.errors import AlreadyExistsError, MissingFileError, StorageError
from frazil.format.manifests import DataFile
from frazil.spark.hadoop.stores import stores_of
from frazil.spark.lake import Lake, connect
from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle
from programs import Program

WRITER = Path(__file__).with_name("hdfs_writer.py")
COLUMNS = "id bigint, day string"
PATIENT = {"commit.retry.num-retries": "100000", "commit.retry.max-wait-ms": "500"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """A cluster for this module."""
    with hdfs(tmp_path_factory.mktemp("hdfs")) as running:
        yield running


@pytest.fixture
def lake(server: Hdfs, spark: Any) -> Iterator[Lake]:
    """A fresh warehouse, which is the catalog `java_hdfs` of the Java runtime as well."""
    warehouse = f"{server.uri}/{uuid4().hex}"
    with connect(spark, type="filesystem", warehouse=warehouse, io="hadoop") as made:
        made.create_namespace("db")
        yield made


@pytest.fixture
def io(server: Hdfs, spark: Any) -> FileIO:
    """The files of the cluster."""
    return FileIO(stores=stores_of({"io": "hadoop"}, spark))


def java_catalog(spark: Any, lake: Lake) -> str:
    """The name of a catalog of the Java runtime on the lake's warehouse."""
    name = f"java_{uuid4().hex[:8]}"
    settings = {"type": "hadoop", "warehouse": lake.catalog.properties["warehouse"]}
    spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    for key, value in {**settings, "cache-enabled": "false"}.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)
    return name


def names(table: TableHandle) -> list[str]:
    """The files of a table."""
    return sorted(map(short, table.refresh().inspect.files()["file_path"]))


# -- files ---------------------------------------------------------------------------------------


def test_one_of_many_creators_wins(io: FileIO, server: Hdfs) -> None:
    path = f"{server.uri}/{uuid4().hex}/f"
    assert io.creates_atomically(path)

    def create(number: int) -> int | None:
        try:
            io.create(path, str(number).encode() * 20_000)
        except AlreadyExistsError:
            return None
        return number

    with ThreadPoolExecutor(8) as threads:
        won = [each for each in threads.map(create, range(8)) if each is not None]
    assert len(won) == 1
    assert io.read(path) == str(won[0]).encode() * 20_000
    assert [found.path for found in io.list(path.rpartition("/")[0])] == [path]


def test_a_view_of_it_takes_commits_too(server: Hdfs, spark: Any) -> None:
    name = f"view{uuid4().hex[:8]}"
    key = f"fs.viewfs.mounttable.{name}.link./lake"
    spark.conf.set(key, f"{server.uri}/{name}")
    FileIO(stores=stores_of({"io": "hadoop"}, spark)).make_folder(f"{server.uri}/{name}")
    with connect(spark, type="filesystem", warehouse=f"viewfs://{name}/lake", io="hadoop") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", "id bigint")
        table.append(spark.range(5))
        table.delete("id = 3")
        assert lake.load_table("db.t").scan().count() == 4
        with pytest.raises(AlreadyExistsError):
            lake.catalog.io.create(f"{table.location}/metadata/v1.metadata.json", b"")
    spark.conf.unset(key)


def test_errors_are_typed(io: FileIO, server: Hdfs) -> None:
    base = f"{server.uri}/{uuid4().hex}"
    with pytest.raises(MissingFileError, match="no such file"):
        io.read(f"{base}/none")
    io.create(f"{base}/f", b"1")
    with pytest.raises(StorageError, match="directory"):
        io.delete(base)
    with pytest.raises(StorageError, match="not empty"):
        io.delete_empty_folder(base)
    with pytest.raises(StorageError):
        io.create(f"{base}/f/below", b"1")
    action = server.java.org.apache.hadoop.fs.SafeModeAction
    server.cluster.getFileSystem().setSafeMode(action.ENTER)
    try:
        with pytest.raises(StorageError, match="safe mode") as caught:
            io.delete(f"{base}/f")
    finally:
        server.cluster.getFileSystem().setSafeMode(action.LEAVE)
    assert "\n" not in str(caught.value)
    assert io.read(f"{base}/f") == b"1"


# -- commits -------------------------------------------------------------------------------------


def opened_by(spark: Any, properties: dict[str, str]) -> Catalog:
    """A catalog by a session."""
    return open_catalog(CatalogConfig("lake", properties), stores=stores_of(properties, spark))


def connect_anew(client: Any) -> object:
    """Give a forked child connections of its own; return those of its parent, to be kept open."""
    inherited = client.deque, client.thread_connection
    client.deque, client.thread_connection = deque(), threading.local()
    return inherited


def run_killed(
    spark: Any, step: int, *, after: bool, properties: dict[str, str], report: int
) -> None:
    """Make a table and commit twice; dies at a call of the virtual machine, before it or after."""
    inherited = connect_anew(spark.sparkContext._gateway._gateway_client)
    count, real = 0, JavaMember.__call__

    def call(member: JavaMember, *arguments: Any) -> Any:
        nonlocal count
        count += 1
        mine = count
        if mine == step and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            return real(member, *arguments)
        finally:
            if mine == step:
                os.kill(os.getpid(), signal.SIGKILL)

    catalog = opened_by(spark, properties)
    catalog.namespace_exists("db")
    JavaMember.__call__ = call
    metadata = new_metadata(catalog, "db.t")
    table = TableHandle(catalog, catalog.create_table("db.t", metadata))
    os.write(report, b"created\n")
    for number in range(2):
        path = f"{metadata.location}/data/{uuid4().hex}.parquet"
        content = parquet_of(3)
        catalog.io.create(path, content)
        file = DataFile(file_path=path, record_count=3, file_size_in_bytes=len(content))
        with table.transaction() as changes:
            changes.files.fast_append([file])
            changes.set_properties(**{f"c{number}": "1"})
        os.write(report, b"c%d\n" % number)
    del inherited


def parquet_of(rows: int) -> bytes:
    """A file of so many rows."""
    stream = pa.BufferOutputStream()
    columns = {"id": pa.array(range(rows), pa.int64()), "s": pa.array(["s"] * rows)}
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("after", "each"), [(False, 3), only_in_soak(False, 1), only_in_soak(True, 1)]
)
def test_a_writer_killed_at_any_call(lake: Lake, spark: Any, after: bool, each: int) -> None:
    """What it leaves is whole: no file that a commit names is missing, and the next one works."""
    warehouse = lake.catalog.properties["warehouse"]
    steps, seen = killed_at_each(
        {"type": "filesystem", "io": "hadoop", "warehouse": warehouse},
        partial(run_killed, spark),
        after=after,
        each=each,
        open_it=partial(opened_by, spark),
    )
    # A data file, a manifest, a list, a version and its hint: each takes several calls.
    assert steps > 30
    assert seen == {(), ("created",), ("created", "c0"), ("created", "c0", "c1")}


def test_a_version_of_another_is_seen_at_once(lake: Lake, spark: Any) -> None:
    """Though a table that has not changed is not read again, nor looked for from the hint on."""
    table = lake.create_table("db.t", COLUMNS)
    warehouse = lake.catalog.properties["warehouse"]
    properties = {"type": "filesystem", "io": "hadoop", "warehouse": warehouse}
    other = opened_by(spark, properties)
    for number in range(3):
        set_properties(lake.catalog, "db.t", n=str(number))
        for catalog in (other, lake.catalog):
            for _ in range(2):
                assert catalog.load_table("db.t").metadata.properties["n"] == str(number)
        set_properties(other, "db.t", o=str(number))
        assert lake.catalog.load_table("db.t").metadata.properties["o"] == str(number)
    # Another table has the name, and a version of the same number.
    other.drop_table("db.t")
    assert not lake.catalog.table_exists("db.t")
    other.create_table("db.t", new_metadata(other, "db.t"))
    for number in range(6):
        assert lake.catalog.load_table("db.t").metadata == other.load_table("db.t").metadata
        set_properties(other, "db.t", p=str(number))
    found = lake.catalog.load_table("db.t")
    assert found.metadata.properties["p"] == "5"
    assert found.metadata.table_uuid != table.metadata.table_uuid
    # A hint that is gone, or leads elsewhere, as a crash of its writer leaves it.
    hint = f"{table.location}/metadata/version-hint.text"
    for text in (b"1", b"99", None):
        lake.catalog.io.delete(hint)
        if text is not None:
            lake.catalog.io.create(hint, text)
        assert lake.catalog.load_table("db.t") == other.load_table("db.t")
        assert lake.catalog.load_table("db.t").metadata.properties["p"] == "5"


def test_an_unchanged_table_takes_few_calls(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.create_table("db.t", COLUMNS)
    set_properties(lake.catalog, "db.t", a="1")
    lake.catalog.load_table("db.t")
    calls: list[str] = []
    real = JavaMember.__call__

    def call(member: JavaMember, *arguments: Any) -> Any:
        calls.append(member.name)
        return real(member, *arguments)

    monkeypatch.setattr(JavaMember, "__call__", call)
    assert lake.catalog.load_table("db.t").metadata.properties["a"] == "1"
    # One look at the hint, the version and the next one, and its answer as text.
    assert calls == ["globStatus", "toString"]


def acknowledged_by(
    lake: Lake, writers: int, commits: int, lives: Callable[[int], float] = lambda _: 0
) -> list[list[str]]:
    """What writers in processes of their own acknowledge, which all begin at once.

    Args:
        lives: after how many seconds each of them is killed; 0 for never.
    """
    warehouse = lake.catalog.properties["warehouse"]
    with ExitStack() as stack:
        running = [
            stack.enter_context(Program(WRITER, warehouse, number, commits, lives(number)))
            for number in range(writers)
        ]
        for writer in running:
            writer.wait_until(partial(writer.has_printed, 1))
        for writer in running:
            writer.tell("go\n")
        printed = [
            writer.end(code=-signal.SIGALRM if lives(number) else 0)
            for number, writer in enumerate(running)
        ]
        return [text.split()[1:] for text in printed]


def test_every_commit_of_many_processes_is_there_once(lake: Lake) -> None:
    lake.create_table("db.t", COLUMNS, partition_by=["day"], properties=PATIENT)
    acknowledged = acknowledged_by(lake, 8, 12)
    table = TableHandle(lake.catalog, lake.catalog.load_table("db.t"))
    assert [len(each) for each in acknowledged] == [12] * 8
    assert names(table) == sorted(name for each in acknowledged for name in each)
    assert [s.sequence_number for s in table.metadata.snapshots] == list(range(1, 97))


def test_killed_processes_leave_whole_commits(lake: Lake) -> None:
    lake.create_table("db.t", COLUMNS, partition_by=["day"], properties=PATIENT)
    acknowledged = acknowledged_by(lake, 4, 1000, lambda number: 0.5 + number)
    table = TableHandle(lake.catalog, lake.catalog.load_table("db.t"))
    found, told = set(names(table)), {name for each in acknowledged for name in each}
    # The last commit of each may be there though nobody was told.
    assert told <= found
    assert len(found - told) <= 4
    table.files.fast_append([data_file("after")])


# -- another engine ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
def test_java_and_frazil_take_turns(lake: Lake, spark: Any, version: int) -> None:
    java = java_catalog(spark, lake)
    properties = {"format-version": str(version)}
    properties |= {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}
    table = lake.create_table("db.t", "id int, v string", properties=properties)
    rows: dict[int, str] = {}
    for turn in range(4):
        new = {turn * 10 + each: f"frazil{turn}" for each in range(4)}
        table.refresh().append(spark.createDataFrame(list(new.items()), "id int, v string"))
        spark.sql(f"insert into {java}.db.t values ({turn * 10 + 8}, 'java{turn}')")
        table.refresh().delete(f"id = {turn * 10}")
        spark.sql(f"update {java}.db.t set v = 'changed' where id = {turn * 10 + 1}")
        rows |= {**new, turn * 10 + 8: f"java{turn}", turn * 10 + 1: "changed"}
        del rows[turn * 10]
        ours = {(row.id, row.v) for row in lake.load_table("db.t").scan().to_df().collect()}
        theirs = {(row.id, row.v) for row in spark.sql(f"select * from {java}.db.t").collect()}
        assert ours == theirs == set(rows.items())
    assert len(table.refresh().metadata.snapshots) == 16
    spark.sql(f"call {java}.system.rewrite_data_files(table => 'db.t')")
    assert lake.load_table("db.t").scan().count() == len(rows)
    lake.load_table("db.t").compact()
    assert spark.table(f"{java}.db.t").count() == len(rows)


def test_java_and_frazil_at_once(lake: Lake, spark: Any) -> None:
    """Each tries again after the other was first, and no commit of either is lost."""
    java = java_catalog(spark, lake)
    lake.create_table("db.t", COLUMNS, partition_by=["day"], properties=PATIENT)

    def theirs() -> None:
        for number in range(8):
            spark.sql(f"alter table {java}.db.t set tblproperties ('java{number}' = 'done')")

    def ours() -> None:
        table = TableHandle(lake.catalog, lake.catalog.load_table("db.t"))
        for number in range(8):
            table.refresh().set_properties(**{f"frazil{number}": "done"})

    with ThreadPoolExecutor(2) as threads:
        for each in [threads.submit(theirs), threads.submit(ours)]:
            each.result()
    found = lake.load_table("db.t").metadata.properties
    assert {f"{who}{number}" for who in ("java", "frazil") for number in range(8)} <= set(found)
