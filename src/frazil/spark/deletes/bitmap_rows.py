"""Deleted positions as bitmap rows.

A row's key is ``ordinal << 32 | position >> shift``. *Dense*: one row per 65 536 positions, 1 024
words of 64 bits, the container of a Roaring bitmap. *Sparse*: one row per 64 positions, one word.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import types as S

from frazil.errors import UnsupportedError

Longs = npt.NDArray[np.int64]

KEY: Final = "_frazil_key"
WORDS: Final = "_frazil_words"
WORDS_PER_CONTAINER: Final = 1024
DENSE_ROW_BYTES: Final = 8 * WORDS_PER_CONTAINER + 64
SPARSE_ROW_BYTES: Final = 48


class Grain(Enum):
    """How many positions one bitmap row covers, as a power of two."""

    DENSE = 16
    SPARSE = 6

    @property
    def shift(self) -> int:
        """The bits of a position that are not part of the key."""
        return self.value

    @property
    def spark_schema(self) -> S.StructType:
        """The columns of bitmap rows in Spark."""
        words = S.LongType() if self is Grain.SPARSE else S.ArrayType(S.LongType(), False)
        return S.StructType(
            [S.StructField(KEY, S.LongType(), False), S.StructField(WORDS, words, False)]
        )

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns of bitmap rows in Arrow."""
        word = pa.field("element", pa.int64(), nullable=False)
        words = pa.int64() if self is Grain.SPARSE else pa.list_(word)
        return pa.schema(
            [pa.field(KEY, pa.int64(), nullable=False), pa.field(WORDS, words, nullable=False)]
        )


@dataclass(frozen=True, slots=True)
class BitmapSize:
    """What the bitmap rows of a scan take, from counts in the manifests.

    Attributes:
        positions: deleted positions, at most.
        rows: rows of the data files that have any.
        files: those data files.
    """

    positions: int
    rows: int
    files: int

    @property
    def grain(self) -> Grain:
        """The grain that takes less memory."""
        return Grain.DENSE if self._dense_bytes <= self._sparse_bytes else Grain.SPARSE

    @property
    def bytes(self) -> int:
        """The memory that the rows of that grain take, at most about."""
        return min(self._dense_bytes, self._sparse_bytes)

    @property
    def _dense_bytes(self) -> int:
        containers = (self.rows >> Grain.DENSE.shift) + self.files
        return min(containers, max(self.positions, 1)) * DENSE_ROW_BYTES

    @property
    def _sparse_bytes(self) -> int:
        return self.positions * SPARSE_ROW_BYTES


def bitmap_rows(ordinals: Longs | int, positions: Longs, grain: Grain) -> pa.RecordBatch:
    """The bitmap rows of deleted positions, one a key; positions may come twice and in any order.

    A join is cheapest where Spark knows the keys to be unique, so positions of one data file belong
    into one call.

    Args:
        ordinals: the data file of each position, or of all.

    Raises:
        UnsupportedError: a position that the key has no room for.
    """
    if len(positions) == 0:
        return pa.RecordBatch.from_pylist([], schema=grain.arrow_schema)
    if int(positions.min()) < 0 or int(positions.max()) >> grain.shift >= 1 << 31:
        raise UnsupportedError(
            f"deletes of positions {positions.min()} to {positions.max()} cannot be applied: "
            f"positions from 0 to {(1 << 31 << grain.shift) - 1} can"
        )
    keys = (np.asarray(ordinals, dtype=np.int64) << 32) | (positions >> grain.shift)
    keys, place = _distinct(keys)
    per_row = 1 if grain is Grain.SPARSE else WORDS_PER_CONTAINER
    bits = np.zeros(len(keys) * per_row, dtype=np.uint64)
    word = place * per_row + ((positions >> 6) & (per_row - 1))
    np.bitwise_or.at(bits, word, np.uint64(1) << (positions & 63).astype(np.uint64))
    return _batch(keys, bits.view(np.int64), grain)


def merged_rows(rows: pa.Table, grain: Grain) -> pa.RecordBatch:
    """Bitmap rows of which several may have one key as rows of which none has."""
    keys, place = _distinct(rows.column(KEY).to_numpy())
    words = rows.column(WORDS).combine_chunks()
    per_row = 1 if grain is Grain.SPARSE else WORDS_PER_CONTAINER
    flat = words if grain is Grain.SPARSE else words.flatten()
    bits = np.zeros((len(keys), per_row), dtype=np.int64)
    np.bitwise_or.at(bits, place, flat.to_numpy().reshape(-1, per_row))
    return _batch(keys, bits.reshape(-1), grain)


def _distinct(keys: Longs) -> tuple[Longs, Longs]:
    """The distinct keys in order, and the place among them of each key given."""
    # Deletes come sorted: runs of one key are many times fewer than keys.
    starts = np.flatnonzero(np.diff(keys, prepend=~keys[:1]))
    distinct, of_run = np.unique(keys[starts], return_inverse=True)
    return distinct, np.repeat(of_run, np.diff(starts, append=len(keys)))


def _batch(keys: Longs, words: Longs, grain: Grain) -> pa.RecordBatch:
    column: pa.Array = pa.array(words)
    if grain is Grain.DENSE:
        starts = pa.array(np.arange(len(keys) + 1, dtype=np.int32) * WORDS_PER_CONTAINER)
        kind = grain.arrow_schema.field(WORDS).type
        column = pa.ListArray.from_arrays(starts, column, type=kind)
    return pa.RecordBatch.from_arrays([pa.array(keys), column], schema=grain.arrow_schema)
