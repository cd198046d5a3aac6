"""Which delete files apply to which data files, in memory that grows with files, not with pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from frazil.planning.deletes.runs import Integers, Runs

POSITION_DELETES = 1
EQUALITY_DELETES = 2
GLOBAL_SCOPE = -1
"""The scope of an equality delete that applies to every partition."""

PAIRS_SCHEMA: Mapping[str, pl.DataType] = {"ordinal": pl.Int64(), "delete": pl.Int64()}


@dataclass(frozen=True, slots=True, eq=False)
class DeleteIndex:
    """Which delete files apply to which data files, by the ordinals of both in a plan.

    A delete of one or of some files is kept as pairs. A delete of many files of a partition, or of
    the table, is a run of data files in their order by partition and sequence number, so that
    10 000 deletes of a partition of 10 000 files are as many runs, and not 100 million pairs.

    Attributes:
        pairs: `ordinal` and `delete`.
        runs: the others; none of them is empty.
    """

    pairs: pl.DataFrame
    runs: tuple[Runs, ...] = ()

    @classmethod
    def empty(cls) -> DeleteIndex:
        """No delete applies."""
        return cls(pl.DataFrame(schema=PAIRS_SCHEMA))

    @classmethod
    def of_pairs(cls, ordinals: Integers, deletes: Integers) -> DeleteIndex:
        """The index of single pairs."""
        return cls(pl.DataFrame({"ordinal": ordinals, "delete": deletes}, schema=PAIRS_SCHEMA))

    @classmethod
    def of_runs(cls, *runs: Runs) -> DeleteIndex:
        """The index of runs, without those that are empty."""
        return _index(cls.empty().pairs, [run.filter(run.lengths > 0) for run in runs])

    @property
    def is_empty(self) -> bool:
        """Whether no delete applies to any file."""
        return self.pairs.is_empty() and not self.runs

    @property
    def pair_count(self) -> int:
        """How many pairs `expanded_pairs` would have."""
        return len(self.pairs) + sum(int(run.lengths.sum()) for run in self.runs)

    @property
    def size_in_bytes(self) -> int:
        """The memory that the index takes."""
        return int(self.pairs.estimated_size()) + sum(run.size_in_bytes for run in self.runs)

    def ordinals(self) -> pl.Series:
        """Return the data files that a delete applies to, ascending, each once."""
        return _distinct("ordinal", self.pairs["ordinal"], [run.files() for run in self.runs])

    def deletes(self) -> pl.Series:
        """Return the deletes that apply to a file, ascending, each once."""
        return _distinct("delete", self.pairs["delete"], [run.deletes for run in self.runs])

    def for_files(self, ordinals: pl.Series) -> DeleteIndex:
        """Return what applies to these data files."""
        wanted = ordinals.cast(pl.Int64).unique()
        pairs = self.pairs.filter(pl.col("ordinal").is_in(wanted.implode()))
        return _index(pairs, [run.for_files(wanted.to_numpy()) for run in self.runs])

    def for_deletes(self, deletes: pl.Series) -> DeleteIndex:
        """Return what these deletes apply to."""
        wanted = deletes.cast(pl.Int64).unique()
        pairs = self.pairs.filter(pl.col("delete").is_in(wanted.implode()))
        return _index(pairs, [run.for_deletes(wanted.to_numpy()) for run in self.runs])

    def without_deletes(self, deletes: pl.Series) -> DeleteIndex:
        """Return what all other deletes apply to."""
        left = self.deletes()
        return self.for_deletes(left.filter(~left.is_in(deletes.cast(pl.Int64).unique().implode())))

    def union(self, *others: DeleteIndex) -> DeleteIndex:
        """Return this and what other indexes say; no pair may be in two of them."""
        every = (self, *others)
        pairs = pl.concat([each.pairs for each in every])
        return DeleteIndex(pairs, tuple(run for each in every for run in each.runs))

    def with_numbers(self, deletes: Integers) -> DeleteIndex:
        """Return the same with other numbers of the deletes.

        Args:
            deletes: the new number at the place of each old one.
        """
        pairs = self.pairs.with_columns(
            pl.Series("delete", deletes[self.pairs["delete"].to_numpy()])
        )
        runs = tuple(replace(run, deletes=deletes[run.deletes]) for run in self.runs)
        return DeleteIndex(pairs, runs)

    def sums(self, deletes: pl.Series, values: pl.Series) -> pl.DataFrame:
        """Return the sum over the deletes of each data file that has some.

        Args:
            deletes: the deletes that have a value; others count 0.
            values: the whole number of each of them.

        Returns:
            `ordinal`, ascending, and `sum`.
        """
        known = np.zeros(
            1 + max(_highest_ordinal(deletes), _highest_ordinal(self.deletes())), dtype=np.int64
        )
        known[deletes.to_numpy()] = values.fill_null(0).cast(pl.Int64).to_numpy()
        of_pairs = pl.Series("sum", known[self.pairs["delete"].to_numpy()])
        parts = [self.pairs.select("ordinal", of_pairs)]
        for run in self.runs:
            summed = run.sums(known[run.deletes].astype(np.float64))
            part = pl.DataFrame({"ordinal": run.order, "sum": summed.astype(np.int64)})
            parts.append(part.filter(pl.col("ordinal").is_in(pl.Series(run.files()).implode())))
        return pl.concat(parts).group_by("ordinal").agg(pl.col("sum").sum()).sort("ordinal")

    def expanded_pairs(self) -> pl.DataFrame:
        """Return every pair of `ordinal` and `delete`, sorted by both.

        Ask for few files or deletes (`for_files` and `for_deletes`): it grows with their product.
        """
        found = [run.pairs() for run in self.runs]
        rows = np.concatenate([self.pairs["ordinal"].to_numpy(), *(rows for rows, _ in found)])
        files = np.concatenate([self.pairs["delete"].to_numpy(), *(files for _, files in found)])
        # One integer a pair sorts several times faster than two columns.
        ordered = pl.Series(rows << 32 | files, dtype=pl.Int64).sort().to_numpy()
        return pl.DataFrame(
            {"ordinal": ordered >> 32, "delete": ordered & 0xFFFFFFFF}, schema=PAIRS_SCHEMA
        )


def _index(pairs: pl.DataFrame, runs: list[Runs]) -> DeleteIndex:
    return DeleteIndex(pairs, tuple(run for run in runs if len(run.deletes)))


def _highest_ordinal(ordinals: pl.Series) -> int:
    return -1 if ordinals.is_empty() else int(str(ordinals.max()))


def _distinct(name: str, some: pl.Series, others: list[Integers]) -> pl.Series:
    found = [some, *(pl.Series(name, each, dtype=pl.Int64) for each in others)]
    return pl.concat(found).unique().sort()
