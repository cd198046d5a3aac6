"""Space-filling curves: rows that are near each other in several columns come into one file.

Each column is cut into ranges of about as many rows, by a sample. The ranges of a row's values give
its cell, and the cell its place on the curve. All of it is looked up in one array, which Spark
holds as a value: no user-defined function runs on the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import ValidationError

Curve = Literal["zorder", "hilbert"]
Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

CELL_BITS: Final = 16
"""A curve has 65,536 cells at most: an array of that size is a small value in a plan."""

GRID: Final = 4096
"""A column's values are put into so many cells of equal width, each of which has one range."""

_ALL_BYTES: Final = CELL_BITS // 8

_TRIMMED: Final = 0.001
"""So large a share of values at both ends is left to the first and the last cell."""


def bits_of(columns: int) -> int:
    """Return into how many ranges each of some columns is cut, as a number of bits.

    Raises:
        ValidationError: there are too many columns, or none.
    """
    if not 1 <= columns <= CELL_BITS:
        raise ValidationError(
            f"a curve goes through 1 to {CELL_BITS} columns, and {columns} are given; name those "
            "that queries filter by most"
        )
    return CELL_BITS // columns


def places_on_curve(curve: Curve, columns: int) -> Integers:
    """Return the place on the curve of every cell.

    The number of a cell has the range of the first column in its lowest bits.
    """
    bits = bits_of(columns)
    cells = np.arange(1 << (bits * columns), dtype=np.int64)
    mask = np.int64((1 << bits) - 1)
    axes = [(cells >> (bits * column)) & mask for column in range(columns)]
    if curve == "hilbert":
        axes = _hilbert(axes, bits)
    return _interleave(axes, bits)


def _interleave(axes: Sequence[Integers], bits: int) -> Integers:
    """The bits of the axes in turns, highest first."""
    found = np.zeros_like(axes[0])
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            found = (found << 1) | ((axis >> bit) & 1)
    return found


def _hilbert(given: Sequence[Integers], bits: int) -> list[Integers]:
    """The axes of the point of the Hilbert curve, by Skilling's transform (2004)."""
    axes = [axis.copy() for axis in given]
    highest = 1 << (bits - 1)
    bit = highest
    while bit > 1:
        below = np.int64(bit - 1)
        for number in range(len(axes)):
            is_set = ((axes[number] & bit) != 0).astype(np.int64)
            turned = (axes[0] ^ axes[number]) & below & (is_set - 1)
            axes[0] = axes[0] ^ (below & -is_set) ^ turned
            if number:
                axes[number] = axes[number] ^ turned
        bit >>= 1
    for number in range(1, len(axes)):
        axes[number] ^= axes[number - 1]
    mask = np.zeros_like(axes[0])
    bit = highest
    while bit > 1:
        mask = np.where((axes[-1] & bit) != 0, mask ^ (bit - 1), mask)
        bit >>= 1
    return [axis ^ mask for axis in axes]


@dataclass(frozen=True, slots=True)
class ColumnRanges:
    """How the values of one column are cut into ranges of about as many rows.

    Attributes:
        lowest: the value at which the grid begins.
        scale: cells of the grid for a difference of 1.
        ranges: the range of each cell of the grid.
    """

    lowest: float
    scale: float
    ranges: Integers

    @classmethod
    def of_sample(cls, values: Doubles, bits: int) -> ColumnRanges:
        """Cut by a sample; what lies outside of it belongs to the first and the last range."""
        known = np.sort(values[np.isfinite(values)])
        if not len(known):
            return cls(0.0, 0.0, np.zeros(GRID, dtype=np.int64))
        cut = int(len(known) * _TRIMMED)
        lowest, highest = float(known[cut]), float(known[len(known) - 1 - cut])
        width = highest - lowest
        scale = GRID / width if width > 0 and np.isfinite(GRID / width) else 0.0
        cells = cls(lowest, scale, np.zeros(0, np.int64)).cells(known)
        # By the middle of a cell's rows, so that a cell with many stands where they are.
        counts = np.bincount(cells, minlength=GRID)
        middle = np.cumsum(counts) - counts / 2
        ranges = (middle * (1 << bits) / len(known)).astype(np.int64)
        return cls(lowest, scale, np.clip(ranges, 0, (1 << bits) - 1))

    def cells(self, values: Doubles) -> Integers:
        """Return the cells of the grid that values lie in."""
        with np.errstate(over="ignore", invalid="ignore"):
            placed = np.nan_to_num((values - self.lowest) * self.scale, nan=GRID)
        return np.clip(placed, 0, GRID - 1).astype(np.int64)

    def cell_of(self, value: Column) -> Column:
        """Return the same of a column of doubles; NULL of NULL."""
        placed = (value - F.lit(self.lowest)) * F.lit(self.scale)
        return F.least(F.greatest(placed, F.lit(0.0)), F.lit(float(GRID - 1))).cast("int")


@dataclass(frozen=True, slots=True)
class CurveOfRows:
    """A curve through columns, fitted to a sample of their values.

    Attributes:
        ranges: of each column.
        places: of each cell on the curve.
        tasks: of each place on the curve: which of the tasks of equal rows it belongs to.
    """

    ranges: tuple[ColumnRanges, ...]
    places: Integers
    tasks: Integers

    @classmethod
    def fit(
        cls, curve: Curve, sample: Sequence[Doubles], tasks: int, *, place_bytes: int = _ALL_BYTES
    ) -> CurveOfRows:
        """Fit a curve to a sample.

        Args:
            sample: the values of each column, row by row; NaN where there is none.
            tasks: how many tasks are to have about as many rows.
            place_bytes: so many bytes of a place count: cells that agree in them are one place.
        """
        bits = bits_of(len(sample))
        ranges = tuple(ColumnRanges.of_sample(values, bits) for values in sample)
        unused = max(0, bits * len(sample) - 8 * place_bytes)
        places = places_on_curve(curve, len(sample)) >> unused
        cells = np.zeros(len(sample[0]), dtype=np.int64)
        for column, (each, values) in enumerate(zip(ranges, sample, strict=True)):
            ranged = np.where(np.isnan(values), 0, each.ranges[each.cells(values)])
            cells |= ranged << (bits * column)
        counts = np.bincount(places[cells], minlength=len(places)) if len(cells) else None
        if counts is None or not counts.sum():
            counts = np.bincount(places, minlength=len(places))
        middle = np.cumsum(counts) - counts / 2
        by_place = (middle * tasks / counts.sum()).astype(np.int64)
        return cls(ranges, places, np.clip(by_place, 0, tasks - 1))

    def table(self, spark: SparkSession) -> Column:
        """Return the array in which everything is looked up, as a value in Spark's plan."""
        bits = bits_of(len(self.ranges))
        parts = [each.ranges << (bits * column) for column, each in enumerate(self.ranges)]
        return _value(spark, np.concatenate([*parts, self.places, self.tasks])).scalar()

    def place(self, table: Column, values: Sequence[Column]) -> Column:
        """Return the place on the curve of each row; NULL is in the first range.

        Args:
            table: from `table`.
            values: the curve's columns as doubles.
        """
        cell = F.lit(0).cast("bigint")
        for column, (each, value) in enumerate(zip(self.ranges, values, strict=True)):
            part = F.get(table, each.cell_of(value) + F.lit(column * GRID))
            cell = cell + F.coalesce(part, F.lit(0).cast("bigint"))
        return F.get(table, (cell + F.lit(len(self.ranges) * GRID)).cast("int"))

    def task(self, table: Column, place: Column) -> Column:
        """Return the number of the task that a place on the curve belongs to."""
        start = len(self.ranges) * GRID + len(self.places)
        return F.get(table, (place + F.lit(start)).cast("int")).cast("int")


def _value(spark: SparkSession, numbers: Integers) -> DataFrame:
    """One row with one array."""
    element = pa.list_(pa.field("element", pa.int64(), nullable=False))
    offsets = pa.array([0, len(numbers)], pa.int32())
    column = pa.ListArray.from_arrays(offsets, pa.array(numbers, pa.int64()), type=element)
    schema = S.StructType(
        [S.StructField("numbers", S.ArrayType(S.LongType(), containsNull=False), False)]
    )
    table = pa.table([column], schema=pa.schema([pa.field("numbers", element, nullable=False)]))
    return spark.createDataFrame(table, schema)
