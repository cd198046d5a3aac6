"""Rows that say where deleted rows are, as bitmap words a data file.

A row names a data file by its ordinal in the plan, and a position. Spark puts the positions of 64
neighbours into one word, so that what is collected is small: at most 16 bytes for 64 rows of data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.errors import ValidationError
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.deletes.bitmap import KEY, WORDS, Longs, Words
from frazil.spark.files.row_checks import stop_with_text, value_problem
from frazil.spark.session import costs
from frazil.spark.session.few_rows import few_rows

COUNTS: Final[dict[str, pl.DataType]] = {
    "ordinal": pl.Int64(),
    "words": pl.Int64(),
    "places": pl.Int64(),
    "last": pl.Int64(),
}

_PACKED_BITS: Final = 25
"""The bits of an ordinal that stands in one number with a position."""

_NUMBERED_ROWS: Final = 2
"""A row that comes with its number in its task takes as much as so many without."""

_LOW: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Collected:
    """The places of rows, each once.

    Attributes:
        counts: one row a data file that has any: `ordinal`, `words`, `places` (rows), and `last`,
            the highest position.
        words: all of them, keyed by ``ordinal << 32 | position >> 6``; None where they are many.
        rows: the same as rows, where they are many.
    """

    counts: pl.DataFrame
    words: Words | None
    rows: DataFrame | None


def sparse_rows(rows: DataFrame, *, ordinal: str, position: str) -> DataFrame:
    """Return places as `WORD_ROWS`, one a key.

    Args:
        rows: places, in any order and as often as they come.
        ordinal: the column of the data file's ordinal.
        position: the column of the row's position in the file.
    """
    file, place = _as_longs(ordinal, position)
    key = _checked_value(
        f"shiftleft({file}, 32) | shiftright({place}, 6)", file, place, ordinal_bits=31
    )
    bits = f"bit_or(shiftleft(1L, cast({place} & 63L as int)))"
    return rows.groupBy(F.expr(key).alias(KEY)).agg(F.expr(bits).alias(WORDS))


def _as_longs(*names: str) -> Iterator[str]:
    return (f"cast({quote_name_always([name])} as bigint)" for name in names)


def _checked_value(value: str, file: str, place: str, *, ordinal_bits: int) -> str:
    """SQL text of a value that holds the ordinal and the position, where both fit into it."""
    # A position that runs over would be another file's; NULL fails the test too.
    fits = f"shiftright({file}, {ordinal_bits}) = 0 and shiftright({place}, 37) = 0"
    largest = (1 << ordinal_bits) - 1
    stop = stop_with_text(
        f"'no row can be deleted at position ', coalesce(string({place}), 'NULL'), "
        f"' of the data file with the ordinal ', coalesce(string({file}), 'NULL'), "
        f"'; positions go from 0 to {(1 << 37) - 1} and ordinals from 0 to {largest}'"
    )
    return f"if({fits}, {value}, {stop})"


def _pack(rows: DataFrame, *, ordinal: str, position: str) -> DataFrame:
    """Return places as one number each."""
    file, place = _as_longs(ordinal, position)
    packed = _checked_value(
        f"shiftleft({file}, 38) | {place}", file, place, ordinal_bits=_PACKED_BITS
    )
    return rows.select(F.expr(packed).alias(KEY))


def words_of(rows: DataFrame) -> Words:
    """Return `WORD_ROWS`, which the driver has room for."""
    table = _arrow(rows)
    bits = table.column(WORDS).to_numpy().view(np.uint64)
    return Words.of_words(table.column(KEY).to_numpy(), bits)


@contextmanager
def collect_places(
    rows: DataFrame,
    *,
    most_words: int,
    most_rows: int | None = None,
    most_ordinal: int = 0,
    tasks: int | None = None,
) -> Iterator[Collected]:
    """Collect places: here where they are few, else kept by the executors while the block runs.

    The rows are computed once, or twice where `tasks` are given.

    Args:
        rows: the data file's ordinal and the row's position, as two columns.
        most_words: how many words there can be, by the files that the rows are of.
        most_rows: how many rows there can be; None where that is not known.
        most_ordinal: the highest that a data file has.
        tasks: how many compute the rows, about, where a second time costs little and gives the
            same; else None.

    Raises:
        ValidationError: an ordinal or a position is NULL, negative or too large.
    """
    ordinal, position = rows.columns
    if not most_ordinal >> _PACKED_BITS:
        packed = _pack(rows, ordinal=ordinal, position=position)
        found: pa.Table | None = None
        if most_rows is not None and most_rows <= costs.PLACES_HERE:
            found = _arrow(packed)
        elif tasks is not None and most_rows is not None and most_rows <= costs.PLACES_LOOKED_AT:
            most = costs.PLACES_HERE // _NUMBERED_ROWS // tasks
            found = few_rows(packed, most_of_task=most, tasks=tasks, collect=_arrow)
        if found is not None:
            yield _collected_words(Words.of_values(found.column(KEY).to_numpy()))
            return
    sparse = sparse_rows(rows, ordinal=ordinal, position=position)
    if most_words <= costs.WORDS_HERE:
        yield _collected_words(words_of(sparse))
        return
    kept = sparse.persist()
    try:
        counts = _counts(kept)
        if int(counts["words"].sum()) <= costs.WORDS_HERE:
            yield _collected_words(words_of(kept))
        else:
            yield Collected(counts, None, kept)
    finally:
        kept.unpersist()


def most_words(record_counts: pl.Series) -> int:
    """Return how many words the rows of files of so many rows can take."""
    return int((record_counts // 64 + 1).sum())


def _collected_words(words: Words) -> Collected:
    return Collected(word_counts(words), words, None)


def word_counts(words: Words) -> pl.DataFrame:
    """Return the `Collected.counts` of words."""
    ordinals = words.places >> 32
    starts = np.flatnonzero(np.diff(ordinals, prepend=-1))
    ends = np.append(starts[1:], len(ordinals))
    places: Longs = np.zeros(0, dtype=np.int64)
    if len(starts):
        places = np.add.reduceat(np.bitwise_count(words.bits).astype(np.int64), starts)
    at = ends[: len(starts)] - 1
    return pl.DataFrame(
        {
            "ordinal": ordinals[starts],
            "words": ends[: len(starts)] - starts,
            "places": places,
            "last": _highest_positions(words.places[at], words.bits[at]),
        },
        schema=COUNTS,
    )


def _highest_positions(places: Longs, bits: npt.NDArray[np.uint64]) -> Longs:
    """The highest position in each of these words."""
    filled = bits.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        filled |= filled >> np.uint64(shift)
    return ((places & _LOW) << 6) + np.bitwise_count(filled).astype(np.int64) - 1


def _counts(kept: DataFrame) -> pl.DataFrame:
    counts = kept.groupBy(F.expr(f"shiftright({KEY}, 32)").alias("ordinal")).agg(
        F.expr("count(*)").alias("words"),
        F.expr(f"sum(bit_count({WORDS}))").alias("places"),
        F.expr(f"max({KEY})").alias("last"),
        F.expr(f"max_by({WORDS}, {KEY})").alias("bits"),
    )
    table = _arrow(counts)
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    columns["last"] = _highest_positions(columns["last"], columns.pop("bits").view(np.uint64))
    return pl.DataFrame(columns, schema=COUNTS).sort("ordinal")


def _arrow(rows: DataFrame) -> pa.Table:
    try:
        return rows.toArrow()
    except Exception as error:  # Spark and the bridge to it have no class in common for this
        problem = value_problem(str(error))
        if problem is None:
            raise
        raise ValidationError(f"{problem}; nothing was written") from error
