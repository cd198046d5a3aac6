"""The metadata tables as polars frames, with the columns of Java's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from frazil.format.manifests import FieldSummary, ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.partitioning import PartitionSpec
from frazil.format.snapshots import Snapshot
from frazil.format.values import from_bytes
from frazil.storage.avro import manifests_of
from frazil.storage.files import FileIO
from frazil.table.inspect_files import entries_frame, files_frame, partitions_frame

TIMESTAMP = pl.Datetime("ms", "UTC")
_SUMMARY = pl.List(pl.Struct({"key": pl.String(), "value": pl.String()}))
_PARTITION_SUMMARIES = pl.List(
    pl.Struct(
        {
            "contains_null": pl.Boolean(),
            "contains_nan": pl.Boolean(),
            "lower_bound": pl.String(),
            "upper_bound": pl.String(),
        }
    )
)
_MANIFEST_DTYPES: dict[str, pl.DataType | type[pl.DataType]] = {
    "content": pl.Int32,
    "path": pl.String,
    "length": pl.Int64,
    "partition_spec_id": pl.Int32,
    "added_snapshot_id": pl.Int64,
    "added_data_files_count": pl.Int32,
    "existing_data_files_count": pl.Int32,
    "deleted_data_files_count": pl.Int32,
    "added_delete_files_count": pl.Int32,
    "existing_delete_files_count": pl.Int32,
    "deleted_delete_files_count": pl.Int32,
    "partition_summaries": _PARTITION_SUMMARIES,
}


class Inspector:
    """The metadata tables of one table; times are UTC, maps are lists of key and value.

    Tables about files take a snapshot, by default the current one; those named `all_…` are about
    every snapshot that is kept.
    """

    def __init__(self, metadata: TableMetadata, metadata_location: str, io: FileIO) -> None:
        self._metadata = metadata
        self._metadata_location = metadata_location
        self._io = io

    def history(self) -> pl.DataFrame:
        """When which snapshot became current."""
        metadata = self._metadata
        current = metadata.current_snapshot_id
        chain = () if current is None else metadata.ancestors_of(current)
        ancestors = {snapshot.snapshot_id for snapshot in chain}
        known = metadata.snapshots_by_id
        return pl.DataFrame(
            [
                (
                    entry.timestamp_ms,
                    entry.snapshot_id,
                    known[entry.snapshot_id].parent_snapshot_id
                    if entry.snapshot_id in known
                    else None,
                    entry.snapshot_id in ancestors,
                )
                for entry in metadata.snapshot_log
            ],
            schema={
                "made_current_at": TIMESTAMP,
                "snapshot_id": pl.Int64,
                "parent_id": pl.Int64,
                "is_current_ancestor": pl.Boolean,
            },
            orient="row",
        )

    def metadata_log_entries(self) -> pl.DataFrame:
        """The metadata files, and what was newest in each; the current one is last."""
        metadata = self._metadata
        files = [(entry.timestamp_ms, entry.metadata_file) for entry in metadata.metadata_log]
        files.append((metadata.last_updated_ms, self._metadata_location))
        return pl.DataFrame(
            [(*file, *self._newest_at(file[0])) for file in files],
            schema={
                "timestamp": TIMESTAMP,
                "file": pl.String,
                "latest_snapshot_id": pl.Int64,
                "latest_schema_id": pl.Int32,
                "latest_sequence_number": pl.Int64,
            },
            orient="row",
        )

    def snapshots(self) -> pl.DataFrame:
        """Every snapshot that is kept."""
        return pl.DataFrame(
            [
                (
                    snapshot.timestamp_ms,
                    snapshot.snapshot_id,
                    snapshot.parent_snapshot_id,
                    snapshot.operation,
                    snapshot.manifest_list,
                    [
                        {"key": key, "value": value}
                        for key, value in (snapshot.summary or {}).items()
                        if key != "operation"
                    ],
                )
                for snapshot in self._metadata.snapshots
            ],
            schema={
                "committed_at": TIMESTAMP,
                "snapshot_id": pl.Int64,
                "parent_id": pl.Int64,
                "operation": pl.String,
                "manifest_list": pl.String,
                "summary": _SUMMARY,
            },
            orient="row",
        )

    def refs(self) -> pl.DataFrame:
        """Branches and tags."""
        return pl.DataFrame(
            [
                (
                    name,
                    ref.type.upper(),
                    ref.snapshot_id,
                    ref.max_ref_age_ms,
                    ref.min_snapshots_to_keep,
                    ref.max_snapshot_age_ms,
                )
                for name, ref in self._metadata.refs.items()
            ],
            schema={
                "name": pl.String,
                "type": pl.String,
                "snapshot_id": pl.Int64,
                "max_reference_age_in_ms": pl.Int64,
                "min_snapshots_to_keep": pl.Int32,
                "max_snapshot_age_in_ms": pl.Int64,
            },
            orient="row",
        )

    def manifests(self, snapshot: Snapshot | None = None) -> pl.DataFrame:
        """The manifests of a snapshot."""
        rows = [self._manifest_row(manifest) for manifest in self._manifests_of(snapshot)]
        return pl.DataFrame(rows, schema=_MANIFEST_DTYPES, orient="row")

    def all_manifests(self) -> pl.DataFrame:
        """The manifests of every snapshot, once for each."""
        rows = [
            (*self._manifest_row(manifest), snapshot.snapshot_id, manifest.key_metadata)
            for snapshot in self._metadata.snapshots
            for manifest in manifests_of(self._io, snapshot)
        ]
        schema = {
            **_MANIFEST_DTYPES,
            "reference_snapshot_id": pl.Int64,
            "key_metadata": pl.Binary,
        }
        return pl.DataFrame(rows, schema=schema, orient="row")

    def entries(self, snapshot: Snapshot | None = None) -> pl.DataFrame:
        """The manifest entries of a snapshot, those of removed files too."""
        return entries_frame(self._io, self._metadata, self._manifests_of(snapshot))

    def all_entries(self) -> pl.DataFrame:
        """The entries of every manifest that some snapshot has."""
        return entries_frame(self._io, self._metadata, self._all_manifests())

    def files(self, snapshot: Snapshot | None = None) -> pl.DataFrame:
        """Data and delete files of a snapshot."""
        return self._files(self._manifests_of(snapshot), _any)

    def data_files(self, snapshot: Snapshot | None = None) -> pl.DataFrame:
        """Data files of a snapshot."""
        return self._files(self._manifests_of(snapshot), _of_data)

    def delete_files(self, snapshot: Snapshot | None = None) -> pl.DataFrame:
        """Delete files and deletion vectors of a snapshot."""
        return self._files(self._manifests_of(snapshot), _of_deletes)

    def all_files(self) -> pl.DataFrame:
        """Data and delete files of every snapshot, once for each manifest that holds them."""
        return self._files(self._all_manifests(), _any)

    def all_data_files(self) -> pl.DataFrame:
        """Data files of every snapshot, once for each manifest that holds them."""
        return self._files(self._all_manifests(), _of_data)

    def all_delete_files(self) -> pl.DataFrame:
        """Delete files of every snapshot, once for each manifest that holds them."""
        return self._files(self._all_manifests(), _of_deletes)

    def partitions(self, snapshot: Snapshot | None = None) -> pl.DataFrame:
        """What each partition of a snapshot holds."""
        return partitions_frame(self._io, self._metadata, self._manifests_of(snapshot))

    def _files(
        self, manifests: Sequence[ManifestFile], wanted: Callable[[ManifestFile], bool]
    ) -> pl.DataFrame:
        chosen = [manifest for manifest in manifests if wanted(manifest)]
        return files_frame(self._io, self._metadata, chosen)

    def _manifests_of(self, snapshot: Snapshot | None) -> Sequence[ManifestFile]:
        chosen = snapshot if snapshot is not None else self._metadata.current_snapshot
        return () if chosen is None else manifests_of(self._io, chosen)

    def _all_manifests(self) -> Sequence[ManifestFile]:
        found = {
            manifest.manifest_path: manifest
            for snapshot in self._metadata.snapshots
            for manifest in manifests_of(self._io, snapshot)
        }
        return tuple(found.values())

    def _newest_at(self, timestamp_ms: int) -> tuple[int | None, int | None, int | None]:
        log = [e for e in self._metadata.snapshot_log if e.timestamp_ms <= timestamp_ms]
        snapshot = self._metadata.snapshots_by_id.get(log[-1].snapshot_id) if log else None
        if snapshot is None:
            return (log[-1].snapshot_id if log else None, None, None)
        return snapshot.snapshot_id, snapshot.schema_id, snapshot.sequence_number

    def _manifest_row(self, manifest: ManifestFile) -> tuple[object, ...]:
        counts = (
            manifest.added_files_count,
            manifest.existing_files_count,
            manifest.deleted_files_count,
        )
        none = (0, 0, 0)
        of_data = _of_data(manifest)
        spec = self._metadata.spec_by_id(manifest.partition_spec_id)
        return (
            int(manifest.content),
            manifest.manifest_path,
            manifest.manifest_length,
            manifest.partition_spec_id,
            manifest.added_snapshot_id,
            *(counts if of_data else none),
            *(none if of_data else counts),
            self._summaries(spec, manifest.partitions or ()),
        )

    def _summaries(
        self, spec: PartitionSpec, summaries: Sequence[FieldSummary]
    ) -> list[dict[str, object]]:
        """Bounds as the transforms show them to people."""
        fields = spec.partition_type(self._metadata.schema).fields
        rows: list[dict[str, object]] = []
        for field, kind, summary in zip(spec.fields, fields, summaries, strict=False):
            bounds = [
                None
                if bound is None
                else field.transform.human_string(
                    kind.field_type, from_bytes(kind.field_type, bound)
                )
                for bound in (summary.lower_bound, summary.upper_bound)
            ]
            rows.append(
                {
                    "contains_null": summary.contains_null,
                    "contains_nan": summary.contains_nan,
                    "lower_bound": bounds[0],
                    "upper_bound": bounds[1],
                }
            )
        return rows


def _any(manifest: ManifestFile) -> bool:
    return True


def _of_data(manifest: ManifestFile) -> bool:
    return manifest.content is ManifestContent.DATA


def _of_deletes(manifest: ManifestFile) -> bool:
    return manifest.content is ManifestContent.DELETES
