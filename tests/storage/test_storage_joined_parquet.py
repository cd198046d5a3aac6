"""Row groups of several files in one: PyArrow and DuckDB read the same rows, pages are found."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from frazil.errors import InvalidDataFileError
from frazil.storage.parquet.joining import join_files


def table(start: int, rows: int) -> pa.Table:
    numbers = list(range(start, start + rows))
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "s": pa.array([None if n % 7 == 0 else f"name-{n % 50}" for n in numbers]),
            "li": pa.array([[n, n + 1][: n % 3] for n in numbers], pa.list_(pa.int32())),
        }
    )


def written(folder: Path, parts: list[pa.Table], **options: object) -> list[str]:
    paths = [str(folder / f"{number}.parquet") for number in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        settings = {"row_group_size": 2_000, "data_page_size": 512, "write_page_index": True}
        pq.write_table(part, path, **{**settings, **options})
    return paths


@pytest.mark.parametrize("codec", ["zstd", "none"])
def test_a_joined_file_has_the_rows_of_all_in_order(tmp_path: Path, codec: str) -> None:
    parts = [table(0, 5_000), table(5_000, 1), table(5_001, 7_000)]
    paths = written(tmp_path, parts, compression=codec)
    groups = sum(pq.read_metadata(path).num_row_groups for path in paths)
    size = join_files(paths)
    assert [path.name for path in tmp_path.iterdir()] == ["0.parquet"]
    assert Path(paths[0]).stat().st_size == size
    whole = pa.concat_tables(parts)
    assert pq.read_table(paths[0]).equals(whole)
    joined = pq.read_metadata(paths[0])
    assert (joined.num_rows, joined.num_row_groups) == (len(whole), groups)
    chunks = [joined.row_group(g).column(0) for g in range(groups)]
    assert all(chunk.has_offset_index and chunk.has_column_index for chunk in chunks)
    starts = [joined.row_group(g).column(0).statistics.min for g in range(groups)]
    assert starts == sorted(starts)
    # By the statistics of row groups, and one row group alone.
    found = ds.dataset(paths[0]).to_table(filter=pc.field("id") == 9_999)
    assert found["id"].to_pylist() == [9_999]
    last = pq.ParquetFile(paths[0]).read_row_group(groups - 1)
    assert last.equals(whole.slice(len(whole) - len(last)))


def test_spark_finds_pages_of_a_joined_file(spark, tmp_path: Path) -> None:
    """Its reader skips pages by the indexes, which say where in the file they are."""
    parts = [table(0, 40_000), table(40_000, 40_000)]
    for number in range(2):
        made = spark.range(number * 40_000, (number + 1) * 40_000, 1, 1)
        rows = made.selectExpr("id", "concat('name-', id % 50) as s")
        folder = f"{tmp_path}/{number}"
        rows.write.option("parquet.page.row.count.limit", "1000").parquet(folder)
        [path] = Path(folder).glob("*.parquet")
        shutil.move(path, tmp_path / f"{number}.parquet")
    paths = [str(tmp_path / f"{number}.parquet") for number in range(2)]
    join_files(paths)
    df = spark.read.parquet(paths[0])
    for wanted in (5, 39_999, 40_000, 77_777):
        found = [tuple(row) for row in df.where(f"id = {wanted}").collect()]
        assert found == [(wanted, f"name-{wanted % 50}")]
    assert df.where("id between 39500 and 41500").count() == 2_001
    assert df.count() == sum(map(len, parts))


def test_files_of_other_columns_are_not_joined(tmp_path: Path) -> None:
    paths = written(tmp_path, [table(0, 10), table(10, 10).drop_columns(["s"])])
    with pytest.raises(InvalidDataFileError, match="same columns"):
        join_files(paths)
