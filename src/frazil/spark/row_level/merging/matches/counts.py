"""The rows that the clauses of a merge change, counted by file and clause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.spark.row_level.merging.clauses.clause import Clause, Do, When
from frazil.spark.row_level.target import POSITION_BITS, Target, file_of

CLAUSE: Final = "_frazil_clause"
"""The column that says which clause a row falls under."""


@dataclass(frozen=True, slots=True)
class MatchCounts:
    """The rows that clauses change, counted by file and clause.

    Attributes:
        rows: ``file``, ``clause`` and ``rows``.
        matched_files: files with rows that match or that a clause is about.
        unchanged_files: those with rows that match and that no clause is about.
        pairs: rows of the table with rows of the source, and rows without.
        most_matches: of a row of the table with rows of the source.
    """

    clauses: Sequence[Clause]
    rows: pl.DataFrame
    matched_files: frozenset[int]
    unchanged_files: frozenset[int]
    pairs: int
    most_matches: int

    @classmethod
    def of(cls, target: Target, clauses: Sequence[Clause], pairs: DataFrame) -> MatchCounts:
        """Count pairs, and rows without one that a clause is about, by their places."""
        counted = (
            pairs.groupBy(target.place)
            .agg(F.max(CLAUSE).alias("clause"), F.count("*").alias("matches"))
            .groupBy(file_of(F.col(target.place)).alias("file"), "clause")
            .agg(
                F.count("*").alias("rows"),
                F.max("matches").alias("most"),
                F.sum("matches").alias("pairs"),
            )
            .toArrow()
        )
        return cls._of_counted(clauses, pl.DataFrame(pl.from_arrow(counted)))

    @classmethod
    def of_places(cls, clauses: Sequence[Clause], pairs: pl.DataFrame) -> MatchCounts:
        """Count pairs that the driver has.

        Args:
            pairs: ``place`` and ``clause``, null where none is about the row.
        """
        counted = (
            pairs.group_by("place")
            .agg(pl.col("clause").max(), pl.len().cast(pl.Int64).alias("matches"))
            .group_by((pl.col("place") // (1 << POSITION_BITS)).alias("file"), "clause")
            .agg(
                pl.len().cast(pl.Int64).alias("rows"),
                pl.col("matches").max().alias("most"),
                pl.col("matches").sum().alias("pairs"),
            )
        )
        return cls._of_counted(clauses, counted)

    @classmethod
    def _of_counted(cls, clauses: Sequence[Clause], rows: pl.DataFrame) -> MatchCounts:
        return cls(
            clauses=tuple(clauses),
            rows=rows.drop_nulls("clause"),
            **files_of_matches(rows),
            pairs=int(rows["pairs"].sum()),
            most_matches=max(rows["most"].to_list(), default=0),
        )

    @property
    def is_empty(self) -> bool:
        """Whether no clause is about a row of the table."""
        return self.rows.is_empty()

    @property
    def files(self) -> list[int]:
        """The ordinals of files with rows that change."""
        return [int(each) for each in self.rows["file"].unique().sort()]

    @property
    def changed_rows(self) -> int:
        """How many rows of the table change."""
        return int(self.rows["rows"].sum())

    @property
    def updated_files(self) -> list[int]:
        """The ordinals of files with rows that get new values."""
        return [int(each) for each in self._counts_of(Do.UPDATE)["file"].unique().sort()]

    @property
    def updated_rows(self) -> int:
        """How many rows of the table get new values."""
        return int(self._counts_of(Do.UPDATE)["rows"].sum())

    def figures(self, *, added: int, copied: int) -> dict[str, int]:
        """Return the rows that were changed.

        Args:
            added: rows that were written.
            copied: of those, rows that were not changed.
        """

        def rows(do: Do, when: When) -> int:
            return int(self._counts_of(do, when)["rows"].sum())

        updated = self.updated_rows
        return {
            "rows_updated": updated,
            "rows_deleted": int(self._counts_of(Do.DELETE)["rows"].sum()),
            "rows_inserted": added - updated - copied,
            "rows_copied": copied,
            "matched_updated": rows(Do.UPDATE, When.MATCHED),
            "matched_deleted": rows(Do.DELETE, When.MATCHED),
            "by_source_updated": rows(Do.UPDATE, When.BY_SOURCE),
            "by_source_deleted": rows(Do.DELETE, When.BY_SOURCE),
        }

    def _counts_of(self, do: Do, when: When | None = None) -> pl.DataFrame:
        wanted = [
            n
            for n, clause in enumerate(self.clauses)
            if clause.do is do and (when is None or clause.when is when)
        ]
        return self.rows.filter(pl.col("clause").is_in(wanted))


class FilesOfMatches(TypedDict):
    """See `MatchCounts`."""

    matched_files: frozenset[int]
    unchanged_files: frozenset[int]


def files_of_matches(rows: pl.DataFrame) -> FilesOfMatches:
    """Return the files of matches.

    Args:
        rows: the `file` and the `clause` of matches, null where no clause is about a row.
    """
    unchanged = rows.filter(pl.col("clause").is_null())
    return {
        "matched_files": frozenset(rows["file"].to_list()),
        "unchanged_files": frozenset(unchanged["file"].to_list()),
    }
