"""Commands that write a DataFrame's rows: append, overwrite by condition, overwrite partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import polars as pl
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.errors import PredicateError
from frazil.format.arguments import optional_snapshot_id_of
from frazil.format.manifests import DataFile
from frazil.format.predicates.expressions import Expression
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.planning.removal import data_files
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.conditions import Condition
from frazil.spark.port import SparkPort
from frazil.spark.row_level.delete import (
    AtPlaces,
    Test,
    repeatable_test,
    rows_by_file,
    rows_not_matching,
)
from frazil.spark.row_level.figures import ChangeResult, files_skipped
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.start import Start, with_own_files
from frazil.spark.row_level.target import Target
from frazil.spark.write.columns.align import align
from frazil.spark.write.row_count import ExpectedRows, rows_of_last_writes
from frazil.spark.write.rows import known_row_count, rows_of
from frazil.table.conflicts.validation import Isolation, Validation
from frazil.table.file_changes import FileChanges
from frazil.table.snapshots.overwrite import ReplacePartitions
from frazil.table.snapshots.producer import snapshot_options

Rows = Any
"""Rows to write: a DataFrame of Spark, pandas or Polars, of PyArrow, or a table or scan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Add rows in one commit.

    Attributes:
        rows: what is added.
        options: where the snapshot goes, and how files are written.
    """

    rows: Rows
    options: CommitOptions = field(default_factory=CommitOptions)

    def run(self, port: SparkPort) -> ChangeResult:
        """Run it; see `Table.append`."""
        start = _Write.of(port, self.options)
        rows = rows_of(port.spark, self.rows)
        files = start.write_files(rows, expected=start.expected_rows(self.rows))
        FileChanges(port).append(files, **with_own_files(start.settings, files))
        return start.result("append", "append", files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwrite:
    """Put rows in place of those that match a condition, in one commit.

    Attributes:
        rows: the new rows.
        where: which rows go; all unless given.
        options: where the snapshot goes, what of others' commits conflicts, and how files are
            written.
    """

    rows: Rows
    where: str | Column | Expression | None = None
    options: CommitOptions = field(default_factory=CommitOptions)

    def run(self, port: SparkPort) -> ChangeResult:
        """Run it; see `Table.overwrite`."""
        start = _Write.of(port, self.options)
        validation = start.validation()
        plan = OverwritePlan.of(start, self.where)
        rows, schema = plan.rows(rows_of(port.spark, self.rows))
        files = start.write_files(rows, schema=schema)
        FileChanges(port).overwrite(
            files,
            removed=plan.removed,
            where=plan.file_predicate,
            validation=plan.narrowed_validation(validation, self.options.isolation),
            case_sensitive=start.case_sensitive,
            **with_own_files(start.settings, files),
        )
        return plan.result(start.result("overwrite", "metadata", files))


@dataclass(frozen=True, slots=True, kw_only=True)
class OverwritePartitions:
    """Put rows in place of the partitions that they belong to, in one commit.

    Attributes:
        rows: the new rows.
        options: as of `Overwrite`.
    """

    rows: Rows
    options: CommitOptions = field(default_factory=CommitOptions)

    def run(self, port: SparkPort) -> ChangeResult:
        """Run it; see `Table.overwrite_partitions`."""
        start = _Write.of(port, self.options)
        validation = start.validation()
        rows = rows_of(port.spark, self.rows)
        files = start.write_files(rows, expected=start.expected_rows(self.rows))
        if not files:
            return start.result("overwrite", "metadata", files)
        operation = ReplacePartitions(
            port.io,
            files,
            validation=validation if self.options.isolation is not None else None,
            options=snapshot_options(**with_own_files(start.settings, files)),
        )
        port.run(operation)
        summary = _summary(port.metadata.snapshots_by_id.get(operation.snapshot_id))
        had_deletes = _count(_summary(start.head).get("total-delete-files")) > 0
        return replace(
            start.result("overwrite", "metadata", files),
            # What the metadata counts may have been deleted before.
            rows_deleted=None if had_deletes else _count(summary.get("deleted-records")),
            files_removed=_count(summary.get("deleted-data-files")),
        )


class _Write(Start):
    """What a write starts from."""

    __slots__ = ()

    def validation(self) -> Validation:
        """Return from where on others' commits are checked.

        With an isolation level that is what the user has read through the handle; without one
        only what this call reads itself must not change.
        """
        given, isolation = self.options.validate_from_snapshot_id, self.options.isolation
        start = optional_snapshot_id_of(given, "validate_from_snapshot_id")
        if start is None and isolation is not None:
            begins = self.destination.makes_branch
            start = self.port.read_point(None if begins else self.destination.branch)
        elif start is None:
            start = self.snapshot_id
        return Validation(start, isolation or "snapshot", check_deletes=isolation is not None)

    def expected_rows(self, rows: Rows) -> ExpectedRows | None:
        """How much is written: as many rows as are known, else as many as usually."""
        usual, known = rows_of_last_writes(self.base, self.head), known_row_count(rows)
        if known is None:
            return usual
        if usual is None:
            return ExpectedRows(rows=known)
        return replace(usual, rows=known, is_usual=False)

    def result(self, command: str, mode: str, files: Sequence[DataFile]) -> ChangeResult:
        """Return what a command did that added files."""
        return ChangeResult(
            command=command,
            mode=mode,
            snapshot_id=self.snapshot_id,
            rows_inserted=sum(file.record_count for file in files),
            files_added=len(files),
        )


def _summary(snapshot: Snapshot | None) -> Mapping[str, str]:
    return {} if snapshot is None else snapshot.summary or {}


def _count(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0


_DATA_EXCEPTION: Final = "22"
"""The class of SQL states that values cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverwritePlan:
    """An overwrite, planned.

    Attributes:
        start: the table, at the head of the branch.
        condition: which rows go.
        test: what tells these rows; every use of it means the same ones.
        rewritten: the files of which only some rows go; the others of their rows are written anew.
        removed: the files that are rewritten, and where no predicate tells which others go, those.
        plan: the files that may hold rows of the condition.
        matching: how many rows go; None where the rows were not looked at.
        in_part: how many of them are in rewritten files; None likewise.
    """

    start: Start
    condition: Condition
    test: Test
    rewritten: Target
    removed: tuple[DataFile, ...]
    plan: ScanPlan
    matching: int | None
    in_part: int | None

    @classmethod
    def of(cls, start: Start, where: str | Column | Expression | None) -> OverwritePlan:
        """Find the files at the head of a branch that the condition matches in part.

        Where metadata cannot tell them, Spark finds the rows that match.

        Raises:
            PredicateError: the condition does not fit the schema, is random, or fails on a value.
        """
        condition = start.condition(where)
        target = start.target(start.spark, condition.implied)
        test: Test = condition
        rewritten = target.where_files(~target.plan.files["all_rows_match"])
        gone = rewritten.ordinals
        matching = in_part = None
        if not condition.is_exact and target.plan.file_count:
            with _explain_values(condition):
                test = repeatable_test(target, condition)
                counts = rows_by_file(target, test)
            gone, matching = list(counts), sum(counts.values())
            rewritten = _matching_in_part(target, counts)
            in_part = sum(counts[ordinal] for ordinal in rewritten.ordinals)
        return cls(
            start=start,
            condition=condition,
            test=test,
            rewritten=rewritten,
            removed=tuple(data_files(start.base, target.plan, gone)),
            plan=target.plan,
            matching=matching,
            in_part=in_part,
        )

    @property
    def file_predicate(self) -> Expression | None:
        """The predicate by which whole files go; None where the files are known by name."""
        return self.condition.implied if self.condition.is_exact else None

    def result(self, written: ChangeResult) -> ChangeResult:
        """Return what the overwrite did, from what was written."""
        files, plan = self.plan.files, self.rewritten.plan
        removed, deleted = len(self.removed), self.matching
        if self.condition.is_exact:
            whole = files.filter(pl.col("all_rows_match"))
            removed += len(whole)
            if not self.removed and self.plan.delete_index.is_empty:
                deleted = int(whole["record_count"].sum())
        copied = self._count_of_copies() if plan.file_count else 0
        rows = written.rows_inserted
        return replace(
            written,
            mode="copy-on-write" if plan.file_count else "metadata",
            rows_read=plan.record_count,
            rows_deleted=deleted,
            rows_copied=copied,
            rows_inserted=None if copied is None or rows is None else rows - copied,
            files_read=self.plan.file_count,
            files_skipped=files_skipped(self.plan),
            files_removed=removed,
            skipped=self.plan.skipped,
        )

    def _count_of_copies(self) -> int | None:
        """The rows that rewritten files keep, where metadata and the look at the rows tell them."""
        plan = self.rewritten.plan
        if self.in_part is None or not plan.delete_index.is_empty:
            return None
        return plan.record_count - self.in_part

    def rows(self, df: DataFrame) -> tuple[DataFrame, Schema | None]:
        """The rows to write: the new ones, and those that rewritten files keep.

        In a version 3 table kept rows keep their row ids (SPEC rule 148); the schema then has the
        lineage columns too, and is None otherwise.
        """
        if self.rewritten.plan.file_count == 0:
            return df, None
        # The rows are one query with those of the DataFrame, which runs in the session of that.
        target = replace(self.rewritten, spark=df.sparkSession)
        written = target.written_schema
        test = self._test_in(df.sparkSession)
        kept = rows_not_matching(target, test)
        new = align(df, target.schema, case_sensitive=self.start.case_sensitive)
        for each in target.lineage:
            new = new.withColumn(each.name, F.lit(None).cast("bigint"))
        same = align(kept, written, case_sensitive=True)
        return new.unionByName(same), written if target.keeps_lineage else None

    def narrowed_validation(self, validation: Validation, asked: Isolation | None) -> Validation:
        """Return what must not have happened to the rows that this overwrite is about.

        Deletes count where files are rewritten, whatever was asked for. Rows that others added
        count too where no predicate tells which of them would go.

        Args:
            asked: the isolation that the user asked for, if any.
        """
        unseen = not self.condition.is_exact and asked is None
        return replace(
            validation,
            isolation="serializable" if unseen else validation.isolation,
            conflict_filter=self.condition.implied,
            check_deletes=validation.check_deletes
            or self.rewritten.plan.file_count > 0
            or bool(self.removed),
            case_sensitive=self.start.case_sensitive,
        )

    def _test_in(self, spark: SparkSession) -> Test:
        """The test for rows read in a session, which may be set otherwise than the table's."""
        if self.condition.is_exact or spark is self.start.spark or isinstance(self.test, AtPlaces):
            return self.test
        return AtPlaces.of(self.rewritten, self.condition)


@contextmanager
def _explain_values(condition: Condition) -> Iterator[None]:
    """Tell what fails on a value, such as a cast of text to a number, as the condition's fault."""
    try:
        yield
    except PySparkException as error:
        if not (error.getSqlState() or "").startswith(_DATA_EXCEPTION):
            raise
        reason = str(error).split("\n", 1)[0]
        raise PredicateError(
            f"the condition {condition.text!r} cannot be evaluated: {reason}"
        ) from error


def _matching_in_part(target: Target, counts: dict[int, int]) -> Target:
    """The files that hold some rows that match, and may hold others."""
    matching = pl.DataFrame(
        {"ordinal": list(counts), "matching": list(counts.values())},
        schema={"ordinal": target.plan.files.schema["ordinal"], "matching": pl.Int64},
    )
    files = target.plan.files.join(matching, on="ordinal", how="left", maintain_order="left")
    partly = pl.col("matching") < pl.col("record_count")
    return target.where_files(files.select(partly.fill_null(False)).to_series())
