"""What a scan tells of its rows: their positions and sizes; plans that executors prune."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from spark_read_model import MadeTable

import frazil
from ci_share import one_of_each
from frazil.errors import ConfigurationError, InvalidManifestError
from frazil.spark.deletes import joins as bitmaps
from frazil.spark.files.parquet import file_log
from frazil.spark.files.parquet.file_log import ROW_NUMBERS_SETTING
from frazil.spark.files.scan_names import ROW_INDEX_NAME
from frazil.spark.lake import Lake
from frazil.spark.session import costs
from frazil.spark.session.by_session import BySession
from frazil.spark.session.costs import Cost
from frazil.spark.session.facts import prepare_session, temporary_settings
from frazil.storage.paths import local_path

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


# What Spark's optimizer is told of the size of a table's rows, and what comes of it.


ROWS = 20_000
WIDTH = 8 + 8 + 20
"""What Spark counts for a row of a long and a text; the first 8 are for the row."""
FEW_BYTES = {"spark.sql.autoBroadcastJoinThreshold": "300000"}


@pytest.fixture
def many(lake):
    """Rows that Parquet makes much smaller."""
    table = lake.create_table("db.many", "id bigint, v string", format_version=2)
    table.append(lake.spark.range(ROWS).selectExpr("id", "'same' as v").coalesce(1))
    return table


def size_of(frame):
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def plan_of(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def test_many_rows_have_the_size_of_their_types(lake, many):
    with temporary_settings(lake.spark, FEW_BYTES):
        size = size_of(lake.sql("select * from db.many"))
        assert ROWS * WIDTH <= size <= ROWS * WIDTH * 1.13
        # A column has its share.
        size = size_of(lake.sql("select id from db.many"))
        assert ROWS * 16 <= size <= ROWS * 16 * 1.13
        assert size_of(many.scan().to_df()) >= ROWS * WIDTH
        assert size_of(many.to_df().where("id < 5")) >= ROWS * WIDTH


def test_rows_that_take_much_are_not_sent_to_every_task(lake, many):
    text = "select count(*) from db.many a join db.many b on a.id = b.id + 1"
    with temporary_settings(lake.spark, FEW_BYTES):
        frame = lake.sql(text)
        assert "SortMergeJoin" in plan_of(frame)
        assert frame.collect()[0][0] == ROWS - 1
    # Few bytes are, as ever.
    assert "BroadcastHashJoin" in plan_of(lake.sql(text))


def test_plans_name_no_relation_that_nobody_made(lake, many):
    with temporary_settings(lake.spark, FEW_BYTES):
        plan = plan_of(lake.sql("select id from db.many where id = 7"))
    assert "FileScan parquet [id#" in plan
    assert "frazil_" not in plan


@pytest.mark.check
def test_rows_with_deletes_and_places(lake, many):
    with temporary_settings(lake.spark, FEW_BYTES):
        many.delete("id % 1000 = 1")
        many.update({"v": "'other'"}, "id % 1000 = 2")
        rows = many.scan(columns=["id", "_pos", "_file"]).to_df()
        assert rows.count() == ROWS - ROWS // 1000
        assert rows.select("_file", "_pos").distinct().count() == ROWS - ROWS // 1000
        assert many.to_df().where("v = 'other'").count() == ROWS // 1000


def test_a_spark_that_has_other_classes_reads_the_rows_alike(lake, many, monkeypatch):
    def refuse(spark):
        raise Py4JError("there is no such class")

    monkeypatch.setattr(file_log, "_row_makers", refuse)
    kept = BySession()
    monkeypatch.setattr(file_log, "_ROW_MAKERS", kept)
    with temporary_settings(lake.spark, FEW_BYTES):
        assert many.to_df().count() == ROWS
        assert size_of(many.to_df()) < ROWS * WIDTH
    # It is not asked again: what refuses would raise.
    assert kept.get_or_make(lake.spark, refuse) is None


# Plans whose files executors prune: the same as those that the driver makes.


@pytest.fixture
def on_executors(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every plan with a predicate is large, and each manifest a task's."""

    def switch() -> None:
        monkeypatch.setattr(costs, "PRUNED", Cost(here=-1, a_task=1, threads=1))
        monkeypatch.setattr(costs, "PRUNING_CORES", 0)

    return switch


def table_of_specs(lake: Lake, spark: SparkSession) -> frazil.Table:
    """Files of three commits and two specs, of which one has deletes."""
    rows = spark.range(30).selectExpr("id", "concat('c', id % 3) city", "id / 2 x").coalesce(1)
    table = lake.create_table(
        "db.pruned", "id bigint, city string, x double", partition_by=["city"], format_version=2
    )
    table.append(rows)
    table.append(rows.selectExpr("id + 100 id", "city", "x"))
    with table.update_spec() as change:
        change.add_field("bucket(2, id)")
    table.append(rows.selectExpr("id + 200 id", "city", "x"))
    table.delete("id = 4")
    return table


@pytest.mark.check
def test_plans_are_those_of_the_driver(lake: Lake, spark: SparkSession, on_executors: Any) -> None:
    table = table_of_specs(lake, spark)
    where = "id in (4, 105, 207) and x < 60"
    expected = table.scan(where).plan()
    on_executors()
    table.io.caches.clear()
    found = table.scan(where).plan()
    kept = [key[1][1] for key in table.io.caches["manifests"]._items if key[0] == "manifest"]
    assert not {*kept} & {*found.manifests}, "the driver decoded none"
    assert found.files.schema == expected.files.schema
    # Which number a scope has says nothing.
    assert found.files.drop("scope").equals(expected.files.drop("scope"))
    assert found.deletes.drop("scope").equals(expected.deletes.drop("scope"))
    assert found.pairs.equals(expected.pairs)
    assert found.skipped == expected.skipped
    assert found.residual == expected.residual
    assert found.summary() == expected.summary()


@pytest.mark.check
def test_a_damaged_manifest_is_the_same_error(
    lake: Lake, spark: SparkSession, on_executors: Any
) -> None:
    table = table_of_specs(lake, spark)
    path = table.inspect.dataframes.manifests().where("content = 0").first().path
    local = local_path(path)
    assert local is not None
    with open(local, "r+b") as stream:
        stream.truncate(200)
    table.io.caches.clear()
    on_executors()
    with pytest.raises(InvalidManifestError, match=r"damaged Avro|not an Avro|cut short"):
        table.scan("id >= 0").plan()
