"""New tables, and tables that get a new definition and keep their past."""

from __future__ import annotations

import json

import pytest
from metadata_cases import SCHEMA, commit, history, snapshot, table

from frazil.errors import (
    FrazilError,
    ValidationError,
)
from frazil.format import types as T
from frazil.format.changes import (
    apply_updates,
    update_from_json,
)
from frazil.format.new_table import creation_updates, new_table_metadata, replacement_updates
from frazil.format.partitions.partitioning import spec_for
from frazil.format.schema import Schema
from frazil.format.sorting import order_for


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
