"""A stream's list of batches where Spark follows it before the query's checkpoint is known.

A streaming DataFrame reads a folder that is said when it is made; its query's checkpoint is said
when the query starts. So such a frame reads a scratch folder:

    <scratch>/frazil/_spark_metadata/<N>.compact    what Spark follows

Until a query starts the list is one that Spark cannot read and that says why, so a query fails with
the reason, before it plans a batch. Then come the newest lists of the log in the query's
checkpoint, which stays the one that counts: it is written first, and each query that starts begins
with what it says.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

from frazil.errors import MissingFileError
from frazil.spark.files.parquet.locations import spark_path
from frazil.spark.session.scratch import ScratchFolder
from frazil.storage.paths import join

METADATA: Final = "_spark_metadata"
"""The folder of Spark's lists of files."""


class ScratchList:
    """The lists in a scratch folder.

    Args:
        spark: the session that follows them.
        scratch: the folder; it stays until the process ends.
        name: of the folder in it that Spark follows.
    """

    def __init__(self, spark: SparkSession, scratch: ScratchFolder, *, name: str) -> None:
        self._io = scratch.io
        self._folder = join(scratch.location, name)
        self.spark_folder = spark_path(self._folder, spark, scratch.io)

    def put(self, number: int, lines: bytes) -> None:
        """Add the list of this number."""
        self._io.write(self._path(number), lines, overwrite=True)

    def remove(self, number: int) -> None:
        """Remove the list of this number."""
        self._io.delete_many([self._path(number)])

    def refuse(self, reason: str) -> None:
        """Let a query that follows the lists fail with this reason, and take nothing."""
        self.clear()
        # Spark shows the line where it looks for the form's version.
        self.put(0, " ".join(reason.split()).encode())

    def clear(self) -> None:
        """Remove all lists; no query may be following them."""
        folder = join(self._folder, METADATA)
        try:
            names = self._io.list_folder(folder)
        except MissingFileError:
            return
        for failure in self._io.delete_many(
            join(folder, name) for name, is_folder in names if not is_folder
        ).values():
            raise failure

    def _path(self, number: int) -> str:
        return join(self._folder, METADATA, f"{number}.compact")
