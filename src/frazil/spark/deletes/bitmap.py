"""Sets of integers as words of 64 bits, and such sets as rows that Spark can join and test.

The integers are positions of deleted rows in a file, or deleted keys. A set takes 16 bytes for each
run of 64 integers that holds any.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.errors import UnsupportedError
from frazil.spark.deletes.bitmap_rows import (
    DENSE_ROW_BYTES,
    KEY,
    SPARSE_ROW_BYTES,
    WORDS,
    WORDS_PER_CONTAINER,
    Grain,
    Longs,
)

_WORD_SHIFT = 6
_WORDS_AT_ONCE = 1 << 16
_CONTAINER_SHIFT = Grain.DENSE.shift - _WORD_SHIFT
_LOW = (1 << 32) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """A set of integers.

    Attributes:
        places: the integers shifted right by 6: sorted, each once.
        bits: which of the 64 integers of each place are in the set.
    """

    places: Longs
    bits: npt.NDArray[np.uint64]

    @classmethod
    def none(cls) -> Words:
        """The empty set."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64))

    @classmethod
    def of_values(cls, values: Longs) -> Words:
        """The set of these integers, which may repeat and come in any order."""
        bits = np.uint64(1) << (values & 63).astype(np.uint64)
        return cls.of_words(values >> _WORD_SHIFT, bits)

    @classmethod
    def of_words(cls, places: Longs, bits: npt.NDArray[np.uint64]) -> Words:
        """The union of words, whose places may repeat and come in any order."""
        if not len(places):
            return cls.none()
        order = np.argsort(places, kind="stable")
        ordered = places[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        return cls(ordered[starts], np.bitwise_or.reduceat(bits[order], starts))

    @classmethod
    def union(cls, sets: Iterable[Words]) -> Words:
        """The integers that are in any of the sets."""
        some = [each for each in sets if len(each.places)]
        if len(some) < 2:
            return some[0] if some else cls.none()
        return cls.of_words(
            np.concatenate([each.places for each in some]),
            np.concatenate([each.bits for each in some]),
        )

    @property
    def cardinality(self) -> int:
        """How many integers are in the set."""
        return int(np.bitwise_count(self.bits).sum())

    @property
    def size_in_bytes(self) -> int:
        """The memory that the set takes."""
        return self.places.nbytes + self.bits.nbytes

    def values(self) -> Longs:
        """Return the integers in order."""
        octets = self.bits.astype("<u8", copy=False).view(np.uint8)
        # As booleans of one row numpy finds them ten times faster than as bytes of two dimensions.
        at: Longs = np.flatnonzero(np.unpackbits(octets, bitorder="little").view(np.bool_))
        values: Longs = (self.places[at >> _WORD_SHIFT] << _WORD_SHIFT) | (at & 63)
        return values

    def bitmap(self) -> BitMap64:
        """Return the integers as a Roaring bitmap."""
        bitmap = BitMap64()
        for part in self.chunks(_WORDS_AT_ONCE):
            # Of an array's own buffer a bitmap is made several times faster than of numpy's.
            bitmap |= BitMap64(array("Q", part.values().tobytes()))
        return bitmap

    def chunks(self, words: int) -> Iterator[Words]:
        """Split the set into sets of at most so many words, in order."""
        for start in range(0, len(self.places), words):
            yield Words(self.places[start : start + words], self.bits[start : start + words])


@dataclass(frozen=True, slots=True)
class WordRows:
    """Rows of one grain (see `frazil.spark.deletes.bitmap_rows`).

    Attributes:
        size_in_bytes: the memory that they take where Spark joins them, about.
    """

    table: pa.Table
    grain: Grain
    size_in_bytes: int


def words_by_file(ordinals: Longs, positions: Longs) -> dict[int, Words]:
    """Positions, in any order, as a set for each file that has some.

    Args:
        ordinals: the data file of each position.

    Raises:
        UnsupportedError: a position that the keys of rows have no room for.
    """
    if not len(positions):
        return {}
    if int(positions.min()) < 0 or int(positions.max()) >> _WORD_SHIFT >= 1 << 31:
        raise UnsupportedError(
            f"deletes of positions {positions.min()} to {positions.max()} cannot be applied: "
            f"positions from 0 to {(1 << 31 << _WORD_SHIFT) - 1} can"
        )
    places = (ordinals << 32) | (positions >> _WORD_SHIFT)
    bits = np.uint64(1) << (positions & 63).astype(np.uint64)
    return by_file(Words.of_words(places, bits), np.unique(ordinals).tolist())


def by_file(words: Words, ordinals: Iterable[int]) -> dict[int, Words]:
    """The sets of some files, of words whose places have a file's ordinal above bit 32."""
    found: dict[int, Words] = {}
    for ordinal in ordinals:
        start, end = np.searchsorted(words.places, [ordinal << 32, (ordinal + 1) << 32])
        places = words.places[start:end] - (ordinal << 32)
        found[ordinal] = Words(places, words.bits[start:end].copy())
    return found


def word_rows(sets: Mapping[int, Words]) -> WordRows:
    """The sets as rows, under the key ``number of the set << 32 | integer >> grain``."""
    lengths = [len(words.places) for words in sets.values()]
    high = np.repeat(np.fromiter(sets, dtype=np.int64, count=len(sets)), lengths) << 32
    places = np.concatenate([np.empty(0, np.int64), *(w.places for w in sets.values())])
    bits = np.concatenate([np.empty(0, np.uint64), *(w.bits for w in sets.values())])
    containers, inverse = np.unique(high | (places >> _CONTAINER_SHIFT), return_inverse=True)
    dense_bytes, sparse_bytes = len(containers) * DENSE_ROW_BYTES, len(places) * SPARSE_ROW_BYTES
    if sparse_bytes < dense_bytes:
        keys = pa.array(high | places)
        table = pa.table([keys, pa.array(bits.view(np.int64))], schema=Grain.SPARSE.arrow_schema)
        return WordRows(table, Grain.SPARSE, sparse_bytes)
    filled = np.zeros(len(containers) * WORDS_PER_CONTAINER, dtype=np.uint64)
    filled[inverse * WORDS_PER_CONTAINER + (places & (WORDS_PER_CONTAINER - 1))] = bits
    starts = pa.array(np.arange(len(containers) + 1, dtype=np.int32) * WORDS_PER_CONTAINER)
    schema = Grain.DENSE.arrow_schema
    lists = pa.ListArray.from_arrays(
        starts, pa.array(filled.view(np.int64)), type=schema.field(WORDS).type
    )
    table = pa.table([pa.array(containers), lists], schema=schema)
    return WordRows(table, Grain.DENSE, dense_bytes)


def words_of_rows(rows: pa.Table, grain: Grain, ordinals: Iterable[int]) -> dict[int, Words]:
    """The sets of these numbers, of rows of the grain of which several may have one key.

    Raises:
        UnsupportedError: a position that the places of words have no room for.
    """
    keys = rows.column(KEY).to_numpy()
    words = rows.column(WORDS).combine_chunks()
    if grain is Grain.SPARSE:
        return by_file(Words.of_words(keys, words.to_numpy().view(np.uint64)), ordinals)
    containers = keys & _LOW
    if len(keys) and int(containers.max()) << _CONTAINER_SHIFT >= 1 << 31:
        raise UnsupportedError(
            f"deletes of positions from {int(containers.max()) << Grain.DENSE.shift} on cannot be "
            f"applied: positions from 0 to {(1 << 31 << _WORD_SHIFT) - 1} can"
        )
    first = (keys ^ containers) | (containers << _CONTAINER_SHIFT)
    places = (first[:, None] | np.arange(WORDS_PER_CONTAINER)).reshape(-1)
    bits = words.flatten().to_numpy().view(np.uint64)
    held = np.flatnonzero(bits)
    return by_file(Words.of_words(places[held], bits[held]), ordinals)


def is_in_words(value: Column, grain: Grain) -> Column:
    """Whether a long is in the set 0 of joined rows; the join's condition."""
    word = F.col(WORDS)
    if grain is Grain.DENSE:
        place = F.shiftright(value, _WORD_SHIFT).bitwiseAND(F.lit(WORDS_PER_CONTAINER - 1))
        word = F.get(word, place.cast("int"))
    bit = F.getbit(word, value.bitwiseAND(F.lit(63)).cast("int"))
    return (F.col(KEY) == F.shiftright(value, grain.shift)) & (bit == 1)
