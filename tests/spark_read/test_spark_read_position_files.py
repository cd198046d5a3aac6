"""The rows of position delete files of every shape against the rows that were put in."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from ci_share import one_of_each
from frazil.errors import InvalidDataFileError, MissingFileError
from frazil.format import types as I
from frazil.format.puffin import PuffinBuilder, deletion_vector_to_bytes
from frazil.format.schema import Schema
from frazil.format.schema.name_mapping import mapping_for
from frazil.spark.deletes.position_files import deleted_rows, vector_positions
from frazil.spark.files.arrow.files import FilePart, TableColumns, read_batches
from frazil.spark.files.layout.footers import read_facts
from frazil.spark.files.layout.layouts import Reader, layout_of
from frazil.storage.files import FileIO

ROWS = [("a", 5), ("a", 6), ("b", 0), (None, 9), ("b", 2**40), ("a", 5)]
IDS = {"file_path": "2147483546", "pos": "2147483545"}


def table(key: str | None = "PARQUET:field_id", text: pa.DataType | None = None) -> pa.Table:
    """The rows; ids under a metadata key where one is given."""
    kinds = {"file_path": text or pa.string(), "pos": pa.int64()}
    fields = [
        pa.field(name, kind, metadata={key: IDS[name]} if key else None)
        for name, kind in kinds.items()
    ]
    columns = [[path for path, _ in ROWS], [position for _, position in ROWS]]
    return pa.table(columns, schema=pa.schema(fields))


SHAPES = {
    "as specified": lambda path: pq.write_table(table(), path),
    "several row groups": lambda path: pq.write_table(table(), path, row_group_size=2),
    "plain pages": lambda path: pq.write_table(table(), path, use_dictionary=False),
    "no ids": lambda path: pq.write_table(table(None), path),
    "large text": lambda path: pq.write_table(table(text=pa.large_string()), path),
    "views": lambda path: pq.write_table(table(text=pa.string_view()), path),
    # The optional `row` may have a column `file_path` of its own.
    "a column of the same name": lambda path: pq.write_table(
        table().add_column(
            0, "row", pa.StructArray.from_arrays([pa.array(["x"] * len(ROWS))], ["file_path"])
        ),
        path,
        use_dictionary=["row.file_path"],
        column_encoding={"file_path": "DELTA_LENGTH_BYTE_ARRAY"},
    ),
    "other columns": lambda path: pq.write_table(
        table().append_column("row", pa.array(range(len(ROWS)))), path
    ),
}


def read(path: Path, file_format: str = "parquet") -> list[tuple[str, int]]:
    return [
        (found.paths[int(code)], int(position))
        for found in deleted_rows(FileIO(), f"file://{path}", file_format)
        for code, position in zip(found.codes, found.positions, strict=True)
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_row_with_a_path_is_read(tmp_path: Path, shape: str) -> None:
    SHAPES[shape](tmp_path / "d.parquet")
    assert read(tmp_path / "d.parquet") == [row for row in ROWS if row[0] is not None]


def test_orc(tmp_path: Path) -> None:
    orc.write_table(table("iceberg.id"), tmp_path / "d.orc")
    assert read(tmp_path / "d.orc", "orc") == [row for row in ROWS if row[0] is not None]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pq.write_table(table(), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InvalidDataFileError, match=r"d\.parquet"):
        read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"d\.parquet"):
        read(tmp_path / "d.parquet")


@pytest.mark.parametrize(
    ("offset", "length", "message"),
    [
        (-5, 10, "no file has"),
        (4, -1, "no file has"),
        (4, 2**40, "no file has"),
        (2**62, 2**62, "no file has"),
        (None, None, "no file has"),
        (10**6, 10, "it has 0 bytes"),
        (0, 0, "it has 0 bytes"),
        (4, 45, "announces"),
        (5, 46, "announces"),
        (4, 46, "has 3 positions, the manifest states 4"),
    ],
)
def test_places_of_vectors_that_lie(tmp_path: Path, offset: int, length: int, message: str) -> None:
    puffin = PuffinBuilder()
    blob = puffin.add_deletion_vector(
        deletion_vector_to_bytes([1, 2, 3]), referenced_data_file="x", cardinality=3
    )
    assert (blob.offset, blob.length) == (4, 46)
    path = tmp_path / "v.puffin"
    path.write_bytes(puffin.to_bytes())
    task = {"path": f"file://{path}", "content_offset": offset, "content_size": length}
    with pytest.raises(InvalidDataFileError, match=rf"{message}.*v\.puffin"):
        vector_positions(FileIO(), {**task, "record_count": 4})


# Every encoding of Parquet that Frazil reads through Arrow, in both versions of its pages.


PAGES = ("1.0", "2.0")
DICTIONARY = "RLE_DICTIONARY"
OF_TEXT = (DICTIONARY, "PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
OF_INTEGERS = (DICTIONARY, "PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
OF_FLOATS = (DICTIONARY, "PLAIN", "BYTE_STREAM_SPLIT")
OF_FIXED = (DICTIONARY, "PLAIN", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")

COLUMNS = {
    "int": (pa.int32(), I.IntegerType(), OF_INTEGERS, [7, -(2**31), 2**31 - 1]),
    "long": (pa.int64(), I.LongType(), OF_INTEGERS, [7, -(2**63), 2**63 - 1]),
    "float": (pa.float32(), I.FloatType(), OF_FLOATS, [0.5, -2.0, float("inf")]),
    "double": (pa.float64(), I.DoubleType(), OF_FLOATS, [0.1, -2.0, float("-inf")]),
    "boolean": (pa.bool_(), I.BooleanType(), ("PLAIN", "RLE"), [True, False, False]),
    "date": (pa.date32(), I.DateType(), OF_INTEGERS, [date(1969, 1, 1), date(2024, 2, 29)]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        I.TimestamptzType(),
        OF_INTEGERS,
        [datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)],
    ),
    "timestamp without zone": (
        pa.timestamp("us"),
        I.TimestampType(),
        OF_INTEGERS,
        [datetime(1500, 1, 1, 0, 0, 0, 1), datetime(2024, 1, 1)],
    ),
    "nanoseconds": (
        pa.timestamp("ns", "UTC"), I.TimestamptzNanoType(), OF_INTEGERS, [-1, 0, 2**63 - 1],
    ),
    "nanoseconds without zone": (
        pa.timestamp("ns"), I.TimestampNanoType(), OF_INTEGERS, [-(2**63), 10**18 + 1],
    ),
    "time": (
        pa.time64("us"), I.TimeType(), OF_INTEGERS, [time(0, 0, 0, 1), time(23, 59, 59, 999_999)],
    ),
    "string": (pa.string(), I.StringType(), OF_TEXT, ["", "file", "files", "ß"]),
    "binary": (pa.binary(), I.BinaryType(), OF_TEXT, [b"", b"\x00\xff", b"\x00"]),
    "fixed": (pa.binary(3), I.FixedType(3), OF_FIXED, [b"abc", b"abd", b"\x00\x00\x00"]),
    "uuid": (pa.uuid(), I.UUIDType(), OF_FIXED, [UUID(int=1).bytes, UUID(int=2**128 - 1).bytes]),
    "decimal in 4 bytes": (
        pa.decimal128(9, 2), I.DecimalType(9, 2), OF_INTEGERS, [Decimal("-1.25"), Decimal("0.01")],
    ),
    "decimal in 8 bytes": (
        pa.decimal128(18, 2), I.DecimalType(18, 2), OF_INTEGERS, [Decimal("-9999999999999999.99")],
    ),
    "decimal": (
        pa.decimal128(20, 2),
        I.DecimalType(20, 2),
        OF_FIXED,
        [Decimal("-1.25"), Decimal("123456789012345678.90")],
    ),
}  # fmt: skip
CASES = [(name, encoding) for name, column in COLUMNS.items() for encoding in column[2]]


def write(path: Path, table: pa.Table, *, pages: str, **encodings: str) -> None:
    """The table as a file; columns that are not named stay PLAIN."""
    pq.write_table(
        table,
        path,
        data_page_version=pages,
        use_dictionary=[name for name, each in encodings.items() if each == DICTIONARY],
        column_encoding={n: e for n, e in encodings.items() if e != DICTIONARY} or None,
        store_schema=False,
        store_decimal_as_integer=True,
    )
    group = pq.read_metadata(path).row_group(0)
    written = {(leaf := group.column(i)).path_in_schema: leaf for i in range(group.num_columns)}
    for name, encoding in encodings.items():
        assert encoding in written[name].encodings


@pytest.mark.parametrize(("case", "pages"), one_of_each(CASES, PAGES))
def test_data_and_equality_deletes(tmp_path: Path, case: tuple[str, str], pages: str) -> None:
    name, encoding = case
    kind, iceberg_type, _, values = COLUMNS[name]
    stored = pa.array([*values, None, *values], kind)
    column = pa.field("c", kind, metadata={"PARQUET:field_id": "1"})
    path = tmp_path / "d.parquet"
    write(path, pa.table([stored], schema=pa.schema([column])), pages=pages, c=encoding)
    field = I.NestedField(1, "c", iceberg_type)
    part = FilePart(path=f"file://{path}", file_format="parquet")
    ((_, length, (found,)),) = read_batches(FileIO(), part, (field,), TableColumns())
    assert length == len(stored)
    plain = stored.storage if isinstance(stored, pa.ExtensionArray) else stored
    assert found.cast(plain.type).equals(plain)


def test_int96_of_years_that_nanoseconds_do_not_reach(tmp_path: Path) -> None:
    times = [datetime(year, 3, 1, 1, 2, 3, 4, tzinfo=UTC) for year in (1500, 1969, 2024, 9999)]
    column = pa.field("c", pa.timestamp("us", "UTC"), metadata={"PARQUET:field_id": "1"})
    stored = pa.table([pa.array([*times, None], column.type)], schema=pa.schema([column]))
    pq.write_table(stored, tmp_path / "d.parquet", use_deprecated_int96_timestamps=True)
    part = FilePart(path=f"file://{tmp_path}/d.parquet", file_format="parquet")
    field = I.NestedField(1, "c", I.TimestamptzType())
    ((_, _, (found,)),) = read_batches(FileIO(), part, (field,), TableColumns())
    assert found.to_pylist() == [*times, None]


@pytest.mark.parametrize("pages", PAGES)
@pytest.mark.parametrize("encoding", OF_TEXT)
def test_paths_of_position_deletes(tmp_path: Path, encoding: str, pages: str) -> None:
    path = tmp_path / "d.parquet"
    positions = OF_INTEGERS[OF_TEXT.index(encoding)]
    write(path, table(), pages=pages, file_path=encoding, pos=positions)
    assert read(path) == [row for row in ROWS if row[0] is not None]


def test_paths_whose_dictionary_was_given_up(tmp_path: Path) -> None:
    """A dictionary that outgrows its page is left for PLAIN pages in the middle of a column."""
    paths = [f"s3://bucket/table/data/{number:07}.parquet" for number in range(3000)]
    held = pa.table([paths, list(range(3000))], schema=table().schema)
    path = tmp_path / "d.parquet"
    pq.write_table(held, path, dictionary_pagesize_limit=4096, data_page_size=4096)
    assert {"RLE_DICTIONARY", "PLAIN"} <= set(
        pq.read_metadata(path).row_group(0).column(0).encodings
    )
    assert read(path) == [(p, n) for n, p in enumerate(paths)]


TEXT, NUMBERS = I.StringType(), I.ListType(3, I.IntegerType())
OF_ARROW_ALONE = {
    "string_view": (pa.array(["a", None, "ß" * 20], pa.string_view()), TEXT),
    "binary_view": (pa.array([b"a", None], pa.binary_view()), I.BinaryType()),
    "list_view": (pa.array([[1, 2], None, []], pa.list_view(pa.int32())), NUMBERS),
    "large_list_view": (pa.array([[1, 2], None], pa.large_list_view(pa.int32())), NUMBERS),
    "fixed_size_list": (pa.array([[1, 2], None, [3, None]], pa.list_(pa.int32(), 2)), NUMBERS),
    "views in a list": (
        pa.array([["a"], None], pa.list_(pa.string_view(), 1)), I.ListType(3, TEXT),
    ),
    "views in a map": (
        pa.array([[("a", "b")], None], pa.map_(pa.string_view(), pa.string_view())),
        I.MapType(3, TEXT, 4, TEXT),
    ),
    "views in a struct": (
        pa.array([{"a": "x"}, None], pa.struct([("a", pa.string_view())])),
        I.StructType((I.NestedField(3, "a", TEXT),)),
    ),
    "json": (pa.array(['{"a": 1}', None], pa.json_()), TEXT),
    "bool8": (
        pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8())),
        I.IntegerType(),
    ),
    "duration": (pa.array([1, None], pa.duration("us")), I.LongType()),
    "decimal256": (pa.array([Decimal("1.25"), None], pa.decimal256(9, 2)), I.DecimalType(9, 2)),
}  # fmt: skip
AS_STORED = {"bool8": [1, None], "duration": [1, None]}


@pytest.mark.parametrize("case", OF_ARROW_ALONE)
def test_what_arrow_remembers_is_not_the_type(tmp_path: Path, case: str) -> None:
    """Parquet has the same column for all of them; other engines read that and nothing else."""
    array, kind = OF_ARROW_ALONE[case]
    path = tmp_path / "d.parquet"
    # A value as the key of the schema that Arrow keeps, which statistics hold then.
    keys = pa.array(["ARROW:schema"] * len(array))
    pq.write_table(pa.table({"k": keys, "c": array}), path)
    fields = (I.NestedField(1, "k", TEXT), I.NestedField(2, "c", kind))
    part = FilePart(path=f"file://{path}", file_format="parquet")
    columns = TableColumns(fields=fields)
    ((_, _, (k, found)),) = read_batches(FileIO(), part, fields, columns)
    assert k.to_pylist() == keys.to_pylist()
    assert found.to_pylist() == AS_STORED.get(case, array.to_pylist())
    columns = read_facts(FileIO(), f"file://{path}").columns
    layout = layout_of(
        columns, has_ids=False, fields=fields, mapping=mapping_for(Schema(fields)),
        table_fields=fields,
    )  # fmt: skip
    # Spark's own reader takes the file as any other.
    assert layout.reader is Reader.BY_NAME
