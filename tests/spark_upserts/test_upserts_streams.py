"""Streams into a table: each micro-batch is one commit, and each once."""

import json
import os
import threading
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import frazil
from ci_share import only_in_soak
from frazil.errors import ConfigurationError, ValidationError
from frazil.format.schema import Schema
from frazil.format.types import NestedField, StringType, UUIDType
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
def test_keys_of_a_stream_count_as_their_column_stores_them(lake, feed, tmp_path):
    key = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
    schema = Schema((NestedField(1, "id", UUIDType()), NestedField(2, "name", StringType())))
    table = lake.create_table("db.u", schema, format_version=2)
    ddl = "id string, name string, op string, seq int"
    feed.add((key.upper(), "first", "i", 1), (key, "second", "u", 2), ddl=ddl)
    feed.add((key.upper(), "third", "u", 3), ddl=ddl)
    table.upsert_stream(
        feed.read(ddl),
        keys="id",
        op="op",
        order_by="seq",
        mode="merge",
        checkpoint=tmp_path / "checkpoint",
        trigger=ONCE,
    ).awaitTermination()
    assert rows(table) == [(key, "third")]


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
def test_a_new_column_in_a_stream_stops_it_and_then_goes_on(table, feed, tmp_path):
    feed.add((1, "a", "i", 1))
    run(table, feed, tmp_path / "checkpoint")
    wider = f"{CHANGES}, extra int"
    feed.add((2, "b", "i", 2, 7), ddl=wider)
    settings = {"keys": "id", "op": "op", "order_by": "seq", "trigger": ONCE}
    checkpoint = tmp_path / "checkpoint"
    query = table.upsert_stream(feed.read(wider), checkpoint=checkpoint, **settings)
    with pytest.raises(StreamingQueryException, match="no column 'extra'"):
        query.awaitTermination()
    assert rows(table) == [(1, "a")]
    query = table.upsert_stream(
        feed.read(wider), checkpoint=checkpoint, on_new_columns="add", **settings
    )
    query.awaitTermination()
    assert sorted(table.refresh().scan().to_df().collect()) == [(1, "a", None), (2, "b", 7)]


@pytest.mark.check
def test_two_queries_change_one_table(table, lake, feed, tmp_path, spark):
    other_feed = Feed(spark, tmp_path / "other")
    for number in range(4):
        feed.add((number % 2, f"a{number}", "u", number))
        other_feed.add((10 + number % 2, f"b{number}", "u", number))
    other = lake.load_table("db.t")
    worker = threading.Thread(target=run, args=(other, other_feed, tmp_path / "two"))
    worker.start()
    run(table, feed, tmp_path / "one")
    worker.join()
    assert rows(table) == [(0, "a2"), (1, "a3"), (10, "b2"), (11, "b3")]
    assert len(table.metadata.snapshots) == 8


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


@pytest.mark.soak
def test_bronze_to_silver_to_gold(lake, table, feed, tmp_path):
    """Gold takes the changes of silver, whose rows go by equality deletes, each once."""
    bronze = lake.create_table("db.bronze", CHANGES, format_version=2)
    gold = lake.create_table("db.gold", "id bigint, shout string", format_version=2)
    expected = {}
    for number in (0, 2):
        changes = [
            (1, f"v{number}", "u", number),
            (number, "x", "u", 8),
            (number, "y", "d" if number == 2 else "u", 9),
        ]
        feed.add(*changes)
        for id_, name, op, _ in changes:
            expected[id_] = name
            if op == "d":
                del expected[id_]
        for _ in range(2):
            appended = bronze.append_stream(feed.read(), checkpoint=tmp_path / "1", trigger=ONCE)
            appended.awaitTermination()
            rows_of_bronze = bronze.read_stream(checkpoint=tmp_path / "2")
            upserted = table.upsert_stream(
                rows_of_bronze,
                keys="id",
                op="op",
                order_by="seq",
                mode="equality-deletes",
                checkpoint=tmp_path / "2",
                trigger=ONCE,
            )
            upserted.awaitTermination()
            told = table.read_stream(checkpoint=tmp_path / "3", changes=True)
            shouted = gold.upsert_stream(
                told.withColumn("shout", told["name"].substr(1, 9)).drop("name"),
                keys="id",
                format=frazil.changes.change_feed(),
                checkpoint=tmp_path / "3",
                trigger=ONCE,
            )
            shouted.awaitTermination()
            assert rows(table) == rows(gold) == sorted(expected.items())
            forget_the_last_batch(tmp_path / "3")


@pytest.mark.soak
def test_events_that_state_their_schema_add_its_columns(table, feed, tmp_path):
    def event(row, **types):
        after = [{"field": name, "optional": True, **kind} for name, kind in types.items()]
        sides = [{"type": "struct", "field": side, "fields": after} for side in ("before", "after")]
        payload = {"op": "c", "before": None, "after": row, "source": {"lsn": row["id"]}}
        return (json.dumps({"schema": {"type": "struct", "fields": sides}, "payload": payload}),)

    number, text = {"type": "int32"}, {"type": "string"}
    at = {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}
    feed.add(event({"id": 1, "name": "a"}, id=number, name=text), ddl="value string")
    more = {"id": 2, "name": "b", "extra": 7, "at": 1_000_000}
    feed.add(event(more, id=number, name=text, extra=number, at=at), ddl="value string")

    def drain(on_new_columns):
        table.upsert_stream(
            feed.read("value string"),
            keys="id",
            order_by="source.lsn",
            format=frazil.changes.debezium(),
            on_new_columns=on_new_columns,
            checkpoint=tmp_path / "checkpoint",
            trigger=ONCE,
        ).awaitTermination()

    name = "write.spark.auto-schema-evolution.enabled"
    table.set_properties({name: "false"})
    for word in ("add", None):
        with pytest.raises(StreamingQueryException, match="the fields extra, at, which"):
            drain(word)
    assert [field.name for field in table.refresh().schema.fields] == ["id", "name"]
    table.set_properties({name: "true"})
    drain(None)
    kinds = {field.name: str(field.field_type) for field in table.refresh().schema.fields}
    assert {name: kinds[name] for name in ("extra", "at")} == {"extra": "int", "at": "timestamp"}
    moment = datetime(1970, 1, 1, 0, 0, 1)
    found = table.scan(columns=["id", "name", "extra", "at"]).to_df().collect()
    assert sorted(found) == [(1, "a", None, None), (2, "b", 7, moment)]


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
