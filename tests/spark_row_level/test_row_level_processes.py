"""Processes that change one table at random: what was acknowledged, in order, gives the rows.

Some are killed in the middle of a merge: of what they were about to do there is all or nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from changes_in_order import DDL, after, effect

from ci_share import only_in_soak
from frazil.spark.lake import Lake
from programs import Program

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "table"))
from table_cases import open_catalog  # noqa: E402

pytestmark = pytest.mark.check

START_SECONDS = 300
MERGE_SECONDS = 3.0
"""A merge takes about so long; at some moment of them its process is killed."""

FIRST = [(key, "abc"[key % 3], key % 9, "old") for key in range(40)]
PROPERTIES = {
    "commit.retry.num-retries": "20",
    "commit.retry.min-wait-ms": "20",
    "commit.retry.max-wait-ms": "400",
}
SOAK_WRITERS = int(os.environ.get("FRAZIL_HISTORY_WRITERS", "8"))
SOAK_SECONDS = int(os.environ.get("FRAZIL_HISTORY_SECONDS", "120"))


class Workers:
    """Processes at work on one table."""

    def __init__(self, folder, kind, isolation):
        self.folder, self.kind, self.isolation = folder, kind, isolation
        self.numbers = itertools.count()
        self.running = {}
        self.logs = []

    def start(self, role="changes"):
        """Start one more, that changes rows or looks after the table."""
        number = next(self.numbers)
        log = self.folder / f"log-{number}"
        self.logs.append(log)
        arguments = [self.kind, self.folder, number, self.isolation, log, role]
        self.running[log] = Program(HERE / "history_worker.py", *arguments)

    def wait(self, is_so, what):
        """Wait until something is so."""
        patience = time.monotonic() + START_SECONDS
        while not is_so():
            assert time.monotonic() < patience, what
            for worker in self.running.values():
                assert worker.process.poll() is None, worker.said
            time.sleep(0.02)

    def are_ready(self):
        return all(log.exists() and log.read_text() for log in self.running)

    def in_a_merge(self):
        """The logs of those that have begun one."""
        found = []
        for log in self.running:
            lines = log.read_text().splitlines() if log.exists() else []
            if lines and '"begins"' in lines[-1] and '"kind": "merge"' in lines[-1]:
                found.append(log)
        return found

    def kill_one(self, chance):
        """Kill one at some moment of a merge."""
        self.wait(self.in_a_merge, "nobody merges")
        log = chance.choice(self.in_a_merge())
        time.sleep(chance.random() * MERGE_SECONDS)
        self.running.pop(log).kill()

    def stop(self):
        """Let all end what they do."""
        (self.folder / "stop").touch()
        for worker in self.running.values():
            worker.end(seconds=START_SECONDS)


def history(folder, kind, writers, seconds, isolation, kills):
    """Run workers; what each change was, and how those ended that did."""
    workers = Workers(folder, kind, isolation)
    chance = random.Random(kills)
    try:
        for number in range(writers):
            workers.start("maintenance" if number % 4 == 3 else "changes")
        workers.wait(workers.are_ready, "the workers do not start")
        (folder / "go").touch()
        end = time.monotonic() + seconds
        for left in reversed(range(kills)):
            workers.kill_one(chance)
            if left:
                # Only those that change rows are killed: one of them comes in its place.
                workers.start()
        time.sleep(max(0, end - time.monotonic()))
        workers.stop()
    finally:
        for worker in workers.running.values():
            worker.kill()
    changes, ends = {}, {}
    for line in (line for log in workers.logs for line in log.read_text().splitlines()):
        # A killed one may not have finished its last line.
        with contextlib.suppress(json.JSONDecodeError):
            entry = json.loads(line)
            if "begins" in entry:
                changes[entry["begins"]["op"]] = entry["begins"]
            elif "ends" in entry:
                ends[entry["ends"]] = entry
    return changes, ends


@pytest.fixture
def open_kind(request, tmp_path):
    """Give the kind of a catalog as `open_catalog` takes it."""

    def opened(kind):
        return request.getfixturevalue("postgres_url") if kind == "postgres" else kind

    return opened


SOAK = [
    ("sql", "serializable", "merge-on-read", 3),
    ("sql", "snapshot", "copy-on-write", 2),
    ("postgres", "serializable", "copy-on-write", 3),
    ("postgres", "snapshot", "merge-on-read", 3),
    ("filesystem", "serializable", "merge-on-read", 2),
    ("filesystem", "snapshot", "merge-on-read", 2),
]
CASES = [
    only_in_soak("sql", "serializable", "merge-on-read", 3, 2, 5, 1),
    *(only_in_soak(*each, SOAK_WRITERS, SOAK_SECONDS, 0) for each in SOAK),
    only_in_soak("sql", "serializable", "merge-on-read", 2, 2, 20, 10),
    only_in_soak("filesystem", "serializable", "copy-on-write", 3, 2, 20, 10),
    only_in_soak("postgres", "serializable", "merge-on-read", 3, SOAK_WRITERS, SOAK_SECONDS, 10),
    only_in_soak("sql", "snapshot", "merge-on-read", 2, SOAK_WRITERS, SOAK_SECONDS, 10),
]


@pytest.mark.parametrize(
    ("kind", "isolation", "mode", "version", "writers", "seconds", "kills"), CASES
)
def test_acknowledged_changes_in_commit_order_give_the_rows_of_every_snapshot(
    spark, tmp_path, open_kind, kind, isolation, mode, version, writers, seconds, kills
):
    """Serializable: each acts on the rows of the snapshot before it. Snapshot: on those it read."""
    catalog = open_kind(kind)
    lake = Lake(spark, open_catalog(catalog, tmp_path))
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
    changes, ends = history(tmp_path, catalog, writers, seconds, isolation, kills)
    table.refresh()
    # Every snapshot is of a change that was acknowledged, or whose process was killed, and each of
    # them made one at most.
    snapshots = sorted(table.metadata.snapshots, key=lambda each: each.sequence_number)
    operations = [each.summary.get("op") for each in snapshots]
    assert operations[0] is None
    assert len(set(operations)) == len(operations)
    refused = {op for op, end in ends.items() if "refused" in end}
    assert set(operations[1:]) <= set(changes) - refused
    cut_off = set(changes) - set(ends)
    assert len(cut_off) <= kills
    assert len(operations) > writers
    states = {snapshots[0].snapshot_id: Counter(FIRST)}
    for before, snapshot in itertools.pairwise(snapshots):
        assert snapshot.parent_snapshot_id == before.snapshot_id
        op = snapshot.summary["op"]
        rows, read = states[before.snapshot_id], ends.get(op, {}).get("read")
        sees = rows if isolation == "serializable" or read is None else states[read]
        try:
            states[snapshot.snapshot_id] = after(rows, *effect(changes[op], sees))
        except AssertionError as wrong:
            raise AssertionError(f"{changes[op]}: {wrong}") from None
    # What was acknowledged without a snapshot had nothing to change in what it read.
    for op in set(ends) - set(operations) - refused:
        change, read = changes[op], ends[op]["read"]
        assert change["kind"] not in ("append", "overwrite", "by key"), change
        assert read is None or not any(effect(change, states[read])), change
    for snapshot in snapshots:
        found = table.scan(snapshot_id=snapshot.snapshot_id).to_df().collect()
        op = snapshot.summary.get("op")
        assert Counter(map(tuple, found)) == states[snapshot.snapshot_id], changes.get(op)
    if kills:
        # What the killed ones left behind is nobody's: every row is written anew without it.
        table.update({"n": "n"}, "true")
        found = table.to_df().collect()
        assert Counter(map(tuple, found)) == states[snapshots[-1].snapshot_id]
