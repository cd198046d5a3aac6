"""Scans of tables that PyIceberg made and changed (SPEC rules 44, 52-57, 81)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from frazil.catalog.static import StaticCatalog
from frazil.errors import MissingFileError
from frazil.spark.scan import Scan
from frazil.storage.files import FileIO


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    catalog = SqlCatalog("test", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("db")
    return catalog


def scan(spark: Any, table: Any, **options: Any) -> Scan:
    catalog = StaticCatalog(table.metadata_location)
    metadata = catalog.load_table(catalog.identifier).metadata
    return Scan(spark, metadata, FileIO(), **options)


def rows(found: Scan) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, found.to_df().collect()), key=repr)


def people(start: int, count: int = 50) -> pa.Table:
    ids = list(range(start, start + count))
    return pa.table(
        {
            "a": pa.array(ids, pa.int64()),
            "b": pa.array([i + 100_000 for i in ids], pa.int64()),
            "s": pa.array([{"x": i, "y": str(i)} for i in ids]),
        }
    )


@pytest.fixture
def made(catalog: SqlCatalog) -> Any:
    made = catalog.create_table("db.t", schema=people(0).schema)
    made.append(people(0))
    return made


def swap(table: Any, one: str, other: str) -> None:
    for old, new in ((one, "tmp"), (other, one), ("tmp", other)):
        with table.update_schema() as update:
            update.rename_column(old, new)


def test_filters_on_swapped_names_skip_no_row(spark: Any, made: Any) -> None:
    swap(made, "a", "b")
    df = scan(spark, made).to_df()
    assert df.columns == ["b", "a", "s"]
    assert df.where("b = 5").select("a", "b").collect() == [(100_005, 5)]
    assert df.where("a = 100005").count() == 1
    assert rows(scan(spark, made, where="b = 7", columns=["a"])) == [(100_007,)]


def test_results_carry_no_field_ids_and_can_be_counted_from_metadata(spark: Any, made: Any) -> None:
    found = scan(spark, made)
    assert [field.metadata for field in found.to_df().schema.fields] == [{}, {}, {}]
    assert found.count() == 50
    assert scan(spark, made, where="a >= 0").count() == 50
    assert scan(spark, made, where="a > 10").count() == 39


def test_no_files_is_an_empty_dataframe_of_the_schema(spark: Any, made: Any) -> None:
    found = scan(spark, made, where="a = -5", columns=["s.y", "_partition", "a"])
    assert found.to_df().collect() == []
    assert found.to_df().columns == ["s", "_partition", "a"]
    assert found.to_arrow().num_rows == 0


def test_a_missing_file_is_named_with_its_snapshot(spark: Any, made: Any) -> None:
    (task,) = made.scan().plan_files()
    found = scan(spark, made)
    found.to_df()
    Path(task.file.file_path.removeprefix("file://")).unlink()
    with pytest.raises(MissingFileError, match=str(made.current_snapshot().snapshot_id)) as caught:
        found.to_arrow()
    assert task.file.file_path.rsplit("/", 1)[1] in str(caught.value)
