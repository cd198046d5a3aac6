"""The rows that the clauses of a merge change, counted by file and clause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.spark.row_level.merging.clauses.clause import Clause, Do, When
from frazil.spark.row_level.target import Target, file_of

CLAUSE: Final = "_frazil_clause"
"""The column that says which clause a row falls under."""


@dataclass(frozen=True, slots=True)
class Touched:
    """The rows that clauses change, counted by file and clause.

    Attributes:
        counts: ``file``, ``clause`` and ``rows``.
        matched_files: files with rows that match or that a clause is about.
        pairs: rows of the table with rows of the source, and rows without.
        most_matches: of a row of the table with rows of the source.
    """

    clauses: Sequence[Clause]
    counts: pl.DataFrame
    matched_files: frozenset[int]
    pairs: int
    most_matches: int

    @classmethod
    def of(
        cls,
        target: Target,
        clauses: Sequence[Clause],
        matches: DataFrame,
        orphans: DataFrame | None,
    ) -> Touched:
        pairs = matches if orphans is None else together(matches, orphans)
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
        counts = pl.DataFrame(pl.from_arrow(counted))
        most = max(counts["most"].to_list(), default=0)
        total = int(counts["pairs"].sum())
        files = frozenset(counts["file"].to_list())
        return cls(tuple(clauses), counts.drop_nulls("clause"), files, total, most)

    @property
    def is_empty(self) -> bool:
        return self.counts.is_empty()

    @property
    def files(self) -> list[int]:
        return [int(each) for each in self.counts["file"].unique().sort()]

    @property
    def places(self) -> int:
        return int(self.counts["rows"].sum())

    @property
    def updated_files(self) -> list[int]:
        return [int(each) for each in self._of(Do.UPDATE)["file"].unique().sort()]

    @property
    def updated(self) -> int:
        return int(self._of(Do.UPDATE)["rows"].sum())

    def acted(self, matches: DataFrame, orphans: DataFrame | None) -> DataFrame:
        """The places that a clause is about, each once a clause."""
        return acted(matches, orphans)

    def _of(self, do: Do, when: When | None = None) -> pl.DataFrame:
        wanted = [
            n
            for n, clause in enumerate(self.clauses)
            if clause.do is do and (when is None or clause.when is when)
        ]
        return self.counts.filter(pl.col("clause").is_in(wanted))

    def figures(self, *, added: int, copied: int | None) -> dict[str, int]:
        """The rows that were changed.

        Args:
            added: rows that were written.
            copied: of those, rows that were not changed; None for no such rows.
        """

        def rows(do: Do, when: When) -> int:
            return int(self._of(do, when)["rows"].sum())

        updated = self.updated
        return {
            "rows_updated": updated,
            "rows_deleted": int(self._of(Do.DELETE)["rows"].sum()),
            "rows_inserted": added - updated - (copied or 0),
            "rows_copied": copied or 0,
            "matched_updated": rows(Do.UPDATE, When.MATCHED),
            "matched_deleted": rows(Do.DELETE, When.MATCHED),
            "by_source_updated": rows(Do.UPDATE, When.BY_SOURCE),
            "by_source_deleted": rows(Do.DELETE, When.BY_SOURCE),
        }


def acted(matches: DataFrame, orphans: DataFrame | None) -> DataFrame:
    acts = matches.where(F.col(CLAUSE).isNotNull())
    return acts if orphans is None else together(acts, orphans)


def together(matches: DataFrame, orphans: DataFrame) -> DataFrame:
    return matches.unionByName(orphans, allowMissingColumns=True)
