"""Streams into a table: each micro-batch is one commit, and each once."""

import json
import os
import threading
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import frazil
from ci_share import only_in_soak
from frazil.errors import ConfigurationError, ValidationError
from frazil.storage.paths import local_path

DDL = "id bigint, name string"
CHANGES = f"{DDL}, op string, seq int"
ONCE = {"availableNow": True}


class Feed:
    """A folder of changes that a stream reads, a file a batch."""

    def __init__(self, spark, folder):
        self.spark, self.folder, self.count = spark, folder, 0
        folder.mkdir()

    def add(self, *rows, ddl=CHANGES):
        """One more batch."""
        names = [part.split()[0] for part in ddl.split(", ")]
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        path = self.folder / f"{self.count:05}.json"
        path.with_suffix(".part").write_text("\n".join(lines))
        # Spark takes files in the order of their times.
        os.utime(path.with_suffix(".part"), (1_700_000_000 + self.count,) * 2)
        path.with_suffix(".part").rename(path)
        self.count += 1

    def read(self, ddl=CHANGES):
        """The stream."""
        reader = self.spark.readStream.schema(ddl).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder), pathGlobFilter="*.json")


@pytest.fixture
def feed(spark, tmp_path):
    """An empty feed."""
    return Feed(spark, tmp_path / "feed")


@pytest.fixture
def table_settings():
    """An empty table."""
    return {"schema": DDL, "format_version": 2}


def rows(table):
    """All rows as others see them, sorted."""
    return sorted(tuple(row) for row in table.refresh().scan().to_df().collect())


def run(table, feed, checkpoint, **more):
    """Take all batches that are there."""
    settings = {"keys": "id", "op": "op", "order_by": "seq", "mode": "equality-deletes"}
    query = table.upsert_stream(
        feed.read(), checkpoint=checkpoint, trigger=ONCE, **{**settings, **more}
    )
    query.awaitTermination()
    return query


@pytest.mark.check
@pytest.mark.parametrize("mode", ["equality-deletes", only_in_soak("merge")])
def test_a_stream_of_changes_is_its_table(table, feed, tmp_path, mode):
    feed.add((1, "a", "i", 1), (2, "b", "i", 2), (1, "A", "u", 3))
    feed.add((2, None, "d", 4), (3, "c", "i", 5))
    query = run(table, feed, tmp_path / "checkpoint", mode=mode)
    assert rows(table) == [(1, "A"), (3, "c")]
    summaries = [snapshot.summary for snapshot in table.metadata.snapshots]
    assert [summary["frazil.stream.batch-id"] for summary in summaries] == ["0", "1"]
    assert {summary["frazil.stream.query-id"] for summary in summaries} == {str(query.id)}
    feed.add((3, None, "d", 6), (2, "again", "i", 7))
    run(table, feed, tmp_path / "checkpoint", mode=mode)
    assert rows(table) == [(1, "A"), (2, "again")]


@pytest.mark.check
def test_a_stream_whose_order_is_that_of_its_arrival(table, feed, tmp_path):
    ddl = f"{DDL}, op string"
    feed.add((1, "a", "i"), (1, "A", "u"), (2, "b", "i"), (2, None, "d"), ddl=ddl)
    feed.add((2, "B", "i"), (1, None, "d"), (1, "again", "u"), (3, None, "d"), ddl=ddl)
    query = table.upsert_stream(
        feed.read(ddl),
        keys="id",
        op="op",
        order_by=frazil.changes.ARRIVAL,
        mode="equality-deletes",
        checkpoint=tmp_path / "checkpoint",
        trigger=ONCE,
    )
    query.awaitTermination()
    assert rows(table) == [(1, "again"), (2, "B")]
    summaries = [snapshot.summary for snapshot in table.metadata.snapshots]
    assert [summary["frazil.stream.batch-id"] for summary in summaries] == ["0", "1"]
    assert summaries[0]["added-position-deletes"] == "2"


def forget_the_last_batch(checkpoint):
    """Take away what Spark writes after a batch: it dies between the commit and the checkpoint."""
    commits = [path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()]
    last = max(commits, key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


@pytest.mark.check
def test_a_batch_that_spark_hands_out_again_changes_nothing(table, lake, feed, tmp_path, spark):
    """Another query has changed the table since."""
    feed.add((1, "a", "i", 1))
    feed.add((1, "A", "u", 2), (2, "b", "i", 2))
    run(table, feed, tmp_path / "checkpoint")
    theirs = Feed(spark, tmp_path / "theirs")
    theirs.add((1, "theirs", "u", 1))
    run(lake.load_table("db.t"), theirs, tmp_path / "their checkpoint")
    before = table.refresh().current_snapshot.snapshot_id
    forget_the_last_batch(tmp_path / "checkpoint")
    run(table, feed, tmp_path / "checkpoint")
    assert rows(table) == [(1, "theirs"), (2, "b")]
    assert table.current_snapshot.snapshot_id == before


@pytest.mark.check
def test_a_batch_that_stops_loses_nothing(table, feed, tmp_path):
    feed.add((1, "a", "i", 1))
    feed.add((2, "b", "i", 1), (2, "c", "u", 1))
    with pytest.raises(StreamingQueryException, match="orders them alike: id=2"):
        run(table, feed, tmp_path / "checkpoint")
    assert rows(table) == [(1, "a")]
    run(table, feed, tmp_path / "checkpoint", order_by=["seq", "name"])
    assert rows(table) == [(1, "a"), (2, "c")]


@pytest.mark.check
def test_two_queries_change_one_table(table, lake, feed, tmp_path, spark):
    other_feed = Feed(spark, tmp_path / "other")
    for number in range(2):
        feed.add((number % 2, f"a{number}", "u", number))
        other_feed.add((10 + number % 2, f"b{number}", "u", number))
    other = lake.load_table("db.t")
    worker = threading.Thread(target=run, args=(other, other_feed, tmp_path / "two"))
    worker.start()
    run(table, feed, tmp_path / "one")
    worker.join()
    assert rows(table) == [(0, "a0"), (1, "a1"), (10, "b0"), (11, "b1")]
    assert len(table.metadata.snapshots) == 4


@pytest.mark.check
def test_a_stream_goes_to_a_branch(table, feed, tmp_path, spark):
    table.append(spark.createDataFrame([(1, "main")], DDL))
    table.create_branch("side")
    feed.add((1, "side", "u", 1))
    run(table, feed, tmp_path / "checkpoint", branch="side")
    assert rows(table) == [(1, "main")]
    assert [row.name for row in table.scan(ref="side").to_df().collect()] == ["side"]


@pytest.mark.soak
def test_a_stateful_stream_is_upserted(table, feed, tmp_path):
    """Counts by name, whose state Spark keeps in a fixed number of parts."""
    for batch in ([1, 2], [1], [1, 3]):
        feed.add(*((i, str(i), "u", 0) for i in batch))
    stream = feed.read().groupBy("id").count().selectExpr("id", "cast(count as string) as name")
    query = table.upsert_stream(
        stream, keys="id", checkpoint=tmp_path / "checkpoint", trigger=ONCE, output_mode="update"
    )
    query.awaitTermination()
    assert rows(table) == [(1, "3"), (2, "1"), (3, "1")]


# -- appends -------------------------------------------------------------------------------------


def test_rows_of_a_stream_are_appended_once(table, feed, tmp_path):
    for number in range(3):
        feed.add((number, "x", "i", 0))
    stream = feed.read().select("id", "name")
    for _ in range(2):
        query = table.append_stream(stream, checkpoint=tmp_path / "checkpoint", trigger=ONCE)
        query.awaitTermination()
        assert rows(table) == [(0, "x"), (1, "x"), (2, "x")]
        forget_the_last_batch(tmp_path / "checkpoint")
    summaries = [snapshot.summary for snapshot in table.metadata.snapshots]
    assert [summary["operation"] for summary in summaries] == ["append"] * 3


# -- what is refused -----------------------------------------------------------------------------


def test_what_is_no_stream_and_no_trigger(table, feed, tmp_path):
    with pytest.raises(ValidationError, match="no stream"):
        table.append_stream(table.to_df(), checkpoint=tmp_path / "checkpoint")
    for trigger in ({"continuous": "1 second"}, {}):
        with pytest.raises(ConfigurationError, match="a trigger is"):
            table.append_stream(feed.read(), checkpoint=tmp_path / "c", trigger=trigger)


def test_a_batch_that_fails_leaves_no_file(table, feed, tmp_path):
    feed.add((1, "a", "what", 1))
    with pytest.raises(StreamingQueryException, match="operation 'what'"):
        run(table, feed, tmp_path / "checkpoint")
    data = Path(local_path(table.location)) / "data"
    assert not list(data.rglob("*.parquet"))
