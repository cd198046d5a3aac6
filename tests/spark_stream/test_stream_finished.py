"""What is written into the checkpoint for a batch, and how long it stays there."""

import json
import os
import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from ci_share import only_in_check, only_in_soak
from frazil.errors import StorageError, ValidationError
from frazil.storage.files import FileIO

KEPT_PLANS = 2
CHANGES = {"on_overwrite": "changes", "on_delete": "changes"}


@pytest.fixture(autouse=True)
def few_plans_are_kept(spark):
    """Spark goes back two batches instead of a hundred."""
    settings = {
        "spark.sql.streaming.minBatchesToRetain": str(KEPT_PLANS),
        "spark.sql.streaming.asyncLogPurge.enabled": "false",
    }
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def _written(folder):
    """The names of the files in a stream's folder of rows."""
    data = Path(folder) / "frazil" / "rows" / "data"
    return {path.name for path in data.glob("*.parquet")}


def _listed(folder):
    """The folders of the batches in the newest list, by the batches' numbers."""
    frazil = Path(folder) / "frazil"
    newest = max((frazil / "_spark_metadata").iterdir(), key=lambda path: int(path.stem))
    lines = [json.loads(line) for line in newest.read_text().split("\n")[1:]]
    return {
        line["modificationTime"]: frazil / "batches" / line["path"].rsplit("/", 1)[-1]
        for line in lines
        if not line["isDir"]
    }


def _drain_batches(table, stream, rows, numbers, **options):
    """Append rows one by one, and take each in a batch of its own."""
    for number in numbers:
        table.append(rows(number))
    assert [row[0] for row in stream.drain(max_rows_per_batch=1, **options)] == list(numbers)
    assert stream.last.sizes == [1] * len(numbers)


def test_spark_goes_back_as_far_as_it_can(table, stream, rows):
    _drain_batches(table, stream, rows, range(6), **CHANGES)
    stream.read(**CHANGES)
    offsets, commits = (Path(stream.checkpoint) / name for name in ("offsets", "commits"))
    oldest = min(int(name) for name in os.listdir(offsets) if name.isdigit())
    # Spark needs the plan before the one that it does again.
    for folder, last in ((offsets, oldest + 1), (commits, oldest)):
        for path in folder.iterdir():
            number = path.name.removeprefix(".").removesuffix(".crc")
            if number.isdigit() and int(number) > last:
                path.unlink()
    assert [row[0] for row in stream.drain(**CHANGES)] == list(range(oldest + 1, 6))


@pytest.mark.soak
def test_a_running_query_removes_them_too(table, stream, rows, monkeypatch):
    monkeypatch.setattr("frazil.spark.stream.source.follower._BATCHES_BETWEEN_LOOKS", 1)
    query = stream.start(stream.read(poll_interval=0.05, **CHANGES), processingTime="0 seconds")
    try:
        for number in range(8):
            table.append(rows(number))
            stream.sink.wait_for(lambda number=number: number in {r[0] for r in stream.sink.rows})
    finally:
        query.stop()
    assert len(_written(stream.checkpoint)) < 8
    assert [row[0] for row in stream.sink.rows] == list(range(8))


@pytest.mark.check
def test_a_query_that_begins_again_after_lines_were_left_out_is_refused(table, stream, rows):
    for numbers in ([0, 1, 2, 3], [4, 5], [6]):
        _drain_batches(table, stream, rows, numbers)
    assert 0 not in _listed(stream.checkpoint)
    # The table's own files stay.
    assert sorted(row.id for row in table.refresh().to_df().collect()) == list(range(7))
    df = stream.read()
    for name in ("offsets", "commits", "sources"):
        shutil.rmtree(Path(stream.checkpoint) / name)
    with pytest.raises(StreamingQueryException, match=r"start over with another checkpoint"):
        stream.drain(df)
    with pytest.raises(ValidationError, match=r"removed: start over with another checkpoint"):
        stream.drain()


@pytest.mark.parametrize(
    "damaged",
    [only_in_check("finished.json"), only_in_soak("batches/{}/_spark_metadata/0.compact")],
)
def test_a_damaged_note_stops_no_stream(table, stream, rows, caplog, damaged):
    _drain_batches(table, stream, rows, range(4), **CHANGES)
    folder = Path(stream.checkpoint) / "frazil"
    newest = max((folder / "_spark_metadata").iterdir(), key=lambda path: int(path.stem))
    first = json.loads(newest.read_text().split("\n")[2])["path"].rsplit("/", 1)[-1]
    (folder / damaged.format(first)).write_text("v1\n{")
    before = _written(stream.checkpoint)
    df = stream.read(**CHANGES)
    assert "could not be removed" in caplog.text
    assert _written(stream.checkpoint) == before
    table.append(rows(4))
    assert [row[0] for row in stream.drain(df)] == [4]


@pytest.mark.check
def test_a_store_that_does_not_delete_stops_no_stream(table, stream, rows, monkeypatch, caplog):
    _drain_batches(table, stream, rows, range(4), **CHANGES)
    before = _written(stream.checkpoint)

    def refused(self, paths):
        return {path: StorageError(f"cannot delete {path}: access denied") for path in paths}

    with monkeypatch.context() as patched:
        patched.setattr(FileIO, "delete_many", refused)
        stream.read(**CHANGES)
    assert "access denied" in caplog.text
    assert _written(stream.checkpoint) == before
    stream.read(**CHANGES)
    assert _written(stream.checkpoint) < before
