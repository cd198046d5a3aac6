"""New files beside each other: how many are under way, and what becomes of one that fails."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from frazil.errors import AlreadyExistsError, StorageError
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import WAITING_THREADS, FilesUnderWay


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
