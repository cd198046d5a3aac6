"""Manifests as columns: one row an entry, read without a loop over entries.

polars decodes the records, under a flat schema of our own (`manifest_layout`); where it cannot,
fastavro reads the same bytes under the same schema.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from io import BytesIO
from typing import Any

import fastavro
import polars as pl

from frazil.errors import InvalidManifestError, ValidationException
from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.format.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.types import (
    DecimalType,
    IcebergType,
    TimestampNanoType,
    TimestampType,
)
from frazil.storage.avro_container import AvroContainer, as_container, read_container
from frazil.storage.binary_values import (
    MICROS_PER_DAY,
    NANOS_PER_DAY,
    decimals,
    partition_dtype,
)
from frazil.storage.files import FileIO
from frazil.storage.manifest_layout import (
    PARTITION_PREFIX,
    STATISTICS,
    FixedMap,
    FlatSchema,
    PartitionColumn,
    fixed_maps,
    flatten,
    with_fixed_maps,
)

BOUNDS = frozenset({"lower_bounds", "upper_bounds"})
ENTRY_DTYPES: Mapping[str, pl.DataType] = {
    "status": pl.Int32(),
    "snapshot_id": pl.Int64(),
    "sequence_number": pl.Int64(),
    "file_sequence_number": pl.Int64(),
    "content": pl.Int32(),
    "file_path": pl.String(),
    "file_format": pl.String(),
    "record_count": pl.Int64(),
    "file_size_in_bytes": pl.Int64(),
    "key_metadata": pl.Binary(),
    "split_offsets": pl.List(pl.Int64()),
    "equality_ids": pl.List(pl.Int32()),
    "sort_order_id": pl.Int32(),
    "first_row_id": pl.Int64(),
    "referenced_data_file": pl.String(),
    "content_offset": pl.Int64(),
    "content_size_in_bytes": pl.Int64(),
}
REQUIRED = ("status", "file_path", "file_format", "record_count", "file_size_in_bytes")
_POLARS_FAILURES = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    OSError,
    ValueError,
    TypeError,
)
_FASTAVRO_FAILURES = (ValueError, TypeError, KeyError, IndexError, EOFError, StopIteration)


def map_dtype(name: str) -> pl.DataType:
    """The column type of a statistics map: a list of (key, value) structs."""
    value = pl.Binary() if name in BOUNDS else pl.Int64()
    return pl.List(pl.Struct({"key": pl.Int32(), "value": value}))


def value_column(statistic: str, field_id: int) -> str:
    """The name of the column that holds one field's value of a statistics map."""
    return f"{statistic}.{field_id}"


def read_manifest_columns(
    io: FileIO,
    manifest: ManifestFile,
    *,
    specs: Mapping[int, PartitionSpec],
    schema: Schema,
    statistics: Collection[str] = STATISTICS,
    values: Mapping[str, Collection[int]] | None = None,
) -> pl.DataFrame:
    """A manifest's entries as columns, with what they inherit (rules 111, 132-135, 138).

    The columns are those of `ENTRY_DTYPES` in that order, `spec_id`, a column `partition.<id>` a
    field of the manifest's partition spec with internal values (`partition_struct` packs them), a
    column a map of `statistics` (lists of key and value), and a column `<map>.<field id>` for each
    of `values`, a mapping from maps to field ids. Fields that the writer left out are null. Fields
    are matched by id; `file_format` is in lower case.

    Raises:
        InvalidManifestError: the file is not a manifest, is damaged, or breaks the specification.
        MissingFileError, StorageError: it cannot be read.
    """
    return decode_manifest(
        io.read(manifest.manifest_path),
        manifest,
        specs=specs,
        schema=schema,
        statistics=statistics,
        values=values,
    )


def decode_manifest(
    data: bytes,
    manifest: ManifestFile,
    *,
    specs: Mapping[int, PartitionSpec],
    schema: Schema,
    statistics: Collection[str] = STATISTICS,
    values: Mapping[str, Collection[int]] | None = None,
) -> pl.DataFrame:
    """The entries of a manifest's bytes; see `read_manifest_columns`."""
    file = manifest.manifest_path
    container = read_container(data, file=file)
    flat = flatten(container.metadata["avro.schema"], file=file)
    wanted = {name: frozenset(ids) for name, ids in (values or {}).items() if ids}
    frame = _decode(container, flat, statistics, wanted, file)
    for column, branch in flat.branches.items():
        if not (frame[column] == branch).all():
            raise InvalidManifestError("an entry has no data_file or no partition", file=file)
    kinds = _partition_types(manifest, specs, schema)
    partition = [_partition_values(frame, column, kinds, file) for column in flat.partition]
    entries = _entries(frame, flat, manifest, file)
    maps = [
        frame[name].cast(map_dtype(name))
        if name in frame.columns
        else pl.Series(name, [None] * len(frame), dtype=map_dtype(name))
        for name in statistics
    ]
    found = [frame[value_column(name, f)] for name, ids in wanted.items() for f in sorted(ids)]
    return entries.with_columns(*partition, *maps, *found)


def partition_struct(columns: Collection[str]) -> pl.Expr:
    """The `partition` column: a struct whose fields are named by the partition field ids.

    A frame without partition columns has a null there.
    """
    fields = [name for name in columns if name.startswith(PARTITION_PREFIX)]
    if not fields:
        return pl.lit(None).alias("partition")
    packed = pl.struct(pl.col(name).alias(name.removeprefix(PARTITION_PREFIX)) for name in fields)
    return packed.alias("partition")


def _decode(
    container: AvroContainer,
    flat: FlatSchema,
    statistics: Collection[str],
    wanted: Mapping[str, frozenset[int]],
    file: str,
) -> pl.DataFrame:
    """The base columns, the maps of `statistics`, and the values of `wanted`."""
    available = flat.names
    base = [
        *(name for name in ENTRY_DTYPES if name in available),
        *flat.branches,
        *(column.name for column in flat.partition),
        *(name for name in statistics if name in available),
    ]
    alone = {name: ids for name, ids in wanted.items() if name not in statistics}
    fixed: dict[str, FixedMap] = {}
    if container.count and any(name in available for name in alone):
        first = _first_entry(flat, container, file)
        fixed = fixed_maps(flat, first, alone, container.body, container.count)
    if fixed:
        lists = [name for name in alone if name in available and name not in fixed]
        columns = [c for name, layout in fixed.items() for c in layout.columns(alone[name])]
        frame = _polars(with_fixed_maps(flat, fixed), container, [*base, *lists, *columns])
        if frame is not None and all(fixed[n].holds(frame, alone[n]) for n in fixed):
            return _with_values(frame, wanted, fixed)
    columns = [*base, *(name for name in alone if name in available)]
    frame = _polars(flat, container, columns)
    if frame is None:
        frame = _fastavro(flat, container, columns, file)
    return _with_values(frame, wanted, {})


def _with_values(
    frame: pl.DataFrame, wanted: Mapping[str, frozenset[int]], fixed: Mapping[str, FixedMap]
) -> pl.DataFrame:
    columns: list[pl.Series] = []
    for name, ids in wanted.items():
        dtype: pl.DataType = pl.Binary() if name in BOUNDS else pl.Int64()
        for field_id in sorted(ids):
            if name in fixed:
                found = fixed[name].value(frame, field_id)
            elif name in frame.columns:
                found = _value_in_lists(frame[name], field_id)
            else:
                found = None
            if found is None:
                found = pl.Series([None] * len(frame), dtype=dtype)
            columns.append(found.cast(dtype).alias(value_column(name, field_id)))
    return frame.with_columns(columns)


def _value_in_lists(lists: pl.Series, field_id: int) -> pl.Series:
    """The value of one key in a column of maps, null where a map does not hold it."""
    rows = pl.DataFrame({"row": pl.arange(len(lists), eager=True, dtype=pl.UInt32), "map": lists})
    pairs = rows.filter(pl.col("map").list.len() > 0).explode("map").unnest("map")
    found = pairs.filter(pl.col("key") == field_id).unique("row", keep="last")
    joined = rows.select("row").join(found, on="row", how="left", maintain_order="left")
    return joined["value"]


def _polars(
    flat: FlatSchema, container: AvroContainer, columns: Collection[str]
) -> pl.DataFrame | None:
    """The columns by polars; None where its decoder cannot read these bytes."""
    data = as_container(flat.as_avro(), container.count, container.body)
    try:
        frame = pl.read_avro(BytesIO(data), columns=list(columns))
    except _POLARS_FAILURES:
        return None
    return frame if len(frame) == container.count else None


def _fastavro(
    flat: FlatSchema, container: AvroContainer, columns: Collection[str], file: str
) -> pl.DataFrame:
    """The columns row by row: the slow way, for bytes that polars cannot read."""
    stream = BytesIO(container.body)
    try:
        schema = fastavro.parse_schema(flat.as_avro())
        rows = [fastavro.schemaless_reader(stream, schema, None) for _ in range(container.count)]
        wide = {**ENTRY_DTYPES, **{name: map_dtype(name) for name in STATISTICS}}
        data = [
            pl.Series(name, [row[name] for row in rows], dtype=wide.get(name), strict=False)
            for name in columns
        ]
    except (*_FASTAVRO_FAILURES, *_POLARS_FAILURES) as error:
        reason = str(error) or type(error).__name__
        raise InvalidManifestError(f"damaged manifest entries: {reason}", file=file) from error
    return pl.DataFrame(data)


def _first_entry(flat: FlatSchema, container: AvroContainer, file: str) -> Mapping[str, Any]:
    try:
        schema = fastavro.parse_schema(flat.as_avro())
        entry: Any = fastavro.schemaless_reader(BytesIO(container.body), schema, None)
    except _FASTAVRO_FAILURES as error:
        raise InvalidManifestError(f"damaged manifest entries: {error}", file=file) from error
    return dict(entry)


def _partition_types(
    manifest: ManifestFile, specs: Mapping[int, PartitionSpec], schema: Schema
) -> dict[int, IcebergType]:
    spec = specs.get(manifest.partition_spec_id)
    if spec is None:
        raise InvalidManifestError(
            f"the manifest's partition spec {manifest.partition_spec_id} is not one of the "
            f"table's: {sorted(specs)}",
            file=manifest.manifest_path,
        )
    try:
        fields = spec.partition_type(schema).fields
    except ValidationException:
        return {}
    return {field.field_id: field.field_type for field in fields}


def _partition_values(
    frame: pl.DataFrame, column: PartitionColumn, kinds: Mapping[int, IcebergType], file: str
) -> pl.Series:
    """A partition field as internal values, by the type of the spec, else by the writer's."""
    values = frame[column.name]
    avro = column.avro_type
    logical = avro.get("logicalType") if isinstance(avro, dict) else None
    kind = kinds.get(column.field_id)
    try:
        if logical == "decimal" or isinstance(kind, DecimalType):
            scale = kind.scale if isinstance(kind, DecimalType) else int(avro.get("scale", 0))
            return decimals(values, scale).alias(column.name)
        if logical == "uuid" and values.dtype == pl.String:
            return values.str.replace_all("-", "").str.decode("hex").alias(column.name)
        if logical in ("time-millis", "timestamp-millis"):
            values = values.cast(pl.Int64) * 1000
        if logical == "date" and isinstance(kind, TimestampType):
            values = values.cast(pl.Int64) * MICROS_PER_DAY
        if logical == "date" and isinstance(kind, TimestampNanoType):
            values = values.cast(pl.Int64) * NANOS_PER_DAY
        dtype = partition_dtype(kind) if kind is not None else None
        return values if dtype is None else values.cast(dtype)
    except (*_POLARS_FAILURES, AttributeError) as error:
        raise InvalidManifestError(
            f"partition values of Avro type {avro} do not fit the type {kind}: {error}",
            file=file,
            field=f"partition field {column.field_id}",
        ) from error


def _entries(
    frame: pl.DataFrame, flat: FlatSchema, manifest: ManifestFile, file: str
) -> pl.DataFrame:
    """The entry's own columns, complete, checked and inherited."""
    available = flat.names
    try:
        entries = frame.select(
            pl.col(name).cast(dtype) if name in available else pl.lit(None, dtype).alias(name)
            for name, dtype in ENTRY_DTYPES.items()
        )
    except _POLARS_FAILURES as error:
        raise InvalidManifestError(f"values do not fit their fields: {error}", file=file) from error
    for name in REQUIRED:
        if entries[name].null_count():
            raise InvalidManifestError("a required value is null", file=file, field=name)
    entries = entries.with_columns(
        pl.col("content").fill_null(0), pl.col("file_format").str.to_lowercase()
    )
    for name in ("status", "content"):
        if not entries[name].is_between(0, 2).all():
            bad = entries[name].filter(~entries[name].is_between(0, 2)).first()
            raise InvalidManifestError(f"{bad} is not 0, 1 or 2", file=file, field=name)
    if (entries["record_count"] < 0).any() or (entries["file_size_in_bytes"] < 0).any():
        raise InvalidManifestError("a record count or a file size is negative", file=file)
    return _inherited(entries, manifest, file)


def _inherited(entries: pl.DataFrame, manifest: ManifestFile, file: str) -> pl.DataFrame:
    """Sequence numbers and row ids from the manifest list (rules 111, 132-135, 138, 140, 141)."""
    number = pl.lit(manifest.sequence_number, pl.Int64)
    added = pl.col("status") == 1
    # Manifests of v1 have the number 0, and so have all of their files (rule 135).
    inherits = pl.lit(True) if manifest.sequence_number == 0 else added
    sequence = pl.when(pl.col("sequence_number").is_null() & inherits).then(number)
    file_sequence = pl.when(pl.col("file_sequence_number").is_null() & inherits).then(number)
    columns = [
        pl.col("snapshot_id").fill_null(pl.lit(manifest.added_snapshot_id, pl.Int64)),
        sequence.otherwise(pl.col("sequence_number")).alias("sequence_number"),
        file_sequence.otherwise(pl.col("file_sequence_number")).alias("file_sequence_number"),
        pl.lit(manifest.partition_spec_id, pl.Int32).alias("spec_id"),
    ]
    if manifest.content is ManifestContent.DATA and manifest.first_row_id is not None:
        unassigned = pl.col("first_row_id").is_null() & (pl.col("status") != 2)
        rows = pl.when(unassigned).then(pl.col("record_count")).otherwise(0)
        before = rows.cum_sum() - rows
        first = pl.when(unassigned).then(before + manifest.first_row_id)
        columns.append(first.otherwise(pl.col("first_row_id")).alias("first_row_id"))
    entries = entries.with_columns(columns)
    unknown = entries["sequence_number"].is_null() & (entries["status"] != 2)
    if unknown.any():
        raise InvalidManifestError(
            "an existing file has no sequence number, and only added files inherit it "
            "(SPEC rule 111)",
            file=file,
            field="sequence_number",
        )
    return entries
