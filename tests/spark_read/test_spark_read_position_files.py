"""The rows of position delete files of every shape against the rows that were put in."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from frazil.errors import InvalidDataFileError, MissingFileError
from frazil.format.puffin import PuffinBuilder, deletion_vector_to_bytes
from frazil.spark.deletes.position_files import deleted_rows, vector_positions
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
