"""Files of several snapshots as the input of one read.

A read applies a delete to a data file by scope and sequence number. Files of several snapshots are
under different deletes, one file under several, so every part gets scopes of its own here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import polars as pl

from frazil.planning.deletes.index import DeleteIndex
from frazil.planning.frames import pack_partitions, unpack_partitions
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.changes.columns import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT_ID,
    ChangeType,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Files whose rows changed in one way, in one snapshot or in several.

    Attributes:
        snapshots: a row a file of the plan: the changelog's columns that tell the snapshot.
        plan: the files with the deletes that say which rows: the rows that they leave, or, in a
            part with `base`, the rows that they take.
        base: the same files with the deletes that applied before: rows that these take had gone
            already; None where the part is of rows that are left.
    """

    change_type: ChangeType
    snapshots: pl.DataFrame
    plan: ScanPlan
    base: ScanPlan | None = None

    @property
    def change_ordinals(self) -> set[int]:
        """The snapshots' places in the range."""
        return set(self.snapshots[CHANGE_ORDINAL].unique().to_list())

    def of_snapshots(self, change_ordinals: Collection[int], *, among: bool) -> Part:
        """The files of these snapshots, or of all others."""
        keep = self.snapshots[CHANGE_ORDINAL].is_in(list(change_ordinals))
        if not among:
            keep = ~keep
        if keep.all():
            return self
        return replace(
            self,
            snapshots=self.snapshots.filter(keep),
            plan=self.plan.where_files(keep),
            base=None if self.base is None else self.base.where_files(keep),
        )


def snapshots_of(change_ordinals: Sequence[int] | pl.Series, ids: Sequence[int]) -> pl.DataFrame:
    """The changelog's columns that tell the snapshots of files.

    Args:
        change_ordinals: the place of each file's snapshot in the range.
        ids: the ids of the range's snapshots.
    """
    places = pl.Series(CHANGE_ORDINAL, change_ordinals, dtype=pl.Int32)
    known = pl.Series(COMMIT_SNAPSHOT_ID, ids, dtype=pl.Int64)
    return pl.DataFrame([places, known.gather(places).alias(COMMIT_SNAPSHOT_ID)])


@dataclass(frozen=True, slots=True)
class LabelledFiles:
    """Files to read together.

    Attributes:
        read: the files; one that changed in several snapshots is in it as often.
        base: the same files, under the same ordinals, with the deletes that applied before.
        labels: a row a file: ``ordinal`` and the changelog's columns.
    """

    read: ScanPlan
    base: ScanPlan
    labels: pl.DataFrame

    def restricted_to(self, ordinals: pl.Series) -> LabelledFiles:
        """Some of the files."""
        keep = pl.col("ordinal").is_in(ordinals.implode())
        return LabelledFiles(
            self.read.restricted_to(ordinals),
            self.base.restricted_to(ordinals),
            self.labels.filter(keep),
        )


def labelled_files(parts: Sequence[Part]) -> LabelledFiles:
    """The files of parts, at least one."""
    read = _merge_plans([part.plan for part in parts])
    base = _merge_plans(
        [part.base or replace(part.plan, delete_index=DeleteIndex.empty()) for part in parts]
    )
    labels = pl.concat(
        part.snapshots.select(
            pl.lit(str(part.change_type)).alias(CHANGE_TYPE), CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID
        )
        for part in parts
    )
    ordinals = read.files.select("ordinal")
    return LabelledFiles(read, base, pl.concat([ordinals, labels], how="horizontal"))


def _merge_plans(plans: Sequence[ScanPlan]) -> ScanPlan:
    """One plan; files are numbered through, and scopes of different plans differ."""
    files, deletes, pairs = (
        pl.concat(
            [
                frame.with_columns(pl.lit(number).alias("plan"))
                for number, frame in enumerate(frames)
            ],
            how="diagonal_relaxed",
        )
        for frames in (
            [unpack_partitions(each.files).drop("partition", "manifest") for each in plans],
            [unpack_partitions(each.deletes).drop("partition") for each in plans],
            [each.pairs for each in plans],
        )
    )
    scopes = _with_numbers(files.select("plan", "scope").unique(maintain_order=True), "new_scope")
    places = _with_numbers(files.select("plan", "ordinal", "scope"), "place").join(
        scopes, on=["plan", "scope"], maintain_order="left"
    )
    applied = pairs.join(places, on=["plan", "ordinal"], maintain_order="left")
    # A delete of several partitions stands once for each of them.
    copies = applied.select("plan", "delete", "new_scope").unique(maintain_order=True)
    copies = _with_numbers(copies, "copy")
    pairs = applied.join(copies, on=["plan", "delete", "new_scope"], maintain_order="left").select(
        pl.col("place").alias("ordinal"), pl.col("copy").alias("delete")
    )
    return replace(
        plans[0],
        files=pack_partitions(
            files.with_columns(
                places["place"].alias("ordinal"), places["new_scope"].alias("scope")
            ).drop("plan")
        ),
        deletes=pack_partitions(
            copies.join(deletes, on=["plan", "delete"], maintain_order="left")
            .with_columns(pl.col("copy").alias("delete"), pl.col("new_scope").alias("scope"))
            .drop("plan", "copy", "new_scope")
        ),
        delete_index=DeleteIndex(pairs),
        manifests=(),
    )


def _with_numbers(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    return frame.with_row_index(name).with_columns(pl.col(name).cast(pl.Int64))
