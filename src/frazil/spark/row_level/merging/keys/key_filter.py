"""Which rows surely match no row of the source, told by one bit of a hash of their keys.

To look a row up in a table of the source's keys costs more than to read its key. A bit of an array
is tested in the scan's own loop; only rows that pass are looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.format import types as I
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.deletes.joins import words_value
from frazil.spark.row_level.merging.keys.equal_columns import EqualColumns, hash_of_keys
from frazil.spark.row_level.merging.source import Source
from frazil.spark.session import costs
from frazil.spark.session.few_rows import Longs

_ROWS_A_KEY: Final = 4
_BITS_A_KEY: Final = 64
_MOST_BITS: Final = 1 << 25
"""An array of 4 MB, which every task decodes."""

_LARGEST: Final = (1 << 63) - 1
_FEW_BITS: Final = 1 << 20
_RANGE_A_HASH: Final = 2
"""The keys themselves may take so many times the bits of their hashes: those need a join to tell
which rows match."""


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """A bit for each hash that a row of the source has.

    Attributes:
        keys: the columns that are equal in every match.
        words: the bits, 64 a word, as a value of a plan.
        bits: their number, a power of two for hashes.
        first: the lowest key, where the bits are of the keys themselves; None for hashes.
    """

    keys: Sequence[EqualColumns]
    words: Column
    bits: int
    first: int | None

    @classmethod
    def of(cls, source: Source, *, rows: int) -> KeyFilter | None:
        """Hash the source's keys; None where that would not pay.

        Args:
            rows: how many rows of the table there are to test.
        """
        if not source.keys or not 0 < source.count <= costs.FILTERED_KEYS:
            return None
        if not is_filter_cheaper(rows=rows, keys=source.count):
            return None
        wanted = source.count * _BITS_A_KEY
        bits = min(_MOST_BITS, 1 << max(6, (wanted - 1).bit_length()))
        whole = _whole_keys(source)
        first: int | None = None
        places = np.zeros(0, dtype=np.int64)
        if whole is not None and len(whole):
            low, width = int(whole.min()), int(whole.max()) - int(whole.min()) + 1
            if width <= max(_FEW_BITS, _RANGE_A_HASH * bits):
                first, places, bits = low, whole - low, -(-width // 64) * 64
        if first is None:
            places = _hashes(source) & (bits - 1)
        set_bits = np.zeros(bits, dtype=np.bool_)
        set_bits[places] = True
        words = np.packbits(set_bits, bitorder="little").view(np.int64)
        value = words_value(source.rows.sparkSession, words)
        return cls(source.keys, value.scalar(), bits, first)

    @property
    def is_exact(self) -> bool:
        """Whether the key of each row that passes is one of the source's."""
        return self.first is not None

    def passed_rows(self, rows: DataFrame) -> DataFrame:
        """Return the rows of the table that may match; some of them match none."""
        return rows.where(self._may_match)

    def rejected_rows(self, rows: DataFrame) -> DataFrame:
        """Return the other rows of the table, which match none."""
        return rows.where(~F.coalesce(self._may_match, F.lit(False)))

    @property
    def _may_match(self) -> Column:
        if self.first is None:
            hashed = hash_of_keys(self.keys, of_source=False)
            return self._is_set(hashed.bitwiseAND(F.lit(self.bits - 1)))
        key = F.col(quote_name_always(self.keys[0].target)).cast("bigint")
        last = min(self.first + self.bits - 1, _LARGEST)
        in_range = key.between(F.lit(self.first), F.lit(last))
        # Beyond the range the place could overflow: it must not be computed there.
        return F.when(in_range, self._is_set(key - F.lit(self.first)))

    def _is_set(self, place: Column) -> Column:
        word = F.get(self.words, F.shiftright(place, 6).cast("int"))
        bit = place.bitwiseAND(F.lit(63)).cast("int")
        return F.call_function("shiftright", word, bit).bitwiseAND(F.lit(1)) != 0


def is_filter_cheaper(*, rows: int, keys: int) -> bool:
    """Whether to leave rows out of a join by their keys or places costs less than to join them."""
    return rows >= max(costs.FILTERED_ROWS, _ROWS_A_KEY * keys)


def _whole_keys(source: Source) -> Longs | None:
    """The keys of the source where each is one whole number; those that are NULL match nothing."""
    if len(source.keys) != 1 or source.collected is None or source.keys[0].nulls_match:
        return None
    if not isinstance(source.keys[0].field.field_type, I.IntegerType | I.LongType):
        return None
    values = source.collected.values[0].drop_null()
    return np.asarray(values.to_numpy(), dtype=np.int64)


def _hashes(source: Source) -> Longs:
    """The hashes of the source's keys."""
    if source.collected is not None and source.collected.hashes is not None:
        return source.collected.hashes
    hashed = source.rows.select(hash_of_keys(source.keys, of_source=True).alias("hash"))
    return np.asarray(hashed.toArrow().column("hash").to_numpy(), dtype=np.int64)
