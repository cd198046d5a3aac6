"""Streams that get their checkpoint from the query that reads them."""

import pytest
from pyspark.errors import StreamingQueryException

from ci_share import only_in_soak
from frazil.errors import ConfigurationError

AVAILABLE = {"availableNow": True}


@pytest.fixture
def fresh(lake, stream):
    """The stream of a test, read anew without a checkpoint for every run."""
    stream.read = lambda **options: lake.read_stream("db.t", **options)
    return stream


@pytest.mark.check
def test_a_checkpoint_goes_on_where_its_last_query_ended(table, fresh, rows):
    table.append(rows(1, 2))
    assert fresh.drain() == [(1, "Oslo"), (2, "Oslo")]
    assert fresh.drain() == []
    table.append(rows(3))
    table.append(rows(4))
    assert fresh.drain(max_files_per_batch=1) == [(3, "Oslo"), (4, "Oslo")]
    assert fresh.last.sizes == [1, 1]


@pytest.mark.check
def test_a_checkpoint_that_was_given_to_the_reader_before_and_is_not_now(table, lake, fresh, rows):
    table.append(rows(1))
    given = lake.read_stream("db.t", checkpoint=fresh.checkpoint)
    assert fresh.drain(given) == [(1, "Oslo")]
    table.append(rows(2))
    assert fresh.drain() == [(2, "Oslo")]
    table.append(rows(3))
    assert fresh.drain(lake.read_stream("db.t", checkpoint=fresh.checkpoint)) == [(3, "Oslo")]


@pytest.mark.check
def test_a_frame_serves_another_checkpoint_after_its_query(table, fresh, rows, tmp_path):
    table.append(rows(1))
    frame = fresh.read()
    assert fresh.drain(frame) == [(1, "Oslo")]
    first = fresh.checkpoint
    fresh.checkpoint = str(tmp_path / "second")
    assert fresh.drain(frame) == [(1, "Oslo")]
    table.append(rows(2))
    fresh.checkpoint = first
    assert fresh.drain(frame) == [(2, "Oslo")]


@pytest.mark.check
def test_a_second_query_of_one_frame_is_stopped_and_the_first_goes_on(table, fresh, rows, tmp_path):
    table.append(rows(1))
    frame = fresh.read(poll_interval=0.1)
    query = fresh.start(frame, processingTime="0 seconds")
    try:
        fresh.sink.wait_for(lambda: fresh.sink.rows)
        first, fresh.checkpoint = fresh.checkpoint, str(tmp_path / "second")
        second = fresh.start(frame, processingTime="0 seconds")
        assert second.awaitTermination(60)
        fresh.checkpoint = first
        table.append(rows(2))
        fresh.sink.wait_for(lambda: len(fresh.sink.rows) == 2)
    finally:
        query.stop()


def test_spark_chooses_the_checkpoint_of_a_sink_in_memory(table, fresh, rows, spark):
    table.append(rows(1, 2))
    query = fresh.read().writeStream.format("memory").queryName("held").trigger(**AVAILABLE).start()
    query.awaitTermination()
    assert sorted(row.id for row in spark.table("held").collect()) == [1, 2]


@pytest.mark.check
def test_a_checkpoint_of_another_table_fails_the_query_and_stays(lake, table, fresh, rows):
    other = lake.create_table("db.other", "id bigint, city string")
    table.append(rows(1))
    other.append(rows(9))
    assert fresh.drain() == [(1, "Oslo")]
    with pytest.raises(StreamingQueryException, match="is of a stream of db"):
        fresh.drain(lake.read_stream("db.other"))
    table.append(rows(2))
    assert fresh.drain() == [(2, "Oslo")]


def test_a_checkpoint_whose_name_spark_takes_for_a_pattern(table, fresh, rows, tmp_path):
    table.append(rows(1))
    fresh.checkpoint = str(tmp_path / "check[1]")
    with pytest.raises(StreamingQueryException, match="wildcards"):
        fresh.drain()


@pytest.mark.parametrize(
    "name",
    [only_in_soak("with space"), "ünïcode", only_in_soak("p%20q"), only_in_soak("day=2026-11-27")],
)
def test_checkpoints_of_odd_names(table, fresh, rows, tmp_path, name):
    table.append(rows(1))
    fresh.checkpoint = str(tmp_path / name)
    assert fresh.drain() == [(1, "Oslo")]
    table.append(rows(2))
    assert fresh.drain() == [(2, "Oslo")]
    assert (tmp_path / name / "frazil" / "stream.json").exists()


def test_a_query_that_does_not_tell_its_checkpoint_fails(table, fresh, rows, monkeypatch):
    from frazil.spark.stream.source import queries

    table.append(rows(1))
    monkeypatch.setattr(queries, "checkpoint_of_query", lambda spark, query_id: None)
    with pytest.raises(StreamingQueryException, match="give the reader the folder"):
        fresh.drain()
    monkeypatch.undo()
    assert fresh.drain() == [(1, "Oslo")]


def test_no_checkpoint_over_spark_connect(table, monkeypatch):
    from frazil.spark.stream import table_streams

    monkeypatch.setattr(table_streams, "is_connect", lambda spark: True)
    with pytest.raises(ConfigurationError, match="checkpointLocation"):
        table.read_stream()
