"""Threads of one process commit to a table in turn; other processes may still be first."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from table_cases import CATALOGS, as_if_by_others, data_file, make_table, names, open_catalog, short

from frazil.catalog.protocol import Catalog
from frazil.errors import CommitFailedError, ConflictError, ValidationError
from frazil.format.metadata import TableMetadata
from frazil.storage.files import local_path
from frazil.table.commit import turns
from frazil.table.commit.loop import commit
from frazil.table.commit.operation import Changes
from frazil.table.handle import TableHandle
from frazil.table.snapshots import producer
from frazil.table.snapshots.append import FastAppend
from frazil.table.updates.references import Retention

WRITERS, COMMITS = 8, 10


def counted(catalog: Any, calls: list[bool]) -> None:
    """Note of each swap whether it took place."""
    real = catalog.commit_table

    def commit_table(*given: Any, **more: Any) -> Any:
        try:
            committed = real(*given, **more)
        except CommitFailedError:
            calls.append(False)
            raise
        calls.append(True)
        return committed

    catalog.commit_table = commit_table


@pytest.mark.parametrize("kind", CATALOGS)
def test_threads_do_not_lose_tries_to_each_other(tmp_path: Path, kind: str) -> None:
    """Each has a handle of its own, which does not know of the others' commits."""
    catalog, calls = open_catalog(kind, tmp_path), list[bool]()
    make_table(catalog, properties={"commit.retry.num-retries": "0"})
    counted(catalog, calls)

    def write(writer: int) -> None:
        handle = TableHandle(catalog, catalog.load_table("db.t"))
        for number in range(COMMITS):
            handle.files.fast_append([data_file(f"{writer}-{number}")])

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    assert calls == [True] * (WRITERS * COMMITS)
    assert len(catalog.load_table("db.t").metadata.snapshots) == WRITERS * COMMITS


def test_a_version_that_a_thread_replaced_is_not_tried(tmp_path: Path) -> None:
    """What another process replaced is told by the catalog's refusal, as without turns."""
    catalog, other, calls = (
        open_catalog("sql", tmp_path),
        open_catalog("sql", tmp_path),
        list[bool](),
    )
    handle = make_table(catalog)
    counted(catalog, calls)
    for expected in ([True], [False, True]):
        calls.clear()
        base = catalog.load_table("db.t")
        TableHandle(other, other.load_table("db.t")).files.fast_append([data_file("theirs")])
        if len(expected) > 1:
            as_if_by_others(handle)
        commit(catalog, ("db", "t"), FastAppend(catalog.io, [data_file("ours")]), base=base)
        assert calls == expected
    assert len(handle.refresh().metadata.snapshots) == 4


def test_nobody_waits_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MOST_SECONDS", 0.2)
    catalog = open_catalog("sql", tmp_path)
    make_table(catalog)
    real, hangs, goes_on = catalog.commit_table, threading.Event(), threading.Event()

    def commit_table(*given: Any, **more: Any) -> Any:
        if threading.current_thread().name.startswith("slow"):
            hangs.set()
            assert goes_on.wait(60)
        return real(*given, **more)

    catalog.commit_table = commit_table  # type: ignore[method-assign]
    slow, quick = (TableHandle(catalog, catalog.load_table("db.t")) for _ in range(2))
    with ThreadPoolExecutor(1, "slow") as pool:
        waiting = pool.submit(slow.files.fast_append, [data_file("slow")])
        assert hangs.wait(60)
        began = time.monotonic()
        quick.files.fast_append([data_file("quick")])
        assert 0.1 < time.monotonic() - began < 10
        goes_on.set()
        waiting.result()
    assert len(catalog.load_table("db.t").metadata.snapshots) == 2


def test_what_never_fitted_is_no_conflict(tmp_path: Path) -> None:
    """A stale handle's change is looked at beside the newest table, and told by what it fitted."""
    catalog = open_catalog("sql", tmp_path)
    handle = make_table(catalog)
    stale = catalog.load_table("db.t")
    handle.files.fast_append([data_file("a")])

    class Operation(FastAppend):
        """Fits a table of the first snapshots alone."""

        most = 0

        def changes(self, metadata: TableMetadata) -> Changes:
            if len(metadata.snapshots) > self.most:
                raise ValidationError("it does not fit")
            return super().changes(metadata)

    def run(most: int) -> None:
        operation = Operation(catalog.io, [data_file("b")])
        operation.most = most
        commit(catalog, ("db", "t"), operation, base=stale)

    with pytest.raises(ConflictError, match="another commit was first"):
        run(0)
    with pytest.raises(ValidationError) as never:
        run(-1)
    assert not isinstance(never.value, ConflictError)


def test_a_forked_process_does_not_wait_for_threads_that_it_has_not(tmp_path: Path) -> None:
    catalog = open_catalog("filesystem", tmp_path)
    handle = make_table(catalog)
    uuid = handle.metadata.table_uuid
    holds, ends = threading.Event(), threading.Event()

    def hold() -> None:
        with turns.turn_of(uuid).hold(lambda: None):
            holds.set()
            ends.wait(60)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(hold)
        assert holds.wait(60)
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            try:
                handle.files.fast_append([data_file("child")])
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert time.monotonic() - began < turns.MOST_SECONDS
        ends.set()
    assert len(handle.refresh().metadata.snapshots) == 1


def test_whoever_is_interrupted_while_waiting_leaves_no_file(tmp_path: Path) -> None:
    catalog = open_catalog("sql", tmp_path)
    table = make_table(catalog)
    transaction = table.transaction()
    transaction.files.append([data_file("a")])
    assert list(tmp_path.rglob("*.avro"))

    class Interrupted:
        def acquire(self, timeout: float) -> bool:
            raise KeyboardInterrupt

    turn = turns.turn_of(table.metadata.table_uuid)
    real, turn._lock = turn._lock, Interrupted()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        transaction.commit()
    turn._lock = real
    assert not list(tmp_path.rglob("*.avro"))


# One handle in several threads, and handles that others overtake.


PATIENT = {"commit.retry.num-retries": "1000"}


def real_file(table: TableHandle, name: str) -> str:
    path = Path(local_path(table.location)) / "data" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"rows")
    return f"file://{path}"


def test_threads_that_share_a_handle_lose_no_file(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, properties=PATIENT)
    stop = threading.Event()
    failures: list[BaseException] = []

    def until_stopped(work: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            while not stop.is_set():
                try:
                    work()
                except CommitFailedError:
                    continue
                except BaseException as error:
                    failures.append(error)
                    return

        return run

    threads = [
        threading.Thread(target=until_stopped(work))
        for work in (
            table.refresh,
            lambda: table.maintenance.expire_snapshots(older_than="2999-01-01", retain_last=1),
        )
    ]
    for thread in threads:
        thread.start()
    for number in range(25):
        path = real_file(table, f"f{number}")
        table.files.append([data_file(f"f{number}", path=path)])
    stop.set()
    for thread in threads:
        thread.join(60)
    assert failures == []
    found = table.refresh().inspect.files()["file_path"].to_list()
    assert sorted(map(short, found)) == sorted(f"f{number}" for number in range(25))
    assert all(table.io.exists(path) for path in found)
    assert names(table) == sorted(f"f{number}" for number in range(25))


def test_a_refresh_that_began_earlier_does_not_go_back(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    loaded, committed = threading.Event(), threading.Event()
    real = files_catalog.load_table

    def slow(identifier):  # type: ignore[no-untyped-def]
        found = real(identifier)
        if threading.current_thread().name == "refresher":
            loaded.set()
            committed.wait(10)
        return found

    files_catalog.load_table = slow  # type: ignore[method-assign]
    thread = threading.Thread(target=table.refresh, name="refresher")
    thread.start()
    loaded.wait(10)
    table.files.append([data_file("a")])
    committed.set()
    thread.join(10)
    assert len(table.metadata.snapshots) == 1


def test_a_catalog_that_was_set_back_is_followed(tmp_path: Path) -> None:
    """An administrator may register an earlier metadata file: that is what the table is then."""
    catalog = open_catalog("sql", tmp_path)
    table = make_table(catalog)
    table.files.append([data_file("a")])
    earlier = table.metadata_location
    table.files.append([data_file("b")])
    catalog.drop_table("db.t")
    catalog.register_table("db.t", earlier)
    assert names(table.refresh()) == ["a"]


@pytest.mark.parametrize("rival_is_first", [False, True])
def test_a_branch_is_made_of_what_the_table_is_when_it_is_committed(
    files_catalog: Catalog, rival_is_first: bool
) -> None:
    table = make_table(files_catalog)
    if rival_is_first:
        TableHandle(files_catalog, files_catalog.load_table("db.t")).files.append([data_file("a")])
    before = len(files_catalog.load_table("db.t").metadata.metadata_log)
    table.create_branch("b", retention=Retention(min_snapshots_to_keep=3))
    assert names(table, ref="b") == (["a"] if rival_is_first else [])
    assert table.metadata.refs["b"].min_snapshots_to_keep == 3
    # One commit, retention included.
    assert len(table.metadata.metadata_log) == before + 1


def test_a_clock_that_is_ahead_is_said(
    files_catalog: Catalog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Snapshots are in the order of their times, so a later one takes the time of the earlier."""
    table = make_table(files_catalog)
    hour_ahead = producer.now_ms() + 3_600_000
    with monkeypatch.context() as patched:
        patched.setattr(producer, "now_ms", lambda: hour_ahead)
        table.files.append([data_file("a")])
    assert caplog.messages == []
    table.files.append([data_file("b")])
    assert [s.timestamp_ms for s in table.metadata.snapshots] == [hour_ahead, hour_ahead]
    assert "ahead of this machine's clock" in caplog.text
