"""Work in threads, in order and with errors as they are; and new files beside each other."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from frazil.errors import AlreadyExistsError, StorageError
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import WAITING_THREADS, FilesUnderWay, in_threads


class SlowIO(FileIO):
    """Files that are written when the gate opens."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)

    def create_unique(self, path: str, data: bytes) -> None:
        self.begun.release()
        assert self.gate.wait(60)
        super().create_unique(path, data)


def test_files_are_written_beside_each_other(tmp_path: Path) -> None:
    io = SlowIO()
    files = FilesUnderWay(io)
    paths = [str(tmp_path / str(n)) for n in range(WAITING_THREADS)]
    for path in paths:
        files.create_unique(path, path.encode())
    for _ in paths:
        assert io.begun.acquire(timeout=60)
    assert not list(tmp_path.iterdir())
    io.gate.set()
    files.finish()
    assert [Path(path).read_text() for path in paths] == paths


def test_no_more_are_under_way_than_there_are_threads(tmp_path: Path) -> None:
    io = SlowIO()
    files = FilesUnderWay(io)
    for n in range(WAITING_THREADS):
        files.create_unique(str(tmp_path / str(n)), b"")
    one_more = threading.Thread(target=files.create_unique, args=(str(tmp_path / "more"), b""))
    one_more.start()
    one_more.join(0.2)
    assert one_more.is_alive()
    io.gate.set()
    one_more.join(60)
    files.finish()
    assert len(list(tmp_path.iterdir())) == WAITING_THREADS + 1


def test_a_file_that_fails_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"other")
    (tmp_path / "file").write_bytes(b"")
    files = FilesUnderWay(FileIO())
    for name in ("first", "taken", "file/below", "last"):
        files.create_unique(str(tmp_path / name), b"new")
    with pytest.raises(AlreadyExistsError, match="taken"):
        files.finish()
    files.finish()
    assert (tmp_path / "taken").read_bytes() == b"other"
    assert [(tmp_path / name).read_bytes() for name in ("first", "last")] == [b"new", b"new"]
    files.create_unique(str(tmp_path / "file/below"), b"new")
    files.settle()
    files.create_unique(str(tmp_path / "file/below"), b"new")
    with pytest.raises(StorageError):
        files.finish()


def test_results_come_in_the_order_of_the_items() -> None:
    second_is_done = threading.Event()

    def work(item):
        if item == 0:
            assert second_is_done.wait(10)
        elif item == 1:
            second_is_done.set()
        return item * item

    assert in_threads(work, range(20), threads=2, name="test") == [n * n for n in range(20)]


@pytest.mark.parametrize("items", [(), iter(())])
def test_without_items_nothing_runs(items: Any) -> None:
    before = threading.active_count()
    assert in_threads(pytest.fail, items, threads=4, name="test") == []
    assert threading.active_count() == before


def test_threads_have_the_name_and_are_no_more_than_asked() -> None:
    """For one item there is none."""

    def name(_: int) -> str:
        return threading.current_thread().name

    names = {*in_threads(name, range(100), threads=3, name="frazil-test")}
    assert names <= {f"frazil-test_{n}" for n in range(3)}
    assert in_threads(name, [0], threads=4, name="test") == [threading.current_thread().name]


def test_an_error_is_raised_as_it_is_and_what_has_not_begun_is_left_out() -> None:
    begun = []
    error = OSError("the store is gone")

    def work(item):
        begun.append(item)
        threading.Event().wait(0.01)
        if item == 1:
            raise error

    with pytest.raises(OSError, match="the store is gone") as raised:
        in_threads(work, range(500), threads=2, name="test")
    assert raised.value is error
    assert len(begun) < 500


def test_of_several_errors_that_of_the_first_item_is_raised() -> None:
    together = threading.Barrier(2)

    def work(item):
        together.wait(10)
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        in_threads(work, [0, 1], threads=2, name="test")


def test_items_that_cannot_be_made_leave_out_what_has_not_begun() -> None:
    release = threading.Event()
    begun = []

    def items():
        yield from range(50)
        release.set()
        raise LookupError("no more")

    def work(item):
        begun.append(item)
        assert release.wait(10)
        threading.Event().wait(0.05)

    with pytest.raises(LookupError, match="no more"):
        in_threads(work, items(), threads=2, name="test")
    assert len(begun) < 50
