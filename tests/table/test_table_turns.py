"""Threads of one process commit to a table in turn; other processes may still be first."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from table_cases import CATALOGS, as_if_by_others, data_file, make_table, open_catalog

from frazil.errors import CommitFailedError, ConflictError, ValidationError
from frazil.format.metadata import TableMetadata
from frazil.table.commit import turns
from frazil.table.commit.loop import commit
from frazil.table.commit.operation import Changes
from frazil.table.handle import TableHandle
from frazil.table.snapshots.append import FastAppend

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
