"""A bound predicate on columns of manifest entries: partition values and column metrics.

The columnar counterpart of `frazil.format.predicates.evaluation.evaluate` (partition values) and
`frazil.format.predicates.evaluation.ranges` (metrics): the same answers for every file, in a few
operations on whole columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import reduce
from operator import and_, or_

import polars as pl

from frazil.errors import PredicateError
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.predicates.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundRef,
    Expression,
    IsNaN,
    IsNull,
    Leaf,
    NotNaN,
    NotNull,
    all_of,
    any_of,
    fold,
    leaves,
)
from frazil.format.predicates.projection.project import inclusive, strict
from frazil.format.schema import Schema
from frazil.planning.prune.leaf_tests import comparable, keeps_values, may_keep, must_keep
from frazil.planning.prune.ranges import Ranges, constant, is_floating, ranges_of
from frazil.storage.avro.manifest_layout import PARTITION_PREFIX


def needed_statistics(bound: Expression) -> dict[str, frozenset[int]]:
    """The statistics maps, and the fields of each, that a predicate is evaluated with."""
    needed: dict[str, set[int]] = {}
    for leaf in leaves(bound):
        ref = leaf.bound_ref
        names = ["null_value_counts"]
        if ref.is_nested:
            names.append("value_counts")
        if is_floating(ref.type):
            names.append("nan_value_counts")
        if not isinstance(leaf, IsNull | NotNull | IsNaN | NotNaN):
            names += ["lower_bounds", "upper_bounds"]
        for name in names:
            needed.setdefault(name, set()).add(ref.field_id)
    return {name: frozenset(ids) for name, ids in needed.items()}


def only_columns(bound: Expression, field_ids: Collection[int]) -> Expression:
    """A predicate on these columns alone that is TRUE wherever the given one is."""

    def leaf(node: Expression) -> Expression:
        if isinstance(node, Leaf) and node.bound_ref.field_id not in field_ids:
            return AlwaysTrue()
        return node

    def combine(node: Expression, parts: list[Expression]) -> Expression:
        return all_of(parts) if isinstance(node, And) else any_of(parts)

    return fold(bound, leaf, combine)


def keeps_partitions(projected: Expression, entries: pl.DataFrame) -> pl.Series:
    """False for each entry whose partition a predicate on partition fields cannot be TRUE for.

    A field that the writer left out may have any value.

    Args:
        projected: bound to partition fields, as inclusive projections are.
        entries: with the `partition.<id>` columns of one spec.
    """
    return _evaluate_partitions(projected, entries, where_unknown=True)


def must_keep_partitions(projected: Expression, entries: pl.DataFrame) -> pl.Series:
    """True for each entry whose partition a predicate on partition fields is TRUE for.

    A field that the writer left out may have any value. The arguments are those of
    `keeps_partitions`, with a strict projection.
    """
    return _evaluate_partitions(projected, entries, where_unknown=False)


def _evaluate_partitions(
    projected: Expression, entries: pl.DataFrame, *, where_unknown: bool
) -> pl.Series:
    def leaf(node: Leaf) -> pl.Series:
        name = f"{PARTITION_PREFIX}{node.bound_ref.field_id}"
        if name not in entries.columns:
            return constant(entries, where_unknown)
        return keeps_values(node, comparable(node.bound_ref.type, entries[name]))

    return _evaluate(projected, entries, leaf)


def may_match(
    bound: Expression, spec: PartitionSpec, schema: Schema, entries: pl.DataFrame
) -> pl.Series:
    """False for each file that, by its partition and metrics, holds no row that is kept.

    Args:
        bound: a predicate bound to the schema.
        entries: entries of one spec, with the columns that `needed_statistics` names.
    """
    ranges = _RangesOfFiles(entries)

    def leaf(node: Leaf) -> pl.Series:
        metrics = may_keep(node, ranges.of(node.bound_ref))
        return metrics & keeps_partitions(inclusive(node, spec, schema), entries)

    return _evaluate(bound, entries, leaf) & (entries["record_count"] != 0)


def must_match(
    bound: Expression, spec: PartitionSpec, schema: Schema, entries: pl.DataFrame
) -> pl.Series:
    """True for each file whose rows are all kept, by its partition or its metrics (rule 183)."""
    ranges = _RangesOfFiles(entries)

    def leaf(node: Leaf) -> pl.Series:
        metrics = must_keep(node, ranges.of(node.bound_ref))
        return metrics | must_keep_partitions(strict(node, spec, schema), entries)

    return _evaluate(bound, entries, leaf) | (entries["record_count"] == 0)


class _RangesOfFiles:
    """The ranges of each column, decoded once."""

    def __init__(self, entries: pl.DataFrame) -> None:
        self._entries = entries
        self._ranges: dict[int, Ranges] = {}

    def of(self, ref: BoundRef) -> Ranges:
        if ref.field_id not in self._ranges:
            self._ranges[ref.field_id] = ranges_of(ref, self._entries)
        return self._ranges[ref.field_id]


def _evaluate(
    bound: Expression, entries: pl.DataFrame, of_leaf: Callable[[Leaf], pl.Series]
) -> pl.Series:
    def leaf(node: Expression) -> pl.Series:
        if isinstance(node, Leaf):
            return of_leaf(node)
        if isinstance(node, AlwaysTrue | AlwaysFalse):
            return constant(entries, isinstance(node, AlwaysTrue))
        raise PredicateError(f"{node!r} is not bound to a schema: call bind() first")

    def combine(node: Expression, parts: list[pl.Series]) -> pl.Series:
        conjunction = isinstance(node, And)
        start = constant(entries, conjunction)
        return reduce(and_ if conjunction else or_, parts, start)

    return fold(bound, leaf, combine)
