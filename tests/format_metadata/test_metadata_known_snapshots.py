"""Snapshots that are known already are not made again, and nothing else comes of it."""

import copy
import json

import pytest

from frazil.errors import InvalidMetadataError
from frazil.format.metadata import metadata_from_json

SNAPSHOTS = [
    {
        "sequence-number": number,
        "snapshot-id": 100 + number,
        **({"parent-snapshot-id": 99 + number} if number > 1 else {}),
        "timestamp-ms": 1_700_000_000_000 + number,
        "summary": {"operation": "append", "added-records": str(number)},
        "manifest-list": f"s3://b/t/metadata/{number}.avro",
        "schema-id": 0,
    }
    for number in (1, 2, 3)
]
METADATA = {
    "format-version": 2,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "s3://b/t",
    "last-sequence-number": 3,
    "last-updated-ms": 1_700_000_000_009,
    "last-column-id": 1,
    "current-schema-id": 0,
    "schemas": [
        {
            "type": "struct",
            "schema-id": 0,
            "fields": [{"id": 1, "name": "a", "required": False, "type": "int"}],
        }
    ],
    "default-spec-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "last-partition-id": 999,
    "default-sort-order-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "current-snapshot-id": 103,
    "snapshots": SNAPSHOTS,
}


def told(**changes):
    """The metadata as JSON, with other values of the second snapshot; None leaves one out."""
    given = copy.deepcopy(METADATA)
    second = {**given["snapshots"][1], **changes}
    given["snapshots"][1] = {name: value for name, value in second.items() if value is not None}
    return json.loads(json.dumps(given))


def test_known_snapshots_are_the_same_objects():
    known = metadata_from_json(told())
    again = metadata_from_json(told(), known=known)
    assert again == known
    assert all(a is b for a, b in zip(again.snapshots, known.snapshots, strict=True))


@pytest.mark.parametrize(
    "changes",
    [
        {"timestamp-ms": 1_700_000_000_005},
        {"sequence-number": 3},
        {"manifest-list": "s3://b/t/metadata/other.avro"},
        {"summary": {"operation": "append", "added-records": "7"}},
        {"summary": None},
        {"schema-id": None},
        {"parent-snapshot-id": -1},
        {"key-id": "k"},
        {"added-rows": 7},
        {"snapshot-id": 112},
    ],
)
def test_a_snapshot_that_is_told_otherwise_is_read(changes):
    known = metadata_from_json(told())
    alone = metadata_from_json(told(**changes))
    beside = metadata_from_json(told(**changes), known=known)
    assert beside == alone
    assert beside.snapshots[1] != known.snapshots[1]
    assert beside.snapshots[0] is known.snapshots[0]


@pytest.mark.parametrize(
    "changes",
    [{"snapshot-id": [1]}, {"snapshot-id": "102"}, {"timestamp-ms": "x"}, {"summary": {"a": 1}}],
)
def test_what_is_malformed_is_refused_as_ever(changes):
    known = metadata_from_json(told())
    with pytest.raises(InvalidMetadataError):
        metadata_from_json(told(**changes), known=known)


def test_metadata_of_another_version_is_read_whole():
    known = metadata_from_json(told())
    newer = {**told(), "format-version": 3, "next-row-id": 0}
    assert metadata_from_json(newer, known=known) == metadata_from_json(newer)
