"""Statistics of columns: a Puffin file of theta sketches, made and merged by Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import functions as F

from frazil.errors import CommitStateUnknownError, UnsupportedError, ValidationError
from frazil.format.arguments import SnapshotId, one_or_several, optional_snapshot_id_of
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.statistics import StatisticsBlob, StatisticsFile
from frazil.format.puffin.files import THETA_SKETCH, PuffinBuilder, puffin_footer_size
from frazil.format.puffin.theta_sketches import ThetaSketch, parse_theta_sketch
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import ORDERED_TYPES, NestedField
from frazil.spark.abilities import HAS_THETA_SKETCHES
from frazil.spark.maintenance.single_values import single_values
from frazil.spark.maintenance.stats_results import TableStatsResult
from frazil.spark.maintenance.theta_sketches import sketches_of
from frazil.spark.port import SparkHandlePort
from frazil.spark.scan import Scan
from frazil.storage.files import FileIO
from frazil.storage.locations import statistics_path
from frazil.table.maintenance.table_maintenance import StatisticsChanges
from frazil.table.snapshots.producer import RUNTIME

NDV: Final = "ndv"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeTableStats:
    """Count the distinct values of columns, as theta sketches in a Puffin file.

    Attributes:
        snapshot_id: of which snapshot; the current one unless given.
        columns: which columns; all of primitive types unless given.
    """

    snapshot_id: SnapshotId | None = None
    columns: str | Sequence[str] | None = None

    def run(self, port: SparkHandlePort) -> TableStatsResult:
        """Run it; see `TableMaintenance.compute_table_stats`."""
        metadata = port.refresh().metadata
        snapshot = chosen_snapshot(metadata, self.snapshot_id)
        if snapshot is None:
            return TableStatsResult()
        schema = schema_of(metadata, snapshot)
        fields = _chosen_fields(schema, self.columns)
        sketches = _sketches(port, snapshot, schema, fields)
        path = statistics_path(metadata, snapshot.snapshot_id)
        data, file = _puffin(path, snapshot, fields, sketches)
        port.io.create_unique(path, data)
        registered(port.io, path, lambda: StatisticsChanges(port).set_statistics(file))
        counts = {name: int(sketch.estimate) for name, sketch in zip(fields, sketches, strict=True)}
        return TableStatsResult(statistics_file=path, file=file, distinct_counts=counts)


def chosen_snapshot(metadata: TableMetadata, snapshot_id: SnapshotId | None) -> Snapshot | None:
    """Return the snapshot of this id, or the current one.

    Raises:
        NoSuchSnapshotError: the table has none of that id.
    """
    given = optional_snapshot_id_of(snapshot_id)
    return metadata.current_snapshot if given is None else metadata.snapshot_by_id(given)


def schema_of(metadata: TableMetadata, snapshot: Snapshot) -> Schema:
    """Return the schema that a snapshot was written with, or else the current one."""
    if snapshot.schema_id is None:
        return metadata.schema
    return metadata.schemas_by_id.get(snapshot.schema_id, metadata.schema)


def registered(io: FileIO, path: str, register: Callable[[], None]) -> None:
    """Commit a statistics file that was written; remove it where that is refused."""
    try:
        register()
    except CommitStateUnknownError:
        raise
    except BaseException:
        io.delete_many([path])
        raise


def _chosen_fields(schema: Schema, columns: str | Sequence[str] | None) -> dict[str, NestedField]:
    if columns is None:
        return {
            field.name: field
            for field in schema.fields
            if isinstance(field.field_type, ORDERED_TYPES)
        }
    names = [str(name) for name in one_or_several(columns, argument="columns")]
    if not names:
        raise ValidationError("columns is empty: name some, or leave it out for all")
    found = {name: schema.find_field(name) for name in names}
    for name, field in found.items():
        if not isinstance(field.field_type, ORDERED_TYPES) or schema.is_inside_collection(
            field.field_id
        ):
            raise UnsupportedError(
                f"cannot count the distinct values of {name}, which is of type "
                f"{field.field_type}: statistics are of primitive columns that have an order and "
                "are in no list or map"
            )
    return found


def _sketches(
    table: SparkHandlePort, snapshot: Snapshot, schema: Schema, fields: dict[str, NestedField]
) -> list[ThetaSketch]:
    if not fields:
        return []
    rows = Scan(table.spark, table.metadata, table.io, snapshot_id=snapshot.snapshot_id).to_df()
    columns = [
        single_values(schema.name_path(field.field_id), field.field_type)
        for field in fields.values()
    ]
    if not HAS_THETA_SKETCHES:
        return sketches_of(rows, columns)
    [row] = rows.agg(*map(F.theta_sketch_agg, columns)).collect()
    return [parse_theta_sketch(bytes(sketch)) for sketch in row]


def _puffin(
    path: str,
    snapshot: Snapshot,
    fields: dict[str, NestedField],
    sketches: Sequence[ThetaSketch],
) -> tuple[bytes, StatisticsFile]:
    builder = PuffinBuilder(properties={"created-by": RUNTIME["iceberg-version"]})
    blobs = [
        builder.add(
            THETA_SKETCH,
            sketch.to_bytes(),
            fields=(field.field_id,),
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number,
            properties={NDV: str(int(sketch.estimate))},
        )
        for field, sketch in zip(fields.values(), sketches, strict=True)
    ]
    data = builder.to_bytes()
    file = StatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=path,
        file_size_in_bytes=len(data),
        file_footer_size_in_bytes=puffin_footer_size(data),
        blob_metadata=tuple(
            StatisticsBlob(
                type=blob.type,
                snapshot_id=blob.snapshot_id,
                sequence_number=blob.sequence_number,
                fields=blob.fields,
                properties=blob.properties,
            )
            for blob in blobs
        ),
    )
    return data, file
