"""The JSON of snapshots, references and logs (rules 154-160, 184-190)."""

from __future__ import annotations

import json
from typing import Any

from frazil.format.json_fields import MAX_LONG, JsonObject, without_nulls
from frazil.format.snapshots import (
    MetadataLogEntry,
    RefType,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
)


def stored_id(snapshot_id: int) -> int:
    """Return a snapshot id as the signed long that manifests and columns hold.

    Some writers' JSON has unsigned ids.
    """
    return snapshot_id - 2**64 if snapshot_id > MAX_LONG else snapshot_id


def snapshot_from_json(fields: JsonObject, *, format_version: int) -> Snapshot:
    """One snapshot in a table of that version; v1 has sequence number 0 always (rule 292)."""
    parent_id = fields.optional_snapshot_id("parent-snapshot-id")
    manifest_list = fields.optional_string("manifest-list")
    manifests = fields.strings("manifests") if "manifests" in fields else None
    if manifest_list is None and manifests is None:
        raise fields.wrong_kind_error("manifest-list", "the path of a manifest list", None)
    first_row_id = fields.optional_long("first-row-id")
    added_rows = fields.optional_long("added-rows")
    if first_row_id is not None and first_row_id < 0:
        raise fields.error_of("first-row-id", f"a row id cannot be negative: {first_row_id}")
    if added_rows is not None and added_rows < 0:
        raise fields.error_of("added-rows", f"a number of rows cannot be negative: {added_rows}")
    return Snapshot(
        snapshot_id=fields.snapshot_id("snapshot-id"),
        # Some writers say -1 for "no parent", as for the current snapshot (rule 160).
        parent_snapshot_id=None if parent_id == -1 else parent_id,
        sequence_number=(fields.optional_long("sequence-number") or 0) if format_version > 1 else 0,
        timestamp_ms=fields.moment("timestamp-ms"),
        manifest_list=manifest_list,
        manifests=None if manifest_list is not None else manifests,
        summary=fields.string_map("summary") if "summary" in fields else None,
        schema_id=fields.optional_integer("schema-id"),
        first_row_id=first_row_id,
        added_rows=added_rows,
        key_id=fields.optional_string("key-id"),
    )


def is_snapshot(fields: JsonObject, known: Snapshot) -> bool:
    """Return whether a JSON object is that of a snapshot, as today's writers write it.

    A snapshot never changes, so what is known of one need not be read again. Of another form of
    the same the answer is False.
    """
    read = fields.fields.get
    return (
        known.manifest_list is not None
        and read("manifest-list") == known.manifest_list
        and read("snapshot-id") == known.snapshot_id
        and read("parent-snapshot-id") == known.parent_snapshot_id
        and read("sequence-number") == known.sequence_number
        and read("timestamp-ms") == known.timestamp_ms
        and read("schema-id") == known.schema_id
        and read("first-row-id") == known.first_row_id
        and read("added-rows") == known.added_rows
        and read("key-id") == known.key_id
        and read("summary") == known.summary
    )


def snapshot_to_json(snapshot: Snapshot, *, format_version: int) -> dict[str, Any]:
    """The JSON object of a snapshot in a table of that version (rules 154, 292)."""
    return without_nulls(
        {
            "sequence-number": snapshot.sequence_number if format_version > 1 else None,
            "snapshot-id": snapshot.snapshot_id,
            "parent-snapshot-id": snapshot.parent_snapshot_id,
            "timestamp-ms": snapshot.timestamp_ms,
            "summary": None if snapshot.summary is None else dict(snapshot.summary),
            "manifest-list": snapshot.manifest_list,
            "manifests": None if snapshot.manifests is None else list(snapshot.manifests),
            "schema-id": snapshot.schema_id,
            "first-row-id": snapshot.first_row_id,
            "added-rows": snapshot.added_rows,
            "key-id": snapshot.key_id,
        }
    )


def snapshot_to_json_text(snapshot: Snapshot, *, format_version: int) -> str:
    """Return the JSON text of a snapshot, made once for each version of a table."""
    texts = snapshot.json_texts
    found = texts.get(format_version)
    if found is None:
        made = json.dumps(snapshot_to_json(snapshot, format_version=format_version))
        found = texts[format_version] = made
    return found


def ref_from_json(fields: JsonObject) -> SnapshotRef:
    """A branch or tag (rule 184)."""
    kind = fields.string("type").lower()
    if kind not in ("branch", "tag"):
        raise fields.error_of("type", f"a reference is a branch or a tag, not {kind!r}")
    ref_type: RefType = "branch" if kind == "branch" else "tag"
    return SnapshotRef(
        snapshot_id=fields.snapshot_id("snapshot-id"),
        type=ref_type,
        min_snapshots_to_keep=fields.optional_integer("min-snapshots-to-keep"),
        max_snapshot_age_ms=fields.optional_long("max-snapshot-age-ms"),
        max_ref_age_ms=fields.optional_long("max-ref-age-ms"),
    )


def ref_to_json(ref: SnapshotRef) -> dict[str, Any]:
    """The JSON object of a branch or tag (rule 184)."""
    return without_nulls(
        {
            "snapshot-id": ref.snapshot_id,
            "type": ref.type,
            "min-snapshots-to-keep": ref.min_snapshots_to_keep,
            "max-snapshot-age-ms": ref.max_snapshot_age_ms,
            "max-ref-age-ms": ref.max_ref_age_ms,
        }
    )


def snapshot_log_entry_from_json(fields: JsonObject) -> SnapshotLogEntry:
    """One entry of `snapshot-log` (rule 189)."""
    return SnapshotLogEntry(fields.moment("timestamp-ms"), fields.snapshot_id("snapshot-id"))


def snapshot_log_entry_to_json(entry: SnapshotLogEntry) -> dict[str, Any]:
    """The JSON object of one entry of `snapshot-log`."""
    return {"timestamp-ms": entry.timestamp_ms, "snapshot-id": entry.snapshot_id}


def snapshot_log_entry_to_json_text(entry: SnapshotLogEntry) -> str:
    """Return the JSON text of one entry of `snapshot-log`."""
    return f'{{"timestamp-ms": {entry.timestamp_ms:d}, "snapshot-id": {entry.snapshot_id:d}}}'


def metadata_log_entry_from_json(fields: JsonObject) -> MetadataLogEntry:
    """One entry of `metadata-log` (rule 190)."""
    return MetadataLogEntry(fields.moment("timestamp-ms"), fields.string("metadata-file"))


def metadata_log_entry_to_json(entry: MetadataLogEntry) -> dict[str, Any]:
    """The JSON object of one entry of `metadata-log`."""
    return {"timestamp-ms": entry.timestamp_ms, "metadata-file": entry.metadata_file}
