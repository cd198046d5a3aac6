"""A change brings values of the specification's types, in an order that Java's server takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from metadata_cases import ID, NAME, SCHEMA, TS, UUID, commit, history, snapshot, table

from frazil.errors import ValidationError
from frazil.format.changes import apply_updates, update_from_json
from frazil.format.json_fields import JsonObject
from frazil.format.metadata import metadata_from_json, metadata_to_json
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.format.snapshots.json_form import snapshot_to_json
from frazil.format.types import NestedField
from frazil.format.views import new_view_metadata, view_version_from_json

INT, LONG = 2**31, 2**63


def added(**fields: Any) -> dict[str, Any]:
    """A new snapshot of the protocol with some other fields; None leaves one out."""
    plain = {**snapshot_to_json(snapshot(3), format_version=2), **fields}
    return {
        "action": "add-snapshot",
        "snapshot": {key: each for key, each in plain.items() if each is not None},
    }


def spec(**fields: Any) -> dict[str, Any]:
    field = {"source-id": 1, "field-id": 1001, "name": "p", "transform": "identity", **fields}
    return {"action": "add-spec", "spec": {"spec-id": 1, "fields": [field]}}


def order(**fields: Any) -> dict[str, Any]:
    plain = {
        "transform": "identity",
        "source-id": 1,
        "direction": "asc",
        "null-order": "nulls-last",
    }
    return {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [plain | fields]}}


def schema(**fields: Any) -> dict[str, Any]:
    own = {"id": 9, "name": "n", "required": False, "type": "long", **fields}
    struct = {"type": "struct", "schema-id": 1, "fields": [own]}
    return {"action": "add-schema", "schema": struct}


def statistics(**fields: Any) -> dict[str, Any]:
    plain = {
        "snapshot-id": 2,
        "statistics-path": "s3://b/t/s",
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    return {"action": "set-statistics", "statistics": {**plain, **fields}}


def nested(levels: int) -> Any:
    kind: Any = "long"
    for level in range(levels):
        field = {"id": 10 + level, "name": "n", "required": False, "type": kind}
        kind = {"type": "struct", "fields": [field]}
    return kind


WRONG: dict[str, dict[str, Any]] = {
    "snapshot id": added(**{"snapshot-id": LONG}),
    "negative snapshot id": added(**{"snapshot-id": -LONG - 1}),
    "parent that the table has not": added(**{"parent-snapshot-id": LONG}),
    "schema id of a snapshot": added(**{"schema-id": INT}),
    "time": added(**{"timestamp-ms": LONG}),
    "no operation": added(summary={}),
    "no summary": added(summary=None),
    "unknown operation": added(summary={"operation": "x"}),
    "operation in capitals": added(summary={"operation": "APPEND"}),
    "partition field id": spec(**{"field-id": INT}),
    "buckets": spec(transform=f"bucket[{INT}]"),
    "width": order(transform=f"truncate[{INT}]"),
    "source of a sort field": order(**{"source-id": INT}),
    "column id": schema(id=INT),
    "length": schema(type=f"fixed[{INT}]"),
    "too deep": schema(type=nested(101)),
    "last column id": {**schema(), "last-column-id": INT},
    "snapshot id of statistics": statistics(**{"snapshot-id": LONG}),
    "column of a blob": statistics(
        **{
            "blob-metadata": [
                {"type": "x", "snapshot-id": 2, "sequence-number": 1, "fields": [INT]}
            ]
        }
    ),
    "snapshot id of partition statistics": {
        "action": "set-partition-statistics",
        "partition-statistics": {
            "snapshot-id": LONG,
            "statistics-path": "s",
            "file-size-in-bytes": 1,
        },
    },
    "uuid": {"action": "assign-uuid", "uuid": "x"},
    "uuid in braces": {"action": "assign-uuid", "uuid": f"{{{UUID}}}"},
    "uuid without hyphens": {"action": "assign-uuid", "uuid": UUID.replace("-", "")},
    "retention": {
        "action": "set-snapshot-ref",
        "ref-name": "b",
        "type": "branch",
        "snapshot-id": 2,
        "max-ref-age-ms": LONG,
    },
}


@pytest.mark.parametrize("case", WRONG)
def test_values_that_nobody_else_can_read_are_refused(case: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        apply_updates(history(2), [update_from_json(WRONG[case])])
    assert len(str(refused.value)) < 300


EDGES: dict[str, dict[str, Any]] = {
    "snapshot id": added(**{"snapshot-id": LONG - 1}),
    "negative snapshot id": added(**{"snapshot-id": -LONG}),
    "schema id": added(**{"schema-id": INT - 1}),
    "operation": added(summary={"operation": "replace", "anything": "else"}),
    "partition field id": spec(**{"field-id": INT - 1}),
    "buckets": spec(transform=f"bucket[{INT - 1}]"),
    "deep": schema(type=nested(99)),
    "uuid in capitals": {"action": "assign-uuid", "uuid": UUID.upper()},
    "statistics": statistics(),
}


@pytest.mark.parametrize("case", EDGES)
def test_the_largest_values_of_a_type(case: str) -> None:
    changed = apply_updates(history(2), [update_from_json(EDGES[case])])
    assert metadata_from_json(metadata_to_json(changed)) == changed


def test_a_caller_is_held_to_the_same() -> None:
    """Values of Frazil's own classes, which no JSON was read for."""
    with pytest.raises(ValidationError, match="64 bits"):
        commit(history(2), snapshot(3, sequence_number=LONG))
    with pytest.raises(ValidationError, match="no UUID"):
        new_table_metadata(SCHEMA, location="s3://b/t", table_uuid="mine")


def test_a_view_is_held_to_the_same() -> None:
    fields = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
        "default-namespace": ["a"],
    }
    version = view_version_from_json(JsonObject(fields))
    for wrong in (SCHEMA.with_id(INT), Schema((NestedField(INT, "n", ID.field_type),))):
        with pytest.raises(ValidationError, match="32 bits"):
            new_view_metadata(wrong, version, location="s3://b/v")


def test_what_a_table_has_already_stays_usable() -> None:
    """Unsigned ids of snapshots, as some writers' files have them."""
    text = json.dumps(metadata_to_json(history(2)))
    held = metadata_from_json(
        json.loads(text.replace('snapshot-id": 2', f'snapshot-id": {LONG + 2}'))
    )
    assert held.current_snapshot_id == LONG + 2
    child = added(**{"parent-snapshot-id": LONG + 2})
    grown = apply_updates(held, [update_from_json(child), update_from_json(statistics())])
    assert grown.snapshots[-1].parent_snapshot_id == LONG + 2


SCHEMA_JSON = Schema((ID, TS, NAME)).to_json()
ASSIGN = [
    {"action": "assign-uuid", "uuid": UUID},
    {"action": "upgrade-format-version", "format-version": 2},
]
PLACE = {"action": "set-location", "location": "s3://b/t"}
CURRENT = {"action": "set-current-schema", "schema-id": 0}
ADD_SCHEMA = {"action": "add-schema", "schema": SCHEMA_JSON, "last-column-id": 3}
ADD_SPEC = [spec(**{"source-id": 3}), {"action": "set-default-spec", "spec-id": -1}]
ADD_ORDER = [order(**{"source-id": 3}), {"action": "set-default-sort-order", "sort-order-id": -1}]
ORDERS: dict[str, list[dict[str, Any]]] = {
    "Java": [*ASSIGN, ADD_SCHEMA, CURRENT, *ADD_SPEC, *ADD_ORDER, PLACE],
    "DuckDB": [*ASSIGN, ADD_SCHEMA, *ADD_SPEC, *ADD_ORDER, PLACE, CURRENT],
    "schema last": [PLACE, *ADD_ORDER, *ADD_SPEC, ADD_SCHEMA, CURRENT, *ASSIGN],
}


@pytest.mark.parametrize("case", ORDERS)
def test_a_table_may_be_described_in_any_order(case: str) -> None:
    updates = [update_from_json(each) for each in ORDERS[case]]
    made = apply_updates(None, updates, now_ms=5)
    assert (made.current_schema_id, made.last_column_id, made.table_uuid) == (0, 3, UUID)
    assert [field.source_ids for field in made.spec.fields] == [(3,)]
    assert [field.source_ids for field in made.sort_order.fields] == [(3,)]
    assert metadata_from_json(metadata_to_json(made)) == made


def test_a_column_may_come_with_the_spec_that_uses_it() -> None:
    new = {"action": "add-schema", "schema": {**SCHEMA_JSON, "schema-id": 1}}
    to_new = {"action": "set-current-schema", "schema-id": -1}
    before = table()
    for updates in ([new, to_new, *ADD_SPEC], [new, *ADD_SPEC, to_new], [*ADD_SPEC, new, to_new]):
        changed = apply_updates(before, [update_from_json(each) for each in updates])
        assert [field.source_ids for field in changed.spec.fields] == [(3,)]
    with pytest.raises(ValidationError, match="3"):
        apply_updates(before, [update_from_json(each) for each in ADD_SPEC])
    # It is there, but not when all is done.
    old = {"action": "set-current-schema", "schema-id": 0}
    with pytest.raises(ValidationError, match="3"):
        apply_updates(before, [update_from_json(each) for each in (*ADD_SPEC, new, to_new, old)])


def test_a_snapshot_may_come_before_the_current_schema() -> None:
    main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 3}
    begin = [*ASSIGN, ADD_SCHEMA, {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}}]
    rest = [
        {"action": "set-default-spec", "spec-id": -1},
        *ADD_ORDER,
        PLACE,
        added(**{"parent-snapshot-id": None}),
        main,
    ]
    made = apply_updates(None, [update_from_json(each) for each in (*begin, *rest, CURRENT)])
    assert made.current_snapshot_id == 3
    with pytest.raises(ValidationError, match="without a current schema"):
        apply_updates(None, [update_from_json(each) for each in (*begin, *rest)])
