"""Manifests and files that a predicate leaves out, and the count of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

import numpy as np
import polars as pl

from frazil.format.manifests import ManifestFile
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.predicates.expressions import AlwaysTrue, Expression
from frazil.format.predicates.projection.project import inclusive
from frazil.format.schema import Schema
from frazil.planning.frames import concat_entries, live_entries, no_entries, with_single_values
from frazil.planning.prune import keeps_partitions, may_match, may_match_manifests, must_match
from frazil.planning.scan_plan import Skipped, SkipReason
from frazil.storage.avro.manifest_layout import PARTITION_PREFIX

_BY_FILE: Final = (SkipReason.EMPTY, SkipReason.PARTITION_VALUE, SkipReason.COLUMN_BOUNDS)
"""Why single files are left out, in the order of the tests."""


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """The files that a predicate leaves of some manifests.

    Attributes:
        files: live entries that may match, with the columns that were asked for, those of partition
            fields, `manifest` (the place of its manifest) and `all_rows_match`.
        skipped: live files that are left out, by reason; none has a count of 0.
    """

    files: pl.DataFrame
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Pruner:
    """Leaves out manifests and files by one predicate. It may be sent to other processes.

    Attributes:
        specs: every partition spec of the table, by id.
        schema: that the predicate is bound to.
        bound: the predicate.
    """

    specs: Mapping[int, PartitionSpec]
    schema: Schema
    bound: Expression

    def manifests(
        self, manifests: Sequence[ManifestFile]
    ) -> tuple[list[ManifestFile], tuple[Skipped, ...]]:
        """The manifests that may hold files that match (rules 171, 172), and what is left out."""
        may = self.may_hold(manifests)
        left_out = [manifest for manifest, kept in zip(manifests, may, strict=True) if not kept]
        if not left_out:
            return list(manifests), ()
        counts = [(m.added_files_count, m.existing_files_count) for m in left_out]
        known = [a + e for a, e in counts if a is not None and e is not None]
        files = sum(known) if len(known) == len(counts) else None
        skipped = Skipped(SkipReason.MANIFEST_SUMMARY, len(left_out), files, None)
        return list(compress(manifests, may)), (skipped,)

    def may_hold(self, manifests: Sequence[ManifestFile]) -> list[bool]:
        """Whether the partition summaries of each manifest leave room for a match."""
        return may_match_manifests(self.bound, manifests, self.specs, self.schema)

    def projected(self, spec: PartitionSpec) -> Expression:
        """The predicate on the partitions of a spec."""
        return inclusive(self.bound, spec, self.schema)

    def files(
        self,
        manifests: Sequence[ManifestFile],
        entries: Sequence[pl.DataFrame],
        *,
        columns: Collection[str],
        first: int = 0,
    ) -> KeptFiles:
        """The live files that may match, in the manifests' order.

        Args:
            manifests: whose they are.
            entries: of each.
            columns: which the kept files are to have; those that entries lack are left out.
            first: the place of the first of the manifests.
        """
        groups: dict[int, list[int]] = {}
        for index, manifest in enumerate(manifests):
            groups.setdefault(manifest.partition_spec_id, []).append(index)
        kept: list[pl.DataFrame] = []
        skipped: list[Skipped] = []
        for spec_id, indexes in groups.items():
            lengths = [len(entries[i]) for i in indexes]
            places = np.repeat(np.asarray(indexes, dtype=np.int32) + first, lengths)
            together = concat_entries([entries[i] for i in indexes])
            files = live_entries(together.with_columns(pl.Series("manifest", places, pl.Int32)))
            found, left_out = self._matching(files, self.specs[spec_id])
            kept.append(_narrowed(found, columns))
            skipped += left_out
        if not kept:
            return KeptFiles(_narrowed(no_files(), columns))
        files = concat_entries(kept)
        if len(kept) > 1:
            files = files.sort("manifest", maintain_order=True)
        return KeptFiles(files, in_all(skipped))

    def _matching(
        self, files: pl.DataFrame, spec: PartitionSpec
    ) -> tuple[pl.DataFrame, list[Skipped]]:
        skipped: list[Skipped] = []
        every = pl.lit(True).alias("all_rows_match")
        if isinstance(self.bound, AlwaysTrue) or files.is_empty():
            return files.with_columns(every), skipped
        for reason in _BY_FILE:
            kept = self._kept(reason, files, spec)
            if not kept.all():
                left_out = files["file_size_in_bytes"].filter(~kept)
                skipped.append(Skipped(reason, 0, len(left_out), int(left_out.sum())))
                files = files.filter(kept)
            if files.is_empty():
                return files.with_columns(every), skipped
        all_rows = must_match(self.bound, spec, self.schema, files)
        return files.with_columns(all_rows.alias("all_rows_match")), skipped

    def _kept(self, reason: SkipReason, files: pl.DataFrame, spec: PartitionSpec) -> pl.Series:
        """The files that are not left out for one reason."""
        if reason is SkipReason.EMPTY:
            return files["record_count"] != 0
        if reason is SkipReason.PARTITION_VALUE:
            return keeps_partitions(self.projected(spec), files)
        return may_match(self.bound, spec, self.schema, files)


def no_files() -> pl.DataFrame:
    """Kept files without rows."""
    return no_entries().with_columns(
        pl.lit(0, pl.Int32).alias("manifest"), pl.lit(True).alias("all_rows_match")
    )


def in_all(skipped: Iterable[Skipped]) -> tuple[Skipped, ...]:
    """Single files that are left out, once for each reason, in the order of the tests."""
    found = list(skipped)
    return tuple(
        Skipped(
            reason,
            0,
            sum(each.files or 0 for each in found if each.reason is reason),
            sum(each.size_in_bytes or 0 for each in found if each.reason is reason),
        )
        for reason in _BY_FILE
        if any(each.reason is reason for each in found)
    )


def _narrowed(files: pl.DataFrame, columns: Collection[str]) -> pl.DataFrame:
    """The files with these columns, those of partition fields, and those of `KeptFiles`."""
    wanted = {*columns, "manifest", "all_rows_match"}
    names = [n for n in files.columns if n in wanted or n.startswith(PARTITION_PREFIX)]
    return with_single_values(files.select(names).rechunk())
