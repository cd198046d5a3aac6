"""What a merge wrote, before its commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from frazil.format.manifests import DataFile
from frazil.spark.delete_files.write import WrittenDeletes
from frazil.spark.row_level.merging.matches.counts import MatchCounts
from frazil.spark.row_level.merging.matches.matching import Matching
from frazil.spark.row_level.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenChanges:
    """What a merge wrote.

    Attributes:
        counts: the rows that change.
        added: files with rows; without `deletes` they take the place of the files that change.
        copied: rows of theirs that stay as they were.
        deletes: of the rows that change, where these are marked.
    """

    counts: MatchCounts
    added: Sequence[DataFile]
    copied: int = 0
    deletes: WrittenDeletes | None = None

    @classmethod
    def of_new_rows(
        cls, matching: Matching, counts: MatchCounts, target: Target, new: DataFrame | None
    ) -> WrittenChanges:
        """Write new rows, where no row of the table changes."""
        added: list[DataFile] = []
        if new is not None:
            added = matching.command.write(new, target, most_rows=matching.source.count)
        return cls(counts=counts, added=added)

    @property
    def rows(self) -> int:
        """How many rows were written."""
        return sum(file.record_count for file in self.added)
