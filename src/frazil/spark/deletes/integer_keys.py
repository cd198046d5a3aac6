"""Deleted integers as bits: one value to look into in place of a million keys to join.

Where one integer-like column is compared, no key is NULL and every delete is for every file, a row
is deleted if the bit of its value is set. The keys are read beside the session where there are few
enough, and kept as `DeletedWords`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from frazil.errors import InvalidDataFileError
from frazil.format import types as I
from frazil.spark.deletes.bitmap import Longs, Words
from frazil.spark.deletes.deletion_cache import DeletedWords, Known
from frazil.spark.deletes.joins import Deleted, bytes_of_values, deleted_values
from frazil.spark.deletes.ways import Load, Way
from frazil.spark.files.arrow.files import FilePart, TableColumns, read_batches
from frazil.spark.session import costs
from frazil.storage.files import FileIO
from frazil.storage.moved import store_key
from frazil.storage.side_by_side import READING_THREADS, in_threads

_INTEGERS: Final = (I.IntegerType, I.LongType, I.DateType)


def is_integer(field_type: I.IcebergType) -> bool:
    """Whether values of the type are integers of which bitmaps can be made."""
    return isinstance(field_type, _INTEGERS)


def as_long(value: Column, field_type: I.IcebergType) -> Column:
    """A column of such a type as the longs that bitmaps are made of."""
    return F.unix_date(value).cast("long") if isinstance(field_type, I.DateType) else value


@dataclass(frozen=True, slots=True)
class IntegerKeys:
    """The keys of equality delete files that compare one column; none of them is NULL.

    Attributes:
        deletes: of a plan's delete files.
        field: the compared top-level column.
    """

    io: FileIO
    deletes: pl.DataFrame
    field: I.NestedField

    @property
    def way(self) -> Way[Callable[[SparkSession, Words, Column], Deleted]]:
        """How rows are compared with them where the load is borne."""
        most = {"files": costs.KEY_FILES_HERE, "keys": costs.KEYS_HERE, "bytes": costs.SENT_BYTES}
        return Way("compared with bits of keys", deleted_values, most)

    def load(self) -> Load:
        """Return what is yet to be read, and the bytes of the bits where nothing is."""
        return _load_of(*self._known_keys())

    def words(self, table: TableColumns) -> Words | None:
        """Return the keys; None where too many are not known yet, or they take too much.

        Raises:
            InvalidDataFileError: a delete file lacks the column, or holds NULL.
            MissingFileError: a delete file is not there.
        """
        # One look: other threads may keep more meanwhile.
        known, left = self._known_keys()
        if not self.way.bears(_load_of(known, left)):
            return None
        if len(left):
            needed = I.NestedField(
                self.field.field_id, self.field.name, self.field.field_type, required=True
            )
            files = left.select("file_path", "file_format").iter_rows()
            found = in_threads(
                lambda part: _keys(self.io, part, needed, table),
                [FilePart(path=path, file_format=file_format) for path, file_format in files],
                threads=READING_THREADS,
                name="frazil-keys",
            )
            words = Words.union((known.words, Words.of_values(np.concatenate(found))))
            known = Known(frozenset(self.deletes["file_path"]), words)
            DeletedWords.of(self.io).keep(self._owner, known)
        return known.words if self.way.bears(_load_of(known, left.clear())) else None

    @property
    def _owner(self) -> Hashable:
        return ("keys", store_key(self.io), self.field.field_id, str(self.field.field_type))

    def _known_keys(self) -> tuple[Known, pl.DataFrame]:
        """What is known of the keys, and the files of which nothing is."""
        files = self.deletes.unique("file_path", maintain_order=True)
        wanted: frozenset[Hashable] = frozenset(files["file_path"])
        known = DeletedWords.of(self.io).covered(self._owner, wanted)
        return known, files.filter(~pl.col("file_path").is_in(list(known.deletes)))


def _load_of(known: Known, left: pl.DataFrame) -> Load:
    size = 0 if len(left) else bytes_of_values(known.words)
    return {"files": len(left), "keys": int(left["record_count"].sum()), "bytes": size}


def _keys(io: FileIO, part: FilePart, field: I.NestedField, table: TableColumns) -> Longs:
    found = [np.empty(0, dtype=np.int64)]
    for _, _, (values,) in read_batches(io, part, (field,), table):
        if values.null_count:
            raise InvalidDataFileError(
                f"the equality delete file holds NULL in {field.name!r} (field {field.field_id}), "
                "of which its manifest entry counts none",
                file=part.path,
            )
        whole = values.cast(pa.int32()) if pa.types.is_date32(values.type) else values
        found.append(whole.cast(pa.int64()).to_numpy(zero_copy_only=False))
    return np.concatenate(found)
