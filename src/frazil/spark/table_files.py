"""TableFiles: the files of a table, as a metadata table and as what engines commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from pyspark.sql import DataFrame

from frazil.spark.metadata_frames.frames import MetadataFrames
from frazil.table.file_changes import FileChanges
from frazil.table.inspect.inspector import SnapshotChoice
from frazil.table.port import TablePort


class TableFiles(FileChanges):
    """The files of a table.

    Called, ``table.files()``, it is the metadata table `files` as a DataFrame. Its methods commit
    files that are already written; engines build on them. All but `rewrite` take the keywords of
    `SnapshotSettings`, `branch`, `snapshot_properties` and `wap_id` among them.
    """

    def __init__(self, port: TablePort, frames: Callable[[], MetadataFrames]) -> None:
        super().__init__(port)
        self._frames = frames

    def __call__(self, **moment: Unpack[SnapshotChoice]) -> DataFrame:
        """Data and delete files of a snapshot, with their metrics."""
        return self._frames().files(**moment)

    def __repr__(self) -> str:
        return "the files of a table: files() as a DataFrame, files.append(…) commits written ones"
