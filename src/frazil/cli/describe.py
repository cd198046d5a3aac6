"""What a table and a plan are, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from frazil.format.metadata import TableMetadata
from frazil.format.partitions.transforms import Transform
from frazil.table.handle import TableHandle

if TYPE_CHECKING:
    from frazil.planning.scan_plan import ScanPlan


def describe_table(handle: TableHandle) -> dict[str, Any]:
    """A table's columns, layout, newest snapshot and place."""
    metadata = handle.metadata
    snapshot = metadata.current_snapshot
    summary = {} if snapshot is None else dict(snapshot.summary or {})
    return {
        "table": handle.name.removeprefix("static."),
        "format_version": metadata.format_version,
        "uuid": metadata.table_uuid,
        "location": metadata.location,
        "metadata": handle.metadata_location,
        "partitioned_by": [
            _expr(metadata, each.transform, each.source_ids) for each in metadata.spec.fields
        ],
        "sorted_by": [
            f"{_expr(metadata, each.transform, each.source_ids)} {each.direction} "
            f"{str(each.null_order).replace('-', ' ')}"
            for each in metadata.sort_order.fields
        ],
        "snapshots": len(metadata.snapshots),
        "columns": [
            {
                "id": field.field_id,
                "column": field.name,
                "type": str(field.field_type),
                "required": field.required,
                "doc": field.doc,
            }
            for field in metadata.schema.fields
        ],
        "snapshot": None
        if snapshot is None
        else {
            "snapshot": snapshot.snapshot_id,
            "operation": snapshot.operation,
            **{
                key.removeprefix("total-").replace("-", "_"): as_number(value)
                for key, value in summary.items()
                if key.startswith("total-")
            },
        },
    }


def _expr(metadata: TableMetadata, transform: Transform, source_ids: Sequence[int]) -> str:
    """A transform of columns as `create_table` takes it."""
    names = [metadata.schema.find_column_name(source) or f"#{source}" for source in source_ids]
    name, bracket, parameter = str(transform).partition("[")
    if name == "identity":
        return ", ".join(names)
    parameters = [parameter.rstrip("]")] if bracket else []
    return f"{name}({', '.join([*parameters, *names])})"


def plan_facts(plan: ScanPlan) -> dict[str, Any]:
    """What a scan reads and leaves out."""
    return {
        "snapshot_id": plan.snapshot_id,
        "files": plan.file_count,
        "size_in_bytes": plan.size_in_bytes,
        "records": plan.record_count,
        "delete_files": plan.delete_count,
        "manifests": plan.manifests_read,
        "where": plan.where.to_sql(),
        "residual": plan.residual.to_sql(),
        "skipped": [
            {
                "reason": str(each.reason),
                "manifests": each.manifests,
                "files": each.files,
                "size_in_bytes": each.size_in_bytes,
            }
            for each in plan.skipped
        ],
        "paths": plan.files["file_path"].to_list(),
    }


def as_number(text: str | None) -> int | str | None:
    """A count of a snapshot's summary."""
    return int(text) if text is not None and text.isdigit() else text
