"""Queries that died after Spark noted a batch of the log and before it planned its own batch."""

import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from ci_share import only_in_soak, these
from frazil.errors import StorageError
from frazil.spark.stream.source import follower, queries
from frazil.spark.stream.source.queries import Watch
from frazil.storage.files import FileIO


def _kill_before_the_last_plan(checkpoint):
    """What a kill leaves between Spark's two notes: the source's is there, the plan is not."""
    last = max(int(name) for name in os.listdir(checkpoint / "offsets") if name.isdigit())
    for folder in ("offsets", "commits"):
        for name in (str(last), f".{last}.crc"):
            (checkpoint / folder / name).unlink(missing_ok=True)
    noted = {name.removesuffix(".compact") for name in os.listdir(checkpoint / "sources" / "0")}
    assert str(last) in noted


# Spark compacts its notes at every tenth.
@pytest.mark.check
@pytest.mark.parametrize("batches", [1, only_in_soak(3), only_in_soak(10)])
def test_rows_that_come_after_such_a_death_are_in_batches_of_their_own(
    table, stream, rows, batches
):
    for i in range(batches):
        table.append(rows(i))
    stream.drain(max_files_per_batch=1)
    assert stream.sink.sizes == [1] * batches
    _kill_before_the_last_plan(Path(stream.checkpoint))
    table.append(rows(100))
    table.append(rows(101))
    assert stream.drain(max_files_per_batch=1) == [
        (batches - 1, "Oslo"), (100, "Oslo"), (101, "Oslo"),
    ]  # fmt: skip
    assert stream.sink.sizes == [1] * (batches + 2)


@pytest.mark.check
def test_a_dataframe_of_before_goes_on(table, stream, rows):
    table.append(rows(1))
    df = stream.read()
    stream.drain(df)
    table.append(rows(2))
    stream.drain(df)
    _kill_before_the_last_plan(Path(stream.checkpoint))
    table.append(rows(3))
    assert stream.drain(df) == [(2, "Oslo"), (3, "Oslo")]


@pytest.mark.check
@pytest.mark.parametrize("made_anew", [True, only_in_soak(False)])
def test_a_death_is_seen_before_spark_tells_of_it(table, stream, rows, monkeypatch, made_anew):
    monkeypatch.setattr(Watch, "onQueryTerminated", lambda self, event: None)
    table.append(rows(1))
    df = stream.read()
    stream.drain(df)
    _kill_before_the_last_plan(Path(stream.checkpoint))
    table.append(rows(2))
    table.append(rows(3))
    df = stream.read(max_files_per_batch=1) if made_anew else df
    assert stream.drain(df) == [(1, "Oslo"), (2, "Oslo"), (3, "Oslo")]


@pytest.mark.check
def test_a_query_of_two_streams_goes_on(lake, table, stream, rows, tmp_path):
    """Each has a folder inside the query's checkpoint."""
    lake.create_table("db.u", "id bigint, city string")
    other = lake.load_table("db.u")
    table.append(rows(1))
    other.append(rows(11))

    def both():
        left = lake.read_stream("db.t", checkpoint=f"{stream.checkpoint}/t")
        return left.unionAll(lake.read_stream("db.u", checkpoint=f"{stream.checkpoint}/u"))

    stream.drain(both())
    other.append(rows(12))
    stream.drain(both())
    checkpoint = Path(stream.checkpoint)
    noted = {name for name in os.listdir(checkpoint / "sources" / "0") if name.isdigit()}
    number = 0 if "1" in noted else 1
    assert os.path.exists(checkpoint / "sources" / str(number) / "1")
    for folder in ("offsets", "commits"):
        (checkpoint / folder / "1").unlink()
        (checkpoint / folder / ".1.crc").unlink(missing_ok=True)
    table.append(rows(2))
    other.append(rows(13))
    assert stream.drain(both()) == [(2, "Oslo"), (12, "Oslo"), (13, "Oslo")]


@pytest.mark.check
def test_a_plan_that_was_not_finished_is_done_again_as_it_was(table, stream, rows):
    """The death came after the plan: the batch keeps its number and its rows."""
    table.append(rows(1))
    stream.drain()
    table.append(rows(2))
    stream.drain()
    commits = Path(stream.checkpoint) / "commits"
    (commits / "1").unlink()
    (commits / ".1.crc").unlink(missing_ok=True)
    table.append(rows(3))
    assert stream.drain() == [(2, "Oslo"), (3, "Oslo")]
    assert stream.sink.sizes == [1, 1, 1]


@pytest.mark.check
def test_notes_of_another_source_are_left_alone(table, stream, rows):
    table.append(rows(1))
    stream.drain()
    source = Path(stream.checkpoint) / "sources" / "1"
    source.mkdir(parents=True)
    (source / "0").write_text('v1\n{"path":"file:///elsewhere/a","timestamp":0,"batchId":0}')
    table.append(rows(2))
    stream.drain()
    assert (source / "0").exists()


def test_the_folder_around_a_checkpoint_need_not_be_readable(
    table, stream, rows, monkeypatch, tmp_path
):
    asked = []

    def denied(self, path, _original=FileIO.list_folder):
        asked.append(path)
        if path.endswith(f"{tmp_path}/sources"):
            raise StorageError("access denied")
        return _original(self, path)

    monkeypatch.setattr(FileIO, "list_folder", denied)
    table.append(rows(1))
    assert stream.drain() == [(1, "Oslo")]
    table.append(rows(2))
    assert stream.drain() == [(2, "Oslo")]
    assert any(path.endswith(f"{tmp_path}/sources") for path in asked)


@pytest.mark.check
def test_a_note_that_cannot_be_taken_back_is_told(lake, table, stream, rows, monkeypatch):
    """Also one around the stream's own folder: to go on would make the query unreadable."""
    folder = f"{stream.checkpoint}/t"
    for number in (1, 2):
        table.append(rows(number))
        stream.drain(lake.read_stream("db.t", checkpoint=folder))
    _kill_before_the_last_plan(Path(stream.checkpoint))

    def denied(self, path):
        raise StorageError(f"cannot delete {path}: access denied")

    monkeypatch.setattr(FileIO, "delete", denied)
    with pytest.raises(StorageError, match="sources/0/1: access denied"):
        lake.read_stream("db.t", checkpoint=folder)


# Streams whose query has ended, while other queries of their session run.


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
