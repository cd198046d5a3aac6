"""Tables that are loaded with the snapshots alone that a branch or a tag is at."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from catalog_cases import made_table, new_metadata, opened
from rest_cases import as_served

from frazil.catalog.rest.catalog import RestCatalog
from frazil.errors import (
    ConfigurationError,
    NoSuchSnapshotError,
    NoSuchTableError,
    StorageError,
    ValidationError,
)
from frazil.format.changes import AddSnapshot, RemoveSnapshots, SetSnapshotRef, Update
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.referenced_snapshots import ReferencedSnapshots
from frazil.format.snapshots import Snapshot, SnapshotRef
from frazil.table.handle import TableHandle
from rest_server import Fault, Server

Connect = Callable[..., RestCatalog]


@pytest.fixture
def partly(connect: Connect) -> RestCatalog:
    """A client that loads tables with the snapshots that are referenced."""
    return connect(**{"snapshot-loading-mode": "refs"})


def add_snapshot(server: Server, snapshot_id: int, *, branch: str = "main") -> None:
    """Give the table one more snapshot, which another client has made."""
    now = server.catalog.load_table("db.t").metadata
    parent = now.current_snapshot_id
    snapshot = Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=parent,
        sequence_number=now.next_sequence_number,
        timestamp_ms=max(int(time.time() * 1000), now.last_updated_ms),
        manifest_list=f"{now.location}/metadata/{uuid4()}.avro",
        summary={"operation": "append"},
        schema_id=0,
    )
    moved = SetSnapshotRef(branch, SnapshotRef(snapshot_id=snapshot_id, type="branch"))
    change(server, AddSnapshot(snapshot), moved)


def change(server: Server, *updates: Update) -> None:
    server.catalog.commit_table("db.t", (), updates)


def five_snapshots(server: Server, version: int = 2) -> None:
    """A table whose snapshots are 1 to 5; `main` is at 5, the tag `old` at 2."""
    server.catalog.create_namespace("db")
    made = new_metadata(server.catalog, "db.t", **{"format-version": str(version)})
    server.catalog.create_table("db.t", made)
    for number in range(1, 6):
        add_snapshot(server, number)
    change(server, SetSnapshotRef("old", SnapshotRef(snapshot_id=2, type="tag")))


def asked(server: Server) -> list[str]:
    """The requests for tables since the last call, each with its query."""
    found = [f"{e.method} {e.query}".strip() for e in server.exchanges if "/tables/" in e.path]
    for each in server.exchanges:
        as_served(each).check_request()
        as_served(each).check()
    server.exchanges.clear()
    return found


def ids(metadata: TableMetadata) -> list[int]:
    return [snapshot.snapshot_id for snapshot in metadata.snapshots]


def test_the_others_count_in_what_is_kept(
    server: Server, partly: RestCatalog, connect: Connect
) -> None:
    five_snapshots(server)
    cache = partly.io.caches["metadata"]
    metadata = partly.load_table("db.t").metadata
    few = cache.size_in_bytes
    assert ids(metadata) == [1, 2, 3, 4, 5]
    whole = connect()
    whole.load_table("db.t")
    assert few < cache.size_in_bytes == whole.io.caches["metadata"].size_in_bytes
    partly.load_table("db.t")
    assert cache.statistics.entries == 1


@pytest.mark.parametrize("version", [1, 2])
def test_others_come_when_they_are_asked_for(
    server: Server, partly: RestCatalog, version: int
) -> None:
    five_snapshots(server, version)
    metadata = partly.load_table("db.t").metadata
    assert asked(server) == ["GET snapshots=refs"]
    current = metadata.current_snapshot
    tagged = metadata.ref_snapshot("old")
    assert current is not None
    assert tagged is not None
    assert (current.snapshot_id, tagged.snapshot_id) == (5, 2)
    assert sorted(metadata.snapshots_at_hand) == [2, 5]
    assert asked(server) == []
    assert metadata.snapshot_by_id(4).parent_snapshot_id == 3
    assert asked(server) == ["GET snapshots=all"]
    assert ids(metadata) == [1, 2, 3, 4, 5]
    assert [each.snapshot_id for each in metadata.ancestors_of(5)] == [5, 4, 3, 2, 1]
    with pytest.raises(NoSuchSnapshotError, match="5 snapshots are kept"):
        metadata.snapshot_by_id(6)
    assert partly.load_table("db.t").metadata is metadata
    assert asked(server) == ["GET snapshots=refs"]


@pytest.mark.parametrize("version", [1, 2])
def test_the_table_has_changed_since(server: Server, partly: RestCatalog, version: int) -> None:
    five_snapshots(server, version)
    metadata = partly.load_table("db.t").metadata
    time.sleep(0.01)
    add_snapshot(server, 6)
    change(server, RemoveSnapshots((3,)))
    assert ids(metadata) == [1, 2, 4, 5]
    assert metadata.current_snapshot_id == 5
    newer = partly.load_table("db.t").metadata
    assert ids(newer) == [1, 2, 4, 5, 6]


def test_what_is_at_hand_stays(server: Server, partly: RestCatalog) -> None:
    five_snapshots(server)
    metadata = partly.load_table("db.t").metadata
    add_snapshot(server, 6)
    change(server, RemoveSnapshots((1, 3, 4, 5)))
    assert ids(metadata) == [2, 5]


def test_a_change_made_here_needs_no_others(server: Server, partly: RestCatalog) -> None:
    five_snapshots(server)
    table = TableHandle(partly, partly.load_table("db.t"))
    asked(server)
    table.create_tag("now")
    assert asked(server) == ["GET snapshots=refs", "POST"]
    # The answer to a commit is the whole table.
    assert sorted(table.metadata.snapshots_at_hand) == [1, 2, 3, 4, 5]
    with table.transaction() as changes:
        changes.set_properties({"a": "1"})
        changes.create_branch("b")
    assert asked(server) == ["GET snapshots=refs", "POST"]


def test_the_table_is_gone_or_another(server: Server, partly: RestCatalog) -> None:
    five_snapshots(server)
    metadata = partly.load_table("db.t").metadata
    server.catalog.drop_table("db.t")
    with pytest.raises(NoSuchTableError):
        metadata.snapshot_by_id(3)
    made_table(server.catalog)
    with pytest.raises(ValidationError, match="another table now"):
        metadata.ancestors_of(5)
    assert metadata.current_snapshot is not None


def test_a_request_that_failed_is_made_again(server: Server, partly: RestCatalog) -> None:
    five_snapshots(server)
    metadata = partly.load_table("db.t").metadata
    server.faults.append(Fault("GET", status=500))
    with pytest.raises(StorageError):
        metadata.snapshot_by_id(3)
    assert metadata.snapshot_by_id(3).snapshot_id == 3


def test_a_server_that_sends_all_of_them(server: Server, partly: RestCatalog) -> None:
    server.knows_refs = False
    five_snapshots(server)
    metadata = partly.load_table("db.t").metadata
    assert ids(metadata) == [1, 2, 3, 4, 5]
    assert asked(server) == ["GET snapshots=refs"]


def test_a_server_that_cuts_the_log_too(server: Server, partly: RestCatalog) -> None:
    server.cuts_logs = True
    five_snapshots(server)
    metadata = partly.load_table("db.t").metadata
    assert asked(server) == ["GET snapshots=refs", "GET snapshots=all"]
    assert [entry.snapshot_id for entry in metadata.snapshot_log] == [1, 2, 3, 4, 5]
    assert ids(metadata) == [1, 2, 3, 4, 5]
    assert partly.load_table("db.t").metadata is metadata


def test_an_added_snapshot_that_the_server_has_too_is_there_once() -> None:
    def snapshot(number: int) -> Snapshot:
        return Snapshot(snapshot_id=number, timestamp_ms=number, manifest_list="m", summary={})

    partial = ReferencedSnapshots((snapshot(2),), lambda: tuple(map(snapshot, (1, 2, 3))))
    added = partial.with_added(snapshot(3))
    assert [each.snapshot_id for each in added.at_hand] == [2, 3]
    assert [each.snapshot_id for each in added] == [1, 2, 3]


def test_an_unknown_outcome_is_looked_for_in_all_snapshots(
    server: Server, partly: RestCatalog
) -> None:
    """Between two requests others may expire the snapshot that shows it."""
    five_snapshots(server)
    table = TableHandle(partly, partly.load_table("db.t"))
    server.faults.append(Fault("POST", ends="/tables/t", status=503, after=True))
    asked(server)
    table.set_current_snapshot(4)
    assert "GET snapshots=all" in [f"{e.method} {e.query}" for e in server.exchanges]
    assert server.catalog.load_table("db.t").metadata.current_snapshot_id == 4


def test_threads_ask_once(server: Server, partly: RestCatalog) -> None:
    five_snapshots(server)
    metadata = partly.load_table("db.t").metadata
    asked(server)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(metadata.snapshot_by_id(3).snapshot_id))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3] * 8
    assert asked(server) == ["GET snapshots=all"]


def test_copies_have_all(server: Server, partly: RestCatalog, connect: Connect) -> None:
    five_snapshots(server)
    whole = connect().load_table("db.t").metadata
    copies: list[Callable[[Any], Any]] = [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
    for made in copies:
        partly.caches.clear()
        metadata = partly.load_table("db.t").metadata
        _ = metadata.snapshots_by_id
        copied = made(metadata)
        assert isinstance(copied.snapshots, tuple)
        assert copied == whole
        assert metadata == whole
        assert dict(copied.snapshots_by_id) == dict(whole.snapshots_by_id)


def test_a_rival_between(server: Server, partly: RestCatalog, connect: Connect) -> None:
    """A commit that others came before sees what they did."""
    five_snapshots(server)
    table = TableHandle(partly, partly.load_table("db.t"))
    add_snapshot(server, 6, branch="six")
    table.set_current_snapshot(3)
    assert connect().load_table("db.t").metadata.current_snapshot_id == 3
    table.fast_forward("main", "six")
    assert connect().load_table("db.t").metadata.current_snapshot_id == 6


def test_an_unknown_mode(server: Server) -> None:
    given = {"type": "rest", "uri": server.address, "snapshot-loading-mode": "some"}
    with pytest.raises(ConfigurationError, match="snapshot-loading-mode"):
        opened(given)
