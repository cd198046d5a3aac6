"""Streams drained into lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Condition

import pytest

DDL = "id bigint, city string"


@dataclass
class Sink:
    """What a query was given: batch id -> rows, and what Spark says of each batch."""

    batches: dict = field(default_factory=dict)
    progress: list = field(default_factory=list)
    changed: Condition = field(default_factory=Condition)

    def take(self, batch, batch_id):
        """Keep one batch; for `foreachBatch`."""
        rows = [tuple(row) for row in batch.collect()]
        with self.changed:
            self.batches[batch_id] = rows
            self.changed.notify_all()

    def wait_for(self, condition):
        """Until the batches meet a condition; a minute at most."""
        with self.changed:
            assert self.changed.wait_for(condition, timeout=60)

    @property
    def rows(self):
        """Every row, sorted; each batch once."""
        return sorted(row for batch in self.batches.values() for row in batch)

    @property
    def sizes(self):
        """Rows of the batches that held some."""
        return [len(batch) for _, batch in sorted(self.batches.items()) if batch]


class Stream:
    """A stream of `db.t` with one checkpoint, run again and again."""

    def __init__(self, lake, checkpoint):
        self.lake = lake
        self.checkpoint = str(checkpoint)
        self.sink = Sink()

    def read(self, **options):
        """The streaming DataFrame."""
        return self.lake.read_stream("db.t", checkpoint=self.checkpoint, **options)

    def start(self, df, *, sink=None, **trigger):
        """A running query into the sink."""
        kept = self.sink if sink is None else sink
        writer = df.writeStream.foreachBatch(kept.take)
        writer = writer.option("checkpointLocation", self.checkpoint)
        return writer.trigger(**trigger).start()

    def drain(self, df=None, **options):
        """Run until nothing is left; the rows that came in this run, sorted."""
        new = Sink()
        query = self.start(self.read(**options) if df is None else df, sink=new, availableNow=True)
        query.awaitTermination()
        new.progress = query.recentProgress
        self.sink.batches.update(new.batches)
        self.last = new
        return new.rows


@pytest.fixture
def stream(lake, tmp_path):
    """The stream of a test."""
    return Stream(lake, tmp_path / "checkpoint")


@pytest.fixture
def rows(spark):
    """A DataFrame of rows (id, city) in one file."""

    def made(*ids, city="Oslo"):
        return spark.createDataFrame([(i, city) for i in ids], DDL).coalesce(1)

    return made


@pytest.fixture
def table_settings():
    """An empty table."""
    return {"schema": DDL}
