"""Positions of rows in files of many row groups, and of files that mislead Spark about them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from spark_read_model import MadeTable

import frazil
from ci_share import one_of_each
from frazil.errors import ConfigurationError
from frazil.spark.deletes import joins as bitmaps
from frazil.spark.files.parquet.file_log import ROW_NUMBERS_SETTING
from frazil.spark.files.scan_names import ROW_INDEX_NAME
from frazil.spark.session.facts import prepare_session, temporary_settings

COUNT = 1_000
DELETED = frozenset(range(0, COUNT, 7)) | frozenset(range(400, 500))
LIVE = sorted(set(range(COUNT)) - DELETED)
SMALL_PARTS = {
    "vectorized": {"spark.sql.files.maxPartitionBytes": "20000"},
    "row by row": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "numbers of the reader": {ROW_NUMBERS_SETTING: "reserved"},
    "numbers of the metadata column": {ROW_NUMBERS_SETTING: "metadata"},
    "both": {ROW_NUMBERS_SETTING: "metadata", "spark.sql.parquet.enableVectorizedReader": "false"},
}


@pytest.fixture
def made(tmp_path: Path, spark: SparkSession) -> MadeTable:
    """A file of small row groups whose ids are its positions, some of them deleted; and another."""
    prepare_session(spark)
    made = MadeTable(tmp_path / "table")
    made.folder.mkdir()
    made.add([(number, 0, "x") for number in range(COUNT)], sequence=1)
    made.add([(COUNT, 1, "y")], sequence=1)
    made.delete_positions([(0, position) for position in sorted(DELETED)], sequence=2)
    made.delete_vector(1, [0], sequence=2)
    return made


def ids(rows: DataFrame) -> list[int]:
    return sorted(row.id for row in rows.select("id").collect())


@pytest.mark.parametrize(("parts", "form"), one_of_each(SMALL_PARTS, ["a value", "rows"], test=1))
def test_deleted_rows_stay_out(
    spark: SparkSession,
    made: MadeTable,
    monkeypatch: pytest.MonkeyPatch,
    parts: str,
    form: str,
) -> None:
    """Under filters that skip pages and row groups, too."""
    if form == "rows":
        monkeypatch.setattr(bitmaps, "ARRAY_BYTES", 0)
    with temporary_settings(spark, SMALL_PARTS[parts]):
        rows = made.dataframe(spark)
        assert rows.columns == ["id", "kind", "name"]
        assert ids(rows) == LIVE
        assert ids(rows.where("id between 390 and 510")) == [n for n in LIVE if 390 <= n <= 510]
        placed = made.dataframe(spark, ["id", "_pos"])
        assert ids(placed.where("id = _pos")) == LIVE
        assert ids(placed.where("_pos in (1, 7, 8, 450, 999)")) == [1, 8, 999]


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_a_column_of_the_reserved_name(
    spark: SparkSession, tmp_path: Path, vectorized: str
) -> None:
    """It is data, and no position, which is what Spark's own readers take it for."""
    expected = [(n, n * 10) for n in range(9)]
    with (
        frazil.connect(spark, warehouse=str(tmp_path)) as lake,
        temporary_settings(spark, {"spark.sql.parquet.enableVectorizedReader": vectorized}),
    ):
        lake.create_namespace("db")
        table = lake.create_table("db.t", f"id bigint, {ROW_INDEX_NAME} bigint")
        table.append(spark.range(9).coalesce(1).selectExpr("id", f"id * 10 as {ROW_INDEX_NAME}"))
        assert sorted(map(tuple, table.to_df().collect())) == expected
        named = table.scan(columns=["_pos", ROW_INDEX_NAME]).to_df().collect()
        assert sorted(map(tuple, named)) == expected
        others = table.scan(columns=["_pos", "id"]).to_df().collect()
        assert sorted(map(tuple, others)) == [(n, n) for n in range(9)]


def test_an_unknown_source_of_numbers_is_refused(spark: SparkSession, made: MadeTable) -> None:
    with (
        temporary_settings(spark, {ROW_NUMBERS_SETTING: "perhaps"}),
        pytest.raises(ConfigurationError, match="must be auto, reserved or metadata"),
    ):
        made.dataframe(spark)
