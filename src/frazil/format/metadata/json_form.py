"""Table metadata as JSON: reads versions 1 to 3, writes the table's (rules 191-202, 292-302)."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

from frazil.errors import InvalidMetadataError, UnsupportedVersionError
from frazil.format.json_fields import MAX_INT, JsonObject, load_json, without_nulls
from frazil.format.metadata.statistics import (
    partition_statistics_file_from_json,
    partition_statistics_file_to_json,
    statistics_file_from_json,
    statistics_file_to_json,
)
from frazil.format.metadata.table_metadata import (
    SUPPORTED_FORMAT_VERSIONS,
    EncryptedKey,
    TableMetadata,
)
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.schema.schema import levels_of
from frazil.format.snapshots import MAIN_BRANCH, Snapshot, SnapshotRef
from frazil.format.snapshots.json_form import (
    is_snapshot,
    metadata_log_entry_from_json,
    metadata_log_entry_to_json,
    ref_from_json,
    ref_to_json,
    snapshot_from_json,
    snapshot_log_entry_from_json,
    snapshot_log_entry_to_json,
    snapshot_log_entry_to_json_text,
    snapshot_to_json,
    snapshot_to_json_text,
)
from frazil.format.sorting import UNSORTED, SortOrder

_GZIP_MAGIC = b"\x1f\x8b"
_NO_SNAPSHOT = -1
# No honest metadata gets near both of these: ids and names of files do not repeat.
_ALWAYS_ALLOWED = 1 << 26
_LARGEST_RATIO = 30
_DEEPEST = 100


def parse_metadata(data: bytes, *, file: str | None = None) -> TableMetadata:
    """The table metadata in a metadata file, compressed with gzip or not (rule 196)."""
    if data.startswith(_GZIP_MAGIC):
        data = unpacked_metadata(data, file=file)
    return metadata_from_json(load_json(data, what="the metadata", file=file), file=file)


def unpacked_metadata(data: bytes, *, file: str | None = None) -> bytes:
    """Return what a metadata file holds that is compressed with gzip.

    It unpacks no more bytes than metadata of its size has; what has more is refused, as is what is
    cut short.
    """
    most = max(_ALWAYS_ALLOWED, _LARGEST_RATIO * len(data))
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as stream:
            body = stream.read(most + 1)
    except (OSError, EOFError, zlib.error) as cause:
        raise InvalidMetadataError(
            f"the compressed metadata cannot be read: {cause}", file=file
        ) from cause
    if len(body) > most:
        raise InvalidMetadataError(
            f"the compressed metadata of {len(data)} bytes unpacks to more than {most} bytes",
            file=file,
        )
    return body


def metadata_to_bytes(metadata: TableMetadata) -> bytes:
    """The bytes of a metadata file of the table's own version, not compressed.

    They are the JSON of `metadata_to_json`. Snapshots grow with every commit, so their text comes
    last, and that of a snapshot which was written before is not made again.
    """
    version = metadata.format_version
    snapshots = [
        snapshot_to_json_text(snapshot, format_version=version) for snapshot in metadata.snapshots
    ]
    log = [snapshot_log_entry_to_json_text(entry) for entry in metadata.snapshot_log]
    beside = json.dumps(_json_beside_snapshots(metadata)).removesuffix("}")
    return (
        f'{beside}, "snapshots": [{", ".join(snapshots)}], "snapshot-log": [{", ".join(log)}]}}'
    ).encode()


def metadata_to_gzip_bytes(metadata: TableMetadata) -> bytes:
    """The bytes of a `.gz.metadata.json` file (rule 196)."""
    return gzip.compress(metadata_to_bytes(metadata), mtime=0)


def metadata_from_json(
    value: Any, *, file: str | None = None, known: TableMetadata | None = None
) -> TableMetadata:
    """Return the table metadata of a decoded JSON object, as `parse_metadata` does.

    Snapshots of `known`, earlier metadata of the table, are not made again.
    """
    fields = JsonObject(value, file=file)
    version = fields.integer("format-version")
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise UnsupportedVersionError(
            f"the table's format version is {version}; supported are versions 1 to 3"
            + (f" (file {file})" if file else "")
        )
    schemas, current_schema_id = _read_schemas(fields, version)
    for schema in schemas:
        _check_32_bits(fields, "schemas", (schema.schema_id, *schema.field_ids))
        levels = levels_of(schema)
        if levels > _DEEPEST:
            raise fields.error_of(
                "schemas",
                f"the schema {schema.schema_id} nests {levels} levels deep; at most"
                f" {_DEEPEST} can be read",
            )
    specs, default_spec_id = _read_specs(fields, version)
    for spec in specs:
        ids = (field.field_id for field in spec.fields)
        _check_32_bits(fields, "partition-specs", (spec.spec_id, *ids))
    orders, default_order_id = _read_sort_orders(fields, version)
    _check_32_bits(fields, "sort-orders", (order.order_id for order in orders))
    snapshots = _read_snapshots(fields, version, known)
    fields.check_unique("snapshots", (snapshot.snapshot_id for snapshot in snapshots))
    current_snapshot_id = fields.optional_snapshot_id("current-snapshot-id")
    if current_snapshot_id == _NO_SNAPSHOT:
        current_snapshot_id = None
    last_sequence_number = fields.long("last-sequence-number") if version > 1 else 0
    _check_snapshots(fields, version, snapshots, last_sequence_number)
    return TableMetadata(
        format_version=version,
        table_uuid=(
            fields.optional_string("table-uuid") if version == 1 else fields.string("table-uuid")
        ),
        location=fields.string("location"),
        last_sequence_number=last_sequence_number,
        last_updated_ms=fields.moment("last-updated-ms"),
        last_column_id=fields.integer("last-column-id"),
        schemas=schemas,
        current_schema_id=current_schema_id,
        partition_specs=specs,
        default_spec_id=default_spec_id,
        last_partition_id=_read_last_partition_id(fields, version, specs),
        properties=fields.string_map("properties"),
        current_snapshot_id=current_snapshot_id,
        snapshots=snapshots,
        snapshot_log=tuple(
            snapshot_log_entry_from_json(entry) for entry in fields.objects("snapshot-log")
        ),
        metadata_log=tuple(
            metadata_log_entry_from_json(entry) for entry in fields.objects("metadata-log")
        ),
        sort_orders=orders,
        default_sort_order_id=default_order_id,
        refs=_read_refs(fields, current_snapshot_id, snapshots),
        statistics=tuple(
            statistics_file_from_json(entry) for entry in fields.objects("statistics")
        ),
        partition_statistics=tuple(
            partition_statistics_file_from_json(entry)
            for entry in fields.objects("partition-statistics")
        ),
        next_row_id=_read_next_row_id(fields, snapshots) if version >= 3 else 0,
        encryption_keys=tuple(
            encrypted_key_from_json(entry) for entry in fields.objects("encryption-keys")
        )
        if version >= 3
        else (),
    )


def _read_snapshots(
    fields: JsonObject, version: int, known: TableMetadata | None
) -> tuple[Snapshot, ...]:
    """The snapshots; those that are known already are the same objects."""
    before: Mapping[Any, Snapshot] = {}
    if known is not None and known.format_version == version:
        before = known.snapshots_at_hand
    found: list[Snapshot] = []
    for snapshot in fields.objects("snapshots"):
        snapshot_id = snapshot.fields.get("snapshot-id")
        same = before.get(snapshot_id) if isinstance(snapshot_id, int) else None
        if same is None or not is_snapshot(snapshot, same):
            same = snapshot_from_json(snapshot, format_version=version)
        found.append(same)
    return tuple(found)


def metadata_to_json(metadata: TableMetadata) -> dict[str, Any]:
    """The JSON object of the metadata in the table's own version (rules 191, 292-296).

    An absent current snapshot is -1 in versions 1 and 2 and null in version 3 (rules 160, 310).
    """
    version = metadata.format_version
    return {
        **_json_beside_snapshots(metadata),
        "snapshots": [
            snapshot_to_json(snapshot, format_version=version) for snapshot in metadata.snapshots
        ],
        "snapshot-log": [snapshot_log_entry_to_json(entry) for entry in metadata.snapshot_log],
    }


def _json_beside_snapshots(metadata: TableMetadata) -> dict[str, Any]:
    version = metadata.format_version
    legacy = {"schema": metadata.schema.to_json()} if version == 1 else {}
    legacy_spec = {"partition-spec": metadata.spec.fields_to_json()} if version == 1 else {}
    nothing_current = _NO_SNAPSHOT if version < 3 else None
    current_id = metadata.current_snapshot_id
    return {
        "format-version": version,
        **without_nulls({"table-uuid": metadata.table_uuid}),
        "location": metadata.location,
        **({"last-sequence-number": metadata.last_sequence_number} if version > 1 else {}),
        "last-updated-ms": metadata.last_updated_ms,
        "last-column-id": metadata.last_column_id,
        **legacy,
        "current-schema-id": metadata.current_schema_id,
        "schemas": [schema.to_json() for schema in metadata.schemas],
        **legacy_spec,
        "default-spec-id": metadata.default_spec_id,
        "partition-specs": [spec.to_json() for spec in metadata.partition_specs],
        "last-partition-id": metadata.last_partition_id,
        "default-sort-order-id": metadata.default_sort_order_id,
        "sort-orders": [order.to_json() for order in metadata.sort_orders],
        "properties": dict(metadata.properties),
        "current-snapshot-id": nothing_current if current_id is None else current_id,
        **({"next-row-id": metadata.next_row_id} if version >= 3 else {}),
        **(
            {"encryption-keys": [encrypted_key_to_json(key) for key in metadata.encryption_keys]}
            if metadata.encryption_keys
            else {}
        ),
        "refs": {name: ref_to_json(ref) for name, ref in metadata.refs.items()},
        "statistics": [statistics_file_to_json(entry) for entry in metadata.statistics],
        "partition-statistics": [
            partition_statistics_file_to_json(entry) for entry in metadata.partition_statistics
        ],
        "metadata-log": [metadata_log_entry_to_json(entry) for entry in metadata.metadata_log],
    }


def encrypted_key_from_json(fields: JsonObject) -> EncryptedKey:
    """One entry of `encryption-keys` (rule 201)."""
    return EncryptedKey(
        key_id=fields.string("key-id"),
        encrypted_key_metadata=fields.string("encrypted-key-metadata"),
        encrypted_by_id=fields.optional_string("encrypted-by-id"),
        properties=fields.string_map("properties"),
    )


def encrypted_key_to_json(key: EncryptedKey) -> dict[str, Any]:
    """The JSON object of one entry of `encryption-keys` (rule 201)."""
    return without_nulls(
        {
            "key-id": key.key_id,
            "encrypted-key-metadata": key.encrypted_key_metadata,
            "encrypted-by-id": key.encrypted_by_id,
            "properties": dict(key.properties) or None,
        }
    )


def _read_schemas(fields: JsonObject, version: int) -> tuple[tuple[Schema, ...], int]:
    if "schemas" in fields or version > 1:
        schemas = fields.parsed_list("schemas", Schema.from_json)
        fields.check_unique("schemas", (schema.schema_id for schema in schemas))
        if version == 1 and "current-schema-id" not in fields:
            return _with_current_schema(schemas, fields.value_of("schema", Schema.from_json))
        current_id = fields.integer("current-schema-id")
        _check_held(fields, "current-schema-id", current_id, (s.schema_id for s in schemas))
        return schemas, current_id
    schema = fields.value_of("schema", Schema.from_json)
    return (schema,), schema.schema_id


def _with_current_schema(
    schemas: tuple[Schema, ...], current: Schema
) -> tuple[tuple[Schema, ...], int]:
    """v1's own `schema` as the current one, under the id that `schemas` has for it."""
    for schema in schemas:
        if schema.is_same_as(current):
            return schemas, schema.schema_id
    new_id = max((schema.schema_id for schema in schemas), default=-1) + 1
    return (*schemas, current.with_id(new_id)), new_id


def _read_specs(fields: JsonObject, version: int) -> tuple[tuple[PartitionSpec, ...], int]:
    if "partition-specs" in fields or version > 1:
        specs = fields.parsed_list("partition-specs", PartitionSpec.from_json)
        if version == 1 and "default-spec-id" not in fields and specs:
            # The spec of v1's own field where there is one, else the newest.
            default_id = max(spec.spec_id for spec in specs)
            if "partition-spec" in fields:
                own = fields.value_of("partition-spec", PartitionSpec.from_fields_json)
                default_id = max(
                    (spec.spec_id for spec in specs if spec.fields == own.fields),
                    default=default_id,
                )
        else:
            default_id = fields.integer("default-spec-id")
        _check_held(fields, "default-spec-id", default_id, (spec.spec_id for spec in specs))
        fields.check_unique("partition-specs", (spec.spec_id for spec in specs))
        return specs, default_id
    spec = fields.value_of("partition-spec", PartitionSpec.from_fields_json)
    return (spec,), spec.spec_id


def _read_last_partition_id(
    fields: JsonObject, version: int, specs: tuple[PartitionSpec, ...]
) -> int:
    if version > 1 or "last-partition-id" in fields:
        return fields.integer("last-partition-id")
    return max(spec.last_assigned_field_id for spec in specs)


def _read_sort_orders(fields: JsonObject, version: int) -> tuple[tuple[SortOrder, ...], int]:
    if "sort-orders" not in fields and version == 1:
        return (UNSORTED,), UNSORTED.order_id
    orders = fields.parsed_list("sort-orders", SortOrder.from_json)
    default_id = fields.integer("default-sort-order-id")
    fields.check_unique("sort-orders", (order.order_id for order in orders))
    # Order 0 is unsorted by definition (rule 94) and need not be listed.
    if default_id == UNSORTED.order_id and all(o.order_id != default_id for o in orders):
        orders = (UNSORTED, *orders)
    _check_held(fields, "default-sort-order-id", default_id, (order.order_id for order in orders))
    return orders, default_id


def _read_next_row_id(fields: JsonObject, snapshots: tuple[Snapshot, ...]) -> int:
    # Without a snapshot no id was ever given out, so the first one is the only answer.
    if "next-row-id" not in fields and not snapshots:
        return 0
    next_row_id = fields.long("next-row-id")
    if next_row_id < 0:
        raise fields.error_of("next-row-id", f"a row id cannot be negative: {next_row_id}")
    return next_row_id


def _read_refs(
    fields: JsonObject, current_id: int | None, snapshots: tuple[Snapshot, ...]
) -> Mapping[str, SnapshotRef]:
    refs = {name: ref_from_json(entry) for name, entry in fields.object_map("refs").items()}
    main = refs.get(MAIN_BRANCH)
    if main is None:
        if current_id is not None:
            refs[MAIN_BRANCH] = SnapshotRef(snapshot_id=current_id, type="branch")
    elif main.snapshot_id != current_id:
        raise fields.error_of(
            "refs.main",
            f"the branch main is at snapshot {main.snapshot_id}, the current snapshot is"
            f" {'not set' if current_id is None else current_id}",
        )
    elif not main.is_branch:
        raise fields.error_of("refs.main.type", "main is a branch, not a tag")
    kept = {snapshot.snapshot_id for snapshot in snapshots}
    if current_id is not None and current_id not in kept:
        raise fields.error_of(
            "current-snapshot-id", f"the snapshot {current_id} is not among the snapshots"
        )
    for name, ref in refs.items():
        if ref.snapshot_id not in kept:
            raise fields.error_of(
                f"refs.{name}.snapshot-id",
                f"the snapshot {ref.snapshot_id} is not among the snapshots",
            )
    return refs


def _check_snapshots(
    fields: JsonObject,
    version: int,
    snapshots: tuple[Snapshot, ...],
    last_sequence_number: int,
) -> None:
    for position, snapshot in enumerate(snapshots):
        if version > 1 and snapshot.sequence_number > last_sequence_number:
            raise fields.error_of(
                f"snapshots[{position}].sequence-number",
                f"the snapshot {snapshot.snapshot_id} has sequence number"
                f" {snapshot.sequence_number}, the table's last is {last_sequence_number}",
            )
        if version > 1 and snapshot.manifest_list is None and snapshot.sequence_number > 0:
            raise fields.error_of(
                f"snapshots[{position}].manifest-list",
                f"the snapshot {snapshot.snapshot_id} has no manifest list",
            )


def _check_held(fields: JsonObject, name: str, wanted: int, held: Iterable[int]) -> None:
    known = sorted(held)
    if wanted not in known:
        raise fields.error_of(name, f"{wanted} is not among the ids that the table has: {known}")


def _check_32_bits(fields: JsonObject, name: str, ids: Iterable[int]) -> None:
    for one in ids:
        if not -MAX_INT - 1 <= one <= MAX_INT:
            raise fields.error_of(name, f"the id {one} has more than 32 bits")
