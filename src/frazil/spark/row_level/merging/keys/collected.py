"""What a merge collects of few rows, so that no job of Spark need look them up again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.row_level.merging.keys.equal_columns import (
    EqualColumns,
    hash_of_keys,
    plain_value,
)
from frazil.spark.session import costs
from frazil.spark.session.few_rows import Longs, RowLimit, few_rows

LONGEST_TEXT: Final = 64
"""A source with a key of more bytes is not collected."""

_WIDTH: Final = 8
_DECIMAL_WIDTH: Final = 16
_PAIR_WIDTH: Final = 32
_TASKS: Final = 64

_TEXT: Final = "long_text"


@dataclass(frozen=True, slots=True)
class CollectedKeys:
    """The rows of a source by their numbers, with the keys that a match compares.

    Attributes:
        numbers: of the rows.
        hashes: of the keys of each row; equal keys have equal ones. None without keys.
        values: of each key, as `plain_value` has them.
        beside: whole numbers of other columns, by name.
        sizes: what was measured of each row, by name.
    """

    numbers: Longs
    hashes: Longs | None
    values: tuple[pa.ChunkedArray, ...]
    beside: Mapping[str, pa.ChunkedArray]
    sizes: Mapping[str, Longs]

    @classmethod
    def of(
        cls,
        rows: DataFrame,
        number: str,
        keys: Sequence[EqualColumns],
        beside: Sequence[str] = (),
        sizes: Mapping[str, Column] | None = None,
    ) -> CollectedKeys | None:
        """Collect them; None where they are many, in rows or in bytes.

        Args:
            number: the column of the rows' numbers, by `monotonically_increasing_id`.
            beside: other columns, of whole numbers.
            sizes: what to measure of each row, as longs.
        """
        measured = {} if sizes is None else sizes
        types = {field.name: field.dataType for field in rows.schema.fields}
        kinds = [types[key.source] for key in keys]
        numbers_a_row = 2 + len(beside) + len(measured)
        most = costs.SOURCE_KEY_BYTES // (numbers_a_row * _WIDTH + sum(map(_width, kinds)))
        limit = RowLimit(most, _TASKS, falls=True)
        columns = [F.col(quote_name_always([number])).alias("number")]
        if keys:
            columns.append(hash_of_keys(keys, of_source=True).alias("hash"))
        too_long: list[Column] = []
        for n, (key, kind) in enumerate(zip(keys, kinds, strict=True)):
            value = plain_value(F.col(quote_name_always([key.source])), kind)
            if isinstance(kind, S.StringType):
                is_long = F.octet_length(value) > LONGEST_TEXT
                too_long.append(F.coalesce(is_long, F.lit(False)))
                value = F.when(~is_long, value)
            columns.append(value.alias(f"v{n}"))
        for n, name in enumerate(beside):
            columns.append(F.col(quote_name_always([name])).cast("bigint").alias(f"b{n}"))
        columns.extend(size.alias(f"s{n}") for n, size in enumerate(measured.values()))
        if too_long:
            columns.append(F.greatest(*too_long, F.lit(False)).alias(_TEXT))
        found = rows.where(limit.keeps(number)).select(*columns).toArrow()
        numbers = _longs(found.column("number"))
        if not limit.holds_all(numbers):
            return None
        if too_long and pc.any(found.column(_TEXT)).as_py():
            return None
        hashes = _longs(found.column("hash")) if keys else None
        return cls(
            numbers,
            hashes,
            tuple(found.column(f"v{n}") for n in range(len(keys))),
            {name: found.column(f"b{n}") for n, name in enumerate(beside)},
            {name: _longs(found.column(f"s{n}")) for n, name in enumerate(measured)},
        )

    @property
    def ranges(self) -> list[tuple[Any, Any]]:
        """The lowest and the highest value of each key, None where all are NULL."""
        ends = [pc.min_max(values).as_py() for values in self.values]
        return [(each["min"], each["max"]) for each in ends]

    @property
    def are_distinct(self) -> bool:
        """Whether no two rows have equal keys; where their hashes are equal that is not known."""
        return self.hashes is not None and len(np.unique(self.hashes)) == len(self.hashes)


def most_pairs_of_task(tasks: int) -> int:
    """Return of how many rows that match each task may tell.

    Args:
        tasks: how many there are, about.
    """
    return costs.MATCH_BYTES // _PAIR_WIDTH // max(tasks, 1)


def collected_pairs(pairs: DataFrame, *, tasks: int) -> pl.DataFrame | None:
    """Return rows that match in one job; None where they are many.

    Args:
        pairs: their columns are as wide as four numbers, at most.
        tasks: how many tasks have some, about.
    """
    found = few_rows(pairs, most_of_task=most_pairs_of_task(tasks), tasks=tasks)
    return None if found is None else pl.DataFrame(pl.from_arrow(found))


def _longs(column: pa.ChunkedArray) -> Longs:
    return np.asarray(column.to_numpy(), dtype=np.int64)


def _width(kind: S.DataType) -> int:
    match kind:
        case S.StringType():
            return LONGEST_TEXT
        case S.DecimalType():
            return _DECIMAL_WIDTH
        case _:
            return _WIDTH
