"""Processes that change one table at random: what was acknowledged, in order, gives the rows."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from changes_in_order import DDL, after, effect

from ci_share import only_in_soak
from frazil.spark.lake import Lake

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "table"))
from table_cases import open_catalog  # noqa: E402

pytestmark = pytest.mark.spark

START_SECONDS = 300
FIRST = [(key, "abc"[key % 3], key % 9, "old") for key in range(40)]
PROPERTIES = {
    "commit.retry.num-retries": "20",
    "commit.retry.min-wait-ms": "20",
    "commit.retry.max-wait-ms": "400",
}


def start(*arguments):
    root = HERE.parent.parent
    paths = [root / "src", HERE, HERE.parent / "table"]
    return subprocess.Popen(
        [sys.executable, str(HERE / "history_worker.py"), *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(map(str, paths))},
    )


def history(folder, kind, writers, seconds, isolation):
    """Run the workers; what each change was, and how it ended."""
    logs = [folder / f"log-{writer}" for writer in range(writers)]
    workers = [
        start(kind, folder, writer, seconds, isolation, log) for writer, log in enumerate(logs)
    ]
    try:
        patience = time.monotonic() + START_SECONDS
        while not all(log.exists() and log.read_text() for log in logs):
            assert time.monotonic() < patience, "the workers do not start"
            assert all(worker.poll() is None for worker in workers)
            time.sleep(0.1)
        (folder / "go").touch()
        for worker in workers:
            _, errors = worker.communicate(timeout=seconds + START_SECONDS)
            assert worker.returncode == 0, errors[-3000:]
    finally:
        for worker in workers:
            worker.kill()
    changes, ends = {}, {}
    for line in (line for log in logs for line in log.read_text().splitlines()):
        entry = json.loads(line)
        if "begins" in entry:
            changes[entry["begins"]["op"]] = entry["begins"]
        elif "ends" in entry:
            ends[entry["ends"]] = entry
    return changes, ends


CASES = [
    ("sql", "serializable", "merge-on-read", 3, 4, 8),
    *(
        only_in_soak(kind, isolation, mode, version, 8, 120)
        for kind, mode, version in [
            ("sql", "merge-on-read", 3),
            ("filesystem", "merge-on-read", 2),
            ("sql", "copy-on-write", 2),
        ]
        for isolation in ("serializable", "snapshot")
    ),
]


@pytest.mark.parametrize(("kind", "isolation", "mode", "version", "writers", "seconds"), CASES)
def test_acknowledged_changes_in_commit_order_give_the_rows_of_every_snapshot(
    spark, tmp_path, kind, isolation, mode, version, writers, seconds
):
    """Serializable: each acts on the rows of the snapshot before it. Snapshot: on those it read."""
    lake = Lake(spark, open_catalog(kind, tmp_path))
    lake.create_namespace("db")
    modes = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    table = lake.create_table(
        "db.t",
        DDL,
        partition_by=["p"],
        format_version=version,
        properties={**modes, **PROPERTIES},
    )
    table.append(spark.createDataFrame(FIRST, DDL).coalesce(1))
    changes, ends = history(tmp_path, kind, writers, seconds, isolation)
    table.refresh()
    # Every snapshot is of an acknowledged change, and each of them made one at most.
    snapshots = sorted(table.snapshot_list, key=lambda each: each.sequence_number)
    operations = [each.summary.get("op") for each in snapshots]
    assert operations[0] is None
    assert len(set(operations)) == len(operations)
    assert set(operations[1:]) <= {op for op, end in ends.items() if "refused" not in end}
    assert len(operations) > writers
    states = {snapshots[0].snapshot_id: Counter(FIRST)}
    for before, snapshot in itertools.pairwise(snapshots):
        assert snapshot.parent_snapshot_id == before.snapshot_id
        op = snapshot.summary["op"]
        rows, read = states[before.snapshot_id], ends[op]["read"]
        sees = rows if isolation == "serializable" or read is None else states[read]
        try:
            states[snapshot.snapshot_id] = after(rows, *effect(changes[op], sees))
        except AssertionError as wrong:
            raise AssertionError(f"{changes[op]}: {wrong}") from None
    # What was acknowledged without a snapshot had nothing to change in what it read.
    for op, end in ends.items():
        if op not in operations and end.get("read") is not None:
            assert not any(effect(changes[op], states[end["read"]])), changes[op]
    step = max(1, len(snapshots) // (12 if seconds < 60 else 60))
    for snapshot in [*snapshots[1:-1:step], snapshots[-1]]:
        found = table.scan(snapshot_id=snapshot.snapshot_id).to_df().collect()
        op = snapshot.summary.get("op")
        assert Counter(map(tuple, found)) == states[snapshot.snapshot_id], changes.get(op)
