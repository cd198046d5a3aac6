"""Which snapshots a range holds, by ids and by times, over branches and expired history."""

from dataclasses import replace

import pytest

from frazil.errors import NoSuchSnapshotError, ValidationError
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import UNPARTITIONED
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import LongType, NestedField
from frazil.planning.changes_range import snapshot_range


def table(*snapshots, current):
    """A table of (id, parent, time) snapshots."""
    metadata = new_table_metadata(
        Schema((NestedField(1, "id", LongType()),)), UNPARTITIONED, location="file:///t"
    )
    made = tuple(
        Snapshot(snapshot_id=i, parent_snapshot_id=parent, timestamp_ms=time, sequence_number=n)
        for n, (i, parent, time) in enumerate(snapshots, 1)
    )
    return replace(metadata, snapshots=made, current_snapshot_id=current)


# main: 1 - 2 - 3 - 4; a branch of 2: 9.
WHOLE = table((1, None, 10), (2, 1, 20), (3, 2, 30), (9, 2, 35), (4, 3, 40), current=4)
# 1 has expired.
CUT = table((2, 1, 20), (3, 2, 30), (4, 3, 40), current=4)
EMPTY = table(current=None)
# 2 has expired between the two that are kept.
HOLE = table((1, None, 10), (3, 2, 30), (4, 3, 40), current=4)


@pytest.mark.parametrize(
    ("metadata", "asked", "expected"),
    [
        (WHOLE, {}, [1, 2, 3, 4]),
        (WHOLE, {"from_snapshot_id": 1}, [2, 3, 4]),
        (WHOLE, {"from_snapshot_id": 2, "to_snapshot_id": 3}, [3]),
        (WHOLE, {"from_snapshot_id": 4, "to_snapshot_id": 4}, []),
        (WHOLE, {"from_snapshot_id": 1, "to_snapshot_id": 9}, [2, 9]),
        (WHOLE, {"from_timestamp_ms": 20}, [3, 4]),
        (WHOLE, {"from_timestamp_ms": 19}, [2, 3, 4]),
        (WHOLE, {"from_timestamp_ms": 0}, [1, 2, 3, 4]),
        (WHOLE, {"from_timestamp_ms": 99}, []),
        (WHOLE, {"from_timestamp_ms": 10, "to_timestamp_ms": 39}, [2, 3]),
        (WHOLE, {"to_timestamp_ms": 20}, [1, 2]),
        (WHOLE, {"to_timestamp_ms": 9}, []),
        (WHOLE, {"from_snapshot_id": 1, "to_timestamp_ms": 30}, [2, 3]),
        (CUT, {"from_snapshot_id": 1}, [2, 3, 4]),
        (CUT, {"from_timestamp_ms": 20}, [3, 4]),
        (EMPTY, {}, []),
        (EMPTY, {"from_timestamp_ms": 1}, []),
    ],
)
def test_ranges(metadata, asked, expected):
    found = snapshot_range(metadata, **asked)
    assert [snapshot.snapshot_id for snapshot in found.snapshots] == expected


@pytest.mark.parametrize(
    ("metadata", "asked", "error", "told"),
    [
        (WHOLE, {"from_snapshot_id": 9}, ValidationError, "snapshot 9 is not an ancestor of"),
        (WHOLE, {"from_snapshot_id": 3, "to_snapshot_id": 2}, ValidationError, "3 is not an"),
        (WHOLE, {"from_snapshot_id": 7}, NoSuchSnapshotError, "no snapshot 7"),
        (WHOLE, {"to_snapshot_id": 7}, NoSuchSnapshotError, "no snapshot 7"),
        (EMPTY, {"from_snapshot_id": 1}, NoSuchSnapshotError, "no snapshot 1"),
        (CUT, {}, NoSuchSnapshotError, "snapshot 1, the parent of snapshot 2, has expired"),
        (CUT, {"from_timestamp_ms": 19}, NoSuchSnapshotError, "has expired"),
        (CUT, {"to_timestamp_ms": 19}, NoSuchSnapshotError, "has expired"),
        (
            HOLE,
            {"from_snapshot_id": 1},
            NoSuchSnapshotError,
            "snapshot 2, the parent of snapshot 3",
        ),
        (WHOLE, {"from_timestamp_ms": 2, "to_timestamp_ms": 1}, ValidationError, "is after"),
        (WHOLE, {"from_timestamp_ms": 2, "from_snapshot_id": 1}, ValidationError, "not both"),
        (WHOLE, {"to_timestamp_ms": 2, "to_snapshot_id": 1}, ValidationError, "not both"),
    ],
)
def test_ranges_that_are_not_there(metadata, asked, error, told):
    with pytest.raises(error, match=told):
        snapshot_range(metadata, **asked)


def test_the_rows_before_an_expired_snapshot_are_not_known():
    found = snapshot_range(CUT, from_snapshot_id=1)
    assert found.parent_of(1).snapshot_id == 2
    with pytest.raises(NoSuchSnapshotError, match="snapshot 1 has expired"):
        found.parent_of(0)
