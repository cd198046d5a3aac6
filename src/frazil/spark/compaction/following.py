"""Rows that others delete while a compaction runs are deleted in its new files too.

In version 3 a row keeps its id wherever it is written. The ids of the rows that others deleted of
the old files tell their positions in the new ones.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from frazil.errors import FrazilError
from frazil.format.manifests import DataFile
from frazil.format.properties.table import ROW_LEVEL_CONFLICTS
from frazil.format.schema import Schema
from frazil.format.schema.name_mapping import mapping_for
from frazil.planning.deletes.index import POSITION_DELETES
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.compaction.rewriting import RewrittenGroup
from frazil.spark.delete_files.write import write_deletes_of_new_files
from frazil.spark.deletes.bitmap import Words
from frazil.spark.deletes.positions import PositionDeletes
from frazil.spark.files.arrow.files import FilePart, TableColumns, read_batches
from frazil.spark.files.parquet.native import ScanContext
from frazil.spark.files.projection import ROW_ID_FIELD
from frazil.spark.row_level.target import Target
from frazil.spark.session.facts import shuffle_partitions, type_support
from frazil.spark.session.tasks import map_batches
from frazil.storage.files import FileIO

_LOG: Final = logging.getLogger(__name__)

MOST_ROWS: Final = 5_000_000
"""The ids of so many rows are sent to every task: 40 MB."""

_FILES: Final = "file bigint, path string, format string"
_FOUND: Final = pa.schema({"file": pa.int64(), "position": pa.int64()})
_COLUMNS: Final = TableColumns(fields=(ROW_ID_FIELD,), mapping=mapping_for(Schema((ROW_ID_FIELD,))))

RowIds = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FollowedDeletes:
    """Gives rewritten groups the deletes that were committed since their files were read.

    Attributes:
        target: the files as they were read.
        now: the plan of the branch as it is, with every delete.
    """

    target: Target
    now: ScanPlan

    def followed(self, done: RewrittenGroup) -> RewrittenGroup | None:
        """Return a group with deletes of its new files; None where rows cannot be told.

        The group's files must all be there still.
        """
        metadata = self.target.metadata
        if metadata.format_version < 3 or not ROW_LEVEL_CONFLICTS.of(metadata.properties):
            return None
        try:
            return self._followed(done)
        except (FrazilError, PySparkException) as error:
            _LOG.warning("a group does not follow the deletes of others: %s", error)
            return None

    def _followed(self, done: RewrittenGroup) -> RewrittenGroup | None:
        deleted = self._deleted_since(done.group.ordinals)
        if deleted is None:
            return None
        ids = self._row_ids(deleted)
        if ids is None:
            return None
        words = self._found(done.added, ids)
        if sum(each.cardinality for each in words) != len(ids):
            return None
        target = self.target
        written = write_deletes_of_new_files(
            target.spark, done.added, words, metadata=target.metadata, io=target.io
        )
        return replace(done, deletes=written.added, moved_rows=len(ids))

    def _deleted_since(self, ordinals: Collection[int]) -> dict[int, Words] | None:
        """The positions by file that are deleted now and were not; None where rows came back."""
        then = self.target.only(ordinals).plan
        here = self.now.files["file_path"].is_in(then.files["file_path"].implode())
        now = self.now.where_files(here)
        before, after = self._positions(then), self._positions(now)
        places = dict(now.files.select("file_path", "ordinal").iter_rows())
        found: dict[int, Words] = {}
        for path, ordinal in then.files.select("file_path", "ordinal").iter_rows():
            was = before.get(ordinal, Words.none()).bitmap()
            new = after.get(places[path], Words.none()).bitmap()
            if not was.issubset(new):
                return None
            if gone := new - was:
                found[ordinal] = Words.of_values(np.asarray(gone.to_array(), dtype=np.int64))
        return found

    def _positions(self, plan: ScanPlan) -> Mapping[int, Words]:
        """The positions that are deleted of the files of a plan."""
        deletes = plan.deletes.filter(pl.col("content") == POSITION_DELETES)["delete"]
        touched = plan.delete_index.of(deletes).on(plan.files["ordinal"]).ordinals()
        if touched.is_empty():
            return {}
        context = ScanContext(
            spark=self.target.spark,
            metadata=self.target.metadata,
            io=self.target.io,
            support=type_support(self.target.spark),
        )
        return PositionDeletes.of(context, plan, touched).words()

    def _row_ids(self, deleted: Mapping[int, Words]) -> RowIds | None:
        """The ids of rows that were live, sorted; None where one has none, or of too many rows."""
        if not deleted:
            return np.empty(0, dtype=np.int64)
        if sum(words.cardinality for words in deleted.values()) > MOST_ROWS:
            return None
        rows = self.target.only(deleted).rows_at(deleted)
        column = rows.select(F.col(self.target.row_id)).toArrow().column(0).combine_chunks()
        if column.null_count:
            return None
        ids: RowIds = np.unique(column.to_numpy())
        return ids

    def _found(self, files: Sequence[DataFile], ids: RowIds) -> list[Words]:
        """The positions of rows in each of some files, by their ids."""
        if not len(ids):
            return [Words.none()] * len(files)
        spark = self.target.spark
        table = pa.table(
            {
                "file": pa.array(range(len(files)), pa.int64()),
                "path": [each.file_path for each in files],
                "format": [each.file_format for each in files],
            }
        )
        tasks = max(1, min(len(files), shuffle_partitions(spark)))
        spread = spark.createDataFrame(table, _FILES).repartition(tasks)
        finder = _RowFinder(self.target.io, ids.tobytes())
        found = map_batches(spread, finder, _FOUND).toArrow()
        numbers = found.column("file").to_numpy()
        positions = found.column("position").to_numpy()
        return [Words.of_values(positions[numbers == n]) for n in range(len(files))]


@dataclass(frozen=True, slots=True)
class _RowFinder:
    """Files to the positions of rows with given ids, in a Python worker.

    Attributes:
        ids: as bytes of 64-bit integers, sorted.
    """

    io: FileIO
    ids: bytes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        wanted = np.frombuffer(self.ids, dtype=np.int64)
        for batch in batches:
            for file in batch.to_pylist():
                yield from self._rows(file, wanted)

    def _rows(self, file: Mapping[str, Any], wanted: RowIds) -> Iterator[pa.RecordBatch]:
        part = FilePart(path=file["path"], file_format=file["format"])
        for start, _, [column] in read_batches(self.io, part, (ROW_ID_FIELD,), _COLUMNS):
            # A row without an id of its own cannot be one that was read before.
            known = column.fill_null(-1).to_numpy(zero_copy_only=False)
            positions = start + np.flatnonzero(np.isin(known, wanted))
            yield pa.RecordBatch.from_arrays(
                [
                    pa.repeat(pa.scalar(file["file"], pa.int64()), len(positions)),
                    pa.array(positions),
                ],
                schema=_FOUND,
            )
