"""What a commit needs to remove files of a plan."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import polars as pl

from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.planning.frames import unpack_partitions
from frazil.planning.scan_plan import ScanPlan
from frazil.storage.avro.partition_summaries import partition_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile(DataFile):
    """A data file of a plan.

    Attributes:
        manifest_path: the manifest that lists it, so that no other one has to be searched for it.
    """

    manifest_path: str


def data_files(
    metadata: TableMetadata, plan: ScanPlan, ordinals: Collection[int]
) -> list[DataFile]:
    """Return what a commit needs to remove these files of a plan."""
    if not ordinals:
        return []
    chosen = plan.restricted_to(ordinals).files
    found: list[DataFile] = []
    for (spec_id,), files in chosen.group_by("spec_id", maintain_order=True):
        rows = files.select(
            "file_path", "file_format", "record_count", "file_size_in_bytes", "manifest"
        ).iter_rows()
        partitions = partitions_of(metadata, files)
        found += [
            PlannedFile(
                file_path=path,
                file_format=kind,
                spec_id=int(str(spec_id)),
                partition=partition,
                record_count=records,
                file_size_in_bytes=size,
                manifest_path=plan.manifests[manifest],
            )
            for (path, kind, records, size, manifest), partition in zip(
                rows, partitions, strict=True
            )
        ]
    return found


def partitions_of(metadata: TableMetadata, files: pl.DataFrame) -> list[tuple[Any, ...]]:
    """Return the partition of each file as internal values in the order of its spec.

    Args:
        files: rows of a plan's files.
    """
    partitions: list[tuple[Any, ...]] = [()] * len(files)
    places = unpack_partitions(files).with_row_index("place")
    for (spec_id,), members in places.group_by("spec_id"):
        spec = metadata.spec_by_id(int(str(spec_id)))
        found = partition_rows(spec, metadata.schema, members)
        for place, partition in zip(members["place"], found, strict=True):
            partitions[place] = partition
    return partitions
