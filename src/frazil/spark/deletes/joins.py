"""Deleted positions as what a scan's rows are tested against.

Positions become one value, the 64-bit words of every file, which the plan holds as a scalar
subquery. A test of it is an addition to the scan's own loop; a join would be a look-up in a hash
table a row. Where a value would be large the files are read in several parts, each with a value of
its own, so that no task decodes more. Very many become rows that are joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.spark.deletes.bitmap import Words, word_rows
from frazil.spark.deletes.bitmap_rows import KEY, WORDS, WORDS_PER_CONTAINER, Grain
from frazil.spark.files.parquet.file_log import NAMED_PLACE, RowPlace
from frazil.storage.caches import BoundedCache

BROADCAST_BYTES: Final = 32 * 1024 * 1024
"""Bitmaps up to this size are sent to every executor; larger ones are shuffled with the rows."""

ARRAY_BYTES: Final = 32 * 1024 * 1024
"""Bitmaps up to this size are a value in the plan, which every task decodes."""

_DECODED_BYTES: Final = 1024 * 1024 * 1024
"""So much tasks decode of a value, one task a file: it takes them a second."""

_SMALL_ARRAY_BYTES: Final = 4 * 1024 * 1024
"""A value of that size is decoded by however many tasks."""

ARRAYS: Final = 32
"""So many such values a plan may have: together the bitmaps of a billion rows, or of more."""

_ARRAY_OVERHEAD: Final = 16
"""An array within an array has its own length and offset."""

_BYTES_PER_FRAME: Final = 64 * 1024
"""What Spark keeps of a frame beside its rows, about."""

_ELEMENT: Final = "element"
_OF_FILE: Final = pa.list_(pa.field(_ELEMENT, pa.int64(), nullable=False))
_OF_FILES: Final = pa.list_(pa.field(_ELEMENT, _OF_FILE, nullable=False))


class Bitmaps(Protocol):
    """The deleted positions of some data files."""

    def without_deleted(self, rows: DataFrame, place: RowPlace = NAMED_PLACE) -> DataFrame:
        """The rows whose position is not deleted, where a row's place is said so."""

    def only_deleted(self, rows: DataFrame, place: RowPlace = NAMED_PLACE) -> DataFrame:
        """The rows whose position is deleted."""


@dataclass(frozen=True, slots=True)
class JoinedBitmaps:
    """Bitmaps as rows (see `frazil.spark.deletes.bitmap_rows`) with a broadcast or merge hint."""

    rows: DataFrame
    grain: Grain

    def without_deleted(self, rows: DataFrame, place: RowPlace = NAMED_PLACE) -> DataFrame:
        """The rows that no bitmap row says deleted."""
        return rows.join(self.rows, self._is_deleted(place), "left_anti")

    def only_deleted(self, rows: DataFrame, place: RowPlace = NAMED_PLACE) -> DataFrame:
        """The rows that a bitmap row says deleted."""
        return rows.join(self.rows, self._is_deleted(place), "left_semi")

    def _is_deleted(self, place: RowPlace) -> Column:
        # One text is one call to the JVM; as functions it would be some fifty.
        word, position = WORDS, place.position
        if self.grain is Grain.DENSE:
            at = f"CAST(shiftright({position}, 6) & {WORDS_PER_CONTAINER - 1}L AS INT)"
            word = f"get({WORDS}, {at})"
        return F.expr(
            f"{KEY} = (shiftleft({place.ordinal}, 32) | shiftright({position}, {self.grain.shift}))"
            f" AND getbit({word}, CAST({position} & 63L AS INT)) = 1"
        )


class ArrayBitmaps:
    """Bitmaps as the words of each file, by its ordinal, in one value.

    A value of words at equal distances is the faster one: Spark makes an object a row for the words
    of a row's file where those are an array of their own.

    Attributes:
        distance: how many words each file has in one array; None where each has its own array.
        first: the ordinal of the first file.
    """

    def __init__(self, value: DataFrame, distance: int | None, first: int) -> None:
        """Those of one row with one column."""
        self._words = value.scalar()
        self.distance = distance
        self.first = first
        self._conditions: dict[RowPlace, Column] = {}

    def without_deleted(self, rows: DataFrame, place: RowPlace = NAMED_PLACE) -> DataFrame:
        """The rows whose bit is not set."""
        return rows.where(self.is_kept(place))

    def only_deleted(self, rows: DataFrame, place: RowPlace = NAMED_PLACE) -> DataFrame:
        """The rows whose bit is set."""
        return rows.where(~self.is_kept(place))

    def is_kept(self, place: RowPlace) -> Column:
        """The condition of rows that are not deleted, where a row's place is said so."""
        # A dozen calls to Spark, for which the rows of every scan would wait.
        if place not in self._conditions:
            self._conditions[place] = self._condition(place)
        return self._conditions[place]

    def _condition(self, place: RowPlace) -> Column:
        number = f"shiftright({place.position}, 6)"
        file = f"({place.ordinal} - {self.first}L)" if self.first else place.ordinal
        if self.distance is None:
            words = F.get(self._words, F.expr(f"CAST({file} AS INT)"))
            word = F.get(words, F.expr(f"CAST({number} AS INT)"))
        else:
            index = f"{file} * {self.distance}L + {number}"
            word = F.get(self._words, F.expr(f"CAST({index} AS INT)"))
        # getbit would check the place of every row, which `& 63` keeps within the word.
        bits = F.expr(f"CAST({place.position} & 63L AS INT)")
        bit = F.call_function("shiftright", word, bits).bitwiseAND(F.expr("1L"))
        # A file may have no words, or not so many.
        kept = F.coalesce(bit, F.expr("0L")) == 0
        # Of one file nothing follows its words.
        if self.distance is None or place.is_one_file:
            return kept
        # The words behind a file's own are the next file's.
        return F.expr(f"{place.position} >= {self.distance << 6}L") | kept


def bitmaps_of_words(
    spark: SparkSession, sets: Mapping[int, Words], cache: BoundedCache[ArrayBitmaps]
) -> Bitmaps:
    """Return the bitmaps of deleted positions by the data file's ordinal.

    Args:
        cache: where arrays are kept, so that the same sets are handed to Spark once, in 20 ms.
    """
    key = (spark, *sorted(sets.items()))
    known = cache.get(key)
    if known is not None:
        return known
    first = min(sets, default=0)
    near = {ordinal - first: words for ordinal, words in sets.items()}
    lengths = _lengths(near)
    distance = max(lengths, default=0)
    made = None
    size = 8 * distance * len(lengths)
    apart = 8 * sum(lengths) + _ARRAY_OVERHEAD * len(lengths)
    most = _most_bytes(len(sets))
    if size <= most:
        value = words_value(spark, _one_array(near, distance), S.LongType())
        made = ArrayBitmaps(value, distance, first)
    elif apart <= most:
        size = apart
        words = S.ArrayType(S.LongType(), containsNull=False)
        made = ArrayBitmaps(words_value(spark, _arrays(near, lengths), words), None, first)
    if made is not None:
        cache.put(key, made, size + _BYTES_PER_FRAME)
        return made
    found = word_rows(sets)
    rows = spark.createDataFrame(found.table, found.grain.spark_schema)
    is_small = found.size_in_bytes <= BROADCAST_BYTES
    return JoinedBitmaps(F.broadcast(rows) if is_small else rows.hint("merge"), found.grain)


def in_arrays(sets: Mapping[int, Words]) -> list[dict[int, Words]]:
    """The sets in parts that can each be one value; all in one where they would be too many.

    A part has neighbouring ordinals, so that its array has room for few others. Sets that alone are
    too large for a value are a part of their own. Parts cost Spark more a row than a large value
    costs a task, so they are as large as the tasks can bear.
    """
    parts: list[dict[int, Words]] = []
    too_large: dict[int, Words] = {}
    first = longest = 0
    for ordinal in sorted(sets):
        length = _length(sets[ordinal])
        if 8 * length > _most_bytes(1):
            too_large[ordinal] = sets[ordinal]
            continue
        longest = max(longest, length)
        size = 8 * longest * (ordinal - first + 1)
        if not parts or size > _most_bytes(len(parts[-1]) + 1):
            parts.append({})
            first, longest = ordinal, length
        parts[-1][ordinal] = sets[ordinal]
    if too_large:
        parts.append(too_large)
    return parts if 0 < len(parts) <= ARRAYS else [dict(sets)]


def _most_bytes(files: int) -> int:
    """The size up to which the bitmaps of so many files are one value."""
    return min(ARRAY_BYTES, max(_SMALL_ARRAY_BYTES, _DECODED_BYTES // max(files, 1)))


def _length(words: Words) -> int:
    """How many words there are up to the last that has a bit."""
    return int(words.places[-1]) + 1 if len(words.places) else 0


def _lengths(sets: Mapping[int, Words]) -> list[int]:
    """How many words each ordinal takes, up to the last that has a bit."""
    lengths = [0] * (max(sets, default=-1) + 1)
    for ordinal, words in sets.items():
        lengths[ordinal] = _length(words)
    return lengths


def _one_array(sets: Mapping[int, Words], distance: int) -> pa.Array:
    filled = np.zeros((max(sets, default=-1) + 1) * distance, dtype=np.uint64)
    for ordinal, words in sets.items():
        filled[ordinal * distance + words.places] = words.bits
    return _list_of_one(pa.array(filled.view(np.int64)), _OF_FILE)


def _arrays(sets: Mapping[int, Words], lengths: Sequence[int]) -> pa.Array:
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    filled = np.zeros(int(starts[-1]), dtype=np.uint64)
    for ordinal, words in sets.items():
        filled[starts[ordinal] + words.places] = words.bits
    of_files = pa.ListArray.from_arrays(
        pa.array(starts), pa.array(filled.view(np.int64)), type=_OF_FILE
    )
    return _list_of_one(of_files, _OF_FILES)


def _list_of_one(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values, type=kind)


def words_value(spark: SparkSession, column: pa.Array, element: S.DataType) -> DataFrame:
    """Return one row with the one array of the column, to be a value of a plan."""
    schema = S.StructType([S.StructField(WORDS, S.ArrayType(element, containsNull=False), False)])
    table = pa.table([column], schema=pa.schema([pa.field(WORDS, column.type, nullable=False)]))
    return spark.createDataFrame(table, schema)
