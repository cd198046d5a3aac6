"""Runs of sorted data files: those that a delete file may apply to, found by binary search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from frazil.planning.prune import Ranges

Integers = npt.NDArray[np.int64]
_ORDERED = (pl.String, pl.Binary, pl.Date, pl.Datetime, pl.Time)


@dataclass(frozen=True, slots=True)
class Runs:
    """For each of some delete files a run of sorted data files: rows ``order[start:end]``."""

    deletes: Integers
    order: Integers
    start: Integers
    end: Integers

    @property
    def lengths(self) -> Integers:
        """How many data files each run has."""
        lengths: Integers = np.maximum(self.end - self.start, 0)
        return lengths

    @property
    def size_in_bytes(self) -> int:
        """The memory that the runs take."""
        return sum(each.nbytes for each in (self.deletes, self.order, self.start, self.end))

    def filter(self, mask: npt.NDArray[np.bool_]) -> Runs:
        """The runs of some of the delete files."""
        return Runs(self.deletes[mask], self.order, self.start[mask], self.end[mask])

    def for_deletes(self, deletes: Integers) -> Runs:
        """The runs of these delete files."""
        return self.filter(np.isin(self.deletes, deletes))

    def for_files(self, rows: Integers) -> Runs:
        """What the runs have of these data files; a run that has none of them is left out."""
        chosen = np.isin(self.order, rows)
        before = np.concatenate([[0], np.cumsum(chosen)])
        narrowed = Runs(self.deletes, self.order[chosen], before[self.start], before[self.end])
        return narrowed.filter(narrowed.lengths > 0)

    def sums(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """For each data file of `order`, the sum of a value a run over the runs that hold it.

        Sums are exact up to 2**53; no run may end before its start.
        """
        places = len(self.order) + 1
        begun = np.bincount(self.start, values, places)
        ended = np.bincount(self.end, values, places)
        summed: npt.NDArray[np.float64] = np.cumsum(begun - ended)[:-1]
        return summed

    def files(self) -> Integers:
        """The data files that are in a run."""
        return self.order[self.sums(np.ones(len(self.deletes))) > 0]

    def pairs(self) -> tuple[Integers, Integers]:
        """The (data file, delete file) pairs of all runs."""
        lengths = self.lengths
        first = self.start - (np.cumsum(lengths) - lengths)
        place = np.arange(lengths.sum()) + np.repeat(first, lengths)
        return self.order[place], np.repeat(self.deletes, lengths)


def shortest(runs: Sequence[Runs], deletes: Integers) -> Iterator[Runs]:
    """Of runs that each hold all that applies, the shortest one of every delete file.

    Args:
        runs: the first one has a run for every delete file.
        deletes: the delete files, ascending.
    """
    length = np.full(len(deletes), np.iinfo(np.int64).max)
    chosen = np.zeros(len(deletes), dtype=np.int64)
    for number, some in enumerate(runs):
        place = np.searchsorted(deletes, some.deletes)
        is_shorter = some.lengths < length[place]
        length[place[is_shorter]] = some.lengths[is_shorter]
        chosen[place[is_shorter]] = number
    for number, some in enumerate(runs):
        yield some.filter(chosen[np.searchsorted(deletes, some.deletes)] == number)


def older_files(
    scope: Integers, numbers: Integers, *, deletes: Integers, scopes: Integers, limits: Integers
) -> Runs:
    """The data files of a delete's scope with a smaller sequence number: all that it applies to.

    Args:
        scope, numbers: of each data file.
        deletes: which delete files.
        scopes, limits: the scope of each of them, and the number that files must be below.
    """
    # Sequence numbers as ranks, so that (scope, number) is one sortable integer.
    distinct = np.unique(numbers)
    stride = len(distinct) + 1
    ranks = np.searchsorted(distinct, numbers)
    order = np.lexsort((ranks, scope))
    keys = scope[order] * stride + ranks[order]
    older = np.searchsorted(distinct, limits, side="left")
    return Runs(
        deletes,
        order,
        np.searchsorted(keys, scopes * stride, side="left"),
        np.searchsorted(keys, scopes * stride + older, side="left"),
    )


def overlapping_files(
    scope: Integers, data: Ranges, *, deletes: Integers, scopes: Integers, ranges: Ranges
) -> Runs | None:
    """The data files of a delete's scope whose values of a column may lie between the delete's.

    A run begins with the first file that reaches as high as the lowest deleted value and ends with
    the last one that begins as low as the highest; files between may lie below. Deletes without
    bounds, or that may hold NULL or NaN, get none.

    Args:
        scope: of each data file.
        data: what the metrics of each data file say of the column.
        deletes: which delete files, rows of `ranges`.
        scopes: the scope of each of them.

    Returns:
        None where the column has no bounds, or none that have an order here.
    """
    bounds = (data.lower, data.upper, ranges.lower, ranges.upper)
    known = [each for each in bounds if each is not None and _has_order(each.dtype)]
    if len(known) < len(bounds):
        return None
    low, high, lowest, highest = _ranks(known)
    usable = ~(ranges.may_be_null | ranges.may_be_nan).to_numpy() & (lowest > 0) & (highest > 0)
    usable = usable[deletes]
    deletes, scopes = deletes[usable], scopes[usable]
    top = max(int(rank.max(initial=0)) for rank in (low, high, lowest, highest)) + 1
    high = np.where(high > 0, high, top)
    stride = top + 1
    order = np.lexsort((low, scope))
    begins = scope[order] * stride + low[order]
    # Within a scope: how high the files so far reach.
    reach = np.maximum.accumulate(scope[order] * stride + high[order])
    return Runs(
        deletes,
        order,
        np.searchsorted(reach, scopes * stride + lowest[deletes], side="left"),
        np.searchsorted(begins, scopes * stride + highest[deletes], side="right"),
    )


def _has_order(dtype: pl.DataType) -> bool:
    return dtype.is_integer() or dtype.is_float() or dtype in _ORDERED


def _ranks(columns: Sequence[pl.Series]) -> list[Integers]:
    """Each value's place among the distinct values of all columns, from 1; 0 for null."""
    together = pl.concat([each.rename("value") for each in columns])
    ranks = together.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
    ends = np.cumsum([len(each) for each in columns])
    return list(np.split(ranks, ends[:-1]))
