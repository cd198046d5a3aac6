"""Requirements and updates: what holds, what they do, and PyIceberg as an independent model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from metadata_cases import (
    ID,
    ORDER,
    PARTITION_STATISTICS,
    SCHEMA,
    SPEC,
    STATISTICS,
    UUID,
    WIDER,
    branch,
    commit,
    history,
    snapshot,
    table,
)
from pydantic import TypeAdapter
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update import TableUpdate, update_table_metadata

from frazil.errors import (
    CommitFailedError,
    OutdatedUpdateError,
    UnsupportedVersionError,
    ValidationError,
)
from frazil.format.changes import (
    AddEncryptionKey,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AddSpec,
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    Requirement,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    Update,
    UpgradeFormatVersion,
    apply_updates,
    check_requirements,
    dropped_metadata_files,
    with_previous_metadata,
)
from frazil.format.metadata import (
    EncryptedKey,
    TableMetadata,
    metadata_from_json,
    metadata_to_bytes,
)
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import PartitionSpec, spec_for
from frazil.format.schema import Schema
from frazil.format.snapshots import MetadataLogEntry, SnapshotRef
from frazil.format.sorting import UNSORTED
from frazil.format.types import (
    NestedField,
    TimestampNanoType,
)

BASE = history(2)
HOLDING: tuple[Requirement, ...] = (
    AssertTableUUID(UUID.upper()),
    AssertRefSnapshotId("main", 2),
    AssertRefSnapshotId("dev", None),
    AssertLastAssignedFieldId(2),
    AssertCurrentSchemaId(0),
    AssertLastAssignedPartitionId(1000),
    AssertDefaultSpecId(0),
    AssertDefaultSortOrderId(0),
)


def test_requirements_that_hold() -> None:
    check_requirements(BASE, HOLDING)
    check_requirements(None, [AssertCreate()])
    check_requirements(table(), [AssertRefSnapshotId("main", None)])


@pytest.mark.parametrize(
    ("requirement", "expected", "found"),
    [
        (AssertCreate(), "no table", "already exists"),
        (AssertTableUUID("another"), "another", UUID),
        (AssertRefSnapshotId("main", 1), "1", "2"),
        (AssertRefSnapshotId("main", None), "no reference", "2"),
        (AssertRefSnapshotId("dev", 7), "7", "no such reference"),
        (AssertLastAssignedFieldId(7), "7", "2"),
        (AssertCurrentSchemaId(7), "7", "0"),
        (AssertLastAssignedPartitionId(7), "7", "1000"),
        (AssertDefaultSpecId(7), "7", "0"),
        (AssertDefaultSortOrderId(7), "7", "0"),
    ],
)
def test_requirements_that_fail(requirement: Requirement, expected: str, found: str) -> None:
    with pytest.raises(CommitFailedError, match=f"expected .*{expected}.* found .*{found}"):
        check_requirements(BASE, [*HOLDING, requirement])


@pytest.mark.parametrize("requirement", HOLDING)
def test_no_table_fails_every_requirement_but_creation(requirement: Requirement) -> None:
    with pytest.raises(CommitFailedError, match="there is none"):
        check_requirements(None, [requirement])


SEQUENCES: dict[str, Sequence[Update]] = {
    "schema": [AddSchema(WIDER.with_id(1)), SetCurrentSchema()],
    "spec": [AddSpec(PartitionSpec(1, ())), SetDefaultSpec()],
    "order": [AddSortOrder(ORDER), SetDefaultSortOrder()],
    "append": [AddSnapshot(snapshot(3)), SetSnapshotRef("main", branch(3))],
    "staged": [AddSnapshot(snapshot(3))],
    "branch and tag": [
        SetSnapshotRef("dev", branch(1)),
        SetSnapshotRef("v1", SnapshotRef(snapshot_id=1, type="tag", max_ref_age_ms=5)),
    ],
    "drop branch": [SetSnapshotRef("dev", branch(1)), RemoveSnapshotRef("dev")],
    "roll back": [SetSnapshotRef("main", branch(1))],
    "properties": [SetProperties({"a": "1", "b": "2"}), RemoveProperties(("a",))],
    "location": [SetLocation("s3://elsewhere")],
    "statistics": [SetStatistics(STATISTICS), SetPartitionStatistics(PARTITION_STATISTICS)],
    "statistics gone": [SetStatistics(STATISTICS), RemoveStatistics(1)],
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_pyiceberg_applies_updates_alike(name: str) -> None:
    """The same updates by PyIceberg's `update_table_metadata`; times of change apart."""
    ours = apply_updates(BASE, SEQUENCES[name], now_ms=9000)
    theirs_base = TableMetadataUtil.parse_raw(metadata_to_bytes(BASE).decode())
    adapter: TypeAdapter[Any] = TypeAdapter(TableUpdate)
    their_updates = tuple(adapter.validate_python(u.to_json()) for u in SEQUENCES[name])
    applied = update_table_metadata(theirs_base, their_updates)
    theirs = metadata_from_json(json.loads(applied.model_dump_json()))
    assert _without_times(ours) == _without_times(theirs)


def _without_times(metadata: TableMetadata) -> TableMetadata:
    log = tuple(replace(entry, timestamp_ms=0) for entry in metadata.snapshot_log)
    return replace(metadata, last_updated_ms=0, snapshot_log=log)


def test_equal_schemas_specs_and_orders_are_reused() -> None:
    """Rules 43, 73; -1 then means the one that was there."""
    metadata = apply_updates(BASE, [AddSchema(WIDER), SetCurrentSchema()])
    assert (metadata.current_schema_id, metadata.last_column_id) == (1, 3)
    back = apply_updates(
        metadata,
        [
            AddSchema(SCHEMA.with_id(77)),
            SetCurrentSchema(),
            AddSpec(SPEC.with_id(12)),
            SetDefaultSpec(),
            AddSortOrder(UNSORTED),
            SetDefaultSortOrder(),
        ],
    )
    assert (back.current_schema_id, len(back.schemas), back.last_column_id) == (0, 2, 3)
    assert (back.default_spec_id, len(back.partition_specs)) == (0, 1)
    assert (back.default_sort_order_id, len(back.sort_orders)) == (0, 1)


def test_ids_of_a_new_schema_spec_and_order() -> None:
    metadata = apply_updates(
        BASE,
        [
            AddSchema(WIDER.with_id(0), last_column_id=10),
            SetCurrentSchema(),
            AddSpec(
                PartitionSpec(0, (replace(spec_for(WIDER, ["name"]).fields[0], field_id=1001),))
            ),
            SetDefaultSpec(),
            AddSortOrder(ORDER.with_id(9)),
            SetDefaultSortOrder(),
        ],
    )
    assert (metadata.schema.schema_id, metadata.last_column_id) == (1, 10)
    assert (metadata.spec.spec_id, metadata.last_partition_id) == (1, 1001)
    assert metadata.sort_order.order_id == 1


def test_order_0_is_unsorted_whether_or_not_it_is_listed() -> None:
    """Rule 94. The default is listed, since other readers look it up there."""
    listed = [AddSortOrder(ORDER), SetDefaultSortOrder()]
    both = apply_updates(BASE, listed)
    made_sorted = replace(both, sort_orders=both.sort_orders[1:])
    assert [order.order_id for order in made_sorted.sort_orders] == [1]
    for metadata in (both, made_sorted):
        assert metadata.sort_order_by_id(0) is UNSORTED
        back = apply_updates(metadata, [SetDefaultSortOrder(0)])
        assert sorted(order.order_id for order in back.sort_orders) == [0, 1]
        assert back.sort_order.is_unsorted
        assert metadata_from_json(json.loads(metadata_to_bytes(back))) == back


def test_properties_that_are_not_there_can_be_removed() -> None:
    assert apply_updates(BASE, [RemoveProperties(("zzz",))]) is BASE


def test_nothing_changed_is_the_same_metadata() -> None:
    assert apply_updates(BASE, [], now_ms=99) is BASE
    assert apply_updates(BASE, [SetLocation(BASE.location)], now_ms=99) is BASE
    assert apply_updates(BASE, [SetSnapshotRef("main", branch(2))], now_ms=99) is BASE


def test_snapshot_log_of_appends_and_roll_back() -> None:
    """Rule 189: an entry for each change of main, with the time of the change."""
    rolled_back = apply_updates(history(3), [SetSnapshotRef("main", branch(1))], now_ms=7000)
    log = [(entry.timestamp_ms, entry.snapshot_id) for entry in rolled_back.snapshot_log]
    assert log == [(1000, 1), (2000, 2), (3000, 3), (7000, 1)]
    assert rolled_back.last_updated_ms == 7000
    assert rolled_back.current_snapshot_id == 1
    kept = replace(branch(1), min_snapshots_to_keep=3)
    retention = apply_updates(rolled_back, [SetSnapshotRef("main", kept)], now_ms=8000)
    assert retention.snapshot_log == rolled_back.snapshot_log


def test_a_gap_in_the_log_takes_what_is_before_it() -> None:
    """Rule 189: with 2 of (1, 2, 3) gone, time travel to 1 would be wrong."""
    metadata = apply_updates(history(3), [RemoveSnapshots((2,))], now_ms=9000)
    assert [entry.snapshot_id for entry in metadata.snapshot_log] == [3]
    assert [one.snapshot_id for one in metadata.snapshots] == [1, 3]


def test_snapshots_passed_through_in_one_commit_are_not_in_the_log() -> None:
    updates: list[Update] = []
    for number in (3, 4):
        updates += [AddSnapshot(snapshot(number)), SetSnapshotRef("main", branch(number))]
    metadata = apply_updates(BASE, updates)
    assert [entry.snapshot_id for entry in metadata.snapshot_log] == [1, 2, 4]
    assert metadata.last_updated_ms == 4000


def test_logs_never_run_backwards() -> None:
    """A writer whose clock is behind: other readers refuse a log that is not in order."""
    late = commit(history(2), snapshot(3, timestamp_ms=5))
    assert late.snapshot_log[-1].timestamp_ms == 2000
    assert late.last_updated_ms == 2000


def test_expired_snapshots_take_statistics_and_no_reference() -> None:
    metadata = apply_updates(
        history(3),
        [
            SetSnapshotRef("old", branch(1)),
            SetStatistics(STATISTICS),
            SetPartitionStatistics(PARTITION_STATISTICS),
        ],
    )
    # A reference that the updates do not name may have come with another commit.
    with pytest.raises(OutdatedUpdateError, match="the branch 'old' points at it"):
        apply_updates(metadata, [RemoveSnapshots((1,))])
    expired = apply_updates(metadata, [RemoveSnapshotRef("old"), RemoveSnapshots((1,))])
    assert expired.refs.keys() == {"main"}
    assert expired.statistics == expired.partition_statistics == ()
    both = [RemoveSnapshotRef("old"), RemoveSnapshotRef("main")]
    emptied = apply_updates(metadata, [*both, RemoveSnapshots((1, 2, 3))])
    assert emptied.current_snapshot_id is None
    assert (emptied.refs, emptied.snapshot_log) == ({}, ())


def test_a_statistics_file_replaces_that_of_its_snapshot() -> None:
    """Rule 205: at most one a snapshot."""
    other = replace(PARTITION_STATISTICS, statistics_path="q.parquet")
    metadata = apply_updates(
        BASE, [SetPartitionStatistics(PARTITION_STATISTICS), SetPartitionStatistics(other)]
    )
    assert metadata.partition_statistics == (other,)


def test_row_ids_of_v3() -> None:
    """Rules 142, 150, 156, 194: upgrade starts at 0, each snapshot moves on by its added rows."""
    upgraded = apply_updates(history(2), [UpgradeFormatVersion(3)])
    assert upgraded.next_row_id == 0
    assert all(one.first_row_id is None for one in upgraded.snapshots)
    one = commit(upgraded, snapshot(3, first_row_id=0, added_rows=10))
    assert one.next_row_id == 10
    two = commit(one, snapshot(4, first_row_id=10, added_rows=0))
    assert two.next_row_id == 10
    ahead = commit(two, snapshot(5, first_row_id=20, added_rows=5))
    assert ahead.next_row_id == 25


def test_upgrade_from_v1() -> None:
    """Rules 293-295: numbers start at 0; a uuid becomes required."""
    v1 = replace(history(1, version=1), table_uuid=None)
    assert (v1.last_sequence_number, v1.snapshots[0].sequence_number) == (0, 0)
    v2 = apply_updates(v1, [SetProperties({"format-version": "2"})])
    assert v2.format_version == 2
    assert v2.table_uuid is not None
    assert "format-version" not in v2.properties
    assert v2.next_sequence_number == 1


ENCRYPTED = AddEncryptionKey(EncryptedKey(key_id="k", encrypted_key_metadata="bQ=="))


@pytest.mark.parametrize(
    ("metadata", "update", "says"),
    [
        (BASE, AddSnapshot(snapshot(2)), "has it already"),
        (BASE, AddSnapshot(snapshot(3, sequence_number=2)), "not above the table's last, 2"),
        (BASE, AddSnapshot(snapshot(3, manifest_list=None)), "no manifest list"),
        (BASE, SetSnapshotRef("dev", branch(9)), "no snapshot 9"),
        (BASE, SetSnapshotRef("main", SnapshotRef(snapshot_id=1, type="tag")), "main is a branch"),
        (BASE, SetSnapshotRef("dev", replace(branch(1), max_ref_age_ms=0)), "must be > 0"),
        (
            BASE,
            SetSnapshotRef(
                "t", SnapshotRef(snapshot_id=1, type="tag", min_snapshots_to_keep=2)
            ),
            "tag",
        ),
        (BASE, SetCurrentSchema(), "no last added schema"),
        (BASE, SetCurrentSchema(7), "no schema 7"),
        (BASE, SetDefaultSpec(), "no last added partition spec"),
        (BASE, SetDefaultSpec(7), "no partition spec 7"),
        (BASE, SetDefaultSortOrder(), "no last added sort order"),
        (BASE, SetDefaultSortOrder(7), "no sort order 7"),
        (BASE, RemoveSchemas((0,)), "current schema 0"),
        (BASE, RemovePartitionSpecs((0,)), "default partition spec 0"),
        (BASE, UpgradeFormatVersion(1), "downgraded"),
        (BASE, AddSchema(SCHEMA, last_column_id=1), "cannot go back from 2 to 1"),
        (BASE, SetProperties({"current-snapshot-id": "1"}), "reserved"),
        (BASE, SetProperties({"format-version": "two"}), "format-version"),
        (BASE, AddSpec(spec_for(WIDER, ["name"])), "no column"),
        (
            BASE,
            AddSchema(Schema((ID, NestedField(2, "n", TimestampNanoType())))),
            "timestamp_ns",
        ),
        (BASE, ENCRYPTED, "format version 3"),
        (table(1), AddSpec(PartitionSpec(1, (replace(SPEC.fields[0], name="d", field_id=1005),))),
         "1000"),
        (table(3), AddSnapshot(snapshot(1)), "first row id"),
        (table(3), AddSnapshot(snapshot(1, first_row_id=0)), "added rows"),
        (
            commit(table(3), snapshot(1, first_row_id=0, added_rows=9)),
            AddSnapshot(snapshot(2, first_row_id=8, added_rows=1)),
            "behind the table's next row id 9",
        ),
    ],
)  # fmt: skip
def test_updates_that_are_refused(metadata: TableMetadata, update: Update, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        apply_updates(metadata, [update])


def test_a_version_that_is_not_adopted() -> None:
    with pytest.raises(UnsupportedVersionError, match="4"):
        apply_updates(BASE, [UpgradeFormatVersion(4)])
    with pytest.raises(UnsupportedVersionError, match="4"):
        new_table_metadata(SCHEMA, location="l", format_version=4)


def test_encryption_keys_come_and_go() -> None:
    metadata = apply_updates(table(3), [ENCRYPTED])
    assert [key.key_id for key in metadata.encryption_keys] == ["k"]
    assert apply_updates(metadata, [RemoveEncryptionKey("k")]).encryption_keys == ()


def test_the_metadata_log(fixtures_dir: Path) -> None:
    """Rule 190: the previous file is appended, the oldest go."""
    metadata = table(properties={"write.metadata.previous-versions-max": "2"})
    for number in range(1, 4):
        metadata = with_previous_metadata(metadata, f"m{number}", updated_ms=number)
    assert metadata.metadata_log == (MetadataLogEntry(2, "m2"), MetadataLogEntry(3, "m3"))
    after = with_previous_metadata(metadata, "m4", updated_ms=4)
    assert dropped_metadata_files(metadata, after) == ("m2",)
    zero = replace(metadata, properties={"write.metadata.previous-versions-max": "0"})
    assert len(with_previous_metadata(zero, "m4", updated_ms=4).metadata_log) == 1
