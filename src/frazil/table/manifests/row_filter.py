"""RowFilter: a predicate asked of manifests and files: can rows match, do all rows match?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.predicates import (
    AlwaysTrue,
    Expression,
    bind,
    inclusive_projection,
    parse_predicate,
    strict_projection,
)
from frazil.format.values.zones import PROCESS_ZONE
from frazil.planning.prune import (
    keeps_partitions,
    may_match,
    may_match_manifests,
    must_keep_partitions,
    must_match,
    needed_statistics,
)

Predicate = Expression | str


class RowFilter:
    """A predicate over the table's rows, bound anew for each metadata that it is asked of."""

    def __init__(self, predicate: Predicate, *, case_sensitive: bool = True) -> None:
        self.predicate = parse_predicate(predicate) if isinstance(predicate, str) else predicate
        self._case_sensitive = case_sensitive

    def __str__(self) -> str:
        return str(self.predicate)

    @property
    def is_always_true(self) -> bool:
        """Whether every row matches."""
        return isinstance(self.predicate, AlwaysTrue)

    def bound_predicate(self, metadata: TableMetadata) -> Expression:
        """The predicate bound to the current schema; PredicateError where it does not fit."""
        return bind(
            self.predicate,
            metadata.schema,
            case_sensitive=self._case_sensitive,
            time_zone=PROCESS_ZONE,
        )

    def may_match(self, metadata: TableMetadata, manifests: Sequence[ManifestFile]) -> list[bool]:
        """Whether each manifest's partition summaries allow rows that match (rules 171, 172)."""
        return may_match_manifests(
            self.bound_predicate(metadata), manifests, metadata.specs_by_id, metadata.schema
        )

    def statistics(self, metadata: TableMetadata) -> Mapping[str, Collection[int]]:
        """The statistics that `any_match` and `all_match` look at."""
        return needed_statistics(self.bound_predicate(metadata))

    def any_match(
        self, metadata: TableMetadata, manifest: ManifestFile, entries: pl.DataFrame
    ) -> pl.Series:
        """False for each file of the manifest in which no row can match.

        Delete files are judged by their partition alone: their metrics describe the deleted rows.
        """
        spec = metadata.spec_by_id(manifest.partition_spec_id)
        bound = self.bound_predicate(metadata)
        if manifest.content is ManifestContent.DATA:
            return may_match(bound, spec, metadata.schema, entries)
        return keeps_partitions(inclusive_projection(bound, spec, metadata.schema), entries)

    def all_match(
        self, metadata: TableMetadata, manifest: ManifestFile, entries: pl.DataFrame
    ) -> pl.Series:
        """True for each file of the manifest of which every row matches.

        For a delete file: every row that it can apply to. Columns of equality deletes besides
        their ids say nothing of those (rule 229), so only the partition counts.
        """
        spec = metadata.spec_by_id(manifest.partition_spec_id)
        bound = self.bound_predicate(metadata)
        if manifest.content is ManifestContent.DATA:
            return must_match(bound, spec, metadata.schema, entries)
        return must_keep_partitions(strict_projection(bound, spec, metadata.schema), entries)
