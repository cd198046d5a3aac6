"""Updates of what a table is: its version, properties, schemas, partition specs, sort orders."""

from __future__ import annotations

import uuid
from collections.abc import Container

from frazil.errors import OutdatedUpdateError, UnsupportedVersionError, ValidationError
from frazil.format.changes import updates as u
from frazil.format.changes import value_checks
from frazil.format.changes.state import MetadataState
from frazil.format.metadata.table_metadata import (
    SUPPORTED_FORMAT_VERSIONS,
)
from frazil.format.partitions.partitioning import FIRST_PARTITION_FIELD_ID, PartitionSpec
from frazil.format.properties.table import stored_properties
from frazil.format.sorting import UNSORTED, reuse_order


def assign_uuid(state: MetadataState, update: u.AssignUUID) -> None:
    value_checks.check_uuid(update.uuid, "the table's uuid")
    state.change(table_uuid=update.uuid)


def upgrade(state: MetadataState, version: int) -> None:
    """Raise the format version, never lower it."""
    current = state.now.format_version
    check_supported(version)
    if version < current:
        raise ValidationError(
            f"a table cannot be downgraded: it is of format version {current}, asked for was"
            f" {version}"
        )
    if version > current:
        state.change(
            format_version=version,
            # v1 tables may have none; v2 requires one (rule 191).
            table_uuid=state.now.table_uuid or str(uuid.uuid4()),
        )


def upgrade_format_version(state: MetadataState, update: u.UpgradeFormatVersion) -> None:
    upgrade(state, update.format_version)


def set_location(state: MetadataState, update: u.SetLocation) -> None:
    if not update.location:
        raise ValidationError("the location of a table cannot be empty")
    state.change(location=update.location)


def set_properties(state: MetadataState, update: u.SetProperties) -> None:
    stored, version = stored_properties(update.updates)
    if version is not None:
        upgrade(state, version)
    state.change(properties={**state.now.properties, **stored})


def remove_properties(state: MetadataState, update: u.RemoveProperties) -> None:
    gone = set(update.removals)
    kept = {name: text for name, text in state.now.properties.items() if name not in gone}
    state.change(properties=kept)


def add_schema(state: MetadataState, update: u.AddSchema) -> None:
    schema, last_id = update.schema, state.now.last_column_id
    if update.last_column_id is not None and update.last_column_id < last_id:
        raise ValidationError(
            f"the last column id cannot go back from {last_id} to {update.last_column_id}"
        )
    state.check_now_or_at_the_end(lambda now: schema.check_types_for(now.format_version))
    held = state.now.as_added(schema)
    if held.schema_id not in state.now.schemas_by_id:
        value_checks.check_schema(held)
        state.change(schemas=(*state.now.schemas, held))
    value_checks.check_int(update.last_column_id, "the last column id")
    state.last_schema_id = held.schema_id
    state.change(last_column_id=max(last_id, schema.highest_field_id, update.last_column_id or 0))


def set_current_schema(state: MetadataState, update: u.SetCurrentSchema) -> None:
    schema_id = _resolve_id(update.schema_id, state.last_schema_id, "schema")
    _check_there(schema_id, state.now.schemas_by_id, "schema")
    state.change(current_schema_id=schema_id)


def add_spec(state: MetadataState, update: u.AddSpec) -> None:
    spec = update.spec
    held = next((s for s in state.now.partition_specs if s.is_equivalent_to(spec)), None)
    if held is None:
        value_checks.check_spec(spec)
        # The schema may become the current one only later in the same commit.
        state.check_now_or_at_the_end(lambda now: spec.check_against(now.schema))
        _check_partition_ids(state, spec)
        specs = state.now.partition_specs
        held = spec.with_id(max((s.spec_id for s in specs), default=-1) + 1)
        state.change(
            partition_specs=(*specs, held),
            last_partition_id=max(state.now.last_partition_id, held.last_assigned_field_id),
        )
    state.last_spec_id = held.spec_id


def _check_partition_ids(state: MetadataState, spec: PartitionSpec) -> None:
    ids = [field.field_id for field in spec.fields]
    expected = [FIRST_PARTITION_FIELD_ID + position for position in range(len(ids))]
    if state.now.format_version == 1 and ids != expected:
        raise ValidationError(
            f"partition field ids of a v1 table count on from {FIRST_PARTITION_FIELD_ID}:"
            f" expected {expected}, found {ids}"
        )


def set_default_spec(state: MetadataState, update: u.SetDefaultSpec) -> None:
    spec_id = _resolve_id(update.spec_id, state.last_spec_id, "partition spec")
    _check_there(spec_id, state.now.specs_by_id, "partition spec")
    state.change(default_spec_id=spec_id)


def add_sort_order(state: MetadataState, update: u.AddSortOrder) -> None:
    order = reuse_order(state.now.sort_orders, update.sort_order)
    if all(held.order_id != order.order_id for held in state.now.sort_orders):
        if not order.is_unsorted:
            value_checks.check_sort_order(order)
            state.check_now_or_at_the_end(lambda now: order.check_against(now.schema))
        state.change(sort_orders=(*state.now.sort_orders, order))
    state.last_order_id = order.order_id


def set_default_sort_order(state: MetadataState, update: u.SetDefaultSortOrder) -> None:
    order_id = _resolve_id(update.sort_order_id, state.last_order_id, "sort order")
    orders = state.now.sort_orders
    if order_id == UNSORTED.order_id and order_id not in state.now.sort_orders_by_id:
        # Order 0 is unsorted, listed or not; readers look the default up in the list.
        orders = (*orders, UNSORTED)
    else:
        _check_there(order_id, state.now.sort_orders_by_id, "sort order")
    state.change(sort_orders=orders, default_sort_order_id=order_id)


def remove_schemas(state: MetadataState, update: u.RemoveSchemas) -> None:
    if state.now.current_schema_id in update.schema_ids:
        raise ValidationError(f"the current schema {state.now.current_schema_id} cannot be removed")
    gone = set(update.schema_ids)
    state.change(schemas=tuple(s for s in state.now.schemas if s.schema_id not in gone))


def remove_partition_specs(state: MetadataState, update: u.RemovePartitionSpecs) -> None:
    if state.now.default_spec_id in update.spec_ids:
        raise ValidationError(
            f"the default partition spec {state.now.default_spec_id} cannot be removed"
        )
    gone = set(update.spec_ids)
    kept = tuple(spec for spec in state.now.partition_specs if spec.spec_id not in gone)
    state.change(partition_specs=kept)


def _resolve_id(given: int, last_added: int | None, what: str) -> int:
    if given != u.LAST_ADDED:
        return given
    if last_added is None:
        raise ValidationError(f"there is no last added {what}: none was added in this commit")
    return last_added


def _check_there(found_id: int, held: Container[int], what: str) -> None:
    if found_id not in held:
        raise OutdatedUpdateError(f"the table has no {what} {found_id}, which is to become its own")


def check_supported(version: int) -> None:
    """Raise `UnsupportedVersionError` for a format version that is not adopted."""
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise UnsupportedVersionError(
            f"format version {version} is not supported; versions 1 to 3 are"
        )
