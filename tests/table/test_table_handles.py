"""One handle in several threads, and handles that others overtake."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from table_cases import data_file, make_table, names, open_catalog, short

from frazil.catalog.protocol import Catalog
from frazil.errors import CommitFailedError
from frazil.storage.files import local_path
from frazil.table.handle import TableHandle
from frazil.table.snapshots import producer
from frazil.table.updates.references import Retention

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
