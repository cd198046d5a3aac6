"""Rows of the metadata tables that a table's metadata alone tells, as plain values.

Points in time are milliseconds since the epoch, and maps are lists of key and value.
"""

from __future__ import annotations

from typing import Any

from frazil.format.metadata import TableMetadata
from frazil.format.snapshots.json_form import stored_id


def history_rows(metadata: TableMetadata) -> list[dict[str, Any]]:
    """Return which snapshot was made the current one when."""
    current = metadata.current_snapshot_id
    chain = () if current is None else metadata.ancestors_of(current)
    ancestors = {snapshot.snapshot_id for snapshot in chain}
    known = metadata.snapshots_by_id
    return [
        {
            "made_current_at": entry.timestamp_ms,
            "snapshot_id": stored_id(entry.snapshot_id),
            "parent_id": _optional_id(known[entry.snapshot_id].parent_snapshot_id)
            if entry.snapshot_id in known
            else None,
            "is_current_ancestor": entry.snapshot_id in ancestors,
        }
        for entry in metadata.snapshot_log
    ]


def snapshot_rows(metadata: TableMetadata) -> list[dict[str, Any]]:
    """Return every snapshot that is kept."""
    return [
        {
            "committed_at": snapshot.timestamp_ms,
            "snapshot_id": stored_id(snapshot.snapshot_id),
            "parent_id": _optional_id(snapshot.parent_snapshot_id),
            "operation": _as_text(snapshot.operation),
            "manifest_list": snapshot.manifest_list,
            "summary": [
                {"key": _as_text(key), "value": _as_text(value)}
                for key, value in (snapshot.summary or {}).items()
                if key != "operation"
            ],
        }
        for snapshot in metadata.snapshots
    ]


def ref_rows(metadata: TableMetadata) -> list[dict[str, Any]]:
    """Return branches and tags."""
    return [
        {
            "name": name,
            "type": ref.type.upper(),
            "snapshot_id": stored_id(ref.snapshot_id),
            "max_reference_age_in_ms": ref.max_ref_age_ms,
            "min_snapshots_to_keep": ref.min_snapshots_to_keep,
            "max_snapshot_age_in_ms": ref.max_snapshot_age_ms,
        }
        for name, ref in metadata.refs.items()
    ]


def _optional_id(snapshot_id: int | None) -> int | None:
    return None if snapshot_id is None else stored_id(snapshot_id)


def _as_text(value: str | None) -> str | None:
    """Free text with '?' for halves of surrogate pairs, as Java shows them."""
    return None if value is None else value.encode(errors="replace").decode()
