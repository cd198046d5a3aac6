"""TableTransaction: appends, overwrites and every other change of a table in one commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.base import LoadedTable
from frazil.errors import CommitStateUnknownException
from frazil.format.manifests import DataFile
from frazil.spark.writes import OnProgress, Writes
from frazil.storage.files import FileIO
from frazil.table.handle import HandleTransaction, TableHandle


class TableTransaction(Writes, HandleTransaction):
    """Changes of a table that become visible together, at the end of the `with` block.

        with trips.transaction() as tx:
            with tx.update_schema() as change:
                change.add_column("tip", "double")
            tx.overwrite(df, where="ts >= '2024-03-01'")

    Each operation sees those before it. After an exception nothing is committed, and the data files
    that were written are removed.
    """

    def __init__(self, handle: TableHandle, spark: SparkSession) -> None:
        super().__init__(handle)
        self._spark = spark
        self._written: list[DataFile] = []

    @property
    def spark(self) -> SparkSession:
        """The session that moves the data."""
        return self._spark

    def append_to_main(
        self,
        df: DataFrame,
        *,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Add rows to `main`, whatever the session says for write-audit-publish."""
        files = self._write(df, options, on_progress)
        with self._committing(files):
            self.commit_append(files, snapshot_properties=snapshot_properties)

    def commit(self) -> LoadedTable:
        """Commit everything; the handle then shows it."""
        with removing_on_failure(self.io, self._written):
            return super().commit()

    def roll_back(self) -> None:
        """Forget everything, and remove what the operations wrote."""
        super().roll_back()
        self.io.delete_many(file.file_path for file in self._written)

    @contextmanager
    def _committing(self, files: Sequence[DataFile]) -> Iterator[None]:
        with removing_on_failure(self.io, files):
            yield
        self._written.extend(files)


@contextmanager
def removing_on_failure(io: FileIO, files: Sequence[DataFile]) -> Iterator[None]:
    """Remove data files whose commit failed; keep them where the outcome is unknown."""
    try:
        yield
    except CommitStateUnknownException:
        raise
    except Exception:
        io.delete_many({file.file_path for file in files})
        raise
