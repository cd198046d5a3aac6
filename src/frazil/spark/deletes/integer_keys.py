"""Deleted integers as bitmaps: some hundred rows to join in place of a million keys.

Where one integer-like column is compared, no key is NULL and every delete is for every file, a row
is deleted if the bit of its value is set. The keys are read beside the session where there are few
enough, and kept as `DeletedWords`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.errors import InvalidDataFileError
from frazil.format import types as I
from frazil.planning.cache import store_key
from frazil.spark.deletes.bitmap import WordRows, Words, word_rows
from frazil.spark.deletes.bitmap_rows import Longs
from frazil.spark.deletes.deletion_cache import DeletedWords, Known
from frazil.spark.deletes.joins import BROADCAST_BYTES
from frazil.spark.files.arrow.files import FilePart, TableColumns, read_batches
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import in_threads

ON_DRIVER_KEYS: Final = 2_000_000
ON_DRIVER_FILES: Final = 256
"""Up to so many keys are read beside the session: a Spark job would cost more."""

_READERS: Final = 8
_INTEGERS: Final = (I.IntegerType, I.LongType, I.DateType)


def is_integer(field_type: I.IcebergType) -> bool:
    """Whether values of the type are integers of which bitmaps can be made."""
    return isinstance(field_type, _INTEGERS)


def as_long(value: Column, field_type: I.IcebergType) -> Column:
    """A column of such a type as the longs that bitmaps are made of."""
    return F.unix_date(value).cast("long") if isinstance(field_type, I.DateType) else value


def key_bits(
    io: FileIO, deletes: pl.DataFrame, field: I.NestedField, table: TableColumns
) -> WordRows | None:
    """The keys of these delete files as bitmap rows; None where too many are not known yet.

    Args:
        deletes: of a plan's delete files; none of their keys is NULL.
        field: the compared top-level column.

    Raises:
        InvalidDataFileError: a delete file lacks the column, or holds NULL.
        MissingFileError: a delete file is not there.
    """
    files = deletes.unique("file_path", maintain_order=True)
    owner = ("keys", store_key(io), field.field_id, str(field.field_type))
    wanted: frozenset[Hashable] = frozenset(files["file_path"])
    kept = DeletedWords.of(io)
    known = kept.covered(owner, wanted)
    if known.deletes != wanted:
        left = files.filter(~pl.col("file_path").is_in(list(known.deletes)))
        if len(left) > ON_DRIVER_FILES or int(left["record_count"].sum()) > ON_DRIVER_KEYS:
            return None
        needed = I.NestedField(field.field_id, field.name, field.field_type, required=True)
        parts = [
            FilePart(path=path, file_format=file_format)
            for path, file_format in left.select("file_path", "file_format").iter_rows()
        ]
        found = in_threads(
            lambda part: _keys(io, part, needed, table),
            parts,
            threads=_READERS,
            name="frazil-keys",
        )
        words = Words.union((known.words, Words.of_values(np.concatenate(found))))
        known = Known(wanted, words)
        kept.keep(owner, known)
    rows = word_rows({0: known.words})
    return rows if rows.size_in_bytes <= BROADCAST_BYTES else None


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
