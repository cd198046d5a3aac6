"""Deleted positions as what a scan's rows are tested against.

Positions become one value, the 64-bit words of every file, which the plan holds as a scalar
subquery. A test of it is an addition to the scan's own loop; a join would be a look-up in a hash
table a row. Where a value would be large the files are read in several parts, each with a value of
its own, so that no task decodes more. Very many become rows that are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.spark.deletes.bitmap import KEY, ROW_BYTES, WORD_ROWS, WORDS, Longs, Words, in_one_set
from frazil.spark.deletes.ways import ChosenWay, Load, Way, cheapest
from frazil.spark.files.parquet.file_log import RowPlace
from frazil.spark.session import costs
from frazil.storage.caches import BoundedCache

ARRAY_BYTES: Final = 32 * 1024 * 1024
"""Bitmaps up to this size are a value in the plan, which every task decodes."""

_DECODED_BYTES: Final = 1024 * 1024 * 1024
"""So much tasks decode of a value, one task a file: it takes them a second."""

_SMALL_ARRAY_BYTES: Final = 4 * 1024 * 1024
"""A value of that size is decoded by however many tasks."""

ARRAYS: Final = 32
"""So many such values a plan may have: together the bitmaps of a billion rows, or of more."""

_BYTES_PER_FRAME: Final = 64 * 1024
"""What Spark keeps of a frame beside its rows, about."""


def join_of(load: Load, **most: int) -> ChosenWay[Callable[[DataFrame], DataFrame]]:
    """Return how a table of deletes is joined with the rows that they may delete.

    Args:
        load: its ``bytes`` and other figures.
        most: up to which of the other figures it is sent to every executor.
    """
    sent = Way("joined, sent to every executor", F.broadcast, {**most, "bytes": costs.SENT_BYTES})
    shuffled = Way("joined, shuffled with the rows", lambda rows: rows.hint("merge"))
    return cheapest((sent, shuffled), load)


def word_rows(spark: SparkSession, words: Words) -> DataFrame:
    """Return words as `WORD_ROWS`, hinted as to how to join them."""
    rows = spark.createDataFrame(pa.Table.from_batches([words.rows()]), WORD_ROWS)
    return join_of({"bytes": len(words.places) * ROW_BYTES}).way.apply(rows)


@dataclass(frozen=True, slots=True)
class Joined:
    """Deletes that rows are joined with.

    Attributes:
        deletes: hinted as to how to join them.
        condition: on rows and deletes; rows that match are deleted.
    """

    deletes: DataFrame
    condition: Column

    def without_deleted(self, rows: DataFrame) -> DataFrame:
        """The rows that match no delete."""
        return rows.join(self.deletes, self.condition, "left_anti")

    def only_deleted(self, rows: DataFrame) -> DataFrame:
        """The rows that match a delete."""
        return rows.join(self.deletes, self.condition, "left_semi")


@dataclass(frozen=True, slots=True)
class Tested:
    """Deletes as a condition, never NULL, of the rows that they leave."""

    kept: Column

    def without_deleted(self, rows: DataFrame) -> DataFrame:
        """The rows for which it holds."""
        return rows.where(self.kept)

    def only_deleted(self, rows: DataFrame) -> DataFrame:
        """The rows for which it does not."""
        return rows.where(~self.kept)


Deleted = Joined | Tested
"""What tells deleted rows from others."""


def deleted_values(spark: SparkSession, words: Words, value: Column) -> Deleted:
    """Return what says that a row is deleted by the bit of an integer column's value."""
    place, bit = F.shiftright(value, 6), value.bitwiseAND(F.lit(63)).cast("int")
    length, rows = _span(words), len(words.places) * ROW_BYTES
    if 8 * length > min(ARRAY_BYTES, max(_SMALL_ARRAY_BYTES, rows)):
        is_deleted = (F.col(KEY) == place) & (F.getbit(F.col(WORDS), bit) == 1)
        return Joined(word_rows(spark, words), is_deleted)
    first = int(words.places[0]) if length else 0
    near = {0: Words(words.places - first, words.bits)}
    value = _value_of(spark, near, length).scalar()
    index = F.when(place.between(first, first + length - 1), place - F.lit(first)).cast("int")
    is_set = F.call_function("getbit", F.get(value, index), bit)
    return Tested(F.coalesce(is_set == 1, F.lit(False)) == F.lit(False))


def bytes_of_values(words: Words) -> int:
    """Return what `deleted_values` sends to every task."""
    rows = len(words.places) * ROW_BYTES
    array = 8 * _span(words)
    return array if array <= min(ARRAY_BYTES, max(_SMALL_ARRAY_BYTES, rows)) else rows


def _span(words: Words) -> int:
    """The number of places from the first word to the last."""
    return int(words.places[-1] - words.places[0]) + 1 if len(words.places) else 0


class Bitmaps(Protocol):
    """The deleted positions of some data files."""

    def deleted_at(self, place: RowPlace) -> Deleted:
        """What tells deleted rows, where a row's place is said so."""


@dataclass(frozen=True, slots=True)
class JoinedBitmaps:
    """Bitmaps as `WORD_ROWS`, hinted as to how to join them."""

    rows: DataFrame

    def deleted_at(self, place: RowPlace) -> Joined:
        """The rows to join."""
        # One text is one call to the JVM; as functions it would be some fifty.
        is_deleted = F.expr(
            f"{KEY} = (shiftleft({place.ordinal}, 32) | shiftright({place.position}, 6))"
            f" AND getbit({WORDS}, CAST({place.position} & 63L AS INT)) = 1"
        )
        return Joined(self.rows, is_deleted)


class ArrayBitmaps:
    """Bitmaps as one value: the words of each file, at equal distances by its ordinal.

    Attributes:
        distance: how many words each file has.
        first: the ordinal of the first file.
    """

    def __init__(self, value: DataFrame, distance: int, first: int) -> None:
        """Those of one row with one column."""
        self._words = value.scalar()
        self.distance = distance
        self.first = first
        self._conditions: dict[RowPlace, Tested] = {}

    def deleted_at(self, place: RowPlace) -> Tested:
        """The condition to test."""
        # A dozen calls to Spark, for which the rows of every scan would wait.
        if place not in self._conditions:
            self._conditions[place] = Tested(self._is_kept(place))
        return self._conditions[place]

    def _is_kept(self, place: RowPlace) -> Column:
        file = f"({place.ordinal} - {self.first}L)" if self.first else place.ordinal
        index = f"{file} * {self.distance}L + shiftright({place.position}, 6)"
        word = F.get(self._words, F.expr(f"CAST({index} AS INT)"))
        # getbit would check the place of every row, which `& 63` keeps within the word.
        bits = F.expr(f"CAST({place.position} & 63L AS INT)")
        bit = F.call_function("shiftright", word, bits).bitwiseAND(F.expr("1L"))
        # A file may have no words, or not so many.
        kept = F.coalesce(bit, F.expr("0L")) == 0
        # Of one file nothing follows its words.
        if place.is_one_file:
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
    distance = max((_length(words) for words in sets.values()), default=0)
    size = 8 * distance * (max(sets, default=0) - first + 1)
    if size > _most_bytes(len(sets)):
        return JoinedBitmaps(word_rows(spark, in_one_set(sets)))
    near = {ordinal - first: words for ordinal, words in sets.items()}
    made = ArrayBitmaps(_value_of(spark, near, distance), distance, first)
    cache.put(key, made, size + _BYTES_PER_FRAME)
    return made


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
    """How many words there are up to the last that has a bit, and up to a quarter more.

    The number stands in the code that Spark makes of a condition. It compiles new code, where the
    next change of a table is to need no other.
    """
    length = int(words.places[-1]) + 1 if len(words.places) else 0
    step = 1 << max(length.bit_length() - 3, 0)
    return -(-length // step) * step


def _value_of(spark: SparkSession, sets: Mapping[int, Words], distance: int) -> DataFrame:
    """The words of sets in one array, at equal distances by the sets' numbers."""
    filled = np.zeros((max(sets, default=-1) + 1) * distance, dtype=np.uint64)
    for ordinal, words in sets.items():
        filled[ordinal * distance + words.places] = words.bits
    return words_value(spark, filled.view(np.int64))


def words_value(spark: SparkSession, words: Longs) -> DataFrame:
    """Return one row with the one array of the words, to be a value of a plan."""
    kind = pa.list_(pa.field("element", pa.int64(), nullable=False))
    ends = pa.array([0, len(words)], pa.int32())
    column = pa.ListArray.from_arrays(ends, pa.array(words), type=kind)
    table = pa.table([column], schema=pa.schema([pa.field(WORDS, kind, nullable=False)]))
    words_type = S.ArrayType(S.LongType(), containsNull=False)
    return spark.createDataFrame(table, S.StructType([S.StructField(WORDS, words_type, False)]))
