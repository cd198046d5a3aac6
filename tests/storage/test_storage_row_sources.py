"""What a file's footer says of where its rows come from."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.errors import InvalidDataFileError, StorageError
from frazil.storage.files import FileIO
from frazil.storage.parquet.row_sources import FOOTER_KEY, RowSource, RowSources, row_sources


def written(folder, footer, *, rows=5):
    path = str(folder / "a.parquet")
    table = pa.table({"id": list(range(rows))})
    pq.write_table(table.replace_schema_metadata(footer), path)
    return path


def test_stretches_that_follow_each_other_are_one(tmp_path):
    noted = RowSources()
    for path, first, count in (("x", 0, 2), ("x", 2, 1), ("y", 0, 1), ("x", 3, 1)):
        noted.add(RowSource(path, first, count))
    path = written(tmp_path, noted.footer())
    expected = (RowSource("x", 0, 3), RowSource("y", 0, 1), RowSource("x", 3, 1))
    assert row_sources(FileIO(), path) == expected


def test_nothing_is_said_where_nothing_is_known(tmp_path):
    assert RowSources().footer() == {}
    assert row_sources(FileIO(), written(tmp_path, {})) == ()


@pytest.mark.parametrize(
    "said",
    [
        "no json",
        json.dumps({"x": 5}),
        json.dumps([["x", 0]]),
        json.dumps([["x", 0, "5"]]),
        json.dumps([["x", True, 5]]),
        json.dumps([["x", -1, 5]]),
        json.dumps([["x", 0, 4]]),
        json.dumps([["x", 0, 6]]),
        json.dumps([["x", 0, 7], ["y", 0, -2]]),
        "[" * 100_000,
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, said):
    path = written(tmp_path, {FOOTER_KEY: said.encode()})
    with pytest.raises(InvalidDataFileError, match=r"a\.parquet"):
        row_sources(FileIO(), path)


def test_a_file_that_cannot_be_read(tmp_path):
    damaged = tmp_path / "b.parquet"
    damaged.write_bytes(b"PAR1 nothing")
    with pytest.raises(InvalidDataFileError):
        row_sources(FileIO(), str(damaged))
    with pytest.raises(StorageError):
        row_sources(FileIO(), str(tmp_path / "none.parquet"))
