"""The Avro schemas of manifests and manifest lists of versions 1 to 3 (rules 104-118, 162-164)."""

from __future__ import annotations

from frazil.errors import UnsupportedVersionError
from frazil.format.manifests.avro_schema import AvroSchema, record_schema
from frazil.format.types import (
    BinaryType,
    BooleanType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

DEFAULT_BLOCK_SIZE_IN_BYTES = 64 * 1024 * 1024
"""What v1 writes for its deprecated field 105 (rule 115)."""

_INT, _LONG, _STRING, _BYTES = IntegerType(), LongType(), StringType(), BinaryType()


def _required_field(field_id: int, name: str, field_type: IcebergType, doc: str) -> NestedField:
    return NestedField(field_id, name, field_type, required=True, doc=doc)


def _optional_field(field_id: int, name: str, field_type: IcebergType, doc: str) -> NestedField:
    return NestedField(field_id, name, field_type, doc=doc)


def _by_column(key_id: int, value_id: int, value_type: IcebergType) -> MapType:
    return MapType(key_id, _INT, value_id, value_type, value_required=True)


_CONTENT = _required_field(
    134, "content", _INT, "Contents of the file: 0=data, 1=position deletes, 2=equality deletes"
)
_FILE_PATH = _required_field(100, "file_path", _STRING, "Location URI with FS scheme")
_FILE_FORMAT = _required_field(
    101, "file_format", _STRING, "File format name: avro, orc, parquet, or puffin"
)
_RECORD_COUNT = _required_field(103, "record_count", _LONG, "Number of records in the file")
_FILE_SIZE = _required_field(104, "file_size_in_bytes", _LONG, "Total file size in bytes")
_BLOCK_SIZE = _required_field(105, "block_size_in_bytes", _LONG, "Deprecated; a constant")
_METRICS = (
    _optional_field(
        108, "column_sizes", _by_column(117, 118, _LONG), "Map of column id to total size on disk"
    ),
    _optional_field(
        109,
        "value_counts",
        _by_column(119, 120, _LONG),
        "Map of column id to total count, including null and NaN",
    ),
    _optional_field(
        110,
        "null_value_counts",
        _by_column(121, 122, _LONG),
        "Map of column id to null value count",
    ),
    _optional_field(
        137,
        "nan_value_counts",
        _by_column(138, 139, _LONG),
        "Map of column id to number of NaN values in the column",
    ),
    _optional_field(
        125, "lower_bounds", _by_column(126, 127, _BYTES), "Map of column id to lower bound"
    ),
    _optional_field(
        128, "upper_bounds", _by_column(129, 130, _BYTES), "Map of column id to upper bound"
    ),
)
_KEY_METADATA = _optional_field(131, "key_metadata", _BYTES, "Encryption key metadata blob")
_SPLIT_OFFSETS = _optional_field(
    132, "split_offsets", ListType(133, _LONG, True), "Splittable offsets"
)
_EQUALITY_IDS = _optional_field(
    135, "equality_ids", ListType(136, _INT, True), "Equality comparison field IDs"
)
_SORT_ORDER_ID = _optional_field(140, "sort_order_id", _INT, "Sort order ID")
_FIRST_ROW_ID = _optional_field(142, "first_row_id", _LONG, "Starting row ID to assign to new rows")
_REFERENCED = _optional_field(
    143,
    "referenced_data_file",
    _STRING,
    "Fully qualified location (URI with FS scheme) of a data file that all deletes reference",
)
_CONTENT_OFFSET = _optional_field(
    144, "content_offset", _LONG, "The offset in the file where the content starts"
)
_CONTENT_SIZE = _optional_field(
    145, "content_size_in_bytes", _LONG, "The length of referenced content stored in the file"
)

_STATUS = _required_field(0, "status", _INT, "0=existing, 1=added, 2=deleted")
_SEQUENCE_NUMBER = _optional_field(3, "sequence_number", _LONG, "Data sequence number")
_FILE_SEQUENCE_NUMBER = _optional_field(4, "file_sequence_number", _LONG, "File sequence number")

_SUMMARY = StructType(
    (
        _required_field(
            509, "contains_null", BooleanType(), "True if any file has a null partition value"
        ),
        _optional_field(
            518, "contains_nan", BooleanType(), "True if any file has a nan partition value"
        ),
        _optional_field(510, "lower_bound", _BYTES, "Partition lower bound for all files"),
        _optional_field(511, "upper_bound", _BYTES, "Partition upper bound for all files"),
    )
)
_LIST_START = (
    _required_field(500, "manifest_path", _STRING, "Location URI with FS scheme"),
    _required_field(501, "manifest_length", _LONG, "Total file size in bytes"),
    _required_field(502, "partition_spec_id", _INT, "Spec ID used to write"),
)
_LIST_SEQUENCE = (
    _required_field(517, "content", _INT, "Contents of the manifest: 0=data, 1=deletes"),
    _required_field(515, "sequence_number", _LONG, "Sequence number when the manifest was added"),
    _required_field(516, "min_sequence_number", _LONG, "Lowest sequence number in the manifest"),
)
_ADDED_SNAPSHOT = _required_field(
    503, "added_snapshot_id", _LONG, "Snapshot ID that added the manifest"
)
_LIST_COUNTS: tuple[tuple[int, str, IcebergType, str], ...] = (
    (504, "added_files_count", _INT, "Added entry count"),
    (505, "existing_files_count", _INT, "Existing entry count"),
    (506, "deleted_files_count", _INT, "Deleted entry count"),
    (512, "added_rows_count", _LONG, "Added rows count"),
    (513, "existing_rows_count", _LONG, "Existing rows count"),
    (514, "deleted_rows_count", _LONG, "Deleted rows count"),
)
_LIST_END = (
    _optional_field(507, "partitions", ListType(508, _SUMMARY, True), "Summary for each partition"),
    _optional_field(519, "key_metadata", _BYTES, "Encryption key metadata blob"),
)
_LIST_FIRST_ROW_ID = _optional_field(
    520, "first_row_id", _LONG, "Starting row ID to assign to new rows in ADDED data files"
)


def data_file_fields(version: int, partition_type: StructType) -> tuple[NestedField, ...]:
    """The fields of `data_file` that a version writes (rules 114-115)."""
    _check(version)
    optional_partition = StructType(
        tuple(
            NestedField(f.field_id, f.name, f.field_type, doc=f.doc) for f in partition_type.fields
        )
    )
    partition = _required_field(
        102,
        "partition",
        optional_partition,
        "Partition data tuple, schema based on the partition spec",
    )
    start = (_FILE_PATH, _FILE_FORMAT, partition, _RECORD_COUNT, _FILE_SIZE)
    if version == 1:
        return (*start, _BLOCK_SIZE, *_METRICS, _KEY_METADATA, _SPLIT_OFFSETS, _SORT_ORDER_ID)
    common = (*_METRICS, _KEY_METADATA, _SPLIT_OFFSETS, _EQUALITY_IDS, _SORT_ORDER_ID)
    if version == 2:
        return (_CONTENT, *start, *common, _REFERENCED)
    vectors = (_FIRST_ROW_ID, _REFERENCED, _CONTENT_OFFSET, _CONTENT_SIZE)
    return (_CONTENT, *start, *common, *vectors)


def entry_fields(version: int, partition_type: StructType) -> tuple[NestedField, ...]:
    """The fields of `manifest_entry` that a version writes (rule 107)."""
    data_file = _required_field(
        2, "data_file", StructType(data_file_fields(version, partition_type)), ""
    )
    doc = "Snapshot ID in which the file was added or deleted"
    if version == 1:
        return (_STATUS, _required_field(1, "snapshot_id", _LONG, doc), data_file)
    snapshot_id = _optional_field(1, "snapshot_id", _LONG, doc)
    return (_STATUS, snapshot_id, _SEQUENCE_NUMBER, _FILE_SEQUENCE_NUMBER, data_file)


def entry_schema(version: int, partition_type: StructType) -> AvroSchema:
    """The Avro schema of a manifest of a version.

    `partition_type`: the struct of the manifest's partition spec; field ids are partition field ids
    (rule 91), and every field is written as optional.
    """
    return record_schema("manifest_entry", entry_fields(version, partition_type))


def manifest_list_fields(version: int) -> tuple[NestedField, ...]:
    """The fields of a manifest list that a version writes (rule 162)."""
    _check(version)
    if version == 1:
        counts = tuple(_optional_field(*count) for count in _LIST_COUNTS)
        return (*_LIST_START, _ADDED_SNAPSHOT, *counts, *_LIST_END)
    counts = tuple(_required_field(*count) for count in _LIST_COUNTS)
    fields = (*_LIST_START, *_LIST_SEQUENCE, _ADDED_SNAPSHOT, *counts, *_LIST_END)
    return fields if version == 2 else (*fields, _LIST_FIRST_ROW_ID)


def manifest_list_schema(version: int) -> AvroSchema:
    """The Avro schema of a manifest list; UnsupportedVersionError for an unknown version."""
    return record_schema("manifest_file", manifest_list_fields(version))


def _check(version: int) -> None:
    if version not in (1, 2, 3):
        raise UnsupportedVersionError(
            f"manifests of format version {version} are not supported; versions 1 to 3 are"
        )
