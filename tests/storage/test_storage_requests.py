"""How many requests a store of S3 gets for each operation, and which wait for each other."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from table_cases import SCHEMA, data_file, make_table

from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.catalog.pointer.sql import SqlCatalog
from frazil.catalog.protocol import Catalog
from frazil.errors import MissingFileError
from frazil.planning.plan import plan
from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle
from s3_counted import Counted, CountedStore, Fault, counted_s3

Count = Callable[[Callable[[], object]], Counted]


@pytest.fixture(scope="module")
def server() -> Iterator[CountedStore]:
    with counted_s3() as server:
        yield server


@pytest.fixture
def bucket(server: CountedStore) -> str:
    return server.new_bucket(f"b{uuid.uuid4().hex}")


@pytest.fixture
def io(server: CountedStore) -> FileIO:
    return FileIO(server.properties)


@pytest.fixture
def count(server: CountedStore) -> Count:
    """The requests of a call, each of which takes 20 ms."""

    def counted(call: Callable[[], object]) -> Counted:
        server.take()
        server.wait(20)
        try:
            call()
        finally:
            server.wait(0)
        return server.take()

    return counted


FILES: Mapping[str, tuple[Callable[[FileIO, str], object], dict[str, int]]] = {
    "read": (lambda io, at: io.read(f"{at}/d/f"), {"GET": 1}),
    "range": (lambda io, at: io.read_range(f"{at}/d/f", offset=2, length=3), {"GET": 1}),
    "behind the end": (lambda io, at: io.read_range(f"{at}/d/f", offset=99, length=3), {"GET": 1}),
    "stream": (lambda io, at: io.open_input(f"{at}/d/f").read(), {"GET": 1}),
    "size": (lambda io, at: io.size(f"{at}/d/f"), {"HEAD": 1}),
    "exists": (lambda io, at: io.exists(f"{at}/d/f"), {"HEAD": 1}),
    "is no file": (lambda io, at: io.exists(f"{at}/d"), {"HEAD": 1, "LIST": 1}),
    "is folder": (lambda io, at: io.is_folder(f"{at}/d"), {"LIST": 1}),
    "list": (lambda io, at: list(io.list(at)), {"LIST": 1}),
    "list folder": (lambda io, at: io.list_folder(f"{at}/d"), {"LIST": 1}),
    "create": (lambda io, at: io.create(f"{at}/new", b"1"), {"PUT": 1}),
    "replace": (lambda io, at: io.write(f"{at}/d/f", b"1", overwrite=True), {"PUT": 1}),
    "delete": (lambda io, at: io.delete(f"{at}/d/f"), {"HEAD": 1, "DELETE": 1}),
    "delete many": (lambda io, at: io.delete_many([f"{at}/d/{n}" for n in "fgh"]), {"DELETE": 1}),
    "delete folder": (lambda io, at: io.delete_folder(f"{at}/d"), {"LIST": 1, "DELETE": 1}),
    "move": (lambda io, at: io.move(f"{at}/d/f", f"{at}/m"), {"HEAD": 1, "PUT": 1, "DELETE": 1}),
}


def test_an_operation_on_files_makes_the_requests_that_it_needs(
    io: FileIO, bucket: str, count: Count
) -> None:
    io.exists(bucket)
    for name, (call, expected) in FILES.items():
        for each in "fg":
            io.write(f"{bucket}/d/{each}", b"0123456789", overwrite=True)
        assert (name, count(lambda call=call: call(io, bucket)).actions) == (name, expected)


@pytest.mark.parametrize("size", [0, 70_000, 20_000_000])
def test_a_stream_is_read_by_few_ranges(io: FileIO, bucket: str, count: Count, size: int) -> None:
    content = (bytes(range(251)) * (size // 251 + 1))[:size]
    io.create(f"{bucket}/f", content)
    read: list[bytes] = []

    def in_steps() -> None:
        with io.open_input(f"{bucket}/f") as stream:
            stream.seek(max(0, size - 9))
            read.append(stream.read())
            stream.seek(0)
            read.extend(iter(lambda: stream.read(1 << 16), b""))

    assert len(count(in_steps)) == {0: 1, 70_000: 2, 20_000_000: 3}[size]
    assert b"".join(read) == content[-9:] + content


@pytest.mark.check
def test_many_files_go_by_a_request_for_each_thousand(
    io: FileIO, bucket: str, count: Count
) -> None:
    told: list[None] = []
    names = [f"{bucket}/{n}" for n in range(2001)]
    io.create(names[5], b"")
    deleted = count(lambda: io.delete_many(names, on_each=lambda: told.append(None)))
    assert (len(deleted), deleted.depth, len(told)) == (3, 1, 2001)
    with pytest.raises(MissingFileError):
        io.read(names[5])


@pytest.fixture
def opened(server: CountedStore, bucket: str, tmp_path: Path, kind: str) -> Callable[[], Catalog]:
    """Opens the catalog as a new process would: with nothing in memory."""

    def opened() -> Catalog:
        own: dict[str, Any] = {"warehouse": f"{bucket}/w", **server.properties}
        if kind == "sql":
            return SqlCatalog("c", {"uri": f"sqlite:///{tmp_path}/c.db", **own})
        return FilesystemCatalog("c", own)

    return opened


def old(table: TableHandle) -> Any:
    """Orphans are looked for among all files."""
    return table.maintenance.remove_orphan_files(
        dry_run=True, older_than=datetime.now(UTC), least_age=timedelta(0)
    )


# Requests, and how many of them wait for each other: at most. A busy machine makes some wait more.
TABLES: Mapping[str, dict[str, tuple[int, int]]] = {
    "sql": {
        "append": (3, 3),
        "load again": (0, 0),
        "first load": (1, 1),
        "first plan": (4, 4),
        "plan again": (0, 0),
        "append after others": (5, 5),
        "delete of a file": (9, 6),
        "orphans": (3, 3),
        "expiry": (3, 3),
        "purge": (6, 6),
    },
    "filesystem": {
        "append": (16, 12),
        "load again": (4, 4),
        "first load": (12, 12),
        "first plan": (4, 4),
        "plan again": (0, 0),
        "append after others": (28, 23),
        "delete of a file": (22, 15),
        "orphans": (10, 8),
        "expiry": (15, 12),
        "purge": (26, 25),
    },
}


@pytest.mark.parametrize("kind", ["sql", pytest.param("filesystem", marks=pytest.mark.check)])
def test_an_operation_on_a_table_makes_no_request_more(
    opened: Callable[[], Catalog], kind: str, count: Count
) -> None:
    catalog = opened()
    table = make_table(catalog, schema=SCHEMA)
    for name in "ab":
        table.files.append([data_file(name)])
    others: list[TableHandle] = []

    def planned() -> object:
        return plan(others[0].metadata, others[0].current_snapshot, others[0].io)

    def load_first() -> None:
        other = opened()
        others.append(TableHandle(other, other.load_table("db.t")))

    operations: dict[str, Callable[[], object]] = {
        "append": lambda: table.files.append([data_file("c")]),
        "load again": lambda: catalog.load_table("db.t"),
        "first load": load_first,
        "first plan": planned,
        "plan again": planned,
        "append after others": lambda: table.files.append([data_file("e")]),
        "delete of a file": lambda: table.files.delete(removed=[data_file("a")]),
        "orphans": lambda: old(table),
        "expiry": lambda: table.maintenance.expire_snapshots(
            older_than="2999-01-01", retain_last=1
        ),
        "purge": lambda: catalog.purge_table("db.t"),
    }
    found = {}
    for name, operation in operations.items():
        if name == "append after others":
            others[0].files.append([data_file("d")])
        counted = count(operation)
        found[name] = len(counted), counted.depth
    allowed = TABLES[kind]
    more = {
        name: (each, allowed[name])
        for name, each in found.items()
        if each[0] > allowed[name][0] or each[1] > allowed[name][1]
    }
    assert more == {}


@pytest.mark.parametrize("kind", ["sql"])
def test_uploads_that_were_never_completed_are_found_and_removed(
    opened: Callable[[], Catalog], server: CountedStore, bucket: str
) -> None:
    table = make_table(opened(), schema=SCHEMA)
    own, name = server.client, bucket.removeprefix("s3://")
    below = table.location.removeprefix(f"{bucket}/")
    keys = [f"{below}/data/f", f"{below}x/other"]
    for key in keys:
        begun = own.create_multipart_upload(Bucket=name, Key=key)
        own.upload_part(Bucket=name, Key=key, UploadId=begun["UploadId"], PartNumber=1, Body=b"1")

    def left() -> list[str]:
        return [each["Key"] for each in own.list_multipart_uploads(Bucket=name)["Uploads"]]

    found = table.maintenance.remove_orphan_files(dry_run=True)
    assert found.unfinished_uploads == (f"{bucket}/{keys[0]}",)
    assert "never completed" in repr(found)
    assert left() == keys
    assert table.maintenance.remove_orphan_files().unfinished_uploads == found.unfinished_uploads
    assert left() == keys[1:]


@pytest.mark.parametrize("kind", ["sql"])
def test_a_store_that_tells_of_no_uploads_fails_no_search(
    opened: Callable[[], Catalog], server: CountedStore
) -> None:
    table = make_table(opened(), schema=SCHEMA)
    server.fail(Fault(times=1, status=403, code="AccessDenied", query="uploads"))
    assert table.maintenance.remove_orphan_files().unfinished_uploads == ()
    server.fail()
