"""Requirements and updates as the REST catalog's JSON; PyIceberg's model of it as a witness."""

from __future__ import annotations

import json
from typing import Any

import pytest
from metadata_cases import (
    ORDER,
    PARTITION_STATISTICS,
    SCHEMA,
    SPEC,
    STATISTICS,
    UUID,
    snapshot,
)
from pydantic import TypeAdapter, ValidationError
from pyiceberg.table.update import TableRequirement, TableUpdate

from frazil.errors import (
    InvalidMetadataError,
    UnsupportedError,
)
from frazil.format import changes as C
from frazil.format.metadata import (
    EncryptedKey,
)
from frazil.format.snapshots import SnapshotRef

EVERY_UPDATE: tuple[tuple[C.Update, dict[str, Any]], ...] = (
    (C.AssignUUID(UUID), {"action": "assign-uuid", "uuid": UUID}),
    (C.UpgradeFormatVersion(2), {"action": "upgrade-format-version", "format-version": 2}),
    (C.AddSchema(SCHEMA), {"action": "add-schema", "schema": SCHEMA.to_json()}),
    (C.SetCurrentSchema(), {"action": "set-current-schema", "schema-id": -1}),
    (C.AddSpec(SPEC), {"action": "add-spec", "spec": SPEC.to_json()}),
    (C.SetDefaultSpec(), {"action": "set-default-spec", "spec-id": -1}),
    (C.AddSortOrder(ORDER), {"action": "add-sort-order", "sort-order": ORDER.to_json()}),
    (C.SetDefaultSortOrder(3), {"action": "set-default-sort-order", "sort-order-id": 3}),
    (
        C.AddSnapshot(snapshot(2)),
        {
            "action": "add-snapshot",
            "snapshot": {
                "snapshot-id": 2,
                "parent-snapshot-id": 1,
                "sequence-number": 2,
                "timestamp-ms": 2000,
                "manifest-list": "s3://b/t/metadata/snap-2.avro",
                "summary": {"operation": "append"},
                "schema-id": 0,
            },
        },
    ),
    (
        C.SetSnapshotRef("dev", SnapshotRef(snapshot_id=5, type="tag", max_ref_age_ms=9)),
        {
            "action": "set-snapshot-ref",
            "ref-name": "dev",
            "snapshot-id": 5,
            "type": "tag",
            "max-ref-age-ms": 9,
        },
    ),
    (C.RemoveSnapshots((1, 2)), {"action": "remove-snapshots", "snapshot-ids": [1, 2]}),
    (C.RemoveSnapshotRef("dev"), {"action": "remove-snapshot-ref", "ref-name": "dev"}),
    (C.SetLocation("s3://c"), {"action": "set-location", "location": "s3://c"}),
    (C.SetProperties({"a": "b"}), {"action": "set-properties", "updates": {"a": "b"}}),
    (C.RemoveProperties(("a",)), {"action": "remove-properties", "removals": ["a"]}),
    (
        C.SetStatistics(STATISTICS),
        {
            "action": "set-statistics",
            "snapshot-id": 1,
            "statistics": {
                "snapshot-id": 1,
                "statistics-path": "s.puffin",
                "file-size-in-bytes": 10,
                "file-footer-size-in-bytes": 5,
                "blob-metadata": [
                    {
                        "type": "apache-datasketches-theta-v1",
                        "snapshot-id": 1,
                        "sequence-number": 1,
                        "fields": [1],
                    }
                ],
            },
        },
    ),
    (C.RemoveStatistics(1), {"action": "remove-statistics", "snapshot-id": 1}),
    (
        C.SetPartitionStatistics(PARTITION_STATISTICS),
        {
            "action": "set-partition-statistics",
            "partition-statistics": {
                "snapshot-id": 1,
                "statistics-path": "p.parquet",
                "file-size-in-bytes": 10,
            },
        },
    ),
    (C.RemovePartitionStatistics(1), {"action": "remove-partition-statistics", "snapshot-id": 1}),
    (C.RemovePartitionSpecs((1,)), {"action": "remove-partition-specs", "spec-ids": [1]}),
    (C.RemoveSchemas((1,)), {"action": "remove-schemas", "schema-ids": [1]}),
    (
        C.AddEncryptionKey(EncryptedKey(key_id="k", encrypted_key_metadata="bQ==")),
        {
            "action": "add-encryption-key",
            "encryption-key": {"key-id": "k", "encrypted-key-metadata": "bQ=="},
        },
    ),
    (C.RemoveEncryptionKey("k"), {"action": "remove-encryption-key", "key-id": "k"}),
)
EVERY_REQUIREMENT: tuple[tuple[C.Requirement, dict[str, Any]], ...] = (
    (C.AssertCreate(), {"type": "assert-create"}),
    (C.AssertTableUUID(UUID), {"type": "assert-table-uuid", "uuid": UUID}),
    (
        C.AssertRefSnapshotId("main", None),
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
    ),
    (
        C.AssertRefSnapshotId("main", 5),
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 5},
    ),
    (
        C.AssertLastAssignedFieldId(3),
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 3},
    ),
    (C.AssertCurrentSchemaId(1), {"type": "assert-current-schema-id", "current-schema-id": 1}),
    (
        C.AssertLastAssignedPartitionId(1000),
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
    ),
    (C.AssertDefaultSpecId(0), {"type": "assert-default-spec-id", "default-spec-id": 0}),
    (
        C.AssertDefaultSortOrderId(0),
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
    ),
)
# The updates that PyIceberg's model of the REST catalog does not have.
UNKNOWN_TO_PYICEBERG = {"add-encryption-key", "remove-encryption-key"}


@pytest.mark.parametrize(("update", "rest"), EVERY_UPDATE)
def test_update_json(update: C.Update, rest: dict[str, Any]) -> None:
    assert update.to_json() == rest
    assert C.update_from_json(json.loads(json.dumps(rest))) == update


@pytest.mark.parametrize(("update", "rest"), EVERY_UPDATE)
def test_pyiceberg_knows_the_update(update: C.Update, rest: dict[str, Any]) -> None:
    if rest["action"] in UNKNOWN_TO_PYICEBERG:
        with pytest.raises(ValidationError, match=rest["action"]):
            TypeAdapter(TableUpdate).validate_python(update.to_json())
        return
    theirs = TypeAdapter(TableUpdate).validate_python(update.to_json())
    assert theirs.action == rest["action"]


@pytest.mark.parametrize(("requirement", "rest"), EVERY_REQUIREMENT)
def test_requirement_json(requirement: C.Requirement, rest: dict[str, Any]) -> None:
    assert requirement.to_json() == rest
    assert C.requirement_from_json(rest) == requirement
    assert TypeAdapter(TableRequirement).validate_python(rest).type == rest["type"]


@pytest.mark.parametrize(
    "value", [None, [], {}, {"action": 1}, {"type": 1}, {"action": "add-spec"}]
)
def test_broken_json(value: Any) -> None:
    for reader in (C.update_from_json, C.requirement_from_json):
        with pytest.raises(InvalidMetadataError):
            reader(value)


def test_unknown_json() -> None:
    with pytest.raises(UnsupportedError, match="add-wings"):
        C.update_from_json({"action": "add-wings"})
    with pytest.raises(UnsupportedError, match="assert-wings"):
        C.requirement_from_json({"type": "assert-wings"})
