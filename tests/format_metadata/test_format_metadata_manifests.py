"""Manifest schemas against those of PyIceberg; numbers that a commit gives."""

from __future__ import annotations

import io
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from pyiceberg.manifest import MANIFEST_ENTRY_SCHEMAS, MANIFEST_LIST_FILE_SCHEMAS
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from frazil.errors import InvalidManifestError, UnsupportedVersionError
from frazil.format import types as T
from frazil.format.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    DataFile,
    ManifestContent,
    ManifestFile,
    assign_first_row_ids,
    assign_sequence_numbers,
    entry_schema,
    manifest_list_schema,
)
from frazil.format.manifests.avro_schema import decimal_width, record_schema, sanitized_name
from frazil.format.partitions.keys import partition_key
from frazil.format.schema.types_json import parse_type

NOTHING = T.StructType(())
NANOS = {"type": "long", "logicalType": "timestamp-nanos"}


def fields_by_id(schema: Any) -> Iterator[tuple[int, tuple[str, Any]]]:
    """(id, (name, plain type)) of every field of an Avro schema, nested ones included."""
    if isinstance(schema, list):
        for branch in schema:
            yield from fields_by_id(branch)
    elif isinstance(schema, dict):
        for field in schema.get("fields", ()):
            yield field["field-id"], (field["name"], shape(field["type"]))
            yield from fields_by_id(field["type"])
        for nested in ("items", "values", "type"):
            if isinstance(schema.get(nested), list | dict):
                yield from fields_by_id(schema[nested])


def shape(schema: Any) -> Any:
    """What of an Avro type matters to a reader: no docs, no record names, optional or not."""
    if isinstance(schema, list):
        (inner,) = [branch for branch in schema if branch != "null"]
        return ("optional", shape(inner))
    if isinstance(schema, dict):
        kind = schema["type"]
        if kind == "record":
            return "record"
        if kind == "array":
            ids = tuple(schema[key] for key in ("element-id",) if key in schema)
            return ("array", schema.get("logicalType"), ids, shape(schema["items"]))
        return (kind, schema.get("logicalType"), schema.get("size"))
    return schema


@pytest.mark.parametrize("version", [1, 2, 3])
def test_schemas_agree_with_pyiceberg(version: int) -> None:
    for ours, theirs in (
        (entry_schema(version, NOTHING), MANIFEST_ENTRY_SCHEMAS[version]),
        (manifest_list_schema(version), MANIFEST_LIST_FILE_SCHEMAS[version]),
    ):
        wanted = dict(fields_by_id(AvroSchemaConversion().iceberg_to_avro(theirs, "r")))
        found = dict(fields_by_id(ours))
        # Equality ids: see above; its partition is empty, and it has 143 in v3 only.
        for field_id in found.keys() - {135, 102, 143}:
            assert found[field_id] == wanted[field_id], field_id


@pytest.mark.parametrize(
    ("version", "present", "absent"),
    [
        (1, {105}, {134, 3, 4, 135, 142, 143, 144, 145}),
        (2, {134, 3, 4, 135, 143}, {105, 142, 144, 145}),
        (3, {134, 3, 4, 135, 142, 143, 144, 145}, {105}),
    ],
)
def test_fields_of_each_version(version: int, present: set[int], absent: set[int]) -> None:
    """Rules 114-115, 292-295."""
    ids = dict(fields_by_id(entry_schema(version, NOTHING))).keys()
    assert present <= ids
    assert not absent & ids
    assert not {106, 107, 111} & ids


@pytest.mark.parametrize("version", [0, 4])
def test_unknown_versions(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match=str(version)):
        entry_schema(version, NOTHING)
    with pytest.raises(UnsupportedVersionError, match=str(version)):
        manifest_list_schema(version)


@pytest.mark.parametrize(
    ("type_text", "avro"),
    [
        ("boolean", "boolean"),
        ("int", "int"),
        ("long", "long"),
        ("float", "float"),
        ("double", "double"),
        ("string", "string"),
        ("binary", "bytes"),
        ("geometry", "bytes"),
        ("geography", "bytes"),
        ("date", {"type": "int", "logicalType": "date"}),
        ("time", {"type": "long", "logicalType": "time-micros"}),
        ("timestamp", {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False}),
        ("timestamptz", {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}),
        ("timestamp_ns", {**NANOS, "adjust-to-utc": False}),
        ("timestamptz_ns", {**NANOS, "adjust-to-utc": True}),
        ("uuid", {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"}),
        ("fixed[7]", {"type": "fixed", "name": "fixed_7", "size": 7}),
        (
            "decimal(9, 2)",
            {
                "type": "fixed",
                "name": "decimal_9_2",
                "size": 4,
                "logicalType": "decimal",
                "precision": 9,
                "scale": 2,
            },
        ),
    ],
)  # fmt: skip
def test_partition_types(type_text: str, avro: Any) -> None:
    """Rules 91, 251-254."""
    partition_type = T.StructType((T.NestedField(1000, "p", parse_type(type_text), required=True),))
    schema = entry_schema(2, partition_type)
    data_file = schema["fields"][-1]["type"]["fields"]
    (partition,) = [field for field in data_file if field["name"] == "partition"]
    assert partition["type"]["fields"] == [
        {"name": "p", "type": ["null", avro], "default": None, "field-id": 1000}
    ]
    fastavro.parse_schema(schema)


def test_an_unknown_partition_field_is_null() -> None:
    schema = record_schema("r", (T.NestedField(1000, "p", T.UnknownType()),))
    assert schema["fields"][0]["type"] == "null"


def test_a_named_type_is_defined_once_and_values_survive() -> None:
    """Avro forbids to define a name twice."""
    fields = tuple(
        T.NestedField(1000 + position, name, field_type)
        for position, (name, field_type) in enumerate(
            [
                ("a", T.UUIDType()),
                ("b", T.UUIDType()),
                ("c", T.DecimalType(5, 1)),
                ("d", T.DecimalType(5, 1)),
            ]
        )
    )
    schema = fastavro.parse_schema(record_schema("r", fields))
    file = io.BytesIO()
    row = {"a": None, "b": b"x" * 16, "c": Decimal("1.5"), "d": Decimal("-1.5")}
    fastavro.writer(file, schema, [row])
    file.seek(0)
    (read,) = fastavro.reader(file)
    assert read == row


@pytest.mark.parametrize(
    ("name", "sanitized"),
    [
        ("plain_1", "plain_1"),
        ("a-b", "a_x2Db"),
        ("1a", "_1a"),
        ("a.b", "a_x2Eb"),
        ("a b", "a_x20b"),
        ("é", "_xE9"),
        ("😎", "_xD83D_xDE0E"),
        ("", "_"),
    ],
)
def test_sanitized_names(name: str, sanitized: str) -> None:
    """Rule 127, by Java's scheme; all that is not ASCII is escaped: not every reader takes it."""
    assert sanitized_name(name) == sanitized


def test_names_that_become_one_are_told_apart() -> None:
    fields = (T.NestedField(1, "a-b", T.StringType()), T.NestedField(2, "a_x2Db", T.StringType()))
    written = record_schema("r", fields)["fields"]
    assert len({field["name"] for field in written}) == 2
    assert written[0]["iceberg-field-name"] == "a-b"


def test_nested_types() -> None:
    """Rules 251, 254: lists, maps with and without string keys."""
    fields = (
        T.NestedField(1, "l", T.ListType(2, T.StringType())),
        T.NestedField(3, "m", T.MapType(4, T.StringType(), 5, T.StringType(), True), required=True),
        T.NestedField(6, "n", T.MapType(7, parse_type("int"), 8, T.StringType()), required=True),
    )
    written = record_schema("r", fields)["fields"]
    assert written[0]["type"][1] == {
        "type": "array", "items": ["null", "string"], "element-id": 2
    }  # fmt: skip
    assert written[1]["type"] == {"type": "map", "values": "string", "key-id": 4, "value-id": 5}
    assert written[2]["type"]["logicalType"] == "map"
    with pytest.raises(NotImplementedError, match="variant"):
        record_schema("r", (T.NestedField(1, "v", T.VariantType()),))


@pytest.mark.parametrize(
    ("precision", "width"),
    [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (9, 4), (10, 5), (18, 8), (19, 9), (38, 16)],
)
def test_decimal_widths(precision: int, width: int) -> None:
    assert decimal_width(precision) == width


# -- numbers that a commit gives


def data_file(path: str, rows: int = 1, **fields: Any) -> DataFile:
    return DataFile(file_path=path, record_count=rows, file_size_in_bytes=10, **fields)


def manifest(**fields: Any) -> ManifestFile:
    return ManifestFile(**{"manifest_path": "m.avro", "manifest_length": 1, **fields})


def test_the_specifications_row_lineage_example() -> None:
    """Rule 153: next-row-id 1000, and four manifests."""
    manifests = [
        manifest(added_rows_count=75, existing_rows_count=0, first_row_id=925),
        manifest(added_rows_count=100, existing_rows_count=25),
        manifest(added_rows_count=0, existing_rows_count=100),
        manifest(added_rows_count=125, existing_rows_count=25),
        manifest(content=ManifestContent.DELETES, added_rows_count=5, existing_rows_count=5),
    ]
    numbered, next_row_id = assign_first_row_ids(manifests, next_row_id=1000)
    assert [one.first_row_id for one in numbered] == [925, 1000, 1125, 1225, None]
    assert next_row_id == 1375


def test_row_ids_need_counts() -> None:
    with pytest.raises(InvalidManifestError, match="row counts"):
        assign_first_row_ids([manifest()], next_row_id=0)


def test_sequence_numbers_of_a_commits_own_manifests() -> None:
    """Rules 132, 136, 166."""
    old = manifest(sequence_number=3, min_sequence_number=1)
    new = manifest(
        sequence_number=UNASSIGNED_SEQUENCE_NUMBER, min_sequence_number=UNASSIGNED_SEQUENCE_NUMBER
    )
    moved = manifest(sequence_number=UNASSIGNED_SEQUENCE_NUMBER, min_sequence_number=2)
    assigned = assign_sequence_numbers([old, new, moved], sequence_number=9)
    numbers = [(one.sequence_number, one.min_sequence_number) for one in assigned]
    assert numbers == [(3, 1), (9, 9), (9, 2)]


NAN = float("nan")


def test_partition_keys_are_hashable_and_tell_zeros_apart() -> None:
    assert partition_key((1, "a", None)) == (1, "a", None)
    assert len({partition_key((value,)) for value in (0.0, -0.0, NAN, -NAN, 1.0)}) == 4
