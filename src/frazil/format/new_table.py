"""The metadata of a table that begins, or begins again (rules 51, 72, 74, 191-202)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace

from frazil.errors import ValidationError
from frazil.format.arguments import format_version_of
from frazil.format.changes.apply import apply_updates
from frazil.format.changes.updates import (
    AddSchema,
    AddSortOrder,
    AddSpec,
    AssignUUID,
    RemoveSnapshotRef,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    Update,
    UpgradeFormatVersion,
)
from frazil.format.evolution.promotion import can_promote, keeps_partition_values
from frazil.format.metadata.table_mapping import evolved_mapping_property
from frazil.format.metadata.table_metadata import DEFAULT_FORMAT_VERSION, TableMetadata
from frazil.format.partitions.partitioning import (
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    rebind_spec,
)
from frazil.format.partitions.transforms import VoidTransform
from frazil.format.properties.table import (
    PARQUET_CODEC,
    check_properties,
    stored_properties,
)
from frazil.format.schema import Schema
from frazil.format.schema.defaults import check_new_defaults
from frazil.format.schema.ids import assign_fresh_ids
from frazil.format.snapshots import MAIN_BRANCH
from frazil.format.sorting import UNSORTED, SortOrder, rebind_order
from frazil.format.types import IcebergType, NestedField


def new_table_metadata(
    schema: Schema,
    spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    *,
    location: str,
    properties: Mapping[str, str] | None = None,
    format_version: int | str | None = None,
    table_uuid: str | None = None,
    now_ms: int | None = None,
) -> TableMetadata:
    """The metadata of a new, empty table.

    Column ids are given out afresh from 1 and partition field ids from 1000 (rules 51, 72); spec
    and order follow their columns by name. A `format-version` property chooses the version where
    `format_version` does not, and is not stored; the default is 2.
    """
    check_properties(properties or {})
    stored, wanted = stored_properties(properties or {})
    version = None if format_version is None else format_version_of(format_version)
    if wanted is not None and version is not None and wanted != version:
        raise ValidationError(
            f"two format versions are asked for: {version}, and {wanted} by property"
        )
    check_new_defaults(schema.fields_by_id.values())
    fresh = assign_fresh_ids(schema)
    first_order = replace(sort_order, order_id=1) if sort_order.fields else UNSORTED
    return apply_updates(
        None,
        [
            AssignUUID(table_uuid or str(uuid.uuid4())),
            UpgradeFormatVersion(version or wanted or DEFAULT_FORMAT_VERSION),
            AddSchema(fresh),
            SetCurrentSchema(),
            AddSpec(rebind_spec(spec, schema, fresh)),
            SetDefaultSpec(),
            AddSortOrder(rebind_order(first_order, schema, fresh)),
            SetDefaultSortOrder(),
            SetLocation(_without_trailing_slash(location)),
            SetProperties({PARQUET_CODEC.name: PARQUET_CODEC.default, **stored}),
        ],
        now_ms=int(time.time() * 1000) if now_ms is None else now_ms,
    )


def creation_updates(metadata: TableMetadata) -> tuple[Update, ...]:
    """The updates that make an empty table's metadata from nothing, as a catalog wants them."""
    uuids = () if metadata.table_uuid is None else (AssignUUID(metadata.table_uuid),)
    return (
        *uuids,
        UpgradeFormatVersion(metadata.format_version),
        AddSchema(metadata.schema, metadata.last_column_id),
        SetCurrentSchema(),
        AddSpec(metadata.spec),
        SetDefaultSpec(),
        AddSortOrder(metadata.sort_order),
        SetDefaultSortOrder(),
        SetLocation(metadata.location),
        SetProperties(dict(metadata.properties)),
    )


def replacement_updates(
    base: TableMetadata,
    schema: Schema,
    spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    *,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> tuple[Update, ...]:
    """The updates that replace a table: a new schema, spec and order, and no current snapshot.

    The table keeps its uuid, snapshots, logs and properties. Columns keep their ids by name, as
    long as their type stays or is promoted; partition fields keep theirs; others get ids that were
    never used. A `format-version` property upgrades.
    """
    check_properties(properties or {}, current=base.properties)
    check_new_defaults(schema.fields_by_id.values())
    fresh = assign_fresh_ids(
        schema,
        after=base.last_column_id,
        base=base.schema,
        may_become=lambda held, new: _may_become(base, held, new),
    )
    rebound = rebind_spec(spec, schema, fresh)
    if base.format_version == 1:
        fields = tuple(_v1_fields(base, rebound.fields))
    else:
        fields = tuple(_reused_fields(base, rebound.fields))
    changed = {**evolved_mapping_property(base, fresh), **(properties or {})}
    return (
        RemoveSnapshotRef(MAIN_BRANCH),
        *((SetProperties(changed),) if changed else ()),
        AddSchema(base.as_added(fresh)),
        SetCurrentSchema(),
        AddSpec(replace(rebound, fields=fields)),
        SetDefaultSpec(),
        AddSortOrder(rebind_order(sort_order, schema, fresh)),
        SetDefaultSortOrder(),
        *((SetLocation(_without_trailing_slash(location)),) if location else ()),
    )


def _may_become(base: TableMetadata, held: NestedField, new: IcebergType) -> bool:
    """Whether a column may get the type and keep its id: old files are read by it (rule 47)."""
    return can_promote(held.field_type, new, base.format_version) and all(
        keeps_partition_values(held.field_type, new, field.transform)
        for spec in base.partition_specs
        for field in spec.fields
        if held.field_id in field.source_ids
    )


def _reused_fields(
    base: TableMetadata, fields: Iterable[PartitionField]
) -> Iterable[PartitionField]:
    """The fields with the ids that any spec of the table has for the same transform (rule 74)."""
    held: dict[tuple[tuple[int, ...], str], int] = {}
    for spec in base.partition_specs:
        for field in spec.fields:
            key = (field.source_ids, str(field.transform))
            held[key] = max(held.get(key, 0), field.field_id)
    next_id = base.last_partition_id
    for field in fields:
        key = (field.source_ids, str(field.transform))
        if key not in held:
            next_id += 1
            held[key] = next_id
        yield replace(field, field_id=held[key])


def _v1_fields(base: TableMetadata, fields: Iterable[PartitionField]) -> Iterable[PartitionField]:
    """The base's fields in their places, void where they are gone, then the new ones (rule 90)."""
    wanted = {(field.source_ids, str(field.transform)): field for field in fields}
    names = {field.name for field in wanted.values()}
    last_id = 999
    for old in base.spec.fields:
        last_id = old.field_id
        kept = wanted.pop((old.source_ids, str(old.transform)), None)
        if kept is not None:
            yield replace(kept, field_id=old.field_id)
        else:
            name = f"{old.name}_{old.field_id}" if old.name in names else old.name
            yield replace(old, name=name, transform=VoidTransform())
    for field in wanted.values():
        last_id += 1
        yield replace(field, field_id=last_id)


def _without_trailing_slash(location: str) -> str:
    stripped = location.rstrip("/")
    return location if not stripped or stripped.endswith(":") else stripped
