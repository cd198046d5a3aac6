"""What a scan would read, planned without Spark; and mistakes that can be told without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frazil.errors import PredicateError
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.values.zones import PROCESS_ZONE
from frazil.later import later
from frazil.table.time_travel import find_snapshot

if TYPE_CHECKING:
    from sqlglot import exp

    from frazil.format.predicates import AlwaysTrue, Expression, all_of
    from frazil.format.predicates.sql.implied import ConditionReader, Implied, conjuncts_of
    from frazil.format.predicates.sql.parse import sql_tree
    from frazil.planning.counts.rows import count_planned, count_rows
    from frazil.planning.plan import plan
    from frazil.planning.scan_plan import ScanPlan
    from frazil.spark.files.projection import project
    from frazil.table.handle import TableHandle
else:
    exp = later("sqlglot", "exp")
    AlwaysTrue, all_of = later("frazil.format.predicates", "AlwaysTrue", "all_of")
    ConditionReader, Implied, conjuncts_of = later(
        "frazil.format.predicates.sql.implied", "ConditionReader", "Implied", "conjuncts_of"
    )
    sql_tree = later("frazil.format.predicates.sql.parse", "sql_tree")
    count_planned, count_rows = later("frazil.planning.counts.rows", "count_planned", "count_rows")
    plan = later("frazil.planning.plan", "plan")
    project = later("frazil.spark.files.projection", "project")


@dataclass(frozen=True, slots=True)
class Read:
    """Which rows of a table are asked for.

    Attributes:
        where: a condition as SQL text; None for all rows.
        columns: None for all of them.
        snapshot: None in an empty table.
        schema: to read by: that of a past moment or a tag, else the table's.
        past_snapshot_id: the snapshot of a past moment or a tag; None for the newest.
        branch: whose newest snapshot is read; None for `main`.
    """

    handle: TableHandle
    where: str | None
    columns: Sequence[str] | None
    snapshot: Snapshot | None
    schema: Schema
    past_snapshot_id: int | None
    branch: str | None

    @classmethod
    def of(
        cls,
        handle: TableHandle,
        *,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        snapshot_id: int | None = None,
        as_of: str | None = None,
        ref: str | None = None,
    ) -> Read:
        """Return what is asked for, after looking for mistakes.

        Raises:
            NoSuchSnapshotError, NoSuchRefError: there is no such snapshot.
            ValidationError: a column, in `columns` or in `where`, is not there; a time is none.
        """
        metadata = handle.metadata
        snapshot = find_snapshot(metadata, snapshot_id=snapshot_id, as_of=as_of, ref=ref)
        is_tag = ref is not None and not metadata.ref(ref).is_branch
        is_past = snapshot_id is not None or as_of is not None or is_tag
        schema = metadata.schema_of(snapshot) if is_past else metadata.schema
        if columns is not None:
            project(schema, columns, case_sensitive=False)
        if where is not None:
            _check_names(where, schema)
        return cls(
            handle,
            where,
            columns,
            snapshot,
            schema,
            snapshot.snapshot_id if is_past and snapshot is not None else None,
            None if is_past else ref,
        )

    def plan(self) -> ScanPlan:
        """Return what would be read; a part of the condition that only Spark knows prunes nothing.

        Raises:
            PredicateError: the condition is not an expression of SQL.
        """
        implied = self._what_it_implies()
        if implied.is_exact:
            return self._plan(implied.predicate)
        return self._plan(implied.predicate).left_to_spark(str(self.where))

    def count(self) -> int | None:
        """Return the number of rows if metadata tells it, else None; errors as of `plan`."""
        metadata, implied = self.handle.metadata, self._what_it_implies()
        if not implied.is_exact:
            found = count_planned(self.plan(), schema=self.schema, specs=metadata.partition_specs)
        else:
            found = count_rows(
                metadata,
                self.snapshot,
                self.handle.io,
                where=implied.predicate,
                schema=self.schema,
                whole_plan=lambda: self._plan(implied.predicate),
            )
        return None if found.rest is not None else found.known

    def _what_it_implies(self) -> Implied:
        """What the condition says of columns."""
        if self.where is None:
            return Implied(predicate=AlwaysTrue(), is_exact=True)
        sql_tree(self.where)
        reader = ConditionReader(schema=self.schema, case_sensitive=False, time_zone=PROCESS_ZONE)
        whole = reader.read_condition(self.where)
        if whole.is_exact:
            return whole
        parts = [reader.read_condition(piece).predicate for piece in conjuncts_of(self.where)]
        return Implied(predicate=all_of(parts), is_exact=False)

    def _plan(self, where: Expression) -> ScanPlan:
        return plan(
            self.handle.metadata, self.snapshot, self.handle.io, where=where, schema=self.schema
        )


def _check_names(where: str, schema: Schema) -> None:
    """Refuse a condition that names a column that is not there.

    What cannot be read here is left to Spark.
    """
    try:
        tree = sql_tree(where)
    except PredicateError:
        return
    # What brings names of its own, which are no columns of the table.
    if any(tree.find(kind) for kind in (exp.Query, exp.Lambda)):
        return
    for column in tree.find_all(exp.Column):
        name = ".".join(part.name for part in column.parts)
        first = column.parts[0].name
        if not any(schema.field_or_none(each, case_sensitive=False) for each in (first, name)):
            raise PredicateError(f"in the condition {where!r}: {schema.missing(name)}")
