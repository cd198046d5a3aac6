"""Streams whose query has ended, while other queries of their session run."""

import os
import shutil
import threading
import time

import pytest
from pyspark.errors import StreamingQueryException

from ci_share import only_in_soak, these
from frazil.spark.stream.source import follower, queries


@pytest.fixture
def another_query(spark, tmp_path):
    """Starts and stops a query that reads no table."""

    def run():
        rate = spark.readStream.format("rate").load().writeStream.format("noop")
        rate.option("checkpointLocation", str(tmp_path / "rate")).start().stop()

    return run


def files_of(folder):
    """Paths of all files below."""
    return {os.path.join(at, name) for at, _, names in os.walk(folder) for name in names}


@pytest.mark.parametrize(
    ("options", "rows_before"), these([({"changes": True}, 1)], [{}, {"changes": True}], [0, 1])
)
def test_one_that_ended_is_not_followed_on(
    table, stream, rows, another_query, options, rows_before
):
    table.append(rows(*range(rows_before)))
    assert len(stream.drain(**options)) == rows_before
    before = files_of(stream.checkpoint)
    table.append(rows(5))
    if options:
        table.delete("id = 5")
    another_query()
    assert files_of(stream.checkpoint) == before
    assert [row[0] for row in stream.drain(**options)] == [5] * (1 + len(options))


@pytest.mark.check
@pytest.mark.parametrize("made_anew", [only_in_soak(True), False])
def test_a_deleted_checkpoint_starts_over(table, stream, rows, another_query, made_anew):
    table.append(rows(1))
    df = stream.read()
    stream.drain(df)
    shutil.rmtree(stream.checkpoint)
    table.append(rows(2))
    another_query()
    assert not os.path.exists(stream.checkpoint)
    assert [row[0] for row in stream.drain(None if made_anew else df)] == [1, 2]


@pytest.mark.check
def test_a_query_with_a_checkpoint_elsewhere_sees_what_is_new(table, stream, rows, spark):
    """Also one that begins after another one ended, and finds nothing yet."""
    df = stream.read()
    for number, name in enumerate(["first", "second"]):
        query = df.writeStream.format("memory").queryName(name).start()
        try:
            table.append(rows(number))
            end = time.monotonic() + 60
            while spark.table(name).count() <= number and time.monotonic() < end:
                time.sleep(0.05)
        finally:
            query.stop()
        assert sorted(row.id for row in spark.table(name).collect()) == list(range(number + 1))


def test_a_log_that_is_gone_fails_the_query(table, stream, rows):
    table.append(rows(1))
    df = stream.read()
    stream.drain(df)
    shutil.rmtree(stream.checkpoint + "/frazil")
    with pytest.raises(StreamingQueryException, match="start over with another checkpoint"):
        stream.drain(df)


def test_an_end_is_seen_before_spark_tells_of_it(table, stream, rows, monkeypatch):
    monkeypatch.setattr(queries.Watch, "onQueryTerminated", lambda self, event: None)
    table.append(rows(1))
    stream.drain(poll_interval=0.01)
    before = files_of(stream.checkpoint)
    table.append(rows(2))
    end = time.monotonic() + 60
    while any(t.name == "frazil-stream db.t" for t in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert files_of(stream.checkpoint) == before


def test_a_session_that_says_it_is_stopped_is_followed_no_more(table, stream, rows, monkeypatch):
    table.append(rows(1))
    query = stream.start(stream.read(poll_interval=0.01), processingTime="0 seconds")
    try:
        stream.sink.wait_for(lambda: stream.sink.rows)
        monkeypatch.setattr(follower, "is_stopped", lambda spark: True)
        end = time.monotonic() + 60
        while any(t.name == "frazil-stream db.t" for t in threading.enumerate()):
            assert time.monotonic() < end
            time.sleep(0.01)
        before = files_of(stream.checkpoint + "/frazil")
        table.append(rows(2))
        time.sleep(0.1)
        assert files_of(stream.checkpoint + "/frazil") == before
    finally:
        query.stop()
