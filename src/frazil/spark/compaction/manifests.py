"""Manifests that hold few partitions each, so that a scan of some partitions opens few of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from frazil.format.arguments import one_or_several
from frazil.spark.compaction.results import ManifestsResult
from frazil.spark.session import engine_summary
from frazil.table.snapshots.producer import snapshot_options
from frazil.table.snapshots.rewrite_manifests import RewriteManifests

if TYPE_CHECKING:
    from frazil.spark.row_level.writes import Writes


def rewrite_manifests(
    writes: Writes,
    *,
    spec_id: int | None,
    sort_by: str | Sequence[str],
    branch: str | None,
    snapshot_properties: Mapping[str, str] | None,
) -> ManifestsResult:
    """Rewrite manifests; see `TableMaintenance.rewrite_manifests`."""
    properties = {**engine_summary(writes.spark), **(snapshot_properties or {})}
    operation = RewriteManifests(
        writes.io,
        spec_id=spec_id,
        sort_by=[str(name) for name in one_or_several(sort_by, argument="sort_by")],
        options=snapshot_options(branch=branch, snapshot_properties=properties),
    )
    writes._run(operation)
    if not operation.added:
        return ManifestsResult()
    return ManifestsResult(
        rewritten_manifests_count=len(operation.rewritten),
        added_manifests_count=len(operation.added),
        snapshot_id=operation.snapshot_id,
    )
