"""Requirements and updates: what holds, what they do, and PyIceberg as an independent model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pydantic
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
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

from frazil.errors import (
    CommitFailedError,
    FrazilError,
    InvalidMetadataError,
    OutdatedUpdateError,
    UnsupportedError,
    ValidationError,
)
from frazil.format import changes as C
from frazil.format import types as T
from frazil.format.changes import (
    apply_updates,
    update_from_json,
)
from frazil.format.metadata import (
    EncryptedKey,
    TableMetadata,
    metadata_from_json,
    metadata_to_bytes,
)
from frazil.format.new_table import creation_updates, new_table_metadata, replacement_updates
from frazil.format.partitions.partitioning import PartitionSpec, spec_for
from frazil.format.schema import Schema
from frazil.format.snapshots import MetadataLogEntry, SnapshotRef
from frazil.format.sorting import UNSORTED, order_for
from frazil.format.types import (
    NestedField,
    TimestampNanoType,
)

BASE = history(2)
HOLDING: tuple[C.Requirement, ...] = (
    C.AssertTableUUID(UUID.upper()),
    C.AssertRefSnapshotId("main", 2),
    C.AssertRefSnapshotId("dev", None),
    C.AssertLastAssignedFieldId(2),
    C.AssertCurrentSchemaId(0),
    C.AssertLastAssignedPartitionId(1000),
    C.AssertDefaultSpecId(0),
    C.AssertDefaultSortOrderId(0),
)


def tag(snapshot_id: int) -> SnapshotRef:
    return SnapshotRef(snapshot_id=snapshot_id, type="tag")


def test_requirements_that_hold() -> None:
    C.check_requirements(BASE, HOLDING)
    C.check_requirements(None, [C.AssertCreate()])
    C.check_requirements(table(), [C.AssertRefSnapshotId("main", None)])


@pytest.mark.parametrize(
    ("requirement", "expected", "found"),
    [
        (C.AssertCreate(), "no table", "already exists"),
        (C.AssertTableUUID("another"), "another", UUID),
        (C.AssertRefSnapshotId("main", 1), "1", "2"),
        (C.AssertRefSnapshotId("main", None), "no reference", "2"),
        (C.AssertRefSnapshotId("dev", 7), "7", "no such reference"),
        (C.AssertLastAssignedFieldId(7), "7", "2"),
        (C.AssertCurrentSchemaId(7), "7", "0"),
        (C.AssertLastAssignedPartitionId(7), "7", "1000"),
        (C.AssertDefaultSpecId(7), "7", "0"),
        (C.AssertDefaultSortOrderId(7), "7", "0"),
    ],
)
def test_requirements_that_fail(requirement: C.Requirement, expected: str, found: str) -> None:
    with pytest.raises(CommitFailedError, match=f"expected .*{expected}.* found .*{found}"):
        C.check_requirements(BASE, [*HOLDING, requirement])


@pytest.mark.parametrize("requirement", HOLDING)
def test_no_table_fails_every_requirement_but_creation(requirement: C.Requirement) -> None:
    with pytest.raises(CommitFailedError, match="there is none"):
        C.check_requirements(None, [requirement])


SEQUENCES: dict[str, Sequence[C.Update]] = {
    "schema": [C.AddSchema(WIDER.with_id(1)), C.SetCurrentSchema()],
    "spec": [C.AddSpec(PartitionSpec(1, ())), C.SetDefaultSpec()],
    "order": [C.AddSortOrder(ORDER), C.SetDefaultSortOrder()],
    "append": [C.AddSnapshot(snapshot(3)), C.SetSnapshotRef("main", branch(3))],
    "staged": [C.AddSnapshot(snapshot(3))],
    "branch and tag": [
        C.SetSnapshotRef("dev", branch(1)),
        C.SetSnapshotRef("v1", SnapshotRef(snapshot_id=1, type="tag", max_ref_age_ms=5)),
    ],
    "drop branch": [C.SetSnapshotRef("dev", branch(1)), C.RemoveSnapshotRef("dev")],
    "roll back": [C.SetSnapshotRef("main", branch(1))],
    "properties": [C.SetProperties({"a": "1", "b": "2"}), C.RemoveProperties(("a",))],
    "location": [C.SetLocation("s3://elsewhere")],
    "statistics": [C.SetStatistics(STATISTICS), C.SetPartitionStatistics(PARTITION_STATISTICS)],
    "statistics gone": [C.SetStatistics(STATISTICS), C.RemoveStatistics(1)],
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_pyiceberg_applies_updates_alike(name: str) -> None:
    """The same updates by PyIceberg's `update_table_metadata`; times of change apart."""
    ours = C.apply_updates(BASE, SEQUENCES[name], now_ms=9000)
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
    metadata = C.apply_updates(BASE, [C.AddSchema(WIDER), C.SetCurrentSchema()])
    assert (metadata.current_schema_id, metadata.last_column_id) == (1, 3)
    back = C.apply_updates(
        metadata,
        [
            C.AddSchema(SCHEMA.with_id(77)),
            C.SetCurrentSchema(),
            C.AddSpec(SPEC.with_id(12)),
            C.SetDefaultSpec(),
            C.AddSortOrder(UNSORTED),
            C.SetDefaultSortOrder(),
        ],
    )
    assert (back.current_schema_id, len(back.schemas), back.last_column_id) == (0, 2, 3)
    assert (back.default_spec_id, len(back.partition_specs)) == (0, 1)
    assert (back.default_sort_order_id, len(back.sort_orders)) == (0, 1)


def test_ids_of_a_new_schema_spec_and_order() -> None:
    metadata = C.apply_updates(
        BASE,
        [
            C.AddSchema(WIDER.with_id(0), last_column_id=10),
            C.SetCurrentSchema(),
            C.AddSpec(
                PartitionSpec(0, (replace(spec_for(WIDER, ["name"]).fields[0], field_id=1001),))
            ),
            C.SetDefaultSpec(),
            C.AddSortOrder(ORDER.with_id(9)),
            C.SetDefaultSortOrder(),
        ],
    )
    assert (metadata.schema.schema_id, metadata.last_column_id) == (1, 10)
    assert (metadata.spec.spec_id, metadata.last_partition_id) == (1, 1001)
    assert metadata.sort_order.order_id == 1


def test_order_0_is_unsorted_whether_or_not_it_is_listed() -> None:
    """Rule 94. The default is listed, since other readers look it up there."""
    listed = [C.AddSortOrder(ORDER), C.SetDefaultSortOrder()]
    both = C.apply_updates(BASE, listed)
    made_sorted = replace(both, sort_orders=both.sort_orders[1:])
    assert [order.order_id for order in made_sorted.sort_orders] == [1]
    for metadata in (both, made_sorted):
        assert metadata.sort_order_by_id(0) is UNSORTED
        back = C.apply_updates(metadata, [C.SetDefaultSortOrder(0)])
        assert sorted(order.order_id for order in back.sort_orders) == [0, 1]
        assert back.sort_order.is_unsorted
        assert metadata_from_json(json.loads(metadata_to_bytes(back))) == back


def test_nothing_changed_is_the_same_metadata() -> None:
    assert C.apply_updates(BASE, [], now_ms=99) is BASE
    assert C.apply_updates(BASE, [C.SetLocation(BASE.location)], now_ms=99) is BASE
    assert C.apply_updates(BASE, [C.SetSnapshotRef("main", branch(2))], now_ms=99) is BASE


def test_snapshot_log_of_appends_and_roll_back() -> None:
    """Rule 189: an entry for each change of main, with the time of the change."""
    rolled_back = C.apply_updates(history(3), [C.SetSnapshotRef("main", branch(1))], now_ms=7000)
    log = [(entry.timestamp_ms, entry.snapshot_id) for entry in rolled_back.snapshot_log]
    assert log == [(1000, 1), (2000, 2), (3000, 3), (7000, 1)]
    assert rolled_back.last_updated_ms == 7000
    assert rolled_back.current_snapshot_id == 1
    kept = replace(branch(1), min_snapshots_to_keep=3)
    retention = C.apply_updates(rolled_back, [C.SetSnapshotRef("main", kept)], now_ms=8000)
    assert retention.snapshot_log == rolled_back.snapshot_log


def test_a_gap_in_the_log_takes_what_is_before_it() -> None:
    """Rule 189: with 2 of (1, 2, 3) gone, time travel to 1 would be wrong."""
    metadata = C.apply_updates(history(3), [C.RemoveSnapshots((2,))], now_ms=9000)
    assert [entry.snapshot_id for entry in metadata.snapshot_log] == [3]
    assert [one.snapshot_id for one in metadata.snapshots] == [1, 3]


def test_snapshots_passed_through_in_one_commit_are_not_in_the_log() -> None:
    updates: list[C.Update] = []
    for number in (3, 4):
        updates += [C.AddSnapshot(snapshot(number)), C.SetSnapshotRef("main", branch(number))]
    metadata = C.apply_updates(BASE, updates)
    assert [entry.snapshot_id for entry in metadata.snapshot_log] == [1, 2, 4]
    assert metadata.last_updated_ms == 4000


def test_logs_never_run_backwards() -> None:
    """A writer whose clock is behind: other readers refuse a log that is not in order."""
    late = commit(history(2), snapshot(3, timestamp_ms=5))
    assert late.snapshot_log[-1].timestamp_ms == 2000
    assert late.last_updated_ms == 2000


def test_expired_snapshots_take_statistics_and_no_reference() -> None:
    metadata = C.apply_updates(
        history(3),
        [
            C.SetSnapshotRef("old", branch(1)),
            C.SetStatistics(STATISTICS),
            C.SetPartitionStatistics(PARTITION_STATISTICS),
        ],
    )
    # A reference that the updates do not name may have come with another commit.
    with pytest.raises(OutdatedUpdateError, match="the branch 'old' points at it"):
        C.apply_updates(metadata, [C.RemoveSnapshots((1,))])
    expired = C.apply_updates(metadata, [C.RemoveSnapshotRef("old"), C.RemoveSnapshots((1,))])
    assert expired.refs.keys() == {"main"}
    assert expired.statistics == expired.partition_statistics == ()
    both = [C.RemoveSnapshotRef("old"), C.RemoveSnapshotRef("main")]
    emptied = C.apply_updates(metadata, [*both, C.RemoveSnapshots((1, 2, 3))])
    assert emptied.current_snapshot_id is None
    assert (emptied.refs, emptied.snapshot_log) == ({}, ())


def test_a_statistics_file_replaces_that_of_its_snapshot() -> None:
    """Rule 205: at most one a snapshot."""
    other = replace(PARTITION_STATISTICS, statistics_path="q.parquet")
    metadata = C.apply_updates(
        BASE, [C.SetPartitionStatistics(PARTITION_STATISTICS), C.SetPartitionStatistics(other)]
    )
    assert metadata.partition_statistics == (other,)


def test_row_ids_of_v3() -> None:
    """Rules 142, 150, 156, 194: upgrade starts at 0, each snapshot moves on by its added rows."""
    upgraded = C.apply_updates(history(2), [C.UpgradeFormatVersion(3)])
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
    v2 = C.apply_updates(v1, [C.SetProperties({"format-version": "2"})])
    assert v2.format_version == 2
    assert v2.table_uuid is not None
    assert "format-version" not in v2.properties
    assert v2.next_sequence_number == 1


ENCRYPTED = C.AddEncryptionKey(EncryptedKey(key_id="k", encrypted_key_metadata="bQ=="))


@pytest.mark.parametrize(
    ("metadata", "update", "says"),
    [
        (BASE, C.AddSnapshot(snapshot(2)), "has it already"),
        (BASE, C.AddSnapshot(snapshot(3, sequence_number=2)), "not above the table's last, 2"),
        (BASE, C.AddSnapshot(snapshot(3, manifest_list=None)), "no manifest list"),
        (BASE, C.SetSnapshotRef("dev", branch(9)), "no snapshot 9"),
        (BASE, C.SetSnapshotRef("main", tag(1)), "main is a branch"),
        (BASE, C.SetSnapshotRef("dev", replace(branch(1), max_ref_age_ms=0)), "must be > 0"),
        (
            BASE,
            C.SetSnapshotRef(
                "t", SnapshotRef(snapshot_id=1, type="tag", min_snapshots_to_keep=2)
            ),
            "tag",
        ),
        (BASE, C.SetCurrentSchema(), "no last added schema"),
        (BASE, C.SetCurrentSchema(7), "no schema 7"),
        (BASE, C.SetDefaultSpec(), "no last added partition spec"),
        (BASE, C.SetDefaultSpec(7), "no partition spec 7"),
        (BASE, C.SetDefaultSortOrder(), "no last added sort order"),
        (BASE, C.SetDefaultSortOrder(7), "no sort order 7"),
        (BASE, C.RemoveSchemas((0,)), "current schema 0"),
        (BASE, C.RemovePartitionSpecs((0,)), "default partition spec 0"),
        (BASE, C.UpgradeFormatVersion(1), "downgraded"),
        (BASE, C.AddSchema(SCHEMA, last_column_id=1), "cannot go back from 2 to 1"),
        (BASE, C.SetProperties({"current-snapshot-id": "1"}), "reserved"),
        (BASE, C.SetProperties({"format-version": "two"}), "format-version"),
        (BASE, C.AddSpec(spec_for(WIDER, ["name"])), "no column"),
        (
            BASE,
            C.AddSchema(Schema((ID, NestedField(2, "n", TimestampNanoType())))),
            "timestamp_ns",
        ),
        (BASE, ENCRYPTED, "format version 3"),
        (table(1), C.AddSpec(PartitionSpec(1, (replace(SPEC.fields[0], name="d", field_id=1005),))),
         "1000"),
        (table(3), C.AddSnapshot(snapshot(1)), "first row id"),
        (table(3), C.AddSnapshot(snapshot(1, first_row_id=0)), "added rows"),
        (
            commit(table(3), snapshot(1, first_row_id=0, added_rows=9)),
            C.AddSnapshot(snapshot(2, first_row_id=8, added_rows=1)),
            "behind the table's next row id 9",
        ),
    ],
)  # fmt: skip
def test_updates_that_are_refused(metadata: TableMetadata, update: C.Update, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        C.apply_updates(metadata, [update])


def test_encryption_keys_come_and_go() -> None:
    metadata = C.apply_updates(table(3), [ENCRYPTED])
    assert [key.key_id for key in metadata.encryption_keys] == ["k"]
    assert C.apply_updates(metadata, [C.RemoveEncryptionKey("k")]).encryption_keys == ()


def test_the_metadata_log(fixtures_dir: Path) -> None:
    """Rule 190: the previous file is appended, the oldest go."""
    metadata = table(properties={"write.metadata.previous-versions-max": "2"})
    for number in range(1, 4):
        metadata = C.with_previous_metadata(metadata, f"m{number}", updated_ms=number)
    assert metadata.metadata_log == (MetadataLogEntry(2, "m2"), MetadataLogEntry(3, "m3"))
    after = C.with_previous_metadata(metadata, "m4", updated_ms=4)
    assert C.dropped_metadata_files(metadata, after) == ("m2",)
    zero = replace(metadata, properties={"write.metadata.previous-versions-max": "0"})
    assert len(C.with_previous_metadata(zero, "m4", updated_ms=4).metadata_log) == 1


# New tables, and tables that get a new definition and keep their past.


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_new_table_has_fresh_ids(version: int) -> None:
    """Rules 51, 72: Java's order, a struct's fields before what is in them."""
    inner = T.StructType(
        (T.NestedField(70, "x", T.IntegerType()), T.NestedField(71, "y", T.IntegerType()))
    )
    schema = Schema(
        (
            T.NestedField(50, "l", T.ListType(51, inner)),
            T.NestedField(10, "id", T.LongType(), required=True),
            T.NestedField(60, "m", T.MapType(61, T.StringType(), 62, T.LongType())),
        ),
        schema_id=5,
        identifier_field_ids=(10,),
    )
    metadata = new_table_metadata(
        schema,
        spec_for(schema, ["bucket(4, id)"]),
        order_for(schema, ["id desc"]),
        location="s3://b/t/",
        format_version=version,
    )
    ids = {name: metadata.schema.find_field(name).field_id for name in (
        "l", "id", "m", "l.element", "l.element.x", "l.element.y", "m.key", "m.value",
    )}  # fmt: skip
    assert list(ids.values()) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert metadata.schema.identifier_field_ids == (2,)
    assert (metadata.schema.schema_id, metadata.last_column_id) == (0, 8)
    assert [field.source_ids for field in metadata.spec.fields] == [(2,)]
    assert (metadata.spec.spec_id, metadata.last_partition_id) == (0, 1000)
    assert metadata.sort_order.fields[0].source_ids == (2,)
    assert metadata.sort_order.order_id == 1
    assert metadata.location == "s3://b/t"
    assert metadata.properties == {"write.parquet.compression-codec": "zstd"}


def test_unpartitioned_new_table() -> None:
    metadata = new_table_metadata(SCHEMA, location="l", properties={"format-version": "3"})
    assert (metadata.format_version, metadata.last_partition_id) == (3, 999)
    assert metadata.spec.is_unpartitioned
    assert metadata.sort_order.is_unsorted
    with pytest.raises(ValidationError, match="two format versions"):
        new_table_metadata(
            SCHEMA, location="l", properties={"format-version": "3"}, format_version=2
        )


def test_a_table_from_its_creation_updates() -> None:
    """What a REST catalog gets makes the same table; parts that are missing are named."""
    metadata = table(3, properties={"a": "b"})
    updates = creation_updates(metadata)
    rest = [update_from_json(json.loads(json.dumps(one.to_json()))) for one in updates]
    assert apply_updates(None, rest, now_ms=metadata.last_updated_ms) == metadata
    for action, missing in (
        ("set-location", "location"),
        ("set-current-schema", "current schema"),
        ("set-default-spec", "default partition spec"),
        ("set-default-sort-order", "default sort order"),
    ):
        kept = [one for one in updates if one.action != action]
        with pytest.raises(FrazilError, match=missing):
            apply_updates(None, kept)


def test_a_replaced_table_keeps_its_past() -> None:
    """Columns and partition fields keep their ids by name; nothing is current (rules 51, 74)."""
    base = history(2)
    wanted = Schema(
        (
            T.NestedField(1, "name", T.StringType()),
            T.NestedField(2, "id", T.LongType(), required=True),
            T.NestedField(3, "ts", T.TimestampType()),
        )
    )
    updates = replacement_updates(
        base, wanted, spec_for(wanted, ["day(ts)", "name"]), order_for(wanted, ["id"])
    )
    metadata = apply_updates(base, updates, now_ms=9000)
    ids = {field.name: field.field_id for field in metadata.schema.fields}
    assert ids == {"name": 3, "id": 1, "ts": 2}
    assert [(f.source_ids, f.field_id) for f in metadata.spec.fields] == [
        ((2,), 1000),
        ((3,), 1001),
    ]
    assert metadata.sort_order.fields[0].source_ids == (1,)
    assert metadata.current_snapshot_id is None
    assert metadata.snapshots == base.snapshots
    assert metadata.table_uuid == base.table_uuid
    assert metadata.last_sequence_number == 2
    after = commit(metadata, snapshot(3, parent_snapshot_id=None))
    assert after.current_snapshot_id == 3


def test_a_replaced_v1_table_keeps_the_places_of_partition_fields() -> None:
    """Rule 90: void in place of what is gone, new fields at the end."""
    base = history(1, version=1)
    metadata = apply_updates(base, replacement_updates(base, SCHEMA, spec_for(SCHEMA, ["id"])))
    fields = [(str(f.transform), f.field_id, f.name) for f in metadata.spec.fields]
    assert fields == [("void", 1000, "ts_day"), ("identity", 1001, "id")]


# Requirements and updates as the REST catalog's JSON; PyIceberg's model of it as a witness.


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
    if rest["action"] in UNKNOWN_TO_PYICEBERG:
        with pytest.raises(pydantic.ValidationError, match=rest["action"]):
            TypeAdapter(TableUpdate).validate_python(rest)
    else:
        assert TypeAdapter(TableUpdate).validate_python(rest).action == rest["action"]


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
