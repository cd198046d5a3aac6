"""What may be appended: frames of other libraries, tables and scans."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from table_rows import SIMPLE, frame, rows_of

from ci_share import in_circles
from frazil.errors import ValidationError

ROWS = [(1, "a", 0.5), (2, None, None)]
COLUMNS = {"id": [1, 2], "city": ["a", None], "x": [0.5, None]}
FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "arrow": lambda: pa.table(COLUMNS),
}


@pytest.fixture
def table_settings():
    return {"schema": SIMPLE.replace(" not null", "")}


@pytest.mark.parametrize("kind", in_circles(FRAMES, test=1))
def test_frames_of_other_libraries_are_rows(table, kind):
    table.append(FRAMES[kind]())
    table.overwrite(FRAMES[kind](), where="id = 1")
    table.overwrite_partitions(FRAMES[kind]())
    with table.transaction() as tx:
        tx.overwrite(FRAMES[kind]())
    assert rows_of(table) == rows_of(frame(table.spark, ROWS, "id long, city string, x double"))


def test_tables_are_made_of_them(lake):
    made = lake.create_table_as_select("db.new", pd.DataFrame(COLUMNS))
    assert rows_of(made) == rows_of(lake.load_table("db.new").replace_as_select(FRAMES["arrow"]()))
    assert made.refresh().scan().count() == 2


def test_tables_and_scans_are_rows(lake, table):
    table.append(FRAMES["arrow"]())
    other = lake.create_table("db.other", SIMPLE.replace(" not null", ""))
    other.append(table)
    other.append(table.scan(where="id = 1"))
    assert [row[0] for row in rows_of(other)] == [1, 1, 2]


UNFIT = {
    "python objects": pl.DataFrame({"id": pl.Series([b"ab"], dtype=pl.Object)}),
    "wide integers": pl.DataFrame({"id": pl.Series([1], dtype=pl.Int128)}),
    "a name twice": pd.DataFrame([[1, 2]], columns=["id", "id"]),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_what_spark_cannot_hold_is_a_typed_error(lake, table, kind):
    with pytest.raises(ValidationError):
        table.append(UNFIT[kind])
    with pytest.raises(ValidationError):
        lake.create_table_as_select("db.unfit", UNFIT[kind])
    assert table.refresh().metadata.snapshots == ()
    assert not lake.table_exists("db.unfit")


def test_a_frame_without_columns_is_no_table(lake):
    with pytest.raises(ValidationError, match="column"):
        lake.create_table_as_select("db.empty", pd.DataFrame())
    assert not lake.table_exists("db.empty")
