"""The metadata tables about manifests: what a manifest list says, with readable bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from frazil.errors import InvalidManifestError
from frazil.format.manifests import FieldSummary, ManifestContent, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.values import from_bytes

_SUMMARIES = pl.List(
    pl.Struct(
        {
            "contains_null": pl.Boolean(),
            "contains_nan": pl.Boolean(),
            "lower_bound": pl.String(),
            "upper_bound": pl.String(),
        }
    )
)
_DTYPES: dict[str, pl.DataType | type[pl.DataType]] = {
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
    "partition_summaries": _SUMMARIES,
}
_OF_ALL: dict[str, pl.DataType | type[pl.DataType]] = {
    **_DTYPES,
    "reference_snapshot_id": pl.Int64,
    "key_metadata": pl.Binary,
}
_NO_BOUND = "null"
"""What Java shows where a field has no bound."""


@dataclass(frozen=True, slots=True)
class ManifestTables:
    """Manifests as rows of `manifests` and `all_manifests`.

    Attributes:
        specs: every partition spec of the table.
        schema: the schema that partition types are derived from.
    """

    specs: tuple[PartitionSpec, ...]
    schema: Schema

    @classmethod
    def of(cls, metadata: TableMetadata) -> ManifestTables:
        """Those of a table."""
        return cls(metadata.partition_specs, schema_with_sources(metadata))

    def manifests(self, manifests: Sequence[ManifestFile]) -> pl.DataFrame:
        """A row a manifest."""
        rows = [self._row(manifest) for manifest in manifests]
        return pl.DataFrame(rows, schema=_DTYPES, orient="row")

    def all_manifests(self, manifests: Sequence[tuple[int, ManifestFile]]) -> pl.DataFrame:
        """A row a manifest and the id of a snapshot that refers to it."""
        rows = [
            (*self._row(manifest), snapshot_id, manifest.key_metadata)
            for snapshot_id, manifest in manifests
        ]
        return pl.DataFrame(rows, schema=_OF_ALL, orient="row")

    def _row(self, manifest: ManifestFile) -> tuple[object, ...]:
        counts = (
            manifest.added_files_count,
            manifest.existing_files_count,
            manifest.deleted_files_count,
        )
        none = (0, 0, 0)
        of_data = manifest.content is ManifestContent.DATA
        spec = self._spec(manifest)
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

    def _spec(self, manifest: ManifestFile) -> PartitionSpec:
        for spec in self.specs:
            if spec.spec_id == manifest.partition_spec_id:
                return spec
        raise InvalidManifestError(
            f"the manifest's partition spec {manifest.partition_spec_id} is not one of the "
            f"table's: {[spec.spec_id for spec in self.specs]}",
            file=manifest.manifest_path,
        )

    def _summaries(
        self, spec: PartitionSpec, summaries: Sequence[FieldSummary]
    ) -> list[dict[str, object]]:
        """Bounds as the transforms show them to people."""
        fields = spec.partition_type(self.schema).fields
        rows: list[dict[str, object]] = []
        for field, kind, summary in zip(spec.fields, fields, summaries, strict=False):
            bounds = [
                _NO_BOUND
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
