"""A bound predicate on columns of manifests and their entries: which may, and which must, match."""

from frazil.planning.prune.entries import (
    keeps_partitions,
    may_match,
    may_match_manifests,
    must_keep_partitions,
    must_match,
    needed_statistics,
    only_columns,
)
from frazil.planning.prune.leaf_tests import may_keep, must_keep
from frazil.planning.prune.ranges import Ranges, ranges_of

__all__ = [
    "Ranges",
    "keeps_partitions",
    "may_keep",
    "may_match",
    "may_match_manifests",
    "must_keep",
    "must_keep_partitions",
    "must_match",
    "needed_statistics",
    "only_columns",
    "ranges_of",
]
