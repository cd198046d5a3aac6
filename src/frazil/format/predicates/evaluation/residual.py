"""What is left to check on the rows of a file once its partition is known (rule 183)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.predicates.evaluation.evaluate import keeps, partition_values
from frazil.format.predicates.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    Expression,
    Leaf,
    all_of,
    any_of,
    fold,
)
from frazil.format.predicates.projection.project import inclusive, strict
from frazil.format.schema import Schema


class Residuals:
    """The residuals of one predicate for the partitions of one spec.

    Each part of the predicate that the partition decides becomes TRUE or FALSE; the rest stays. On
    rows of the partition, the residual keeps exactly the rows that the predicate keeps.
    """

    __slots__ = ("_bound", "_projected", "_spec")

    def __init__(self, bound: Expression, spec: PartitionSpec, schema: Schema) -> None:
        self._bound = bound
        self._spec = spec
        # Keyed by identity: hashing a leaf costs its literals, of which there may be many.
        self._projected: dict[int, tuple[Expression, Expression]] = {}

        def project(node: Expression) -> None:
            if isinstance(node, Leaf):
                self._projected[id(node)] = (
                    strict(node, spec, schema),
                    inclusive(node, spec, schema),
                )

        fold(bound, project, lambda _node, _parts: None)

    def for_partition(self, partition: Sequence[Any]) -> Expression:
        """The residual for a partition tuple in spec order.

        Raises:
            PredicateError: where the tuple has not one value for each field of the spec.
        """
        values = partition_values(self._spec, partition)

        def leaf(node: Expression) -> Expression:
            if id(node) not in self._projected:
                return node
            sure, possible = self._projected[id(node)]
            if keeps(sure, values):
                return AlwaysTrue()
            return node if keeps(possible, values) else AlwaysFalse()

        def combine(node: Expression, parts: list[Expression]) -> Expression:
            return all_of(parts) if isinstance(node, And) else any_of(parts)

        return fold(self._bound, leaf, combine)


def residual_for(
    bound: Expression, spec: PartitionSpec, schema: Schema, partition: Sequence[Any]
) -> Expression:
    """The residual of a bound predicate for one partition tuple in spec order.

    For many partitions of one spec make `Residuals` once.
    """
    return Residuals(bound, spec, schema).for_partition(partition)
