"""Sets of integers as words of 64 bits, and such sets as rows that Spark can join and test.

The integers are positions of deleted rows in a file, or deleted keys. A set takes 16 bytes for each
run of 64 integers that holds any.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import types as S

from frazil.errors import UnsupportedError

Longs = npt.NDArray[np.int64]

KEY: Final = "_frazil_key"
WORDS: Final = "_frazil_words"
ROW_BYTES: Final = 48
"""The memory that a row of a word takes where Spark joins it, about."""

WORD_ROWS: Final = S.StructType(
    [S.StructField(KEY, S.LongType(), False), S.StructField(WORDS, S.LongType(), False)]
)
"""The columns of words as rows, one a word: the key is the word's place."""

_ARROW_ROWS: Final = pa.schema(
    [pa.field(name, pa.int64(), nullable=False) for name in (KEY, WORDS)]
)
_WORD_SHIFT = 6
_WORDS_AT_ONCE = 1 << 16


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
    def empty(cls) -> Words:
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
            return cls.empty()
        order = np.argsort(places, kind="stable")
        ordered = places[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        return cls(ordered[starts], np.bitwise_or.reduceat(bits[order], starts))

    @classmethod
    def union(cls, sets: Iterable[Words]) -> Words:
        """The integers that are in any of the sets."""
        some = [each for each in sets if len(each.places)]
        if len(some) < 2:
            return some[0] if some else cls.empty()
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

    def holds_all_below(self, end: int) -> bool:
        """Whether every integer from 0 up to an end, which is not one of them, is in the set."""
        full, rest = end >> _WORD_SHIFT, (1 << (end & 63)) - 1
        first = int(np.searchsorted(self.places, 0))
        needed = slice(first, first + full + bool(rest))
        places, bits = self.places[needed], self.bits[needed]
        if len(places) < full + bool(rest) or (len(places) and places[-1] != len(places) - 1):
            return False
        is_full = bool((bits[:full] == np.uint64(2**64 - 1)).all())
        return is_full and int(bits[-1]) & rest == rest if rest else is_full

    def values(self) -> Longs:
        """Return the integers in order."""
        octets = self.bits.astype("<u8", copy=False).view(np.uint8)
        # As booleans of one row numpy finds them ten times faster than as bytes of two dimensions.
        at: Longs = np.flatnonzero(np.unpackbits(octets, bitorder="little").view(np.bool_))
        values: Longs = (self.places[at >> _WORD_SHIFT] << _WORD_SHIFT) | (at & 63)
        return values

    def rows(self) -> pa.RecordBatch:
        """Return the words as `WORD_ROWS`, in order."""
        return pa.RecordBatch.from_arrays(
            [pa.array(self.places), pa.array(self.bits.view(np.int64))], schema=_ARROW_ROWS
        )

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


def words_of_files(ordinals: Longs | int, positions: Longs) -> Words:
    """Positions of files, in any order, as one set: a word's place has the ordinal above bit 32.

    Args:
        ordinals: the data file of each position, or of all.

    Raises:
        UnsupportedError: a position that such places have no room for.
    """
    if len(positions) and (
        int(positions.min()) < 0 or int(positions.max()) >> _WORD_SHIFT >= 1 << 31
    ):
        raise UnsupportedError(
            f"deletes of positions {positions.min()} to {positions.max()} cannot be applied: "
            f"positions from 0 to {(1 << 31 << _WORD_SHIFT) - 1} can"
        )
    places = (np.asarray(ordinals, dtype=np.int64) << 32) | (positions >> _WORD_SHIFT)
    return Words.of_words(places, np.uint64(1) << (positions & 63).astype(np.uint64))


def words_by_file(ordinals: Longs, positions: Longs) -> dict[int, Words]:
    """The positions of each file that has some; see `words_of_files`."""
    return by_file(words_of_files(ordinals, positions), np.unique(ordinals).tolist())


def by_file(words: Words, ordinals: Iterable[int]) -> dict[int, Words]:
    """The sets of some files, of words whose places have a file's ordinal above bit 32."""
    found: dict[int, Words] = {}
    for ordinal in ordinals:
        start, end = np.searchsorted(words.places, [ordinal << 32, (ordinal + 1) << 32])
        places = words.places[start:end] - (ordinal << 32)
        found[ordinal] = Words(places, words.bits[start:end].copy())
    return found


def in_one_set(sets: Mapping[int, Words]) -> Words:
    """The sets of files by their ordinal as one, which `by_file` takes apart."""
    ordered = sorted(sets)
    return Words(
        np.concatenate([np.empty(0, np.int64), *(o << 32 | sets[o].places for o in ordered)]),
        np.concatenate([np.empty(0, np.uint64), *(sets[o].bits for o in ordered)]),
    )
