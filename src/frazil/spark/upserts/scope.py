"""Which data files equality deletes must reach, and the partition spec that they are written with.

A delete of an unpartitioned spec is global; one of another spec reaches the files of its own spec
and partition alone. Where the keys do not tell a row's partition, or files of several specs are
live, only global deletes reach every earlier row of a key.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from frazil.errors import ConflictError
from frazil.format.changes import AddSpec, Update
from frazil.format.manifests import ManifestContent
from frazil.format.metadata import TableMetadata
from frazil.format.partitions.partitioning import UNPARTITIONED, PartitionSpec
from frazil.format.snapshots import Snapshot
from frazil.planning.load import listed_manifests
from frazil.spark.upserts.keys import Keys
from frazil.storage.files import FileIO
from frazil.table.commit.operation import MetadataOperation
from frazil.table.snapshots.producer import branch_head


def live_specs(io: FileIO, snapshot: Snapshot | None) -> frozenset[int]:
    """Return the ids of the partition specs that a snapshot's data files have."""
    if snapshot is None:
        return frozenset()
    return frozenset(
        manifest.partition_spec_id
        for manifest in listed_manifests(io, snapshot)
        if manifest.content is ManifestContent.DATA and manifest.has_live_files
    )


def spec_of_deletes(
    metadata: TableMetadata, keys: Keys, live: Collection[int]
) -> PartitionSpec | None:
    """Return the spec to write deletes of keys with.

    Args:
        live: the specs of data files.

    Returns:
        None where they must be global and the table has no unpartitioned spec.
    """
    if set(live) <= {metadata.spec.spec_id} and keys.tell_partition(metadata.spec):
        return metadata.spec
    unpartitioned = [spec for spec in metadata.partition_specs if spec.is_unpartitioned]
    return max(unpartitioned, key=lambda spec: spec.spec_id, default=None)


def with_unpartitioned_spec(metadata: TableMetadata) -> MetadataOperation:
    """Add an unpartitioned spec beside the table's, for global deletes; the default one stays.

    Raises:
        ConflictError: when run, if another commit gave the spec's id away.
    """
    spec = replace(UNPARTITIONED, spec_id=max(metadata.specs_by_id, default=-1) + 1)

    def updates(base: TableMetadata) -> list[Update]:
        if spec.spec_id in base.specs_by_id:
            raise ConflictError(
                f"another commit added partition spec {spec.spec_id}; write the deletes again"
            )
        return [AddSpec(spec)]

    return MetadataOperation(updates)


def reaching_all(
    io: FileIO, branch: str, spec: PartitionSpec, planned: Snapshot | None
) -> MetadataOperation:
    """Check that deletes of a spec reach all earlier rows, whatever others committed meanwhile.

    Args:
        branch: that they are committed to.
        spec: of the deletes.
        planned: the snapshot that the spec was chosen for.

    Raises:
        ConflictError: when run, if the branch has data files that they do not reach.
    """

    def updates(base: TableMetadata) -> list[Update]:
        head = branch_head(base, branch) if branch in base.refs else base.current_snapshot
        same = head is None or (planned is not None and head.snapshot_id == planned.snapshot_id)
        if same or spec.is_unpartitioned:
            return []
        others = live_specs(io, head) - {spec.spec_id}
        if others:
            raise ConflictError(
                f"another commit added files of partition specs {sorted(others)}, which deletes of "
                f"spec {spec.spec_id} do not reach; write the deletes again"
            )
        return []

    return MetadataOperation(updates)
