"""Which rows a stream yields, from where, and in which batches."""

import datetime as dt

import pytest

from ci_share import only_in_soak
from frazil.errors import ConfigurationError, NoSuchSnapshotError, ValidationError


def ids(rows):
    return [row[0] for row in rows]


@pytest.mark.check
def test_a_stream_begins_with_the_table_and_goes_on_with_appends(table, stream, rows):
    table.append(rows(1, 2))
    assert ids(stream.drain()) == [1, 2]
    assert ids(stream.drain()) == []
    table.append(rows(3))
    table.append(rows(4))
    assert ids(stream.drain()) == [3, 4]


@pytest.mark.check
def test_a_query_sees_what_is_committed_before_it_starts(table, stream, rows):
    df = stream.read()
    table.append(rows(1))
    assert ids(stream.drain(df)) == [1]
    table.append(rows(2))
    assert ids(stream.drain(df)) == [2]


@pytest.mark.check
def test_a_running_query_sees_what_is_committed_meanwhile(table, stream, rows):
    df = stream.read(poll_interval=0.2)
    query = stream.start(df, processingTime="0 seconds")
    try:
        for i in range(1, 4):
            table.append(rows(i))
            stream.sink.wait_for(lambda i=i: i in ids(stream.sink.rows))
    finally:
        query.stop()
    assert ids(stream.sink.rows) == [1, 2, 3]


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
    ({"max_rows_per_batch": 7}, [6, 6, 3]),
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
