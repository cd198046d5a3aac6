"""What a scan reads, as columns: data files, delete files, and which applies to which."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Self

import polars as pl

from frazil.format.html_text import ShownInNotebooks, size_text
from frazil.format.manifests import DataFile
from frazil.format.predicates.expressions import AlwaysTrue, Expression, SparkCondition
from frazil.format.schema import Schema
from frazil.planning.deletes.index import POSITION_DELETES, DeleteIndex
from frazil.planning.frames import with_own_text

_STATED: Final = {
    "file_path": pl.String(),
    "file_format": pl.String(),
    "file_size_in_bytes": pl.Int64(),
    "record_count": pl.Int64(),
    "spec_id": pl.Int32(),
}
_INHERITED: Final = {
    "partition": pl.Null(),
    "sequence_number": pl.Int64(),
    "file_sequence_number": pl.Int64(),
    "snapshot_id": pl.Int64(),
    "sort_order_id": pl.Int32(),
    "key_metadata": pl.Binary(),
}
_DELETE: Final = {
    "content": pl.Int32(),
    "equality_ids": pl.List(pl.Int32()),
    "referenced_data_file": pl.String(),
    "content_offset": pl.Int64(),
    "content_size_in_bytes": pl.Int64(),
    "may_hold_null_keys": pl.Boolean(),
    "scope": pl.Int64(),
}


class SkipReason(StrEnum):
    """Why files of a snapshot are not read."""

    MANIFEST_SUMMARY = "manifest summary"
    PARTITION_VALUE = "partition value"
    COLUMN_BOUNDS = "column bounds"
    EMPTY = "no rows"


@dataclass(frozen=True, slots=True)
class Skipped:
    """Data files that a plan leaves out for one reason.

    Attributes:
        manifests: manifests that were not opened; 0 where single files were left out.
        files: their data files, None where a manifest list does not state them (v1).
        size_in_bytes: of those files; None where manifests were not opened, so that it is unknown.
    """

    reason: SkipReason
    manifests: int
    files: int | None
    size_in_bytes: int | None


@dataclass(frozen=True, slots=True)
class DeleteWay:
    """How deletes of some data files are applied.

    Attributes:
        files: the number of these data files.
        way: what is done.
        reason: the figures by which it was chosen.
    """

    files: int
    way: str
    reason: str


@dataclass(frozen=True, slots=True, repr=False, weakref_slot=True)
class ScanPlan(ShownInNotebooks):
    """A snapshot under a predicate.

    Attributes:
        snapshot_id: what is read; None for a table without snapshots.
        schema: the schema that the predicate is bound to.
        where: the bound predicate, AlwaysTrue without one; of a condition that only Spark can
            evaluate what it implies.
        residual: what is still to be checked on rows; AlwaysTrue where every file's rows all match,
            a `SparkCondition` where only Spark can check it.
        files: data files, one row each: `ordinal` (0, 1, …, the row's place), `file_path`,
            `file_format` (lower case), `file_size_in_bytes`, `record_count`, `spec_id`, `partition`
            (a struct by partition field id over all specs, null in tables without partitions),
            `sequence_number`, `file_sequence_number`, `snapshot_id`, `first_row_id`,
            `split_offsets`, `sort_order_id`, `key_metadata`, `all_rows_match` (no residual is left
            to check), `manifest` (the place in `manifests` of the one that lists the file), and
            `scope`: equal for files of one spec and partition, as far as deletes tell them apart.
        deletes: delete files that apply to some of them: `delete` (the row's place), `content` (1
            position, 2 equality), the columns as above but the row id, `equality_ids`,
            `referenced_data_file`, `content_offset`, `content_size_in_bytes`, `may_hold_null_keys`
            (false where metrics show that no compared value is NULL), and `scope`: of the files
            that it applies to, `GLOBAL_SCOPE` for all.
        delete_index: which applies to which.
        manifests: paths of the manifests of `files`.
        skipped: what is left out, and why.
        manifests_read: the manifests whose entries were looked at.
        delete_ways: how the engine would apply the deletes now; empty where it was not asked.
    """

    snapshot_id: int | None
    schema: Schema
    where: Expression
    residual: Expression
    files: pl.DataFrame
    deletes: pl.DataFrame
    delete_index: DeleteIndex
    manifests: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    manifests_read: int = 0
    delete_ways: tuple[DeleteWay, ...] = ()

    @classmethod
    def of_new_files(cls, files: Sequence[DataFile], schema: Schema) -> Self:
        """Return what reads data files that no snapshot has yet; nothing is deleted of them.

        Args:
            files: they hold every column of the schema, so that no partition value stands for one.
            schema: what they are read by.
        """
        frame = pl.DataFrame(
            {
                "ordinal": range(len(files)),
                "file_path": [file.file_path for file in files],
                "file_format": [file.file_format.lower() for file in files],
                "file_size_in_bytes": [file.file_size_in_bytes for file in files],
                "record_count": [file.record_count for file in files],
                "spec_id": [file.spec_id for file in files],
            },
            schema={"ordinal": pl.Int64(), **_STATED},
        )
        data = {**_INHERITED, "first_row_id": pl.Int64(), "split_offsets": pl.List(pl.Int64())}
        return cls(
            snapshot_id=None,
            schema=schema,
            where=AlwaysTrue(),
            residual=AlwaysTrue(),
            files=frame.with_columns(
                *(pl.lit(None, kind).alias(name) for name, kind in data.items()),
                pl.lit(0, pl.Int64()).alias("scope"),
                pl.lit(0, pl.Int32()).alias("manifest"),
                pl.lit(True).alias("all_rows_match"),
            ),
            deletes=pl.DataFrame(schema={"delete": pl.Int64(), **_STATED, **_INHERITED, **_DELETE}),
            delete_index=DeleteIndex.empty(),
        )

    @property
    def file_count(self) -> int:
        """The number of data files to read."""
        return len(self.files)

    @property
    def delete_count(self) -> int:
        """The number of delete files to apply."""
        return len(self.deletes)

    @property
    def record_count(self) -> int:
        """The rows of the data files, before deletes and residual."""
        return int(self.files["record_count"].sum())

    @property
    def size_in_bytes(self) -> int:
        """The size of the data files."""
        return int(self.files["file_size_in_bytes"].sum())

    @property
    def is_exact(self) -> bool:
        """Whether every row of the data files is in the result, so that counts are results."""
        return self.deletes.is_empty() and isinstance(self.residual, AlwaysTrue)

    def left_to_spark(self, text: str) -> ScanPlan:
        """Return the plan with a condition that Spark has to check on the rows of every file.

        Args:
            text: the condition, as it was written.
        """
        unchecked = pl.lit(False).alias("all_rows_match")
        return replace(
            self, residual=SparkCondition(text), files=self.files.with_columns(unchecked)
        )

    def restricted_to(self, ordinals: Collection[int] | pl.Series) -> ScanPlan:
        """Return the plan of these files, with what applies to them; ordinals stay as they are."""
        if not isinstance(ordinals, pl.Series):
            ordinals = pl.Series(list(ordinals), dtype=pl.Int64)
        return self.where_files(self.files["ordinal"].is_in(ordinals.cast(pl.Int64).implode()))

    def where_files(self, keep: pl.Series) -> ScanPlan:
        """Return the plan of the files for which `keep` is true; see `restricted_to`."""
        files = self.files.filter(keep)
        if 2 * len(files) < len(self.files):
            files = with_own_text(files)
        index = self.delete_index.for_files(files["ordinal"])
        return replace(self, files=files, delete_index=index, skipped=())

    def deletes_of(self, ordinal: int) -> pl.DataFrame:
        """Return the delete files that apply to one data file."""
        which = self.delete_index.for_files(pl.Series([ordinal])).deletes()
        return self.deletes.filter(pl.col("delete").is_in(which.implode()))

    @property
    def pairs(self) -> pl.DataFrame:
        """Every `ordinal` with every `delete` that applies to it, sorted by both.

        It is made at each call and may be as large as both counts multiplied.
        """
        return self.delete_index.expanded_pairs()

    def to_polars(self) -> pl.DataFrame:
        """Return the data files, with the rows of `deletes` that apply to each as a list."""
        applied = self.pairs.group_by("ordinal", maintain_order=True).agg(
            pl.col("delete").alias("deletes")
        )
        joined = self.files.join(applied, on="ordinal", how="left", maintain_order="left")
        return joined.with_columns(pl.col("deletes").fill_null([]))

    def summary(self) -> str:
        """Return lines for people: what is read, what is left out and why, what is checked."""
        snapshot = "an empty table" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        lines = [
            f"ScanPlan of {snapshot}",
            f"  read      {_count(self.file_count, 'file')}, {size_text(self.size_in_bytes)}, "
            f"{_count(self.record_count, 'row')} from {_count(self.manifests_read, 'manifest')}",
        ]
        if self.delete_count:
            position = int((self.deletes["content"] == POSITION_DELETES).sum())
            affected = len(self.delete_index.ordinals())
            lines.append(
                f"  deletes   {_count(position, 'position')}, "
                f"{self.delete_count - position:,} equality, on {_count(affected, 'file')}"
            )
        lines += [
            f"            {_count(each.files, 'file')} {each.way}: {each.reason}"
            for each in self.delete_ways
        ]
        lines += [f"  skipped   {_text_of_skipped(each)}" for each in self.skipped]
        if not isinstance(self.where, AlwaysTrue):
            lines.append(f"  where     {_short_text(self.where)}")
        if isinstance(self.residual, SparkCondition):
            lines.append(f"  residual  {_short_text(self.residual)}")
        elif not isinstance(self.where, AlwaysTrue):
            decided = int(self.files["all_rows_match"].sum())
            if isinstance(self.residual, AlwaysTrue):
                lines.append("  residual  none: every row of these files matches")
            else:
                lines.append(f"  residual  {_short_text(self.residual)}")
                lines.append(f"            {_count(decided, 'file')} of them need no check")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()


def _count(number: int, noun: str) -> str:
    plural = noun if number == 1 or noun == "position" else f"{noun}s"
    return f"{number:,} {plural}"


def _text_of_skipped(skipped: Skipped) -> str:
    files = "files" if skipped.files is None else _count(skipped.files, "file")
    size = "" if skipped.size_in_bytes is None else f", {size_text(skipped.size_in_bytes)}"
    where = f" in {_count(skipped.manifests, 'manifest')}" if skipped.manifests else ""
    return f"{files}{size}{where} by {skipped.reason}"


def _short_text(expression: Expression) -> str:
    text = expression.to_sql()
    return text if len(text) <= 400 else f"{text[:400]}…"
