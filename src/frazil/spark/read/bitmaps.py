"""Deleted positions as what a scan's rows are tested against.

Few positions become one value: an array with an array of 64-bit words for each file, which the plan
holds as a scalar subquery. A test of it is an addition to the scan's own loop; a join would be a
look-up in a hash table a row. Many become rows that are joined.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.spark.read.file_log import NAMED_PLACE, ORDINAL, POSITION, RowPlace
from frazil.spark.read.positions import KEY, WORDS, WORDS_PER_CONTAINER, Grain
from frazil.spark.read.words import Words, word_rows

BROADCAST_BYTES: Final = 32 * 1024 * 1024
"""Bitmaps up to this size are sent to every executor; larger ones are shuffled with the rows."""

ARRAY_BYTES: Final = 4 * 1024 * 1024
"""Bitmaps up to this size are a value in the plan, which every task decodes."""

_KEPT: Final = 8

_ELEMENT: Final = "element"
_OF_FILE: Final = pa.list_(pa.field(_ELEMENT, pa.int64(), nullable=False))
_OF_FILES: Final = pa.list_(pa.field(_ELEMENT, _OF_FILE, nullable=False))
_ARROW_SCHEMA: Final = pa.schema([pa.field(WORDS, _OF_FILES, nullable=False)])
_SPARK_SCHEMA: Final = S.StructType(
    [S.StructField(WORDS, S.ArrayType(S.ArrayType(S.LongType(), False), False), False)]
)


class Bitmaps(Protocol):
    """The deleted positions of some data files."""

    def without_deleted(self, rows: DataFrame) -> DataFrame:
        """The rows whose position is not deleted; they need `ORDINAL` and `POSITION`."""

    def only_deleted(self, rows: DataFrame) -> DataFrame:
        """The rows whose position is deleted."""


@dataclass(frozen=True, slots=True)
class JoinedBitmaps:
    """Bitmaps as rows (see `frazil.spark.read.positions`) with a broadcast or merge hint."""

    rows: DataFrame
    grain: Grain

    def without_deleted(self, rows: DataFrame) -> DataFrame:
        """The rows that no bitmap row says deleted."""
        return rows.join(self.rows, self._is_deleted, "left_anti")

    def only_deleted(self, rows: DataFrame) -> DataFrame:
        """The rows that a bitmap row says deleted."""
        return rows.join(self.rows, self._is_deleted, "left_semi")

    @property
    def _is_deleted(self) -> Column:
        # One text is one call to the JVM; as functions it would be some fifty.
        word = WORDS
        if self.grain is Grain.DENSE:
            place = f"CAST(shiftright({POSITION}, 6) & {WORDS_PER_CONTAINER - 1}L AS INT)"
            word = f"get({WORDS}, {place})"
        return F.expr(
            f"{KEY} = (shiftleft({ORDINAL}, 32) | shiftright({POSITION}, {self.grain.shift}))"
            f" AND getbit({word}, CAST({POSITION} & 63L AS INT)) = 1"
        )


class ArrayBitmaps:
    """Bitmaps as the words of each file, by its ordinal, in one array."""

    def __init__(self, array: DataFrame) -> None:
        """Those of one row with one column."""
        self._words = array.scalar()
        self._bits: dict[RowPlace, Column] = {}

    def without_deleted(self, rows: DataFrame) -> DataFrame:
        """The rows whose bit is not set."""
        return rows.where(self.is_kept(NAMED_PLACE))

    def only_deleted(self, rows: DataFrame) -> DataFrame:
        """The rows whose bit is set."""
        return rows.where(self._bit(NAMED_PLACE) == 1)

    def is_kept(self, place: RowPlace) -> Column:
        """The condition of rows that are not deleted, where a row's place is said so."""
        return self._bit(place) == 0

    def _bit(self, place: RowPlace) -> Column:
        # A dozen calls to Spark, for which the rows of every scan would wait.
        if place not in self._bits:
            words = F.get(self._words, F.expr(f"CAST({place.ordinal} AS INT)"))
            word = F.get(words, F.expr(f"CAST(shiftright({place.position}, 6) AS INT)"))
            # getbit would check the place of every row, which `& 63` keeps within the word.
            places = F.expr(f"CAST({place.position} & 63L AS INT)")
            bit = F.call_function("shiftright", word, places).bitwiseAND(F.expr("1L"))
            # A file may have no words, or not so many.
            self._bits[place] = F.coalesce(bit, F.expr("0L"))
        return self._bits[place]


def bitmaps_of_words(spark: SparkSession, sets: Mapping[int, Words]) -> Bitmaps:
    """The bitmaps of deleted positions by the data file's ordinal."""
    known = _ARRAYS.find(spark, sets)
    if known is not None:
        return known
    if _array_bytes(sets) <= ARRAY_BYTES:
        made = ArrayBitmaps(spark.createDataFrame(_array(sets), _SPARK_SCHEMA))
        _ARRAYS.keep(spark, sets, made)
        return made
    found = word_rows(sets)
    rows = spark.createDataFrame(found.table, found.grain.spark_schema)
    is_small = found.size_in_bytes <= BROADCAST_BYTES
    return JoinedBitmaps(F.broadcast(rows) if is_small else rows.hint("merge"), found.grain)


def _lengths(sets: Mapping[int, Words]) -> list[int]:
    """How many words each ordinal takes, up to the last that has a bit."""
    lengths = [0] * (max(sets, default=-1) + 1)
    for ordinal, words in sets.items():
        if len(words.places):
            lengths[ordinal] = int(words.places[-1]) + 1
    return lengths


def _array_bytes(sets: Mapping[int, Words]) -> int:
    # An array within an array has its own length and offset.
    return 8 * sum(_lengths(sets)) + 16 * (max(sets, default=-1) + 1)


def _array(sets: Mapping[int, Words]) -> pa.Table:
    starts = np.concatenate([[0], np.cumsum(_lengths(sets))]).astype(np.int32)
    filled = np.zeros(int(starts[-1]), dtype=np.uint64)
    for ordinal, words in sets.items():
        filled[starts[ordinal] + words.places] = words.bits
    of_files = pa.ListArray.from_arrays(
        pa.array(starts), pa.array(filled.view(np.int64)), type=_OF_FILE
    )
    ends = pa.array([0, len(of_files)], pa.int32())
    return pa.table(
        [pa.ListArray.from_arrays(ends, of_files, type=_OF_FILES)], schema=_ARROW_SCHEMA
    )


class _Arrays:
    """The arrays that were used last: to hand one to Spark takes 20 ms."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, ArrayBitmaps] = OrderedDict()

    def find(self, spark: SparkSession, sets: Mapping[int, Words]) -> ArrayBitmaps | None:
        """What was kept for these sets, the same objects, in this session."""
        key = self._key(spark, sets)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, spark: SparkSession, sets: Mapping[int, Words], made: ArrayBitmaps) -> None:
        """Keep it in the place of what was used longest ago."""
        with self._lock:
            self._kept[self._key(spark, sets)] = made
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)

    @staticmethod
    def _key(spark: SparkSession, sets: Mapping[int, Words]) -> Hashable:
        return (spark, *sorted(sets.items()))


_ARRAYS: Final = _Arrays()
