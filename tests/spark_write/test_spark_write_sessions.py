"""Writes of DataFrames of other sessions than the table's, and by several threads at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq
import pytest

import frazil
from frazil.spark.session.facts import WRITE_SETTINGS, temporary_settings
from frazil.storage.files import local_path

TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
ROWS = "select id, timestamp_micros(1700000000000000L + id * 86400000000) ts from range(4)"


@pytest.fixture
def days(spark, tmp_path):
    """A table by days of instants, which Spark writes as INT96 unless told otherwise."""
    with frazil.connect(spark, warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        yield lake.create_table("db.t", "id bigint, ts timestamp", partition_by=["day(ts)"])


def check_days(table, ids):
    """Rows, physical types and pruning, by PyArrow and by Spark."""
    table.refresh()
    for path in table.scan().plan().files["file_path"]:
        columns = pq.ParquetFile(local_path(path)).schema
        assert columns.column(1).physical_type == "INT64", path
    found = table.scan(where="ts < timestamp'2030-01-01 00:00:00Z'").to_df().collect()
    assert sorted(row["id"] for row in found) == sorted(ids)


def test_foreach_batch(spark, days, tmp_path):
    source = tmp_path / "source"
    spark.sql(ROWS).coalesce(1).write.parquet(str(source))
    query = (
        spark.readStream.schema("id bigint, ts timestamp").parquet(str(source)).writeStream
        .foreachBatch(lambda df, _: days.append(df))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(120)
    check_days(days, range(4))


def test_dataframe_of_a_new_session(spark, days):
    other = spark.newSession()
    before = {key: other.conf.get(key, None) for key in WRITE_SETTINGS}
    days.append(other.sql(ROWS))
    check_days(days, range(4))
    # A partial overwrite is one query of rows of both.
    days.overwrite(other.sql(ROWS).where("id = 0"), where="id <= 1")
    check_days(days, [0, 2, 3])
    assert {key: other.conf.get(key, None) for key in WRITE_SETTINGS} == before


def test_rows_of_tables_that_are_read_in_another_session(spark, days):
    days.append(spark.sql(ROWS))
    with days.update_schema() as change:
        change.rename_column("id", "number")
        change.add_column("id", "bigint")
    other = spark.newSession()
    # The scan runs in the other session, whose settings decide how columns are found.
    mixed = other.range(0).selectExpr("null as id", "id as number", "null as ts")
    days.append(mixed.unionByName(days.to_df()))
    rows = days.to_df().select("id", "number").collect()
    assert sorted(row["number"] for row in rows) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert {row["id"] for row in rows} == {None}


def test_threads_of_one_session(spark, days):
    before = {key: spark.conf.get(key, None) for key in WRITE_SETTINGS}
    lake_threads, appends = 4, 3
    days.set_properties({"commit.retry.num-retries": "100", "commit.retry.min-wait-ms": "5"})
    start = threading.Barrier(lake_threads)

    def work(number):
        start.wait()
        for turn in range(appends):
            first = (number * appends + turn) * 1000
            count = 400 if turn % 2 else 1
            rows = spark.range(first, first + count)
            days.append(rows.selectExpr("id", "timestamp_micros(1700000000000000L + id) ts"))

    with ThreadPoolExecutor(lake_threads) as pool:
        list(pool.map(work, range(lake_threads)))
    expected = [
        turn_number * 1000 + n
        for turn_number in range(lake_threads * appends)
        for n in range(400 if turn_number % appends % 2 else 1)
    ]
    check_days(days, expected)
    assert {key: spark.conf.get(key, None) for key in WRITE_SETTINGS} == before


def test_settings_stay_until_the_last_of_several_blocks_ends(spark):
    wanted = {TIMESTAMPS: "TIMESTAMP_MILLIS"}
    before = spark.conf.get(TIMESTAMPS, None)
    held, go_on = threading.Event(), threading.Event()

    def first():
        with temporary_settings(spark, wanted):
            held.set()
            assert go_on.wait(30)

    thread = threading.Thread(target=first)
    thread.start()
    assert held.wait(30)
    # Another object for the same session.
    same = type(spark)(spark.sparkContext, spark._jsparkSession)
    with temporary_settings(same, wanted):
        go_on.set()
        thread.join(30)
        assert spark.conf.get(TIMESTAMPS) == "TIMESTAMP_MILLIS"
    assert spark.conf.get(TIMESTAMPS, None) == before


def test_a_block_that_needs_another_value_waits(spark):
    key = "spark.sql.variant.writeShredding.enabled"
    held, seen = threading.Event(), []

    def second():
        assert held.wait(30)
        with temporary_settings(spark, {key: "true"}):
            seen.append(spark.conf.get(key))

    thread = threading.Thread(target=second)
    thread.start()
    with temporary_settings(spark, {key: "false"}):
        held.set()
        thread.join(0.3)
        assert thread.is_alive()
        assert seen == []
        assert spark.conf.get(key) == "false"
    thread.join(30)
    assert seen == ["true"]


def test_what_a_user_sets_meanwhile_stays(spark):
    before = spark.conf.get(TIMESTAMPS, None)
    try:
        with temporary_settings(spark, {TIMESTAMPS: "TIMESTAMP_MICROS"}):
            spark.conf.set(TIMESTAMPS, "TIMESTAMP_MILLIS")
        assert spark.conf.get(TIMESTAMPS) == "TIMESTAMP_MILLIS"
        with pytest.raises(ZeroDivisionError), temporary_settings(spark, {TIMESTAMPS: "INT96"}):
            raise ZeroDivisionError
        assert spark.conf.get(TIMESTAMPS) == "TIMESTAMP_MILLIS"
    finally:
        if before is None:
            spark.conf.unset(TIMESTAMPS)
        else:
            spark.conf.set(TIMESTAMPS, before)
