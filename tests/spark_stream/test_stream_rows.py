"""Which rows a stream yields, from where, and in which batches."""

import datetime as dt

import pytest
from pyspark.errors import StreamingQueryException

from ci_share import only_in_soak
from frazil.errors import (
    ConfigurationError,
    FrazilError,
    NoSuchRefError,
    NoSuchSnapshotError,
    ValidationError,
)


def ids(rows):
    return [row[0] for row in rows]


@pytest.mark.check
def test_a_stream_starts_after_a_snapshot(table, stream, rows):
    table.append(rows(1))
    start = table.current_snapshot.snapshot_id
    table.append(rows(2))
    table.append(rows(3))
    assert ids(stream.drain(from_snapshot_id=start)) == [2, 3]
    # The start is of the first time alone.
    table.append(rows(4))
    assert ids(stream.drain(from_snapshot_id=start)) == [4]


@pytest.mark.check
@pytest.mark.parametrize("form", [*map(only_in_soak, ["ms", "text", "datetime"]), "session"])
def test_a_stream_starts_after_a_time(spark, table, stream, rows, form):
    table.append(rows(1))
    table.append(rows(2))
    ms = table.current_snapshot.timestamp_ms
    moment = dt.datetime.fromtimestamp(ms / 1000, tz=dt.UTC)
    table.append(rows(3))
    start = {"ms": ms, "text": moment.isoformat(), "datetime": moment}.get(form)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "-08:00")
    try:
        start = start or spark.sql(f"select string(timestamp_millis({ms}))").first()[0]
        assert ids(stream.drain(from_timestamp=start)) == [3]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_javas_start_takes_a_snapshot_of_that_very_time(table, stream, rows):
    table.append(rows(1))
    table.append(rows(2))
    options = {"stream-from-timestamp": str(table.current_snapshot.timestamp_ms)}
    assert ids(stream.drain(options=options)) == [2]


LIMITS = [
    only_in_soak({"max_files_per_batch": 2}, [6, 6, 3]),
    only_in_soak({"max_rows_per_batch": 7}, [6, 6, 3]),
    only_in_soak({"max_bytes_per_batch": 1}, [3] * 5),
    ({"options": {"streaming-max-files-per-micro-batch": "4"}}, [12, 3]),
    only_in_soak({"options": {"streaming-max-rows-per-micro-batch": "9"}}, [9, 6]),
    only_in_soak({}, [15]),
]


@pytest.mark.check
@pytest.mark.parametrize(("limit", "sizes"), LIMITS)
def test_limits_of_a_batch(table, stream, rows, limit, sizes):
    for i in range(5):
        table.append(rows(*range(3 * i, 3 * i + 3)))
    assert ids(stream.drain(**limit)) == list(range(15))
    assert stream.last.sizes == sizes
    # As Spark tells it, and in the order of the commits.
    assert [p["numInputRows"] for p in stream.last.progress if p["numInputRows"]] == sizes
    first = [min(ids(batch)) for _, batch in sorted(stream.last.batches.items()) if batch]
    assert first == sorted(first)


BAD = [
    ({"max_files_per_batch": 0}, "max_files_per_batch is 0"),
    ({"on_delete": "ignore"}, "on_delete is 'ignore'"),
    ({"poll_interval": 0}, "poll_interval is 0"),
    ({"options": {"streaming-max-files": "1"}}, "is no option of a stream"),
    ({"options": {"maxFilesPerTrigger": "x"}}, "must be a whole number"),
    ({"options": {"maxFilesPerTrigger": "1"}, "max_files_per_batch": 1}, "give one of them"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_malformed_options_are_told(table, stream, options, message):
    with pytest.raises(ConfigurationError, match=message):
        stream.read(**options)


def test_starts_that_are_not_there(table, stream, rows):
    table.append(rows(1))
    with pytest.raises(NoSuchSnapshotError):
        stream.read(from_snapshot_id=42)
    with pytest.raises(ValidationError, match="still to come"):
        stream.read(from_timestamp="2999-01-01")
    with pytest.raises(ValidationError, match="not both"):
        stream.read(from_snapshot_id=1, from_timestamp=1)


@pytest.mark.parametrize("name", ["a*", "a[1]", "{a}", "a?"])
def test_a_checkpoint_that_spark_would_take_for_a_pattern(table, stream, name):
    stream.checkpoint = f"/tmp/{name}"
    with pytest.raises(ConfigurationError, match="wildcards"):
        stream.read()


# Streams of some rows, some columns, a branch, and of all changes.


def test_a_stream_of_the_rows_that_match(table, stream, rows):
    table.append(rows(1, 2, city="Oslo"))
    table.append(rows(3, city="Lima"))
    where = "city = 'Oslo' and id % 2 = 0"
    assert stream.drain(where=where) == [(2, "Oslo")]
    table.append(rows(4, 5, city="Oslo"))
    table.delete("id = 99")
    assert stream.drain(where=where) == [(4, "Oslo")]


@pytest.mark.check
def test_files_that_cannot_match_are_in_no_batch(lake, stream, spark):
    table = lake.create_table("db.t", "id bigint, city string", partition_by=["city"])
    for city in ("Oslo", "Lima", "Pune"):
        table.append(spark.createDataFrame([(1, city)], "id bigint, city string").coalesce(1))
    stream.read(where="city = 'Lima'")
    from frazil.spark.stream.source.log import StreamLog
    from frazil.storage.files import FileIO

    state = StreamLog(spark, FileIO(), f"file://{stream.checkpoint}").latest()
    [size] = state.batches["size"]
    sizes = table.inspect.data_files()["file_size_in_bytes"]
    assert size in sizes.to_list()
    assert stream.drain(where="city = 'Lima'") == [(1, "Lima")]


def test_a_stream_of_some_columns(table, stream, rows):
    table.append(rows(1, 2))
    assert stream.read(columns=["city", "ID"]).columns == ["city", "id"]
    assert stream.drain(columns="city") == [("Oslo",), ("Oslo",)]
    for columns in ([], "nope", ["id", "nope"]):
        with pytest.raises(ValidationError):
            stream.read(columns=columns)


@pytest.mark.check
def test_a_stream_of_a_branch(table, stream, rows):
    table.append(rows(1))
    table.create_branch("side")
    table.append(rows(2, city="main"))
    table.append(rows(3, city="side"), branch="side")
    assert stream.drain(branch="side") == [(1, "Oslo"), (3, "side")]
    table.append(rows(4, city="side"), branch="side")
    table.append(rows(5, city="main"))
    assert stream.drain(branch="side") == [(4, "side")]
    with pytest.raises(NoSuchRefError):
        stream.read(branch="nope")


@pytest.mark.parametrize("other", [{"branch": "side"}, {"where": "id > 1"}])
def test_a_checkpoint_is_of_one_branch_and_condition(table, stream, rows, other):
    table.append(rows(1))
    table.create_branch("side")
    stream.drain()
    with pytest.raises(FrazilError, match=next(iter(other))):
        stream.read(**other)


@pytest.mark.check
def test_a_stream_of_all_changes(table, stream, rows):
    table.append(rows(1, 2))
    assert stream.drain(changes=True, columns="id") == [
        (1, "INSERT", 0, table.current_snapshot.snapshot_id),
        (2, "INSERT", 0, table.current_snapshot.snapshot_id),
    ]
    table.delete("id = 1")
    table.apply_changes(rows(2, city="Lima"), keys="id", mode="equality-deletes")
    found = {(row[0], row[1]) for row in stream.drain(changes=True, columns="id")}
    assert found == {(1, "DELETE"), (2, "DELETE"), (2, "INSERT")}
    with pytest.raises(ValidationError, match="leave out on_overwrite"):
        stream.read(changes=True, on_delete="skip")


# Streams that get their checkpoint from the query that reads them.


AVAILABLE = {"availableNow": True}


@pytest.fixture
def fresh(lake, stream):
    """The stream of a test, read anew without a checkpoint for every run."""
    stream.read = lambda **options: lake.read_stream("db.t", **options)
    return stream


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
