"""Frazil and PyIceberg take turns on tables of Nessie; the tables' files lie in S3.

Turns with Java, and with Spark's rows, are in the folder `nessie`: a session with the jars for S3
runs in a process of its own.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from catalog_cases import SCHEMA, opened
from interop_nessie import Nessie
from pyiceberg.catalog.rest import RestCatalog as PyIcebergCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

from frazil.catalog.protocol import Catalog, TableCommit
from frazil.errors import (
    CommitFailedError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)
from frazil.format.changes import AssertTableUUID, SetProperties
from frazil.format.manifests import DataFile
from frazil.format.new_table import new_table_metadata
from frazil.table.handle import TableHandle
from frazil.table.snapshots.append import FastAppend
from programs import run_program

FOLDER = Path(__file__).parent / "nessie"


@pytest.fixture
def address(nessie: Nessie) -> str:
    """A new branch of the server."""
    return nessie.empty_branch()


@pytest.fixture
def connect(nessie: Nessie, address: str) -> Iterator[Callable[[], Catalog]]:
    """Opens catalogs of the branch."""
    made: list[Catalog] = []

    def connect() -> Catalog:
        made.append(opened({"type": "rest", "uri": address, **nessie.properties}))
        return made[-1]

    yield connect
    for each in made:
        each.close()


@pytest.fixture
def peer(nessie: Nessie, address: str) -> PyIcebergCatalog:
    """PyIceberg's client of the branch."""
    return PyIcebergCatalog("lake", uri=address, **nessie.properties)


def make_table(catalog: Catalog, name: str) -> TableHandle:
    if not catalog.namespace_exists(name.rpartition(".")[0]):
        catalog.create_namespace(name.rpartition(".")[0])
    metadata = new_table_metadata(
        SCHEMA,
        location=catalog.default_table_location(name),
        properties={"commit.retry.num-retries": "30", "commit.retry.min-wait-ms": "10"},
    )
    return TableHandle(catalog, catalog.create_table(name, metadata))


def append(table: TableHandle, *ids: int) -> None:
    """Append rows, by a file that Arrow writes."""
    fields = [
        pa.field(each.name, kind, not each.required, {"PARQUET:field_id": str(each.field_id)})
        for each, kind in zip(SCHEMA.fields, (pa.int64(), pa.string()), strict=True)
    ]
    rows = pa.table([list(ids), [f"s{each}" for each in ids]], schema=pa.schema(fields))
    content = io.BytesIO()
    pq.write_table(rows, content)
    path = f"{table.location}/data/{uuid4()}.parquet"
    table.io.write(path, content.getvalue())
    file = DataFile(
        file_path=path, record_count=len(ids), file_size_in_bytes=len(content.getvalue())
    )
    table.port.run(FastAppend(table.io, [file]))


def rows_of(peer: PyIcebergCatalog, name: str) -> list[tuple[Any, ...]]:
    found = peer.load_table(name).scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_turns_with_pyiceberg(connect: Callable[[], Catalog], peer: PyIcebergCatalog) -> None:
    table = make_table(connect(), "db.t")
    append(table, 1, 2)
    assert rows_of(peer, "db.t") == [(1, "s1"), (2, "s2")]
    theirs = peer.load_table("db.t")
    more = pa.table({"id": [3], "s": ["s3"]}, schema=theirs.schema().as_arrow())
    theirs.append(more)
    # PyIceberg itself sends new schemas without `last-column-id`, which this Nessie wants.
    with table.refresh().update_schema() as change:
        change.rename_column("s", "name")
    assert [each.name for each in theirs.refresh().schema().fields] == ["id", "name"]
    assert table.current_snapshot is not None
    assert table.current_snapshot.summary["total-records"] == "3"
    append(table, 4)
    table.create_branch("audit")
    table.set_properties({"owner": "me"})
    theirs.refresh().delete("id = 1")
    assert rows_of(peer, "db.t") == [(2, "s2"), (3, "s3"), (4, "s4")]
    assert theirs.properties["owner"] == "me"
    table.refresh()
    assert table.current_snapshot.summary["total-records"] == "3"
    assert table.current_snapshot.snapshot_id == theirs.metadata.current_snapshot_id


def test_racing_appends_count_once(connect: Callable[[], Catalog], peer: PyIcebergCatalog) -> None:
    make_table(connect(), "db.raced")

    def ours(number: int) -> None:
        catalog = connect()
        table = TableHandle(catalog, catalog.load_table("db.raced"))
        for step in range(4):
            append(table, 100 * number + step)

    def theirs(number: int) -> None:
        row = pa.table(
            {"id": [number], "s": ["p"]}, schema=peer.load_table("db.raced").schema().as_arrow()
        )
        for _attempt in range(30):
            try:
                peer.load_table("db.raced").append(row)
                return
            except (CommitFailedException, CommitStateUnknownException):
                continue
        raise AssertionError("every try lost")

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(ours, number) for number in (1, 2, 3)]
        running.append(pool.submit(theirs, 1))
        for each in running:
            each.result()
    wanted = [1, *(100 * number + step for number in (1, 2, 3) for step in range(4))]
    assert [row[0] for row in rows_of(peer, "db.raced")] == wanted


def test_several_tables_are_changed_together(connect: Callable[[], Catalog]) -> None:
    catalog = connect()
    tables = [make_table(catalog, f"db.{name}") for name in "ab"]
    names = [table.identifier for table in tables]
    uuids = [AssertTableUUID(table.uuid or "") for table in tables]
    first, second = (SetProperties({"k": "1"}),), (SetProperties({"k": "2"}),)
    catalog.commit_tables(
        [TableCommit(name, (uuid,), first) for name, uuid in zip(names, uuids, strict=True)]
    )
    with pytest.raises(CommitFailedError):
        catalog.commit_tables(
            [TableCommit(names[0], (uuids[0],), second), TableCommit(names[1], (uuids[0],), second)]
        )
    assert [connect().load_table(name).metadata.properties["k"] for name in names] == ["1", "1"]


def test_tables_and_namespaces(connect: Callable[[], Catalog]) -> None:
    catalog = connect()
    with pytest.raises((NoSuchNamespaceError, NamespaceAlreadyExistsError)):
        catalog.create_namespace("a.b.c")
    for name in ("a", "a.b", "a.b.c", "other"):
        catalog.create_namespace(name)
    assert catalog.list_namespaces("a") == [("a", "b")]
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("a")
    table = make_table(catalog, "a.b.t")
    catalog.rename_table("a.b.t", "other.t")
    assert catalog.list_tables("a.b") == []
    assert catalog.load_table("other.t").metadata.table_uuid == table.uuid
    make_table(catalog, "other.taken")
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table("other.t", "other.taken")
    with pytest.raises(NoSuchTableError):
        catalog.rename_table("other.none", "other.u")
    with pytest.raises(NoSuchNamespaceError):
        catalog.rename_table("other.t", "none.t")
    with pytest.raises(ValidationError, match=r"gc\.enabled"):
        catalog.purge_table("other.t")
    with pytest.raises(UnsupportedError, match="unregister"):
        catalog.unregister_table("other.t")
    location = catalog.load_table("other.t").metadata_location
    catalog.drop_table("other.t")
    again = catalog.register_table("other.again", location)
    assert again.metadata.table_uuid == table.uuid
    change = (SetProperties({"a": "1"}),)
    with pytest.raises(CommitFailedError):
        catalog.commit_table("other.again", (AssertTableUUID(str(uuid4())),), change)


def test_definitions_are_changed(connect: Callable[[], Catalog]) -> None:
    table = make_table(connect(), "db.t")
    with table.update_schema() as change:
        change.add_column("day", "date").make_column_optional("id")
    with table.update_spec() as spec:
        spec.add_field("day")
    table.replace_sort_order("id")
    with table.update_schema() as change:
        change.delete_column("s")
    read = TableHandle(connect(), connect().load_table("db.t"))
    assert [each.name for each in read.schema.fields] == ["id", "day"]
    assert [each.name for each in read.spec.fields] == ["day"]
    assert [each.source_id for each in read.sort_order.fields] == [1]


def test_staged_tables(connect: Callable[[], Catalog]) -> None:
    catalog = connect()
    catalog.create_namespace("db")
    metadata = new_table_metadata(SCHEMA, location=catalog.default_table_location("db.s"))
    staged = catalog.stage_table("db.s", metadata)
    assert not catalog.table_exists("db.s")
    made = catalog.create_staged_table(staged)
    assert catalog.load_table("db.s").metadata.table_uuid == made.metadata.table_uuid
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_staged_table(staged)


def test_a_branch_has_its_own_tables(nessie: Nessie, connect: Callable[[], Catalog]) -> None:
    make_table(connect(), "db.here")
    other = {"type": "rest", "uri": nessie.empty_branch(), **nessie.properties}
    with closing(opened(other)) as catalog:
        assert catalog.list_namespaces() == []
    with pytest.raises(TableAlreadyExistsError):
        make_table(connect(), "db.here")


@pytest.mark.soak
def test_turns_with_java_and_spark(nessie: Nessie, tmp_path: Path) -> None:
    words = ["-p", "no:cacheprovider", "--tb=short", "cases_turns.py"]
    run_program("pytest", *words, seconds=1800, cwd=FOLDER, variables=nessie.variables(tmp_path))
