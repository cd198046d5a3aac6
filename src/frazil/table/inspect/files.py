"""The metadata tables about files: manifest entries as columns, with readable values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from frazil.format.manifests import EntryStatus, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.snapshots.json_form import stored_id
from frazil.format.types import (
    DateType,
    DecimalType,
    IcebergType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    UnknownType,
    UUIDType,
)
from frazil.planning.cache import ManifestCache
from frazil.planning.load import ManifestLoader
from frazil.storage.avro.binary_values import decimals, partition_dtype, values_of
from frazil.storage.avro.columns import ENTRY_DTYPES, map_dtype, value_column
from frazil.storage.avro.manifest_layout import PARTITION_PREFIX, STATISTICS
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import in_threads
from frazil.table.inspect.schemas import (
    MAPPED,
    file_struct,
    leaves_of,
    maps_struct,
    partition_struct_type,
)

_ENTRY_COLUMNS = ("status", "snapshot_id", "sequence_number", "file_sequence_number")
_HOLDING_COLUMNS = ("spec_id", "content", "record_count", "file_size_in_bytes", "snapshot_id")
_SUMS = ("record_count", "file_size_in_bytes")
_FILES = "file_count"
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
    UUIDType: pl.String(),
}
ROW = "row"
"""The column of an entry's place in its manifest."""
_POSITION, _EQUALITY = 1, 2


@dataclass(frozen=True, slots=True)
class EntryTables:
    """The entries of one manifest as rows of a metadata table; may be sent to other processes.

    Attributes:
        specs: every partition spec of the table.
        schema: the table's current schema.
        sources: the same with the dropped columns that partition fields were made of.
        partition: the fields of all specs.
    """

    specs: tuple[PartitionSpec, ...]
    schema: Schema
    sources: Schema
    partition: StructType

    @classmethod
    def of(cls, metadata: TableMetadata) -> EntryTables:
        """Those of a table."""
        return cls(
            metadata.partition_specs,
            metadata.schema,
            schema_with_sources(metadata),
            partition_struct_type(metadata),
        )

    def files(self, io: FileIO, manifest: ManifestFile) -> pl.DataFrame:
        """Live files: the columns of `file_struct`, and `readable_metrics`."""
        return _live_rows(self._read(io, manifest)).select(*self._file_columns, "readable_metrics")

    def entries(self, io: FileIO, manifest: ManifestFile) -> pl.DataFrame:
        """Entries, those of removed files too, with the file as a struct."""
        return self._read(io, manifest).select(
            *_ENTRY_COLUMNS,
            pl.struct(*self._file_columns).alias("data_file"),
            "readable_metrics",
        )

    def plain_files(self, io: FileIO, manifest: ManifestFile) -> pl.DataFrame:
        """`files` without what is made of maps, and `ROW`."""
        return _live_rows(self._plain_entries(io, manifest)).select(*self._plain_columns, ROW)

    def plain_entries(self, io: FileIO, manifest: ManifestFile) -> pl.DataFrame:
        """`entries` without what is made of maps, and `ROW`."""
        file = pl.struct(*self._plain_columns).alias("data_file")
        return self._plain_entries(io, manifest).select(*_ENTRY_COLUMNS, file, ROW)

    def no_plain_files(self) -> pl.DataFrame:
        """`plain_files` without rows."""
        return self._no_plain().select(*self._plain_columns, ROW)

    def no_plain_entries(self) -> pl.DataFrame:
        """`plain_entries` without rows."""
        file = pl.struct(*self._plain_columns).alias("data_file")
        return self._no_plain().select(*_ENTRY_COLUMNS, file, ROW)

    def _no_plain(self) -> pl.DataFrame:
        return pl.DataFrame(schema={**self._dtypes, ROW: pl.Int64()})

    def maps(self, io: FileIO, manifest: ManifestFile) -> pl.DataFrame:
        """What is made of the maps of each entry, in the order of the manifest."""
        return self._read(io, manifest).select(field.name for field in self.maps_columns)

    def no_maps(self) -> pl.DataFrame:
        """`maps` without rows."""
        return self.no_files().select(field.name for field in self.maps_columns)

    @property
    def maps_columns(self) -> tuple[NestedField, ...]:
        """The columns of `maps`."""
        return maps_struct(self.schema).fields

    def holdings(self, io: FileIO, manifest: ManifestFile) -> pl.DataFrame:
        """What `partitions` adds up: sums over live files of a partition, content and snapshot."""
        [frame] = self._loader(io, ManifestCache.of(io)).entries([manifest])
        files = self._shown_rows(_live_rows(frame), self._counted_dtypes)
        keys = [name for name in files.columns if name not in _SUMS]
        sums = [pl.col(name).sum() for name in _SUMS]
        counted = files.group_by(keys, maintain_order=True).agg(*sums, pl.len().alias(_FILES))
        return counted.select(pl.col(n).cast(kind) for n, kind in self._holding_dtypes.items())

    def tallies(self, io: FileIO, manifest: ManifestFile) -> pl.DataFrame:
        """Of each entry what partition statistics count."""
        [frame] = self._loader(io, ManifestCache.of(io)).entries([manifest])
        return self._shown_rows(frame, self._tally_dtypes)

    def no_tallies(self) -> pl.DataFrame:
        """`tallies` without rows."""
        return pl.DataFrame(schema=self._tally_dtypes)

    def no_files(self) -> pl.DataFrame:
        """`files` without rows."""
        return pl.DataFrame(schema=self._dtypes).select(*self._file_columns, "readable_metrics")

    def no_entries(self) -> pl.DataFrame:
        """`entries` without rows."""
        return pl.DataFrame(schema=self._dtypes).select(
            *_ENTRY_COLUMNS,
            pl.struct(*self._file_columns).alias("data_file"),
            "readable_metrics",
        )

    def no_holdings(self) -> pl.DataFrame:
        """`holdings` without rows."""
        return pl.DataFrame(schema=self._holding_dtypes)

    @property
    def _file_columns(self) -> tuple[str, ...]:
        return tuple(field.name for field in file_struct(self.partition).fields)

    @property
    def _dtypes(self) -> dict[str, pl.DataType]:
        own: dict[str, pl.DataType] = {
            **ENTRY_DTYPES,
            "spec_id": pl.Int32(),
            "partition": self._partition_dtype,
            **{name: map_dtype(name) for name in STATISTICS},
        }
        metrics = [
            pl.Field(name, _metrics_dtype(field.field_type))
            for name, field in leaves_of(self.schema)
        ]
        columns = (*_ENTRY_COLUMNS, *self._file_columns)
        return {**{name: own[name] for name in columns}, "readable_metrics": pl.Struct(metrics)}

    @property
    def _holding_dtypes(self) -> dict[str, pl.DataType]:
        return {**self._counted_dtypes, _FILES: pl.Int64()}

    @property
    def _counted_dtypes(self) -> dict[str, pl.DataType]:
        own = {**ENTRY_DTYPES, "spec_id": pl.Int32()}
        partition = {"partition": self._partition_dtype} if self.partition.fields else {}
        return {**partition, **{name: own[name] for name in _HOLDING_COLUMNS}}

    @property
    def _tally_dtypes(self) -> dict[str, pl.DataType]:
        more = {name: ENTRY_DTYPES[name] for name in ("status", "file_format")}
        return {**self._counted_dtypes, **more}

    @property
    def _partition_dtype(self) -> pl.Struct:
        return pl.Struct(
            [pl.Field(field.name, _dtype(field.field_type)) for field in self.partition.fields]
        )

    @property
    def _plain_columns(self) -> tuple[str, ...]:
        return tuple(name for name in self._file_columns if name not in MAPPED)

    def _plain_entries(self, io: FileIO, manifest: ManifestFile) -> pl.DataFrame:
        """Every entry without its maps."""
        [frame] = self._loader(io, ManifestCache(0)).entries([manifest])
        dtypes = {name: dtype for name, dtype in self._dtypes.items() if name not in MAPPED}
        row = pl.int_range(pl.len(), dtype=pl.Int64).alias(ROW)
        return self._shown_rows(frame, dtypes).with_columns(row)

    def _read(self, io: FileIO, manifest: ManifestFile) -> pl.DataFrame:
        """Every entry with all that is known of it."""
        leaves = leaves_of(self.schema)
        values = {
            name: [field.field_id for _, field in leaves]
            for name in (*_COUNTS.values(), *_BOUNDS.values())
        }
        # Maps take many times the memory of what planning keeps.
        loader = self._loader(io, ManifestCache(0))
        [frame] = loader.entries([manifest], statistics=STATISTICS, values=values)
        metrics = _readable_metrics(frame, leaves)
        return self._shown_rows(frame.with_columns(metrics), self._dtypes)

    def _loader(self, io: FileIO, cache: ManifestCache) -> ManifestLoader:
        specs = {spec.spec_id: spec for spec in self.specs}
        return ManifestLoader(io, specs, self.sources, cache)

    def _shown_rows(self, frame: pl.DataFrame, dtypes: dict[str, pl.DataType]) -> pl.DataFrame:
        found = {
            "file_format": frame["file_format"].str.to_uppercase(),
            "partition": self._partition_of(frame),
        }
        columns = (found.get(name, frame.get_column(name, default=None)) for name in dtypes)
        return pl.DataFrame(
            [
                column.cast(dtype).alias(name)
                for column, (name, dtype) in zip(columns, dtypes.items(), strict=True)
                if column is not None
            ]
        )

    def _partition_of(self, frame: pl.DataFrame) -> pl.Series:
        """Values under the fields of all specs (rule 208), null where a spec lacks one."""
        columns: list[pl.Series] = []
        for field in self.partition.fields:
            name = f"{PARTITION_PREFIX}{field.field_id}"
            dtype = _dtype(field.field_type)
            if name not in frame.columns or isinstance(field.field_type, UnknownType):
                columns.append(pl.Series(field.name, [None] * len(frame), dtype=dtype))
            else:
                shown = _shown_value(field.field_type, frame[name])
                columns.append(shown.cast(dtype).alias(field.name))
        return pl.DataFrame(columns).to_struct("partition") if columns else _null_partitions(frame)


def read_all(
    one: Callable[[FileIO, ManifestFile], pl.DataFrame],
    none: pl.DataFrame,
    io: FileIO,
    manifests: Sequence[ManifestFile],
) -> pl.DataFrame:
    """The rows of many manifests in their order, read in parallel; `none` without any."""
    frames = in_threads(
        lambda manifest: one(io, manifest),
        manifests,
        name="frazil-manifests",
    )
    return pl.concat([none, *frames])


def partitions_frame(holdings: pl.DataFrame, metadata: TableMetadata) -> pl.DataFrame:
    """Counts for each partition and spec; for all files, if any, of an unpartitioned table."""
    of_data = pl.col("content") == 0
    positions = pl.col("content") == _POSITION
    equality = pl.col("content") == _EQUALITY
    size, files = pl.col("file_size_in_bytes"), pl.col(_FILES)
    # Of files whose snapshot expired the time is not known.
    newest = pl.struct("committed_at", "snapshot_id").filter(pl.col("committed_at").is_not_null())
    counts = [
        pl.col("record_count").filter(of_data).sum(),
        files.filter(of_data).sum().cast(pl.Int32),
        size.filter(of_data).sum().alias("total_data_file_size_in_bytes"),
        pl.col("record_count").filter(positions).sum().alias("position_delete_record_count"),
        files.filter(positions).sum().cast(pl.Int32).alias("position_delete_file_count"),
        pl.col("record_count").filter(equality).sum().alias("equality_delete_record_count"),
        files.filter(equality).sum().cast(pl.Int32).alias("equality_delete_file_count"),
        newest.sort().last().alias("newest"),
    ]
    dated = holdings.join(
        commit_times(metadata), on="snapshot_id", how="left", maintain_order="left"
    )
    if "partition" in holdings.columns:
        counted = dated.group_by(["partition", "spec_id"], maintain_order=True).agg(counts)
    else:
        counted = dated.select(counts).head(len(dated))
    times = pl.col("newest").struct
    return counted.with_columns(
        times.field("committed_at").alias("last_updated_at"),
        times.field("snapshot_id").alias("last_updated_snapshot_id"),
    ).drop("newest")


def commit_times(metadata: TableMetadata) -> pl.DataFrame:
    """`snapshot_id` and `committed_at` of the snapshots that are kept."""
    return pl.DataFrame(
        [
            (stored_id(snapshot.snapshot_id), snapshot.timestamp_ms)
            for snapshot in metadata.snapshots
        ],
        schema={"snapshot_id": pl.Int64, "committed_at": pl.Datetime("ms", "UTC")},
        orient="row",
    )


def _live_rows(entries: pl.DataFrame) -> pl.DataFrame:
    return entries.filter(pl.col("status") != int(EntryStatus.DELETED))


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


def _readable_metrics(frame: pl.DataFrame, leaves: Sequence[tuple[str, NestedField]]) -> pl.Series:
    """A struct a column: its counts, and its bounds as values."""
    columns: list[pl.Series] = []
    for name, field in leaves:
        parts = [
            frame[value_column(statistic, field.field_id)].alias(shown)
            for shown, statistic in _COUNTS.items()
        ]
        parts += [
            _bound_values(field.field_type, frame[value_column(statistic, field.field_id)]).alias(
                shown
            )
            for shown, statistic in _BOUNDS.items()
        ]
        columns.append(pl.DataFrame(parts).to_struct(name))
    named = "readable_metrics"
    return (
        pl.DataFrame(columns).to_struct(named) if columns else _null_partitions(frame).alias(named)
    )


def _bound_values(kind: IcebergType, values: pl.Series) -> pl.Series:
    if isinstance(kind, DecimalType):
        return decimals(values, kind.scale)
    decoded = values_of(kind, values)
    return _shown_value(kind, values if decoded is None else decoded).cast(_dtype(kind))


def _shown_value(kind: IcebergType, values: pl.Series) -> pl.Series:
    if not isinstance(kind, UUIDType):
        return values
    digits = values.bin.encode("hex").to_frame("digits")
    parts = ((0, 8), (8, 4), (12, 4), (16, 4), (20, 12))
    sliced = [pl.col("digits").str.slice(start, length) for start, length in parts]
    return digits.select(pl.concat_str(sliced, separator="-")).to_series()


def _null_partitions(frame: pl.DataFrame) -> pl.Series:
    return pl.Series([None] * len(frame), dtype=pl.Struct([]))
