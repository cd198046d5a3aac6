"""Merge: a source's rows change, delete and add rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column

from frazil.format.arguments import one_or_several
from frazil.format.properties.table import SCHEMA_EVOLUTION
from frazil.spark.port import SparkPort
from frazil.spark.row_level.command import Command
from frazil.spark.row_level.figures import ChangeResult
from frazil.spark.row_level.merging.clauses.clause import Clause, check_clauses
from frazil.spark.row_level.merging.clauses.request import MergeRequest
from frazil.spark.row_level.merging.evolution import new_columns
from frazil.spark.row_level.merging.keys.named_keys import NamedKeys
from frazil.spark.row_level.merging.run import run_merge
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.values.names import SOURCE, TARGET, check_aliases, check_has_keys
from frazil.spark.row_level.writes import Rows
from frazil.spark.write.rows import rows_of
from frazil.table.commit.retries import run_with_retries
from frazil.table.operations import TableOperations


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Change, delete and add rows by those of a source, in one commit.

    Attributes:
        source: the rows, which are evaluated once.
        on: when a row of the source matches a row of the table: SQL text, a Column, or the columns
            that are equal.
        clauses: what becomes of rows. Of those of one kind the first whose condition holds counts.
        target_alias, source_alias: what the table and the source are called in `on`, in conditions
            and in values.
        evolves: whether columns of the source that the table lacks are added.
        mode: how rows are changed, in place of what the table's properties say.
        options: where the snapshot goes, and what of others' commits conflicts.
    """

    source: Rows
    on: str | Column | Sequence[str] | NamedKeys
    clauses: Sequence[Clause] = ()
    target_alias: str = TARGET
    source_alias: str = SOURCE
    evolves: bool = False
    mode: str | None = None
    options: CommitOptions = field(default_factory=CommitOptions)

    def run(self, port: SparkPort) -> ChangeResult:
        """Run it; see `Table.merge`."""
        check_clauses(self.clauses)
        keys, rows = self.keys(port), rows_of(port.spark, self.source)
        if keys is not None:
            check_has_keys(rows.columns, keys.paths, case_sensitive=port.case_sensitive)
        request = MergeRequest(
            source=rows,
            on=self.on if isinstance(self.on, str | Column) else "",
            keys=keys,
            clauses=self.clauses,
            target_alias=self.target_alias,
            source_alias=self.source_alias,
        )
        once = self._evolve if self.evolves else self._run_once
        return run_with_retries(lambda: once(port, request), lambda _: self.options.retry)

    def keys(self, port: SparkPort) -> NamedKeys | None:
        """Return the columns that are equal where rows match; None for a condition.

        Raises:
            ValidationError: the table has no such column, or both sides are called the same.
        """
        strict = port.case_sensitive
        check_aliases(self.target_alias, self.source_alias, case_sensitive=strict)
        if isinstance(self.on, str | Column):
            return None
        if isinstance(self.on, NamedKeys):
            return self.on
        return NamedKeys.of(one_or_several(self.on, argument="on"), port)

    def _run_once(self, port: SparkPort, request: MergeRequest) -> ChangeResult:
        return run_merge(request, Command.begin(port, "merge", self.options, mode=self.mode))

    def _evolve(self, port: SparkPort, request: MergeRequest) -> ChangeResult:
        """Run it once, with its new columns in the same commit."""
        base, strict = port.newest(), port.case_sensitive
        if not SCHEMA_EVOLUTION.of(base.properties):
            return self._run_once(port, request)
        request = replace(request, evolves=True)
        added = new_columns(request, base.schema, case_sensitive=strict)
        if not added.fields:
            return self._run_once(port, request)
        known = {field.name for field in base.schema.fields}
        new = {field.name for field in added.fields} - known
        with port.in_one_commit() as together:
            with TableOperations(together).update_schema(case_sensitive=strict) as change:
                change.union_by_name(added)
            return self._run_once(together, replace(request, added=frozenset(new)))
