"""Metrics from Parquet footers and labels put into them, against PyArrow and the specification."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import os
import struct
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import ConfigurationError, InvalidDataFileError
from frazil.format import types as I
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import IdentityTransform
from frazil.format.properties.column_metrics import (
    metrics_modes,
    truncate_bytes_up,
    truncate_string_down,
    truncate_string_up,
)
from frazil.format.properties.table import METRICS_DEFAULT
from frazil.format.schema import Schema
from frazil.spark.write.finish import Finisher
from frazil.storage.files import FileIO
from frazil.storage.parquet.footer import patch_file, patch_footer, read_footer
from frazil.storage.parquet.metrics import MetricsReader


def schema_of(*types):
    return Schema(tuple(I.NestedField(n, f"c{n}", t) for n, t in enumerate(types, 1)))


def metrics_of(tmp_path, schema, columns, *, row_group_size=None, **properties):
    path = str(tmp_path / "file.parquet")
    table = pa.table({f.name: c for f, c in zip(schema.fields, columns, strict=True)})
    pq.write_table(table, path, row_group_size=row_group_size)
    reader = MetricsReader(schema, metrics_modes(schema, properties))
    return reader.metrics(pq.read_metadata(path))


def _uuids(*bytes_in_hex):
    return pa.array([bytes.fromhex(each) * 16 for each in bytes_in_hex], pa.binary(16))


BOUNDS = [
    (I.BooleanType(), pa.array([True, False, None]), b"\x00", b"\x01"),
    (I.IntegerType(), pa.array([3, -2, None], pa.int32()), struct.pack("<i", -2), b"\3\0\0\0"),
    (I.LongType(), pa.array([2**40, -1]), b"\xff" * 8, struct.pack("<q", 2**40)),
    (I.FloatType(), pa.array([1.5, math.nan], pa.float32()), *[struct.pack("<f", 1.5)] * 2),
    (I.DoubleType(), pa.array([0.0, 0.0]), struct.pack("<d", -0.0), struct.pack("<d", 0.0)),
    (I.DateType(), pa.array([dt.date(1969, 12, 31)]), *[struct.pack("<i", -1)] * 2),
    (I.TimestampType(), pa.array([-1, 5], pa.timestamp("us")), b"\xff" * 8, b"\5" + b"\0" * 7),
    (I.TimeType(), pa.array([7], pa.time64("us")), *[b"\7" + b"\0" * 7] * 2),
    (I.DecimalType(38, 2), pa.array([Decimal("14.20"), Decimal("-1.28")]), b"\x80", b"\x05\x8c"),
    (I.StringType(), pa.array(["a" * 20, "b" * 20]), b"a" * 16, b"b" * 15 + b"c"),
    (I.StringType(), pa.array(["\U0010ffff" * 17]), "\U0010ffff".encode() * 16, None),
    (I.BinaryType(), pa.array([b"\xff" * 17]), b"\xff" * 16, None),
    (I.FixedType(3), pa.array([b"abc"], pa.binary(3)), b"abc", b"abc"),
    (I.UUIDType(), pa.array([b"\xf7" * 16], pa.binary(16)), b"\xf7" * 16, b"\xf7" * 16),
    (I.UUIDType(), _uuids("01", "7f"), b"\x01" * 16, b"\x7f" * 16),
    (I.UUIDType(), _uuids("80", "ff"), b"\x80" * 16, b"\xff" * 16),
    # Readers that compare signed numbers would find none of these between the bounds.
    (I.UUIDType(), _uuids("7f", "80"), None, None),
    (I.UUIDType(), pa.array([b"\1" * 15 + b"\0", b"\1" * 8 + b"\xff" * 8]), None, None),
    (I.IntegerType(), pa.array([None, None], pa.int32()), None, None),
]


@pytest.mark.parametrize("case", BOUNDS, ids=lambda c: str(c[0]))
def test_bounds_are_single_values_of_their_type_rules_119_120_275_311(tmp_path, case):
    iceberg_type, array, low, high = case
    found = metrics_of(tmp_path, schema_of(iceberg_type), [array])
    assert found.lower_bounds.get(1) == low
    assert found.upper_bounds.get(1) == high
    assert found.record_count == len(array) == found.value_counts[1]
    assert found.null_value_counts[1] == array.null_count


def test_variants_are_counted_as_the_java_runtime_counts_them(tmp_path):
    """Rules 117, 131: values and nulls of the whole; the sizes and bounds of no part of it."""
    parts = pa.struct([pa.field("metadata", pa.binary(), nullable=False), ("value", pa.binary())])
    rows = [{"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}, None]
    inner = I.StructType((I.NestedField(3, "v", I.VariantType()),))
    many = I.ListType(4, I.VariantType(), False)
    found = metrics_of(
        tmp_path,
        Schema(
            (
                I.NestedField(1, "plain", I.VariantType()),
                I.NestedField(2, "nested", inner),
                I.NestedField(5, "many", many),
            )
        ),
        [
            pa.array([*rows, rows[0]], parts),
            pa.array([{"v": row} for row in rows] + [None], pa.struct([("v", parts)])),
            pa.array([rows, [], None], pa.list_(parts)),
        ],
    )
    assert found.value_counts == {1: 3, 3: 3}
    assert found.null_value_counts == {1: 1, 3: 2}
    assert found.column_sizes == {}
    assert found.lower_bounds == {} == found.upper_bounds


@pytest.mark.parametrize("precision", [4, 9, 12, 18, 25])
def test_decimals_in_every_physical_type_rule_257(tmp_path, precision):
    path = str(tmp_path / "d.parquet")
    values = pa.array([Decimal("-12.34"), Decimal("1.28")], pa.decimal128(precision, 2))
    pq.write_table(pa.table({"c1": values}), path, store_decimal_as_integer=True)
    schema = schema_of(I.DecimalType(precision, 2))
    reader = MetricsReader(schema, metrics_modes(schema, {}))
    footer = pq.read_metadata(path)
    found = reader.metrics(footer)
    assert (found.lower_bounds[1], found.upper_bounds[1]) == (b"\xfb\x2e", b"\x00\x80")
    exact = reader.column_range(footer, 1)
    assert (exact.lower, exact.upper) == (Decimal("-12.34"), Decimal("1.28"))


def test_row_groups_are_added_up_and_split_rule_122(tmp_path):
    array = pa.array([*range(10), None, None])
    found = metrics_of(tmp_path, schema_of(I.LongType()), [array], row_group_size=5)
    assert (found.value_counts[1], found.null_value_counts[1]) == (12, 2)
    assert found.upper_bounds[1] == struct.pack("<q", 9)
    assert len(found.split_offsets) == 3
    assert list(found.split_offsets) == sorted(found.split_offsets)
    assert found.split_offsets[0] == 4


MODES = [
    ({}, True, "a" * 16),
    ({"write.metadata.metrics.default": "none"}, False, None),
    ({"write.metadata.metrics.default": "counts"}, True, None),
    ({"write.metadata.metrics.default": "full"}, True, "a" * 20),
    ({"write.metadata.metrics.column.c1": "truncate(2)"}, True, "aa"),
    ({"write.metadata.metrics.max-inferred-column-defaults": "0"}, False, None),
]


@pytest.mark.parametrize("case", MODES, ids=lambda c: str(c[0]))
def test_modes_by_properties_rule_311(tmp_path, case):
    properties, counts, low = case
    array = pa.array(["a" * 20])
    found = metrics_of(tmp_path, schema_of(I.StringType()), [array], **properties)
    assert (1 in found.value_counts) == counts
    assert found.lower_bounds.get(1) == (None if low is None else low.encode())


def test_first_columns_get_bounds_and_sorted_ones_always():
    schema = schema_of(*[I.LongType()] * 103)
    modes = metrics_modes(schema, {}, sorted_ids=[103])
    assert [i for i in range(1, 104) if modes[i].has_bounds] == [*range(1, 101), 103]


@pytest.mark.parametrize("text", ["truncate(0)", "truncate", "some", ""])
def test_wrong_modes_are_refused(text):
    with pytest.raises(ConfigurationError):
        METRICS_DEFAULT.of({METRICS_DEFAULT.name: text})


@given(st.text(max_size=12), st.integers(1, 6))
def test_truncated_strings_enclose_the_value(value, length):
    raw = value.encode()
    assert truncate_string_down(value, length).encode() <= raw
    up = truncate_string_up(value, length)
    assert up is None or (up.encode() >= raw and len(up) <= length)


@given(st.binary(max_size=12), st.integers(1, 6))
def test_truncated_bytes_enclose_the_value(value, length):
    up = truncate_bytes_up(value, length)
    assert up is None or (up >= value and len(up) <= length)


LABELLED = Schema(
    (
        I.NestedField(1, "l", I.ListType(7, I.LongType())),
        I.NestedField(2, "m", I.MapType(8, I.StringType(), 9, I.TimestampNanoType())),
        I.NestedField(3, "t", I.TimeType()),
        I.NestedField(4, "g", I.GeographyType("srid:4326", "karney")),
        I.NestedField(5, "u", I.UnknownType()),
    )
)


def plain_file(tmp_path):
    path = str(tmp_path / "plain.parquet")
    table = pa.table(
        {
            "l": pa.array([[1, None], None]),
            "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
            "t": pa.array([1, 2]),
            "g": pa.array([b"\x01", None]),
        }
    )
    pq.write_table(table, path, store_schema=False, row_group_size=1)
    return path


def test_labels_give_ids_and_types_and_change_nothing_else_rules_255_258(tmp_path):
    path = plain_file(tmp_path)
    before = pq.read_metadata(path)
    rows = duckdb.sql(f"select l, m, t from '{path}'").fetchall()
    size = patch_file(path, LABELLED.as_struct())
    assert size == os.path.getsize(path)
    text = str(pq.ParquetFile(path).schema)
    for line in (
        "int64 field_id=7 element",
        "field_id=8 key (String)",
        "field_id=9 value (Timestamp(isAdjustedToUTC=false, timeUnit=nanoseconds",
        "field_id=3 t (Time(isAdjustedToUTC=false, timeUnit=microseconds))",
        "field_id=4 g (Geography(crs=srid:4326, algorithm=karney))",
    ):
        assert line in text, text
    after = pq.read_metadata(path)
    for group in range(before.num_row_groups):
        for index in range(before.num_columns):
            old = before.row_group(group).column(index).to_dict()
            new = after.row_group(group).column(index).to_dict()
            old.pop("statistics"), new.pop("statistics")
            assert new == old
    assert (after.created_by, after.num_rows) == (before.created_by, before.num_rows)
    found = duckdb.sql(f"select l from '{path}'").fetchall()
    assert found == [row[:1] for row in rows]
    assert patch_file(path, LABELLED.as_struct()) == size


def test_labels_need_the_columns_of_the_schema(tmp_path):
    path = plain_file(tmp_path)
    with pytest.raises(InvalidDataFileError, match="unexpected column 'm'"):
        patch_file(path, LABELLED.select(["l"]).as_struct())
    more = Schema((*LABELLED.fields, I.NestedField(6, "z", I.LongType())))
    with pytest.raises(InvalidDataFileError, match="lacks the columns \\['z'\\]"):
        patch_file(path, more.as_struct())


@given(st.data())
def test_damaged_footers_are_typed_errors(tmp_path_factory, data):
    footer = getattr(test_damaged_footers_are_typed_errors, "footer", None)
    if footer is None:
        path = plain_file(tmp_path_factory.mktemp("damaged"))
        with open(path, "rb") as file:
            footer = read_footer(file, path)[1]
        test_damaged_footers_are_typed_errors.footer = footer
    cut = data.draw(st.integers(0, 150))
    changed = bytearray(footer[:cut] if data.draw(st.booleans()) else footer)
    if changed:
        changed[data.draw(st.integers(0, min(len(changed), 150) - 1))] = data.draw(
            st.integers(0, 255)
        )
    with contextlib.suppress(InvalidDataFileError):
        patch_footer(bytes(changed), LABELLED.as_struct())


def test_no_parquet_file_is_a_typed_error(tmp_path):
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 this is no Parquet file at all")
    with pytest.raises(InvalidDataFileError):
        patch_file(str(path), LABELLED.as_struct())


# Footers of files on a store get the field ids that Spark's writer leaves out.


SCHEMA = Schema(
    (
        I.NestedField(1, "p", I.StringType(), False),
        I.NestedField(
            2, "s", I.StructType((I.NestedField(3, "x", I.IntegerType(), False),)), False
        ),
        I.NestedField(4, "l", I.ListType(5, I.IntegerType(), False), False),
        I.NestedField(6, "m", I.MapType(7, I.StringType(), 8, I.LongType(), False), False),
    )
)
SPEC = PartitionSpec(1, (PartitionField((1,), 1000, IdentityTransform(), "p"),))


@pytest.fixture
def io(s3: Any) -> FileIO:
    return FileIO(s3.properties)


@pytest.fixture
def path(s3: Any, request: pytest.FixtureRequest) -> str:
    number = abs(hash(request.node.nodeid)) % 10**9
    return f"{s3.new_bucket(f'labels-{number}')}/data/f.parquet"


def file_of(io: FileIO, path: str, text: str, count: int = 1) -> int:
    """Write a file without field ids, as Spark does; its length."""
    rows = {
        "p": pa.array([text] * count),
        "s": pa.array([{"x": n} for n in range(count)], pa.struct([("x", pa.int32())])),
        "l": pa.array([[n] for n in range(count)], pa.list_(pa.int32())),
        "m": pa.array([[("k", n)] for n in range(count)], pa.map_(pa.string(), pa.int64())),
    }
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table(rows), sink, store_schema=False, compression="none", use_dictionary=False
    )
    io.create(path, sink.getvalue().to_pybytes())
    return io.size(path)


def finisher(io: FileIO) -> Finisher:
    return Finisher(io, MetricsReader(SCHEMA, metrics_modes(SCHEMA, {})), SPEC, 0, True)


def ids_of(io: FileIO, path: str) -> list[int]:
    """The field ids of a file's columns and of their parts, in order."""
    file = pq.ParquetFile(pa.BufferReader(io.read(path)))
    found: list[int] = []

    def add(field: pa.Field) -> None:
        found.append(int((field.metadata or {}).get(b"PARQUET:field_id", -1)))
        if pa.types.is_map(field.type):
            parts = [field.type.key_field, field.type.item_field]
        else:
            parts = [field.type.field(n) for n in range(field.type.num_fields)]
        for part in parts:
            add(part)

    for field in file.schema_arrow:
        add(field)
    return found


@pytest.mark.parametrize(
    ("text", "count"),
    [("a", 1), ("b" * 1000, 1000), ("c" * 1000, 6000)],
    ids=["one request", "its beginning is read", "the store copies"],
)
def test_parts_of_columns_get_their_ids(io: FileIO, path: str, text: str, count: int) -> None:
    size = file_of(io, path, text, count)
    rows = pq.read_table(pa.BufferReader(io.read(path))).to_pylist()
    entry = finisher(io).finish(path, size)
    assert ids_of(io, path) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert pq.read_table(pa.BufferReader(io.read(path))).to_pylist() == rows
    assert (entry.file_size_in_bytes, entry.record_count) == (io.size(path), count)
    assert entry.file_size_in_bytes > size
    assert entry.partition == (text,)
    assert entry.lower_bounds is not None
    assert entry.lower_bounds[3] == bytes(4)
    # A task that is tried again knows the length that the file had.
    assert finisher(io).finish(path, size) == entry


def test_a_file_that_is_cut_short_is_told_of(io: FileIO, path: str) -> None:
    io.create(path, b"PAR1" + bytes(100))
    with pytest.raises(InvalidDataFileError, match="does not end as a Parquet file"):
        finisher(io).finish(path, 104)
    assert io.size(path) == 104
