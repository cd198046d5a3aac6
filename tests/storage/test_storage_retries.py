"""A store of S3 that is busy, loses connections and answers: asked again, then a typed error."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from table_cases import data_file, make_table

from frazil.catalog.pointer.sql import SqlCatalog
from frazil.errors import AlreadyExistsError, CommitNotSentError, ConfigurationError, StorageError
from frazil.planning.plan import plan
from frazil.storage.files import FileIO
from frazil.storage.paths import name_of
from frazil.storage.stores.retries import Retries
from frazil.table.handle import TableHandle
from s3_counted import CountedStore, Fault, counted_s3

QUICK = {
    "s3.retry.num-retries": "3",
    "s3.retry.min-wait-ms": "1",
    "s3.retry.max-wait-ms": "4",
    "s3.request-timeout": "0.5",
}
FAULTS = {
    "busy": Fault(status=503),
    "too many": Fault(status=429, code="TooManyRequestsException"),
    "broken": Fault(status=500, code="InternalError"),
    "gateway": Fault(status=502, code=""),
    "reset": Fault(status=0),
    "late": Fault(waits=1.5, is_done=True, status=0),
    "answer lost": Fault(status=500, code="InternalError", is_done=True),
}
CUT = Fault(keeps=3)


@pytest.fixture(scope="module")
def server() -> Iterator[CountedStore]:
    with counted_s3() as server:
        yield server


@pytest.fixture
def bucket(server: CountedStore) -> Iterator[str]:
    yield server.new_bucket(f"b{uuid.uuid4().hex}")
    server.fail()


@pytest.fixture
def io(server: CountedStore) -> FileIO:
    return FileIO({**server.properties, **QUICK})


def planned(table: TableHandle) -> list[str]:
    """The names of the table's data files, as a plan that remembers nothing has them."""
    table.io.caches.clear()
    paths = plan(table.metadata, table.current_snapshot, table.io).files["file_path"]
    return sorted(name_of(path).partition(".")[0] for path in paths)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_what_passes_is_asked_again(
    server: CountedStore, io: FileIO, bucket: str, fault: Fault
) -> None:
    server.fail(replace(fault, times=2))
    io.create_unique(f"{bucket}/f", b"0123456789")
    server.fail(replace(fault, times=2), replace(CUT, verb="GET"))
    assert io.read(f"{bucket}/f") == b"0123456789"
    server.fail(replace(fault, times=1), replace(CUT, verb="GET"))
    assert io.open_input(f"{bucket}/f").read() == b"0123456789"
    server.fail(replace(fault, times=2))
    assert [found.size for found in io.list(bucket)] == [10]
    server.fail(replace(fault, times=2))
    assert io.delete_many([f"{bucket}/f", f"{bucket}/g"]) == {}
    server.fail()
    assert list(io.list(bucket)) == []


@pytest.mark.parametrize(
    "fault", [FAULTS["busy"], FAULTS["reset"], CUT], ids=["busy", "reset", "cut"]
)
def test_what_stays_is_a_typed_error_that_counts(
    server: CountedStore, io: FileIO, bucket: str, fault: Fault
) -> None:
    io.create(f"{bucket}/f", b"0123456789")
    server.fail(replace(fault, times=100))
    server.take()
    with pytest.raises(StorageError, match=r"cannot read .*asked 4 times"):
        io.read(f"{bucket}/f")
    assert len(_requests_of(server, bucket)) == 4


def _requests_of(server: CountedStore, bucket: str) -> list[Any]:
    """The requests for files of a bucket; late answers to other cases are among all."""
    place = f"/{bucket.removeprefix('s3://')}/"
    return [each for each in server.take().requests if each.path.startswith(place)]


def test_a_refusal_is_not_asked_again(server: CountedStore, io: FileIO, bucket: str) -> None:
    server.fail(Fault(times=100, status=403, code="AccessDenied"))
    server.take()
    with pytest.raises(StorageError, match="AccessDenied"):
        io.read(f"{bucket}/f")
    assert len(_requests_of(server, bucket)) == 1


def test_objects_that_stay_are_named(server: CountedStore, io: FileIO, bucket: str) -> None:
    for name in "ab":
        io.create(f"{bucket}/{name}", b"")
    server.fail(Fault(times=100, verb="POST"), Fault(times=100, verb="DELETE"))
    failed = io.delete_many([f"{bucket}/{name}" for name in "ab"])
    assert list(failed) == [f"{bucket}/a", f"{bucket}/b"]
    server.fail(Fault(times=100, verb="POST", status=501, code="NotImplemented"))
    assert io.delete_many([f"{bucket}/{name}" for name in "ab"]) == {}
    assert list(io.list(bucket)) == []


@pytest.mark.parametrize("kind", ["manifest", "list", "metadata"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_commit_is_made_once_or_not_at_all(
    server: CountedStore, bucket: str, tmp_path: Path, kind: str, fault: Fault
) -> None:
    own = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"{bucket}/w"}
    table = make_table(SqlCatalog("c", {**own, **server.properties, **QUICK}))
    path = {"manifest": r"-m\d+\.avro$", "list": r"/snap-", "metadata": r"\.metadata\.json$"}[kind]
    fault = replace(fault, verb="PUT", path=path)
    server.fail(replace(fault, times=2))
    table.files.append([data_file("a")])
    before = sorted(found.path for found in table.io.list(bucket))
    server.fail(replace(fault, times=100, is_done=False))
    with pytest.raises(StorageError, match=r"cannot create .*asked 4 times") as caught:
        table.files.append([data_file("b")])
    assert isinstance(caught.value, CommitNotSentError) == (kind == "metadata")
    server.fail()
    table.refresh()
    assert planned(table) == ["a"]
    assert sorted(found.path for found in table.io.list(bucket)) == before
    table.files.append([data_file("c")])
    assert planned(table) == ["a", "c"]


def test_waits_double_up_to_the_longest() -> None:
    waits: list[float] = []

    def fails() -> None:
        raise TimeoutError

    defaults = Retries.of({})
    assert (defaults.count, defaults.min_wait_ms, defaults.max_wait_ms) == (5, 2000, 20000)
    with pytest.raises(Exception, match="asked 6 times"):
        defaults.run(fails, lambda _: True, sleep=waits.append)
    for wait, longest in zip(waits, [2, 4, 8, 16, 20], strict=True):
        assert longest / 2 <= wait <= longest


@pytest.mark.parametrize("value", ["soon", "-1", "1.5", ""])
def test_a_malformed_number_of_retries_is_refused(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"s3\.retry\.num-retries"):
        FileIO({"s3.region": "x", "s3.retry.num-retries": value}).exists("s3://bucket/f")


def test_a_file_whose_first_answer_was_lost_is_ours_by_its_name_or_its_content(
    server: CountedStore, bucket: str, tmp_path: Path
) -> None:
    """Of a name that others make too no one can tell whose such a file is."""
    io = FileIO({**server.properties, "s3.retry.min-wait-ms": "1"})
    lost = replace(FAULTS["answer lost"], verb="PUT")
    server.fail(lost)
    io.create_unique(f"{bucket}/unique", b"ours")
    for make, path in ((io.create_unique, "unique"), (io.create, "shared")):
        server.fail(lost)
        with pytest.raises(AlreadyExistsError, match="exists"):
            make(f"{bucket}/{path}", b"theirs")
    assert io.read(f"{bucket}/unique") == b"ours"
    for size in (0, 5, 9 << 20):
        content = (bytes(range(251)) * (size // 251 + 1))[:size]
        for name, changed in (("ours", content), ("x", content + b"x"), ("y", content[:-1] + b"x")):
            (tmp_path / name).write_bytes(changed)
        target = f"{bucket}/of{size}"
        server.fail(lost)
        io.upload_unique(str(tmp_path / "ours"), target)
        assert io.read(target) == content
        for name in "xy":
            with pytest.raises(AlreadyExistsError, match="exists"):
                io.upload_unique(str(tmp_path / name), target)
