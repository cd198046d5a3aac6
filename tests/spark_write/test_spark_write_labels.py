"""Footers of files on a store get the field ids that Spark's writer leaves out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.errors import InvalidDataFileError
from frazil.format import types as I
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import IdentityTransform
from frazil.format.schema import Schema
from frazil.spark.write.finish import Finisher
from frazil.storage.files import FileIO
from frazil.storage.parquet.metrics import MetricsReader

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
    return Finisher(io, MetricsReader.for_table(SCHEMA, {}, sorted_ids=[]), SPEC, 0, True)


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
