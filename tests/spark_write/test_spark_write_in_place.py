"""Spark's writer leaves files where it wrote them: the same rows and checks either way."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext

from frazil.errors import ConfigurationError, UnsupportedError
from frazil.spark.session.facts import temporary_settings
from frazil.spark.write import in_place

SETTING = in_place.IN_PLACE_SETTING
ASKED = "spark.sql.frazil.test"
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@pytest.fixture(params=["always", "never"])
def way(spark, request):
    """Both ways of a write."""
    with temporary_settings(spark, {SETTING: request.param}):
        yield request.param


def ids(table):
    return sorted(row["id"] for row in table.to_df().collect())


def test_partitions_and_names_of_any_kind(spark, lake, way, tmp_path):
    table = lake.create_table(
        "db.t", "id bigint, s string", partition_by=["s"], location=f"file://{tmp_path}/50%25 é+"
    )
    values = ["a b%:/", "", "é+", None]
    rows = spark.createDataFrame([(n, s) for n, s in enumerate(values)], "ID bigint, S string")
    table.append(rows)
    assert dict(map(tuple, table.to_df().collect())) == dict(enumerate(values))
    assert ids(table) == [0, 1, 2, 3]


def test_tasks_see_the_settings_of_the_session(spark, lake, way):
    def told(batches):
        yield from (batch for batch in batches if not batch.num_rows)
        yield pa.record_batch({"s": [TaskContext.get().getLocalProperty(ASKED)]})

    table = lake.create_table("db.t", "s string")
    with temporary_settings(spark, {ASKED: "seen"}):
        table.append(spark.range(0, 1, 1, 1).mapInArrow(told, "s string"))
    assert [row["s"] for row in table.to_df().collect()] == ["seen"]


def test_days_of_another_calendar(spark, lake, way):
    table = lake.create_table("db.t", "d date")
    table.append(spark.range(1).selectExpr("date_add(date'1500-01-01', int(id)) d"))
    assert [str(row["d"]) for row in table.to_df().collect()] == ["1500-01-01"]


def test_a_manager_of_lists_that_knows_no_local_disk(spark, lake, way):
    table = lake.create_table("db.t", "id bigint")
    # There is no such class: whoever asks for it fails.
    with temporary_settings(spark, {MANAGER: "org.example.OfAStoreAlone"}):
        table.append(spark.range(5))
        assert ids(table) == [0, 1, 2, 3, 4]


def test_a_list_that_cannot_be_written_leaves_no_file(spark, lake, tmp_path, monkeypatch):
    taken = tmp_path / "taken"

    def taken_folder(**_):
        (taken / "list").mkdir(parents=True)
        (taken / "list" / "0").write_text("v1")
        return str(taken)

    monkeypatch.setattr(tempfile, "mkdtemp", taken_folder)
    table = lake.create_table("db.t", "id bigint")
    with (
        temporary_settings(spark, {SETTING: "always"}),
        pytest.raises(Exception, match="Race while writing"),
    ):
        table.append(spark.range(5))
    assert not list(tmp_path.rglob("*.parquet"))
    assert lake.load_table("db.t").current_snapshot is None


def test_a_task_that_fails_leaves_no_file(spark, lake, way, tmp_path):
    table = lake.create_table("db.t", "id bigint")
    rows = spark.range(0, 20, 1, 2).selectExpr("if(id = 19, raise_error('no'), id) id")
    with pytest.raises(Exception, match="no"):
        table.append(rows)
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_spark_without_such_a_class(spark, lake, monkeypatch):
    monkeypatch.setattr(in_place, "_WRITER", "org.example.NoWriter")
    monkeypatch.setattr(in_place, "_MAKERS", in_place.BySession())
    table = lake.create_table("db.t", "id bigint")
    with temporary_settings(spark, {SETTING: "always"}), pytest.raises(UnsupportedError):
        table.append(spark.range(3))
    table.append(spark.range(3))
    assert ids(table) == [0, 1, 2]


def test_a_call_that_is_refused_when_all_is_ready(spark, lake, monkeypatch):
    """The virtual machine says no at the last call, before it has written anything."""
    made = in_place._make(spark)
    kept = in_place.BySession()
    kept.put(spark, replace(made, name="no option of Scala's"))
    monkeypatch.setattr(in_place, "_MAKERS", kept)
    table = lake.create_table("db.t", "id bigint")
    with temporary_settings(spark, {SETTING: "always"}), pytest.raises(UnsupportedError):
        table.append(spark.range(3))
    table.append(spark.range(3))
    assert ids(table) == [0, 1, 2]


def test_a_setting_that_says_nothing(spark, lake):
    table = lake.create_table("db.t", "id bigint")
    with (
        temporary_settings(spark, {SETTING: "perhaps"}),
        pytest.raises(ConfigurationError, match="always or never"),
    ):
        table.append(spark.range(3))


def test_a_file_that_nobody_listed_is_in_no_commit(spark, lake, tmp_path, monkeypatch):
    """What a zombie or a loser of speculation leaves beside the others."""
    real = in_place._write

    def with_a_zombie(makers, rows, access, folder, keys, options):
        found = real(makers, rows, access, folder, keys, options)
        written = next(Path(folder.removeprefix("file://")).glob("*.parquet"))
        (written.parent / f"part-00000-zombie-{written.name}").write_bytes(written.read_bytes())
        return found

    monkeypatch.setattr(in_place, "_write", with_a_zombie)
    table = lake.create_table("db.t", "id bigint")
    with temporary_settings(spark, {SETTING: "always"}):
        table.append(spark.range(6))
    assert ids(table) == [0, 1, 2, 3, 4, 5]
    assert len(list(tmp_path.rglob("*.parquet"))) == table.scan().plan().files.height
