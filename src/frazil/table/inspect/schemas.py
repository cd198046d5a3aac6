"""The columns of the metadata tables: names, order, types and nullability as in Java.

Field ids have no meaning here; they number the fields of one struct.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from frazil.format.metadata import TableMetadata
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.format.partitions.partitioning import unified_partition_type
from frazil.format.schema import Schema
from frazil.format.types import (
    BinaryType,
    BooleanType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestamptzType,
    UnknownType,
)
from frazil.storage.avro.manifest_layout import STATISTICS

_BOOLEAN, _INT, _LONG = BooleanType(), IntegerType(), LongType()
_STRING, _BINARY, _TIME = StringType(), BinaryType(), TimestamptzType()
_UNSHOWN_BOUNDS: Final = (GeometryType, GeographyType, UnknownType)

_Column = tuple[str, IcebergType, bool, str | None]


def _required_column(name: str, kind: IcebergType, doc: str | None = None) -> _Column:
    return name, kind, True, doc


def _optional(name: str, kind: IcebergType, doc: str | None = None) -> _Column:
    return name, kind, False, doc


def _struct(columns: Iterable[_Column]) -> StructType:
    return StructType(
        tuple(
            NestedField(number, name, kind, required=required, doc=doc)
            for number, (name, kind, required, doc) in enumerate(columns, 1)
        )
    )


def _list(element: IcebergType) -> ListType:
    return ListType(1, element, element_required=True)


def _map(key: IcebergType, value: IcebergType) -> MapType:
    return MapType(1, key, 2, value, value_required=True)


HISTORY: Final = _struct(
    [
        _required_column("made_current_at", _TIME),
        _required_column("snapshot_id", _LONG),
        _optional("parent_id", _LONG),
        _required_column("is_current_ancestor", _BOOLEAN),
    ]
)
METADATA_LOG_ENTRIES: Final = _struct(
    [
        _required_column("timestamp", _TIME),
        _required_column("file", _STRING),
        _optional("latest_snapshot_id", _LONG),
        _optional("latest_schema_id", _INT),
        _optional("latest_sequence_number", _LONG),
    ]
)
SNAPSHOTS: Final = _struct(
    [
        _required_column("committed_at", _TIME),
        _required_column("snapshot_id", _LONG),
        _optional("parent_id", _LONG),
        _optional("operation", _STRING),
        _optional("manifest_list", _STRING),
        _optional("summary", _map(_STRING, _STRING)),
    ]
)
REFS: Final = _struct(
    [
        _required_column("name", _STRING),
        _required_column("type", _STRING),
        _required_column("snapshot_id", _LONG),
        _optional("max_reference_age_in_ms", _LONG),
        _optional("min_snapshots_to_keep", _INT),
        _optional("max_snapshot_age_in_ms", _LONG),
    ]
)


# Java's all_manifests says that contains_nan is never NULL, but lists of version 1 may lack it.
_SUMMARIES: Final = _list(
    _struct(
        [
            _required_column("contains_null", _BOOLEAN),
            _optional("contains_nan", _BOOLEAN),
            _optional("lower_bound", _STRING),
            _optional("upper_bound", _STRING),
        ]
    )
)
_DELETE_COUNTS: Final = (
    _required_column("added_delete_files_count", _INT),
    _required_column("existing_delete_files_count", _INT),
    _required_column("deleted_delete_files_count", _INT),
)
MANIFESTS: Final = _struct(
    [
        _required_column("content", _INT),
        _required_column("path", _STRING),
        _required_column("length", _LONG),
        _required_column("partition_spec_id", _INT),
        _required_column("added_snapshot_id", _LONG),
        _required_column("added_data_files_count", _INT),
        _required_column("existing_data_files_count", _INT),
        _required_column("deleted_data_files_count", _INT),
        *_DELETE_COUNTS,
        _required_column("partition_summaries", _SUMMARIES),
    ]
)
ALL_MANIFESTS: Final = _struct(
    [
        _required_column("content", _INT),
        _required_column("path", _STRING),
        _required_column("length", _LONG),
        _optional("partition_spec_id", _INT),
        _optional("added_snapshot_id", _LONG),
        _optional("added_data_files_count", _INT),
        _optional("existing_data_files_count", _INT),
        _optional("deleted_data_files_count", _INT),
        *_DELETE_COUNTS,
        _optional("partition_summaries", _SUMMARIES),
        _required_column("reference_snapshot_id", _LONG),
        _optional("key_metadata", _BINARY),
    ]
)

_CONTENT: Final = "Contents of the file: 0=data, 1=position deletes, 2=equality deletes"
_PARTITION: Final = "Partition data tuple, schema based on the partition spec"
_REFERENCED: Final = "Fully qualified location (URI with FS scheme) of a data file that all deletes"
_FILE_BEFORE: Final = (
    _optional("content", _INT, _CONTENT),
    _required_column("file_path", _STRING, "Location URI with FS scheme"),
    _required_column("file_format", _STRING, "File format name: avro, orc, or parquet"),
    _optional("spec_id", _INT, "Partition spec ID"),
)
_FILE_AFTER: Final = (
    _required_column("record_count", _LONG, "Number of records in the file"),
    _required_column("file_size_in_bytes", _LONG, "Total file size in bytes"),
    _optional("column_sizes", _map(_INT, _LONG), "Map of column id to total size on disk"),
    _optional(
        "value_counts", _map(_INT, _LONG), "Map of column id to total count, including null and NaN"
    ),
    _optional("null_value_counts", _map(_INT, _LONG), "Map of column id to null value count"),
    _optional(
        "nan_value_counts",
        _map(_INT, _LONG),
        "Map of column id to number of NaN values in the column",
    ),
    _optional("lower_bounds", _map(_INT, _BINARY), "Map of column id to lower bound"),
    _optional("upper_bounds", _map(_INT, _BINARY), "Map of column id to upper bound"),
    _optional("key_metadata", _BINARY, "Encryption key metadata blob"),
    _optional("split_offsets", _list(_LONG), "Splittable offsets"),
    _optional("equality_ids", _list(_INT), "Equality comparison field IDs"),
    _optional("sort_order_id", _INT, "Sort order ID"),
    _optional("first_row_id", _LONG, "The first row ID assigned to the first row in the data file"),
    _optional("referenced_data_file", _STRING, f"{_REFERENCED} reference"),
    _optional("content_offset", _LONG, "The offset in the file where the content starts"),
    _optional(
        "content_size_in_bytes", _LONG, "The length of referenced content stored in the file"
    ),
)


def partition_struct_type(metadata: TableMetadata) -> StructType:
    """The partition fields of every spec, named and typed as in the current schema (rule 208).

    A field whose source was dropped has the type that it had last.
    """
    return unified_partition_type(metadata.partition_specs, schema_with_sources(metadata))


def file_struct(partition: StructType) -> StructType:
    """A data or delete file; without `partition` where no spec has fields."""
    own = [_required_column("partition", partition, _PARTITION)] if partition.fields else []
    return _struct([*_FILE_BEFORE, *own, *_FILE_AFTER])


def files_struct(schema: Schema, partition: StructType) -> StructType:
    """The table `files` and those like it."""
    file = file_struct(partition)
    columns = ((f.name, f.field_type, f.required, f.doc) for f in file.fields)
    return _struct([*columns, _metrics_column(schema)])


def entries_struct(schema: Schema, partition: StructType) -> StructType:
    """The tables `entries` and `all_entries`."""
    return _struct(
        [
            _required_column("status", _INT),
            _optional("snapshot_id", _LONG),
            _optional("sequence_number", _LONG),
            _optional("file_sequence_number", _LONG),
            _required_column("data_file", file_struct(partition)),
            _metrics_column(schema),
        ]
    )


MAPPED: Final = frozenset({*STATISTICS, "readable_metrics"})
"""Columns that are made of the maps of a manifest's entries: most of the work of reading one."""


def without_maps(columns: StructType) -> StructType:
    """A table of files or entries without what is made of maps."""
    kept = []
    for field in columns.fields:
        if field.name == "data_file" and isinstance(field.field_type, StructType):
            field = replace(field, field_type=without_maps(field.field_type))
        if field.name not in MAPPED:
            kept.append(field)
    return StructType(tuple(kept))


def maps_struct(schema: Schema) -> StructType:
    """What is made of the maps of an entry."""
    fields = files_struct(schema, StructType(())).fields
    return StructType(tuple(field for field in fields if field.name in MAPPED))


def holdings_struct(partition: StructType) -> StructType:
    """What `partitions` adds up."""
    own = [_required_column("partition", partition)] if partition.fields else []
    return _struct(
        [
            *own,
            _required_column("spec_id", _INT),
            _required_column("content", _INT),
            _required_column("record_count", _LONG),
            _required_column("file_size_in_bytes", _LONG),
            _optional("snapshot_id", _LONG),
            _required_column("file_count", _LONG),
        ]
    )


def partitions_struct(partition: StructType) -> StructType:
    """The table `partitions`; without `partition` and `spec_id` where no spec has fields."""
    own = (
        [_required_column("partition", partition), _required_column("spec_id", _INT)]
        if partition.fields
        else []
    )
    at = "Commit time of snapshot that last updated this partition"
    by = "Id of snapshot that last updated this partition"
    deletes = "Count of records in {} delete files", "Count of {} delete files"
    return _struct(
        [
            *own,
            _required_column("record_count", _LONG, "Count of records in data files"),
            _required_column("file_count", _INT, "Count of data files"),
            _required_column(
                "total_data_file_size_in_bytes", _LONG, "Total size in bytes of data files"
            ),
            _required_column("position_delete_record_count", _LONG, deletes[0].format("position")),
            _required_column("position_delete_file_count", _INT, deletes[1].format("position")),
            _required_column("equality_delete_record_count", _LONG, deletes[0].format("equality")),
            _required_column("equality_delete_file_count", _INT, deletes[1].format("equality")),
            _optional("last_updated_at", _TIME, at),
            _optional("last_updated_snapshot_id", _LONG, by),
        ]
    )


def position_deletes_struct(
    schema: Schema, partition: StructType, format_version: int
) -> StructType:
    """The table `position_deletes`; where a vector lies is told from version 3 on."""
    own = (
        [_required_column("partition", partition, "Partition that position delete row belongs to")]
        if partition.fields
        else []
    )
    vector = [
        _optional("content_offset", _LONG, "The offset in the DV where the content starts"),
        _optional("content_size_in_bytes", _LONG, "The length in bytes of the DV blob"),
    ]
    return _struct(
        [
            _required_column(
                "file_path", _STRING, "Path of a file in which a deleted row is stored"
            ),
            _required_column("pos", _LONG, "Ordinal position of a deleted row in the data file"),
            _optional("row", schema.as_struct(), "Deleted row values"),
            *own,
            _required_column("spec_id", _INT, "Spec ID used to track the file containing a row"),
            _required_column(
                "delete_file_path", _STRING, "Path of the file in which a row is stored"
            ),
            *(vector if format_version >= 3 else []),
        ]
    )


def leaves_of(schema: Schema) -> list[tuple[str, NestedField]]:
    """Primitive columns by their dotted names, sorted by them."""
    return sorted(
        (
            (schema.find_column_name(field_id) or field.name, field)
            for field_id, field in schema.fields_by_id.items()
            if isinstance(field.field_type, PrimitiveType)
        ),
        key=lambda leaf: leaf[0],
    )


def _metrics_column(schema: Schema) -> _Column:
    columns = [
        _optional(name, _metrics(field.field_type), f"Metrics for column {name}")
        for name, field in leaves_of(schema)
    ]
    return _optional("readable_metrics", _struct(columns), "Column metrics in readable form")


def _metrics(kind: IcebergType) -> StructType:
    shown = _BINARY if isinstance(kind, _UNSHOWN_BOUNDS) else kind
    return _struct(
        [
            _optional("column_size", _LONG, "Total size on disk"),
            _optional("value_count", _LONG, "Total count, including null and NaN"),
            _optional("null_value_count", _LONG, "Null value count"),
            _optional("nan_value_count", _LONG, "NaN value count"),
            _optional("lower_bound", shown, "Lower bound"),
            _optional("upper_bound", shown, "Upper bound"),
        ]
    )
