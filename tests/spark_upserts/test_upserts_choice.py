"""How `mode="auto"` chooses, by the counts that the snapshot before states."""

import pytest

from frazil.errors import UnsupportedError
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import LongType, NestedField
from frazil.spark.upserts.choice import chosen

SCHEMA = Schema((NestedField(1, "id", LongType()),))


def table(version=2, **properties):
    return new_table_metadata(
        SCHEMA, location="file:///nowhere", format_version=version, properties=properties
    )


def holding(rows=None, deletes=None):
    totals = {"total-records": rows, "total-equality-deletes": deletes}
    stated = {name: str(count) for name, count in totals.items() if count is not None}
    return Snapshot(
        snapshot_id=1, timestamp_ms=0, sequence_number=1, manifest_list="x", summary=stated
    )


@pytest.mark.parametrize(
    ("head", "changes", "mode", "says"),
    [
        (None, 5, "merge", "the table's 0 rows are few"),
        (holding(100_000, 0), 1, "merge", "the table's 100000 rows are few"),
        (holding(100_001, 0), 1, "equality-deletes", "1 changes and 0 equality deletes are few"),
        (holding(100_001), 1, "equality-deletes", "1 changes and 0 equality deletes are few"),
        (holding(), 1, "equality-deletes", "does not state its rows"),
        (holding(1_000_000, 0), 100_000, "merge", "100000 changes are much beside"),
        (holding(1_000_000, 0), 99_999, "equality-deletes", "99999 changes and 0 equality"),
        (holding(1_000_000, 99_999), 1, "equality-deletes", "and 99999 equality deletes are few"),
        (holding(1_000_000, 99_999), 2, "merge", "100001 equality deletes would be much"),
    ],
)
def test_each_branch_and_its_edge(head, changes, mode, says):
    found = chosen("auto", table(), head, changes)
    assert found.mode == mode
    assert says in found.reason


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        (table(1), "format version 1"),
        (table(**{"write.delete.format.default": "avro"}), "are to be avro"),
        (table(**{"write.format.default": "orc"}), "are to be orc"),
    ],
)
def test_a_table_without_equality_deletes(metadata, says):
    large = holding(1_000_000, 0)
    found = chosen("auto", metadata, large, 1)
    assert (found.mode, says in found.reason) == ("merge", True)
    assert chosen("merge", metadata, large, 1).reason == "asked for"
    with pytest.raises(UnsupportedError, match=says):
        chosen("equality-deletes", metadata, large, 1)


def test_what_is_asked_for_is_taken():
    for mode in ("merge", "equality-deletes"):
        found = chosen(mode, table(), holding(100, 100), 1)
        assert (found.mode, found.reason) == (mode, "asked for")
