"""Rows found by their ids: a row of version 3 keeps its id wherever it is written.

The ids are few: they are of rows that two commits are about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.format.manifests import DataFile
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.format.schema.name_mapping import mapping_for
from frazil.spark.deletes.bitmap import Longs, Words
from frazil.spark.files.arrow.files import FilePart, TableColumns, read_batches
from frazil.spark.files.projection import LAST_UPDATED_FIELD, ROW_ID_FIELD
from frazil.spark.row_level.rivals.rows_by_value import EqualRows
from frazil.spark.row_level.target import Target, file_of, position_of
from frazil.spark.session import costs
from frazil.spark.session.facts import shuffle_partitions
from frazil.spark.session.tasks import map_batches
from frazil.storage.files import FileIO

_FILES: Final = "file bigint, path string, format string"
_FOUND: Final = pa.schema(
    {"file": pa.int64(), "position": pa.int64(), "row_id": pa.int64(), "stays": pa.bool_()}
)
_FIELDS: Final = (ROW_ID_FIELD, LAST_UPDATED_FIELD)
_COLUMNS: Final = TableColumns(fields=_FIELDS, mapping=mapping_for(Schema(_FIELDS)))


@dataclass(frozen=True, slots=True, eq=False)
class RowIds:
    """The ids of rows, each once, and the ordinals of the files that these rows are in."""

    ids: Longs
    files: Longs

    @classmethod
    def empty(cls) -> RowIds:
        """No rows."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    @classmethod
    def at_places(cls, target: Target, places: Mapping[int, Words]) -> RowIds | None:
        """Those of the live rows at some places; None where one has none, or of too many rows.

        Args:
            places: positions in them by the files' ordinals.
        """
        places = {ordinal: words for ordinal, words in places.items() if len(words.places)}
        if not places:
            return cls.empty()
        if sum(words.cardinality for words in places.values()) > costs.SOUGHT_ROWS:
            return None
        rows = target.restricted_to(places).rows_at(places)
        if not target.keeps_lineage:
            # Nobody asks for the ids of rows that were deleted before.
            return cls.empty() if rows.isEmpty() else None
        found = rows.select(
            _column(target.row_id).alias("id"), file_of(_column(target.place)).alias("file")
        ).toArrow()
        ids = found.column("id").combine_chunks()
        if ids.null_count:
            return None
        unique, first = np.unique(ids.to_numpy(), return_index=True)
        return cls(unique, found.column("file").to_numpy()[first])

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, eq=False)
class FoundRows(EqualRows):
    """Where rows were found by their ids, in files by their number or ordinal.

    Attributes:
        ids: the id of each.
        stays: whether the row is as it was before the file was written.
    """

    ids: Longs
    stays: npt.NDArray[np.bool_]

    def only_those_that_stay(self) -> FoundRows:
        """Return the rows that are as they were."""
        stays = self.stays
        return FoundRows(self.files[stays], self.positions[stays], self.ids[stays], stays[stays])

    @property
    def are_unique(self) -> bool:
        """Whether each row was found once."""
        return len(np.unique(self.ids)) == len(self.ids)


def rows_in_new_files(
    spark: SparkSession, io: FileIO, files: Sequence[DataFile], rows: RowIds
) -> FoundRows:
    """Find rows in data files that no snapshot has yet, by what the files say of them.

    Args:
        spark: its executors read the files.
        io: opens them.
        rows: which rows.

    Returns:
        the rows that are there, by the number of the file among `files`.
    """
    if not len(rows) or not files:
        return _found_rows(_FOUND.empty_table())
    table = pa.table(
        {
            "file": pa.array(range(len(files)), pa.int64()),
            "path": [each.file_path for each in files],
            "format": [each.file_format for each in files],
        }
    )
    tasks = max(1, min(len(files), shuffle_partitions(spark)))
    spread = spark.createDataFrame(table, _FILES).repartition(tasks)
    return _found_rows(map_batches(spread, _RowFinder(io, rows.ids.tobytes()), _FOUND).toArrow())


def live_rows(target: Target, rows: RowIds, since: int) -> FoundRows:
    """Find live rows of a table's files by their ids.

    Args:
        rows: which rows.
        since: a sequence number; rows that were changed after it do not stay as they were.

    Returns:
        the rows that are there, by the ordinals of the files.
    """
    if not len(rows) or not target.plan.file_count:
        return _found_rows(_FOUND.empty_table())
    wanted = target.spark.createDataFrame(pa.table({"wanted": rows.ids}), "wanted bigint")
    number = _column(target.last_updated)
    places = target.rows((), lineage=True)
    found = places.join(F.broadcast(wanted), _column(target.row_id) == F.col("wanted")).select(
        file_of(_column(target.place)).alias("file"),
        position_of(_column(target.place)).alias("position"),
        F.col("wanted").alias("row_id"),
        F.coalesce(number <= since, F.lit(False)).alias("stays"),
    )
    return _found_rows(found.toArrow())


def _found_rows(table: pa.Table) -> FoundRows:
    return FoundRows(*(table.column(name).to_numpy() for name in _FOUND.names))


def _column(name: str) -> Any:
    return F.col(quote_name_always([name]))


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

    def _rows(self, file: Mapping[str, Any], wanted: Longs) -> Iterator[pa.RecordBatch]:
        part = FilePart(path=file["path"], file_format=file["format"])
        for start, _, [ids, numbers] in read_batches(self.io, part, _FIELDS, _COLUMNS):
            # A row without an id of its own cannot be one that was read before.
            known = ids.fill_null(-1).to_numpy(zero_copy_only=False)
            places = np.flatnonzero(np.isin(known, wanted))
            stays = numbers.is_valid().to_numpy(zero_copy_only=False)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.repeat(pa.scalar(file["file"], pa.int64()), len(places)),
                    pa.array(start + places),
                    pa.array(known[places]),
                    pa.array(stays[places]),
                ],
                schema=_FOUND,
            )
