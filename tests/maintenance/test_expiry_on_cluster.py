"""Executors delete the same files of expired snapshots as are deleted beside the session."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from compacted_tables import Modelled
from independent_walk import local, lying, reached

from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.errors import StorageError
from frazil.spark.lake import Lake
from frazil.spark.session import costs
from frazil.storage.files import FileIO

FUTURE = "2999-01-01"


class UndeletingIO(FileIO):
    """Deletes nothing below a data folder; executors get a store that does."""

    def __reduce__(self) -> tuple[type[FileIO], tuple[()]]:
        return FileIO, ()

    def _run(self, verb: str, path: str, on_disk: Any, on_store: Any) -> Any:
        if verb == "delete" and "/data/" in path:
            raise StorageError(f"{path} is deleted on the driver")
        return super()._run(verb, path, on_disk, on_store)


def opened(spark: Any, folder: Path, io: FileIO) -> Lake:
    return Lake(spark, FilesystemCatalog("test", {"warehouse": str(folder)}, io=io))


def expired(table: Any, told: list[Any]) -> Any:
    """Expire all but the last snapshot; what an independent walk reaches is left, and no more."""
    result = table.maintenance.expire_snapshots(older_than=FUTURE, on_progress=told.append)
    left = {path for path in lying(table.location) if path.name[0] not in "._"}
    hint = local(table.location) / "metadata" / "version-hint.text"
    failed = {local(path) / "held" for path, _ in result.failures}
    assert left - {hint} == reached(table.metadata_location) | failed
    return result


def test_executors_delete_what_the_driver_would(spark, tmp_path, monkeypatch):
    lake = opened(spark, tmp_path / "lake", FileIO())
    lake.create_namespace("db")
    made = Modelled(lake, properties={"write.delete.mode": "merge-on-read"})
    made.append(*range(30), files=3)
    made.delete("id in (0, 1, 2)", lambda row: row[0] in (0, 1, 2))
    made.delete_by_keys({"id": [6]})
    stuck = local(made.data_files()[0]["file_path"])
    made.table.compact(rewrite_all=True, remove_dangling_deletes=True)
    # A folder with a file in it cannot be deleted as a file.
    stuck.unlink()
    stuck.mkdir()
    (stuck / "held").touch()
    shutil.copytree(tmp_path / "lake", tmp_path / "kept")
    here = expired(made.other(), [])
    shutil.rmtree(tmp_path / "lake")
    shutil.copytree(tmp_path / "kept", tmp_path / "lake")

    monkeypatch.setattr(costs, "DELETED_FILES", 0)
    monkeypatch.setattr(costs, "FILES_OF_A_DELETION", 4)
    told: list[Any] = []
    table = opened(spark, tmp_path / "lake", UndeletingIO()).load_table(made.name)
    there = expired(table, told)
    assert [local(path) for path, _ in there.failures] == [stuck]
    assert (there.counts, len(here.failures)) == (here.counts, 1)
    # One of three data files is stuck; each had a position delete file.
    assert (there.deleted_data_files, there.deleted_position_delete_files) == (2, 3)
    assert there.deleted_equality_delete_files == 1
    done = [each.files_done for each in told]
    assert done == sorted(done)
    assert (told[-1].stage, done[-1]) == ("done", told[-1].files)
    assert len(set(done)) > 4
