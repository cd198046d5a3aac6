"""A bound predicate on columns of manifest entries and of manifests: partitions and metrics.

``may_match`` and ``must_match`` never contradict a row: what is not known of rows, or contradicts
itself, never decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Sized
from functools import cache, reduce
from operator import and_, or_

import polars as pl

from frazil.errors import PredicateError
from frazil.format.manifests import FieldSummary, ManifestFile
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.predicates.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    Expression,
    IsNaN,
    IsNull,
    Leaf,
    NotNaN,
    NotNull,
    fold,
    leaves,
    with_leaves,
)
from frazil.format.predicates.projection.project import inclusive_projection, strict_projection
from frazil.format.schema import Schema
from frazil.planning.prune.leaf_tests import comparable, keeps_values, may_keep, must_keep
from frazil.planning.prune.ranges import (
    constant,
    is_floating,
    ranges_in_summaries,
    ranges_of,
)
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

    return with_leaves(bound, leaf)


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
    ranges = cache(lambda ref: ranges_of(ref, entries))

    def leaf(node: Leaf) -> pl.Series:
        metrics = may_keep(node, ranges(node.bound_ref))
        return metrics & keeps_partitions(inclusive_projection(node, spec, schema), entries)

    return _evaluate(bound, entries, leaf) & (entries["record_count"] != 0)


def must_match(
    bound: Expression, spec: PartitionSpec, schema: Schema, entries: pl.DataFrame
) -> pl.Series:
    """True for each file whose rows are all kept, by its partition or its metrics (rule 183)."""
    ranges = cache(lambda ref: ranges_of(ref, entries))

    def leaf(node: Leaf) -> pl.Series:
        metrics = must_keep(node, ranges(node.bound_ref))
        return metrics | must_keep_partitions(strict_projection(node, spec, schema), entries)

    return _evaluate(bound, entries, leaf) | (entries["record_count"] == 0)


def may_match_manifests(
    bound: Expression,
    manifests: Sequence[ManifestFile],
    specs: Mapping[int, PartitionSpec],
    schema: Schema,
) -> list[bool]:
    """False for each manifest whose summaries show that no file's partition matches (rule 171).

    Args:
        bound: a predicate bound to the schema; its inclusive projections are asked (rule 172).
        specs: of the table, by id.
    """
    kept = [True] * len(manifests)
    places: dict[int, list[int]] = {}
    for place, manifest in enumerate(manifests):
        places.setdefault(manifest.partition_spec_id, []).append(place)
    for spec_id, some in places.items():
        spec = specs.get(spec_id)
        if spec is None or not spec.fields or isinstance(bound, AlwaysTrue):
            continue
        found = _may_match_summaries(
            inclusive_projection(bound, spec, schema),
            [manifests[place].partitions or () for place in some],
            [field.field_id for field in spec.fields],
        )
        for place, may in zip(some, found, strict=True):
            kept[place] = may
    return kept


def _may_match_summaries(
    projected: Expression, manifests: Sequence[Sequence[FieldSummary]], field_ids: Sequence[int]
) -> pl.Series:
    def leaf(node: Leaf) -> pl.Series:
        ref = node.bound_ref
        at = field_ids.index(ref.field_id)
        # One summary for each field, in order (rule 164); of others nothing is known.
        own = [each[at] if len(each) == len(field_ids) else None for each in manifests]
        return may_keep(node, ranges_in_summaries(ref.type, own))

    return _evaluate(projected, manifests, leaf)


def _evaluate(bound: Expression, entries: Sized, of_leaf: Callable[[Leaf], pl.Series]) -> pl.Series:
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
