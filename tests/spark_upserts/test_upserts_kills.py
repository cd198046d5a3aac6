"""Processes killed within a batch, around its commit and before its checkpoint."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import pytest
from upsert_runner import CHANGES

from programs import run_program

RUNNER = Path(__file__).with_name("upsert_runner.py")
PLACES = ("write", "written", "commit", "committed", "time")
HANGS_AFTER = 1200
"""Seconds; a process takes 17 on a machine that does nothing else."""


def written_feed(folder, batches, seed):
    """A folder of changes, a file a batch, and the rows that come of them."""
    r, rows, sequence = random.Random(seed), {}, 0
    folder.mkdir()
    names = [part.split()[0] for part in CHANGES.split(", ")]
    for number in range(batches):
        lines = []
        for _ in range(30):
            sequence += 1
            key, part = r.randrange(25), r.choice(["x", "y", None])
            if r.random() < 0.3:
                rows.pop(key, None)
                change = (key, None, None, "d", sequence)
            else:
                rows[key] = (f"v{sequence}", part)
                change = (key, *rows[key], "u", sequence)
            lines.append(json.dumps(dict(zip(names, change, strict=True))))
        r.shuffle(lines)
        file = folder / f"{number:05}.json"
        file.write_text("\n".join(lines))
        # Spark takes files in the order of their times.
        os.utime(file, (1_700_000_000 + number,) * 2)
    return rows


def killed(lake, tmp_path, deaths, batches=6, seed=0):
    """Let processes die one after the other, then drain here and compare."""
    expected = written_feed(tmp_path / "feed", batches, seed)
    table = lake.create_table(
        "db.t", "id bigint, name string, part string", partition_by=["part"], format_version=2
    )
    places = [str(tmp_path / name) for name in ("lake", "feed", "checkpoint")]
    for where, when in deaths:
        # A process may have drained the feed before its time had come.
        ends = (-signal.SIGKILL, 0)
        run_program(RUNNER, *places, where, when, code=ends, seconds=HANGS_AFTER)
    reader = lake.spark.readStream.schema(CHANGES).option("maxFilesPerTrigger", 1)
    query = table.upsert_stream(
        reader.json(places[1], pathGlobFilter="*.json"),
        keys="id",
        op="op",
        order_by="seq",
        mode="equality-deletes",
        checkpoint=places[2],
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    found = [tuple(row) for row in table.refresh().scan().to_df().collect()]
    assert sorted(found, key=repr) == sorted(
        ((key, *row) for key, row in expected.items()), key=repr
    )
    numbers = [snapshot.summary["frazil.stream.batch-id"] for snapshot in table.metadata.snapshots]
    assert sorted(map(int, numbers)) == list(range(batches))


@pytest.mark.soak
def test_killed_after_a_commit(lake, tmp_path):
    killed(lake, tmp_path, [("committed", 2)], batches=3)


@pytest.mark.soak
def test_killed_after_a_commit_and_within_a_write(lake, tmp_path):
    killed(lake, tmp_path, [("committed", 2), ("written", 1)])


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_killed_again_and_again(lake, tmp_path, part):
    """Two hundred deaths, in parts that each take a quarter of an hour."""
    r = random.Random(7 + part)
    deaths = [
        (where, r.randrange(1, 100) if where == "time" else r.randrange(1, 4))
        for where in r.choices(PLACES, k=50)
    ]
    killed(lake, tmp_path, deaths, batches=75, seed=part)
