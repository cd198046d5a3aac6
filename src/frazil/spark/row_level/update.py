"""UPDATE: rows of which a condition is true get new values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.format.predicates.expressions import Expression
from frazil.spark.conditions import Condition
from frazil.spark.port import SparkPort
from frazil.spark.row_level.command import Command
from frazil.spark.row_level.delete import (
    AtPlaces,
    Test,
    deletes_of,
    repeatable_test,
    rows_by_file,
    rows_flagged,
    rows_matching,
    tested_by,
)
from frazil.spark.row_level.figures import ChangeResult
from frazil.spark.row_level.in_place import in_place, partition_columns, without_queries
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.rivals.compared_rows import RowTest
from frazil.spark.row_level.target import Target
from frazil.spark.row_level.values.assignments import Assignments, columns_named
from frazil.spark.row_level.values.names import TARGET
from frazil.spark.session.facts import type_support
from frazil.spark.session.free_names import free_name
from frazil.spark.write.distribute import Placement
from frazil.table.commit.retries import run_with_retries


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Change the rows for which a condition is true.

    Attributes:
        assignments: new values by column or field, as SQL text, a Column or a Python value.
        where: which rows; all unless given.
        alias: what the table is called in values and conditions.
        options: where the snapshot goes, and what of others' commits conflicts.
    """

    assignments: Mapping[str, Any]
    where: str | Column | Expression | None = None
    alias: str = TARGET
    options: CommitOptions = field(default_factory=CommitOptions)

    def run(self, port: SparkPort) -> ChangeResult:
        """Run it; see `Table.update`.

        Raises:
            ValidationError, SchemaMismatchError: the values do not fit; nothing was changed.
        """
        return run_with_retries(lambda: self._run_once(port), lambda _: self.options.retry)

    def _run_once(self, port: SparkPort) -> ChangeResult:
        command = Command.begin(port, "update", self.options)
        condition = command.condition(self.where, alias=self.alias)
        where = condition.implied
        assignments = Assignments.of(
            self.assignments,
            command.base.schema,
            alias=self.alias,
            case_sensitive=command.case_sensitive,
        )
        target = command.target(command.spark, where)
        self._check(command, target, assignments)
        if not target.plan.file_count:
            return _commit_nothing(command, target, condition)
        test = repeatable_test(target, condition)
        with command.discard_on_failure():
            if command.merges_on_read:
                deletes = deletes_of(command, target, test)
                if not deletes.deleted_rows:
                    return _commit_nothing(command, target, condition)
                updated = target.with_paths(deletes.referenced_paths)
                changed = rows_matching(updated, test)
                added = command.write(
                    self._rows_after(changed, updated, assignments, flag=None),
                    updated,
                    most_rows=deletes.deleted_rows,
                )
                figures = {"rows_updated": sum(file.record_count for file in added)}
                return command.commit_deltas(
                    added,
                    deletes,
                    target,
                    where,
                    figures,
                    changed=updated.ordinals,
                    tested=self._test_of_rivals(test),
                )
            counts = rows_by_file(target, test)
            if not counts:
                return _commit_nothing(command, target, condition)
            rewritten = target.restricted_to(counts)
            figures = {"rows_updated": sum(counts.values())}
            added = command.write(
                self._all_rows(test, rewritten, assignments),
                rewritten,
                placement=self._placement(command, rewritten, test, assignments),
            )
            written = sum(file.record_count for file in added)
            figures["rows_copied"] = written - figures["rows_updated"]
            return command.commit_rewrite(
                added, list(counts), target, where, figures, tested=self._test_of_rivals(test)
            )

    def _test_of_rivals(self, test: Test) -> RowTest | None:
        """How rows that others add are tested; None where the new values read other rows."""
        return tested_by(test) if without_queries(self.assignments) else None

    def _placement(
        self, command: Command, rewritten: Target, test: Test, assignments: Assignments
    ) -> Placement | None:
        """How rows are placed that may stay where they are; None as for any write."""
        if isinstance(test, AtPlaces) or not without_queries(self.assignments):
            return None
        moves = not partition_columns(command.base).isdisjoint(assignments.columns)
        return None if moves else in_place(command, rewritten)

    def _check(self, command: Command, target: Target, assignments: Assignments) -> None:
        """Let Spark analyse the values before a row is read."""
        # Of the table's columns alone: values name neither places nor row ids.
        scope = target.no_rows().alias(self.alias)
        old = columns_named(self.alias, [field.name for field in target.schema.fields])
        after = assignments.columns_after(scope, type_support(target.spark), old=old)
        scope.select(*after.values()).schema  # noqa: B018

    def _all_rows(self, test: Test, target: Target, assignments: Assignments) -> DataFrame:
        """The rows of files that are rewritten."""
        names = [field.name for field in target.written_schema.fields]
        flag = free_name("_frazil_changed", [*names, target.place])
        rows = rows_flagged(target, test, flag)
        return self._rows_after(rows, target, assignments, flag=flag)

    def _rows_after(
        self, rows: DataFrame, target: Target, assignments: Assignments, *, flag: str | None
    ) -> DataFrame:
        """The rows with their new values; with a flag, only where it is true."""
        scope = rows.alias(self.alias)
        names = [field.name for field in target.schema.fields]
        old = columns_named(self.alias, names)
        after = assignments.columns_after(scope, type_support(target.spark), old=old)
        lineage = columns_named(self.alias, [each.name for each in target.lineage])
        if lineage:
            after[target.row_id] = lineage[target.row_id]
            after[target.last_updated] = F.lit(None).cast("bigint")
            old = {**old, **lineage}
        columns = []
        for name, value in after.items():
            changed = value
            if flag is not None and value is not old[name]:
                changed = F.when(F.col(flag), value).otherwise(old[name])
            columns.append(changed.alias(name))
        return scope.select(*columns)


def _commit_nothing(command: Command, target: Target, condition: Condition) -> ChangeResult:
    """Change no row: what the new values read does not count."""
    return command.commit_nothing(target, condition.implied, tested=tested_by(condition))
