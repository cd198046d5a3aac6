"""A table's metadata becomes a plan of its maintenance; no Spark is needed."""

from __future__ import annotations

from frazil.errors import PredicateError
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.bind import bind
from frazil.format.predicates.expressions import AlwaysTrue, Expression, all_of
from frazil.format.predicates.sql.parse import parse_predicate
from frazil.format.snapshots import MAIN_BRANCH, Snapshot
from frazil.planning.plan import plan, plan_rewrite
from frazil.planning.scan_plan import ScanPlan
from frazil.storage.files import FileIO
from frazil.table.maintenance.optimizing.choices import OptimizingPlan
from frazil.table.maintenance.optimizing.planner import plan_optimizing
from frazil.table.maintenance.optimizing.settings import OptimizingSettings
from frazil.table.snapshots.producer import branch_head, now_ms


def look(
    metadata: TableMetadata,
    io: FileIO,
    *,
    where: Expression | None = None,
    branch: str | None = None,
    every: ScanPlan | None = None,
) -> OptimizingPlan:
    """Return what self-optimizing would do to a branch's head.

    Args:
        where: a bound predicate: only files that may hold matching rows.
        branch: `main` unless given.
        every: the plan of all files of the head, where it is made already.

    Raises:
        ConfigurationError: a property of the table is malformed.
        PredicateError: the table's filter is no predicate on its columns.
        NoSuchRefError: there is no such branch.
    """
    head = branch_head(metadata, branch or MAIN_BRANCH)
    wanted = with_filter(metadata, where)
    if every is None or not isinstance(wanted, AlwaysTrue):
        every = files_of(metadata, head, io, wanted)
    return plan_optimizing(
        metadata,
        every,
        OptimizingSettings.of(metadata.properties),
        now_ms=now_ms(),
    )


def with_filter(metadata: TableMetadata, where: Expression | None) -> Expression:
    """Return a bound predicate and the table's own, `self-optimizing.filter`, as one.

    Raises:
        PredicateError: the table's filter is no predicate on its columns.
    """
    wanted = AlwaysTrue() if where is None else where
    text = OptimizingSettings.of(metadata.properties).filter
    if text is None:
        return wanted
    try:
        return all_of([wanted, bind(parse_predicate(text), metadata.schema)])
    except PredicateError as error:
        raise PredicateError(
            f"the table's property self-optimizing.filter is {text!r}, which makes no predicate: "
            f"{error}; set another one, or remove it"
        ) from error


def files_of(
    metadata: TableMetadata, head: Snapshot | None, io: FileIO, where: Expression
) -> ScanPlan:
    """Return the files that may hold matching rows, with every delete on them."""
    if isinstance(where, AlwaysTrue):
        return plan(metadata, head, io)
    return plan_rewrite(metadata, head, io, where=where)
