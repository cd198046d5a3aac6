"""A bound predicate on one row, one partition, one file's metrics, one manifest's summaries.

`keeps` is the meaning of a predicate. ``may_match`` and ``must_match`` never contradict it: what is
not known of rows, or contradicts itself, never decides
(`frazil.format.predicates.evaluation.ranges`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frazil.errors import PredicateError
from frazil.format.manifests import DataFile, ManifestFile
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.predicates.evaluation.leaf_values import contains, keeps_nan, keeps_value
from frazil.format.predicates.evaluation.ranges import (
    UNKNOWN_RANGE,
    ColumnRange,
    may_match_ranges,
    must_match_ranges,
    range_in_file,
    range_in_summary,
)
from frazil.format.predicates.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundRef,
    Expression,
    Leaf,
    Or,
    fold,
)
from frazil.format.types import StructType

__all__ = [
    "contains",
    "keeps",
    "keeps_nan",
    "keeps_partition",
    "keeps_value",
    "may_match",
    "may_match_manifest",
    "must_match",
    "partition_values",
]


def may_match(bound: Expression, file: DataFile) -> bool:
    """False where a file's metrics show that it holds no row that the predicate keeps (rule 174).

    Args:
        bound: a predicate bound to the table's schema.
    """
    if file.record_count == 0:
        return False
    return may_match_ranges(bound, lambda ref: range_in_file(ref, file))


def must_match(bound: Expression, file: DataFile) -> bool:
    """True where a file's metrics show that the predicate keeps each of its rows."""
    if file.record_count == 0:
        return True
    return must_match_ranges(bound, lambda ref: range_in_file(ref, file))


def may_match_manifest(
    projected: Expression, manifest: ManifestFile, *, partition_type: StructType
) -> bool:
    """False where a manifest's summaries show that no file's partition matches (rule 171).

    Args:
        projected: an inclusive projection on the manifest's own spec (rule 172).
        partition_type: of that spec; there is one summary for each field, in order (rule 164).
    """
    summaries = manifest.partitions or ()
    fields = partition_type.fields
    known = dict(zip((field.field_id for field in fields), summaries, strict=False))
    if len(summaries) != len(fields):
        known = {}

    def range_of(ref: BoundRef) -> ColumnRange:
        summary = known.get(ref.field_id)
        return UNKNOWN_RANGE if summary is None else range_in_summary(ref.type, summary)

    return may_match_ranges(projected, range_of)


def keeps(bound: Expression, row: Mapping[int, Any]) -> bool:
    """True where the predicate is TRUE for a row.

    Args:
        bound: a predicate bound to the row's schema.
        row: internal values by field id, None for NULL; a field that is missing is NULL.

    Raises:
        PredicateError: where the predicate is not bound.
    """

    def leaf(node: Expression) -> bool:
        if isinstance(node, Leaf):
            return keeps_value(node, row.get(node.bound_ref.field_id))
        return _constant(node)

    return fold(bound, leaf, _combined)


def keeps_partition(projected: Expression, spec: PartitionSpec, partition: Sequence[Any]) -> bool:
    """True where a predicate on partition fields is TRUE for a partition tuple in spec order."""
    return keeps(projected, partition_values(spec, partition))


def partition_values(spec: PartitionSpec, partition: Sequence[Any]) -> dict[int, Any]:
    """The values of a partition tuple by partition field id.

    Raises:
        PredicateError: where the tuple has not one value for each field of the spec.
    """
    if len(partition) != len(spec.fields):
        raise PredicateError(
            f"the partition {tuple(partition)!r} has {len(partition)} values, and spec "
            f"{spec.spec_id} has {len(spec.fields)} fields"
        )
    return {field.field_id: value for field, value in zip(spec.fields, partition, strict=True)}


def _constant(node: Expression) -> bool:
    if isinstance(node, AlwaysTrue | AlwaysFalse):
        return isinstance(node, AlwaysTrue)
    raise PredicateError(f"{node!r} is not bound to a schema: call bind() first")


def _combined(node: Expression, parts: list[bool]) -> bool:
    if isinstance(node, And):
        return all(parts)
    if isinstance(node, Or):
        return any(parts)
    raise PredicateError(f"{node!r} is not bound to a schema: call bind() first")
