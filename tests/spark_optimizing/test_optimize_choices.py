"""What is chosen of which files: each case is a table of files and deletes, and the expectation."""

import dataclasses

import polars as pl
import pytest

from frazil.format.new_table import new_table_metadata
from frazil.format.predicates.expressions import AlwaysTrue
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import LongType, NestedField
from frazil.planning.deletes.index import DeleteIndex
from frazil.planning.scan_plan import ScanPlan
from frazil.table.maintenance.optimizing.choices import OptimizingKind, Work
from frazil.table.maintenance.optimizing.planner import plan_optimizing
from frazil.table.maintenance.optimizing.settings import OptimizingSettings

MIB = 1 << 20
NOW = 10_000_000_000
MINUTE = 60_000
HOUR = 60 * MINUTE
OLD, NEW = 1, 2
"""Snapshots of two hours and of a minute ago."""

MINOR = (OptimizingKind.MINOR, Work.REWRITE_FILES)
MAJOR = (OptimizingKind.MAJOR, Work.REWRITE_FILES)
FULL = (OptimizingKind.FULL, Work.REWRITE_FILES)
CONVERT = (OptimizingKind.MINOR, Work.CONVERT)
DELETES = (OptimizingKind.MINOR, Work.REWRITE_DELETES)


def data(*sizes_in_mib, age=NEW, rows=1000):
    """Data files of sizes."""
    return [(size * MIB, age, rows) for size in sizes_in_mib]


def by_key(*of, rows=10, age=NEW):
    """An equality delete file that applies to files."""
    return (2, "parquet", rows, age, of)


def by_position(*of, rows=10, age=NEW, file_format="parquet"):
    """A position delete file, or a vector, that applies to files."""
    return (1, file_format, rows, age, of)


def vector(of, rows=10):
    return by_position(of, rows=rows, file_format="puffin")


def planned(files, deletes=(), *, version=2, **properties):
    """What is chosen of an unpartitioned table."""
    metadata = dataclasses.replace(
        new_table_metadata(
            Schema((NestedField(1, "id", LongType()),)), location="/t", format_version=version
        ),
        snapshots=(
            Snapshot(snapshot_id=OLD, timestamp_ms=NOW - 2 * HOUR),
            Snapshot(snapshot_id=NEW, timestamp_ms=NOW - MINUTE),
        ),
    )
    count = len(files)
    data_frame = pl.DataFrame(
        {
            "ordinal": list(range(count)),
            "file_path": [f"/t/{i}.parquet" for i in range(count)],
            "file_size_in_bytes": [size for size, _, _ in files],
            "record_count": [rows for _, _, rows in files],
            "snapshot_id": [age for _, age, _ in files],
            "spec_id": pl.Series([0] * count, dtype=pl.Int32),
            "partition": pl.Series([None] * count, dtype=pl.Null),
        },
        schema_overrides={
            "ordinal": pl.Int64, "file_size_in_bytes": pl.Int64, "snapshot_id": pl.Int64,
            "record_count": pl.Int64, "file_path": pl.String,
        },
    )  # fmt: skip
    pairs = [(of, i) for i, delete in enumerate(deletes) for of in delete[4]]
    delete_frame = pl.DataFrame(
        {
            "delete": list(range(len(deletes))),
            "content": [each[0] for each in deletes],
            "file_path": [f"/t/d{i}" for i in range(len(deletes))],
            "file_format": [each[1] for each in deletes],
            "record_count": [each[2] for each in deletes],
            "snapshot_id": [each[3] for each in deletes],
            "file_size_in_bytes": [1000] * len(deletes),
            "spec_id": pl.Series([0] * len(deletes), dtype=pl.Int32),
            "partition": pl.Series([None] * len(deletes), dtype=pl.Null),
            "content_offset": [0] * len(deletes),
            "referenced_data_file": [
                f"/t/{each[4][0]}.parquet" if len(each[4]) == 1 and each[0] == 1 else None
                for each in deletes
            ],
        },
        schema_overrides={
            "delete": pl.Int64, "content": pl.Int32, "file_path": pl.String,
            "file_format": pl.String, "record_count": pl.Int64, "snapshot_id": pl.Int64,
            "file_size_in_bytes": pl.Int64, "content_offset": pl.Int64,
            "referenced_data_file": pl.String,
        },
    )  # fmt: skip
    index = DeleteIndex(
        pl.DataFrame(pairs, schema={"ordinal": pl.Int64, "delete": pl.Int64}, orient="row")
    )
    plan = ScanPlan(
        snapshot_id=NEW,
        schema=metadata.schema,
        where=AlwaysTrue(),
        residual=AlwaysTrue(),
        files=data_frame,
        deletes=delete_frame,
        delete_index=index,
    )
    named = {f"self-optimizing.{name}": text for name, text in properties.items()}
    return plan_optimizing(metadata, plan, OptimizingSettings.of(named), now_ms=NOW)


GOOD = 120
"""Of the target of 128 MiB, files from 96 MiB on are good, those up to 16 MiB are fragments."""

CASES = {
    "nothing": ([], [], {}, []),
    "good files": (data(GOOD, GOOD, GOOD), [], {}, []),
    "one fragment": (data(1, age=OLD), [], {}, []),
    "few new fragments": (data(1, 2, 3), [], {}, []),
    "fragments that waited for an hour": (data(1, 2, 3, age=OLD), [], {}, [(MINOR, 3)]),
    "fragments of expired snapshots": (data(1, 2, age=99), [], {}, [(MINOR, 2)]),
    "twelve new fragments": (data(*[1] * 12), [], {}, [(MINOR, 12)]),
    "eleven": (data(*[1] * 11), [], {}, []),
    "good files stay out of a minor run": (data(GOOD, *[1] * 12), [], {}, [(MINOR, 12)]),
    "another count": (data(1, 2), [], {"minor.trigger.file-count": "2"}, [(MINOR, 2)]),
    "the limits of a fragment": (data(16, 16.01, age=OLD), [], {}, []),
    "another fragment ratio": (
        data(20, 20, age=OLD), [], {"fragment-ratio": "4"}, [(MINOR, 2)],
    ),
    "undersized files that make a good one": (data(60, 60, 60), [], {}, [(MAJOR, 3)]),
    "undersized files that make no good one": (data(40, 40), [], {}, []),
    "of which no two fit together": (data(80, 80), [], {}, []),
    "a smaller target": (
        data(60, 60, 60), [], {"target-size": str(64 * MIB)}, [],
    ),
    "one equality delete is new": (data(GOOD), [by_key(0)], {}, []),
    "one equality delete waited": (data(GOOD), [by_key(0, age=OLD)], {}, [(CONVERT, 1)]),
    "position delete files that would cost more": (
        data(*[GOOD] * 9), [by_key(*range(9), age=OLD)], {}, [],
    ),
    "one Puffin file does not": (
        data(*[GOOD] * 9), [by_key(*range(9), age=OLD)], {"version": 3}, [(CONVERT, 1)],
    ),
    "twelve equality deletes": (data(GOOD), [by_key(0)] * 12, {}, [(CONVERT, 12)]),
    "a rewrite applies equality deletes": (
        data(*[1] * 6), [by_key(0)] * 6, {}, [(MINOR, 6)],
    ),
    "fragments and equality deletes of a good file": (
        data(*[1] * 6, GOOD), [by_key(6)] * 6, {}, [(MINOR, 6)],
    ),
    "a tenth by position": (data(GOOD), [by_position(0, rows=100)], {}, []),
    "more than a tenth by position": (data(GOOD), [by_position(0, rows=101)], {}, [(MAJOR, 1)]),
    "vectors are cheap": (data(GOOD), [vector(0, rows=299)], {"version": 3}, []),
    "a large vector": (data(GOOD), [vector(0, rows=301)], {"version": 3}, [(MAJOR, 1)]),
    "a ratio holds for vectors too": (
        data(GOOD),
        [vector(0, rows=101)],
        {"version": 3, "major.trigger.duplicate-ratio": "0.1"},
        [(MAJOR, 1)],
    ),
    "equality deletes tell nothing of a ratio": (data(GOOD), [by_key(0, rows=900)], {}, []),
    "only the files of deleted rows": (
        data(GOOD, GOOD), [by_position(1, rows=500)], {}, [(MAJOR, 1)],
    ),
    "two position delete files of a file": (
        data(GOOD), [by_position(0), by_position(0)], {}, [(DELETES, 2)],
    ),
    "one of each file": (data(GOOD, GOOD), [by_position(0), by_position(1)], {}, []),
    "position delete files after an upgrade": (
        data(GOOD), [by_position(0)], {"version": 3}, [(DELETES, 1)],
    ),
    "vectors in many files": (
        data(*[GOOD] * 12), [vector(i) for i in range(12)], {"version": 3}, [(DELETES, 12)],
    ),
    "vectors in few files": (
        data(*[GOOD] * 11), [vector(i) for i in range(11)], {"version": 3}, [],
    ),
    "no full run unless it is asked for": (data(GOOD, age=OLD), [by_position(0)], {}, []),
    "a full run": (
        data(GOOD, GOOD, age=OLD),
        [by_position(0)],
        {"full.trigger.interval": str(HOUR)},
        [(FULL, 2)],
    ),
    "a full run leaves good files": (
        data(GOOD, GOOD, age=OLD),
        [by_position(0)],
        {"full.trigger.interval": str(HOUR), "full.rewrite-all-files": "false"},
        [(FULL, 1)],
    ),
    "a full run has time": (
        data(GOOD, GOOD), [by_position(0)], {"full.trigger.interval": str(HOUR)}, [],
    ),
    "a full run with nothing to do": (
        data(GOOD, GOOD, age=OLD), [], {"full.trigger.interval": str(HOUR)}, [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_choices(name):
    files, deletes, settings, expected = CASES[name]
    plan = planned([(int(size), *rest) for size, *rest in files], deletes, **settings)
    found = [((each.kind, each.work), each.files) for each in plan.choices]
    assert sorted(found) == sorted(expected), plan
    assert all(each.reason and each.cost_seconds > 0 for each in plan.choices)


def test_the_largest_gain_comes_first_and_the_rest_is_left_to_the_next_run():
    files = data(*[1] * 12) + data(60, 60, 60)
    plan = planned(files)
    assert [each.files for each in plan.choices] == [12, 3]
    assert plan.choices[0].gain_seconds > plan.choices[1].gain_seconds > 0
    first = planned(files, **{"max-file-count": "12"})
    assert [each.files for each in first.choices] == [12]
    assert [each.files for each in first.postponed] == [3]
    assert [each.files for each in planned(files, **{"max-file-count": "1"}).choices] == [12]


def test_health():
    assert planned([]).health.score == 100
    assert planned(data(GOOD, GOOD)).health.score == 100
    assert planned(data(1)).health.score == 100
    # Ten files that one would hold: nine tenths of 40 points.
    assert planned(data(*[1] * 10)).health.score == 64
    # A tenth of the rows by value is all of 40, a fifth by position all of 20.
    assert planned(data(GOOD), [by_key(0, rows=100)]).health.score == 60
    assert planned(data(GOOD), [by_position(0, rows=200)]).health.score == 80
    assert planned(data(GOOD), [by_position(0, rows=100)]).health.score == 90
    # A vector counts a third.
    assert planned(data(GOOD), [vector(0, rows=300)], version=3).health.score == 90
    worst = planned(data(GOOD), [by_key(0, rows=900), by_position(0, rows=900)])
    assert worst.health.score == 40
    assert "equality deletes −40" in repr(worst)
