"""The metadata tables about files: manifest entries as columns, with readable values."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import polars as pl

from frazil.format.manifests import EntryStatus, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.partitioning import unified_partition_type
from frazil.format.schema import Schema
from frazil.format.types import (
    DateType,
    DecimalType,
    IcebergType,
    NestedField,
    PrimitiveType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)
from frazil.storage.binary_values import decimals, partition_dtype, values_of
from frazil.storage.columns import (
    ENTRY_DTYPES,
    map_dtype,
    read_manifest_columns,
    value_column,
)
from frazil.storage.files import FileIO
from frazil.storage.manifest_layout import PARTITION_PREFIX, STATISTICS

FILE_COLUMNS = (
    "content",
    "file_path",
    "file_format",
    "spec_id",
    "partition",
    "record_count",
    "file_size_in_bytes",
    *STATISTICS,
    "key_metadata",
    "split_offsets",
    "equality_ids",
    "sort_order_id",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)
_ENTRY_COLUMNS = ("status", "snapshot_id", "sequence_number", "file_sequence_number")
_COUNTS = {
    "column_size": "column_sizes",
    "value_count": "value_counts",
    "null_value_count": "null_value_counts",
    "nan_value_count": "nan_value_counts",
}
_BOUNDS = {"lower_bound": "lower_bounds", "upper_bound": "upper_bounds"}
_LOGICAL: dict[type[IcebergType], pl.DataType] = {
    DateType: pl.Date(),
    TimestampType: pl.Datetime("us"),
    TimestamptzType: pl.Datetime("us", "UTC"),
    TimestampNanoType: pl.Datetime("ns"),
    TimestamptzNanoType: pl.Datetime("ns", "UTC"),
}
_LAST = ("readable_metrics",)
_READ_THREADS = 8
_POSITION, _EQUALITY = 1, 2


def files_frame(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile]
) -> pl.DataFrame:
    """Live files, with `FILE_COLUMNS` and `readable_metrics`."""
    frame = _read(io, metadata, manifests)
    live = frame.filter(pl.col("status") != int(EntryStatus.DELETED))
    return live.select(*_file_columns(metadata), "readable_metrics")


def entries_frame(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile]
) -> pl.DataFrame:
    """Entries, with the file as a struct."""
    frame = _read(io, metadata, manifests)
    return frame.select(
        *_ENTRY_COLUMNS,
        pl.struct(*_file_columns(metadata)).alias("data_file"),
        "readable_metrics",
    )


def partitions_frame(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile]
) -> pl.DataFrame:
    """Counts for each partition and spec; for the whole table if it was never partitioned."""
    frame = _read(io, metadata, manifests)
    live = frame.filter(pl.col("status") != int(EntryStatus.DELETED))
    of_data = pl.col("content") == 0
    positions = pl.col("content") == _POSITION
    equality = pl.col("content") == _EQUALITY
    times = pl.DataFrame(
        [(s.snapshot_id, s.timestamp_ms) for s in metadata.snapshots],
        schema={"snapshot_id": pl.Int64, "committed_at": pl.Datetime("ms", "UTC")},
        orient="row",
    )
    keys = ["partition", "spec_id"] if _is_partitioned(metadata) else []
    counts = [
        pl.col("record_count").filter(of_data).sum(),
        of_data.sum().cast(pl.Int32).alias("file_count"),
        pl.col("file_size_in_bytes").filter(of_data).sum().alias("total_data_file_size_in_bytes"),
        pl.col("record_count").filter(positions).sum().alias("position_delete_record_count"),
        positions.sum().cast(pl.Int32).alias("position_delete_file_count"),
        pl.col("record_count").filter(equality).sum().alias("equality_delete_record_count"),
        equality.sum().cast(pl.Int32).alias("equality_delete_file_count"),
        pl.col("committed_at").max().alias("last_updated_at"),
        # Of files whose snapshot expired the time is not known.
        pl.col("snapshot_id")
        .filter(pl.col("committed_at") == pl.col("committed_at").max())
        .first()
        .alias("last_updated_snapshot_id"),
    ]
    dated = live.join(times, on="snapshot_id", how="left", maintain_order="left")
    if not keys:
        return dated.select(counts)
    return dated.group_by(keys, maintain_order=True).agg(counts)


def _read(io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile]) -> pl.DataFrame:
    """Every entry, with typed partitions and readable metrics."""
    leaves = _leaves(metadata.schema)
    values = {
        name: [field.field_id for _, field in leaves]
        for name in (*_COUNTS.values(), *_BOUNDS.values())
    }
    dtypes = _dtypes(metadata, leaves)

    def read(manifest: ManifestFile) -> pl.DataFrame:
        frame = read_manifest_columns(
            io,
            manifest,
            specs=metadata.specs_by_id,
            schema=metadata.schema,
            statistics=STATISTICS,
            values=values,
        )
        found = {
            "file_format": frame["file_format"].str.to_uppercase(),
            "partition": _partition(metadata, frame),
            "readable_metrics": _readable_metrics(frame, leaves),
        }
        return pl.DataFrame(
            [
                (found[name] if name in found else frame[name]).cast(dtype).alias(name)
                for name, dtype in dtypes.items()
            ]
        )

    empty = pl.DataFrame(schema=dtypes)
    if not manifests:
        return empty
    with ThreadPoolExecutor(_READ_THREADS, "frazil-manifests") as pool:
        return pl.concat([empty, *pool.map(read, manifests)])


def _dtypes(
    metadata: TableMetadata, leaves: Sequence[tuple[str, NestedField]]
) -> dict[str, pl.DataType]:
    """The columns of all entries, those of unpartitioned tables without `partition`."""
    own: dict[str, pl.DataType] = {
        **ENTRY_DTYPES,
        "spec_id": pl.Int32(),
        "partition": pl.Struct(
            [
                pl.Field(field.name, _dtype(field.field_type))
                for field in _partition_fields(metadata)
            ]
        ),
        **{name: map_dtype(name) for name in STATISTICS},
        "readable_metrics": pl.Struct(
            [pl.Field(name, _metrics_dtype(field.field_type)) for name, field in leaves]
        ),
    }
    return {name: own[name] for name in (*_ENTRY_COLUMNS, *_file_columns(metadata), *_LAST)}


def _metrics_dtype(kind: IcebergType) -> pl.Struct:
    return pl.Struct(
        {
            **dict.fromkeys(_COUNTS, pl.Int64()),
            **dict.fromkeys(_BOUNDS, _dtype(kind)),
        }
    )


def _dtype(kind: IcebergType) -> pl.DataType:
    """The column type that shows a type's values; bytes where there is no other."""
    return _LOGICAL.get(type(kind)) or partition_dtype(kind) or pl.Binary()


def _file_columns(metadata: TableMetadata) -> list[str]:
    partitioned = _is_partitioned(metadata)
    return [name for name in FILE_COLUMNS if partitioned or name != "partition"]


def _is_partitioned(metadata: TableMetadata) -> bool:
    return bool(_partition_fields(metadata))


def _partition_fields(metadata: TableMetadata) -> tuple[NestedField, ...]:
    return unified_partition_type(metadata.partition_specs, metadata.schema).fields


def _leaves(schema: Schema) -> list[tuple[str, NestedField]]:
    """Primitive columns by their dotted names, sorted by them."""
    return sorted(
        (
            (schema.find_column_name(field_id) or field.name, field)
            for field_id, field in schema.fields_by_id.items()
            if isinstance(field.field_type, PrimitiveType)
        ),
        key=lambda leaf: leaf[0],
    )


def _partition(metadata: TableMetadata, frame: pl.DataFrame) -> pl.Series:
    """Partition values under the fields of all specs (rule 208), null where a spec lacks one."""
    columns: list[pl.Series] = []
    for field in _partition_fields(metadata):
        name = f"{PARTITION_PREFIX}{field.field_id}"
        dtype = _dtype(field.field_type)
        if name in frame.columns:
            columns.append(frame[name].cast(dtype).alias(field.name))
        else:
            columns.append(pl.Series(field.name, [None] * len(frame), dtype=dtype))
    return pl.DataFrame(columns).to_struct("partition") if columns else _nothing(frame)


def _readable_metrics(frame: pl.DataFrame, leaves: Sequence[tuple[str, NestedField]]) -> pl.Series:
    """A struct a column: its counts, and its bounds as values."""
    columns: list[pl.Series] = []
    for name, field in leaves:
        parts = [
            frame[value_column(statistic, field.field_id)].alias(shown)
            for shown, statistic in _COUNTS.items()
        ]
        parts += [
            _bound(field.field_type, frame[value_column(statistic, field.field_id)]).alias(shown)
            for shown, statistic in _BOUNDS.items()
        ]
        columns.append(pl.DataFrame(parts).to_struct(name))
    return pl.DataFrame(columns).to_struct("readable_metrics") if columns else _nothing(frame)


def _bound(kind: IcebergType, values: pl.Series) -> pl.Series:
    if isinstance(kind, DecimalType):
        return decimals(values, kind.scale)
    decoded = values_of(kind, values)
    return (values if decoded is None else decoded).cast(_dtype(kind))


def _nothing(frame: pl.DataFrame) -> pl.Series:
    return pl.Series([None] * len(frame), dtype=pl.Struct([]))
