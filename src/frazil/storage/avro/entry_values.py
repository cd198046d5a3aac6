"""Decoded manifest entries: complete, checked, in internal values, with what they inherit."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any, Final, get_args

import numpy as np
import polars as pl

from frazil.errors import InvalidManifestError, ValidationError
from frazil.format.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    Content,
    DataFile,
    EntryStatus,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.manifests.avro_schema import sanitized_name
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.types import DecimalType, IcebergType
from frazil.format.types.forms import form_of
from frazil.storage.avro.binary_values import (
    decimals,
    partition_dtype,
)
from frazil.storage.avro.manifest_layout import (
    PARTITION_PREFIX,
    POLARS_FAILURES,
    STATISTICS,
    FlatSchema,
    PartitionColumn,
    PartitionNames,
)
from frazil.storage.avro.partition_summaries import partition_rows

_NUMBERS: Final = ("snapshot_id", "sequence_number", "file_sequence_number")


def map_column(frame: pl.DataFrame, name: str, file: str) -> pl.Series:
    """Return a statistics map, all null where the writer left it out."""
    if name in frame.columns:
        try:
            return frame[name].cast(map_dtype(name))
        except POLARS_FAILURES as error:
            raise InvalidManifestError(
                f"a field id has more than 32 bits, or a value more than 64: {error}",
                file=file,
                field=name,
            ) from error
    return pl.Series(name, [None] * len(frame), dtype=map_dtype(name))


def partition_types(
    file: str, spec_id: int, specs: Mapping[int, PartitionSpec], schema: Schema
) -> dict[int, IcebergType]:
    """Return the types of a spec's fields by id; none where a source column is gone."""
    spec = specs.get(spec_id)
    if spec is None:
        raise InvalidManifestError(
            f"the manifest's partition spec {spec_id} is not one of the table's: {sorted(specs)}",
            file=file,
        )
    try:
        fields = spec.partition_type(schema).fields
    except ValidationError:
        return {}
    return {field.field_id: field.field_type for field in fields}


def partition_names(spec: PartitionSpec) -> PartitionNames:
    """Return the names that the fields of a spec may have in Avro schemas, and their ids."""
    plain = ((field.name, field.field_id) for field in spec.fields)
    written = ((sanitized_name(field.name), field.field_id) for field in spec.fields)
    return tuple(dict([*written, *plain]).items())


def partition_values(
    frame: pl.DataFrame, column: PartitionColumn, kinds: Mapping[int, IcebergType], file: str
) -> pl.Series:
    """A partition field as internal values, by the type of the spec, else by the writer's."""
    values = frame[column.name]
    avro = column.avro_type
    logical = avro.get("logicalType") if isinstance(avro, dict) else None
    kind = None if column.field_id is None else kinds.get(column.field_id)
    try:
        if logical == "decimal" or isinstance(kind, DecimalType):
            scale = kind.scale if isinstance(kind, DecimalType) else int(avro.get("scale", 0))
            return decimals(values, scale).alias(column.name)
        if logical == "uuid" and values.dtype == pl.String:
            return values.str.replace_all("-", "").str.decode("hex").alias(column.name)
        if logical in ("time-millis", "timestamp-millis"):
            values = values.cast(pl.Int64) * 1000
        if logical == "date" and kind is not None and form_of(kind).promoted_from == "date":
            values = values.cast(pl.Int64) * form_of(kind).units_per_day
        dtype = partition_dtype(kind) if kind is not None else None
        return values if dtype is None else values.cast(dtype)
    except (*POLARS_FAILURES, ArithmeticError, AttributeError) as error:
        raise InvalidManifestError(
            f"partition values of Avro type {avro!r} do not fit the type {kind}: {error}",
            file=file,
            field=f"partition field {column.field_id}",
        ) from error


def checked_entries(frame: pl.DataFrame, available: Collection[str], file: str) -> pl.DataFrame:
    """The entry's own columns, complete and checked."""
    try:
        entries = frame.select(
            pl.col(name).cast(dtype) if name in available else pl.lit(None, dtype).alias(name)
            for name, dtype in ENTRY_DTYPES.items()
        )
    except POLARS_FAILURES as error:
        raise InvalidManifestError(f"values do not fit their fields: {error}", file=file) from error
    for name in REQUIRED:
        if entries[name].null_count():
            raise InvalidManifestError("a required value is null", file=file, field=name)
    _check_numbers(entries, COUNTS, LARGEST_COUNT, "a count", file)
    entries = entries.with_columns(
        pl.col("content").fill_null(0), pl.col("file_format").str.to_lowercase()
    )
    _check_numbers(entries, ("status", "content"), 2, "0, 1 or 2", file)
    return entries


def _check_numbers(
    entries: pl.DataFrame, names: Collection[str], largest: int, wanted: str, file: str
) -> None:
    for name in names:
        inside = entries[name].is_between(0, largest)
        if not inside.all():
            bad = entries[name].filter(~inside).first()
            raise InvalidManifestError(f"{bad!r} is not {wanted}", file=file, field=name)


def with_inherited(
    entries: pl.DataFrame, manifests: Sequence[ManifestFile], counts: Sequence[int], file: str
) -> pl.DataFrame:
    """Sequence numbers and row ids from the manifest list (rules 111, 132-135, 138, 140, 141).

    Manifests that a list is yet to number leave their entries without (rule 136).
    """
    rows = pl.DataFrame({"of": np.repeat(np.arange(len(manifests), dtype=np.uint32), counts)})
    stated = pl.DataFrame(
        {
            "snapshot": [each.added_snapshot_id for each in manifests],
            "number": [
                None if each.sequence_number == UNASSIGNED_SEQUENCE_NUMBER else each.sequence_number
                for each in manifests
            ],
            # Delete files have no row ids (rule 140).
            "row_id": [
                each.first_row_id if each.content is ManifestContent.DATA else None
                for each in manifests
            ],
        },
        schema={"snapshot": pl.Int64, "number": pl.Int64, "row_id": pl.Int64},
    )
    given = stated[rows["of"]] if len(manifests) > 1 else stated
    snapshot, number, row_id = (pl.lit(given[name]) for name in given.columns)
    # Manifests of v1 have the number 0, and so have all of their files (rule 135).
    inherits = (number == 0) | (pl.col("status") == 1)
    columns = [
        pl.coalesce("snapshot_id", snapshot),
        *(
            pl.coalesce(name, pl.when(inherits).then(number)).alias(name)
            for name in ("sequence_number", "file_sequence_number")
        ),
        pl.lit(manifests[0].partition_spec_id, pl.Int32).alias("spec_id"),
    ]
    if stated["row_id"].is_not_null().any():
        unassigned = pl.col("first_row_id").is_null() & (pl.col("status") != 2)
        counted = pl.when(unassigned).then(pl.col("record_count")).otherwise(0)
        before = (counted.cum_sum() - counted).over(pl.lit(rows["of"]))
        first = pl.when(unassigned).then(before + row_id)
        columns.append(pl.coalesce("first_row_id", first).alias("first_row_id"))
    entries = entries.with_columns(columns)
    unknown = entries["sequence_number"].is_null() & (entries["status"] == 0)
    if unknown.any():
        raise InvalidManifestError(
            "an existing file has no sequence number, and only added files inherit it: "
            f"{entries['file_path'].filter(unknown)[0]}",
            file=file,
            field="sequence_number",
        )
    return entries


def entry_rows(
    entries: pl.DataFrame, flat: FlatSchema, spec: PartitionSpec, schema: Schema, *, file: str
) -> list[ManifestEntry]:
    """Entries one by one."""
    formats = entries["file_format"]
    unknown = formats.filter(~formats.is_in(get_args(FileFormat)))
    if len(unknown):
        raise InvalidManifestError(
            f"{unknown[0]!r} is not one of {sorted(get_args(FileFormat))}",
            file=file,
            field="file_format",
        )
    columns: dict[str, Sequence[Any]] = {
        each.name: entries[each.name].to_list()
        for each in dataclasses.fields(DataFile)
        if each.name in entries.columns and each.name not in STATISTICS
    }
    columns["content"] = [Content(each) for each in columns["content"]]
    columns["partition"] = partition_rows(spec, schema, entries, uuids=flat.uuids)
    columns |= {name: _maps(entries[name]) for name in STATISTICS if name in entries.columns}
    for name in ("split_offsets", "equality_ids"):
        columns[name] = [None if each is None else tuple(each) for each in columns[name]]
    files = (
        DataFile(**dict(zip(columns, values, strict=True)))
        for values in zip(*columns.values(), strict=True)
    )
    numbers = entries.select("status", *_NUMBERS).iter_rows()
    return [
        ManifestEntry(
            status=EntryStatus(status),
            data_file=file,
            **dict(zip(_NUMBERS, values, strict=True)),
        )
        for file, (status, *values) in zip(files, numbers, strict=True)
    ]


def _maps(lists: pl.Series) -> list[dict[int, Any] | None]:
    """A column of statistics maps; some writers keep a NULL for a column without a value."""
    lengths = lists.list.len()
    # What polars makes of NULL and of empty lists differs with their order.
    pairs = lists.filter(lengths > 0).explode().struct.unnest()
    left = zip(pairs["key"].to_list(), pairs["value"].to_list(), strict=True)
    return [
        None
        if length is None
        else {key: value for key, value in islice(left, length) if value is not None}
        for length in lengths.to_list()
    ]


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
COUNTS = ("record_count", "file_size_in_bytes")
LARGEST_COUNT = 2**48
"""More rows and bytes than a file can have; sums over all files of a table stay within 64 bits."""
FASTAVRO_FAILURES = (ValueError, TypeError, KeyError, IndexError, EOFError, StopIteration)


def map_dtype(name: str) -> pl.DataType:
    """The column type of a statistics map: a list of (key, value) structs."""
    value = pl.Binary() if name in BOUNDS else pl.Int64()
    return pl.List(pl.Struct({"key": pl.Int32(), "value": value}))


def value_column(statistic: str, field_id: int) -> str:
    """The name of the column that holds one field's value of a statistics map."""
    return f"{statistic}.{field_id}"


def partition_struct(columns: Collection[str]) -> pl.Expr:
    """The `partition` column: a struct whose fields are named by the partition field ids.

    A frame without partition columns has a null there.
    """
    fields = [name for name in columns if name.startswith(PARTITION_PREFIX)]
    if not fields:
        return pl.lit(None).alias("partition")
    packed = pl.struct(pl.col(name).alias(name.removeprefix(PARTITION_PREFIX)) for name in fields)
    return packed.alias("partition")
