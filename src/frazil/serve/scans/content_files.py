"""Files of a plan in the protocol's JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import polars as pl

from frazil.format.metadata import TableMetadata
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.format.schema import Schema
from frazil.format.types import BinaryType, FixedType, IcebergType
from frazil.format.values import from_bytes, to_json
from frazil.planning.deletes.index import POSITION_DELETES
from frazil.planning.frames import unpacked
from frazil.planning.scan_plan import ScanPlan
from frazil.storage.avro.columns import BOUNDS, value_column
from frazil.storage.avro.partition_summaries import partition_rows

STATISTICS: Final = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)
_OPTIONAL: Final = ("split_offsets", "sort_order_id", "first_row_id")
_OPTIONAL_OF_DELETES: Final = (
    "sort_order_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)


def scan_tasks(
    metadata: TableMetadata, plan: ScanPlan, *, statistics: Collection[int], is_exact: bool
) -> dict[str, Any]:
    """Return the files of a plan and their deletes as tasks.

    Args:
        metadata: the table.
        plan: of the files that go into one answer.
        statistics: fields whose statistics the plan's files hold.
        is_exact: whether the plan's predicate means the rows that the client means.
    """
    pairs = plan.pairs
    used = pairs["delete"].unique().sort()
    places = {delete: place for place, delete in enumerate(used.to_list())}
    references: dict[int, list[int]] = {}
    for ordinal, delete in pairs.iter_rows():
        references.setdefault(ordinal, []).append(places[delete])
    deletes = plan.deletes.filter(pl.col("delete").is_in(used.implode())).sort("delete")
    types = {i: f.field_type for i in statistics if (f := plan.schema.field_or_none(i))}
    tasks = []
    whole = plan.files["all_rows_match"].to_list()
    ordinals = plan.files["ordinal"].to_list()
    data = _files(metadata, plan.schema, plan.files, _OPTIONAL)
    for row, file, ordinal, matches in zip(
        plan.files.iter_rows(named=True), data, ordinals, whole, strict=True
    ):
        task: dict[str, Any] = {
            "data-file": {"content": "data", **file, **_statistics_of(row, types)}
        }
        if ordinal in references:
            task["delete-file-references"] = references[ordinal]
        # Without a residual the client tests the rows by its own filter.
        if matches and is_exact:
            task["residual-filter"] = True
        tasks.append(task)
    return {"file-scan-tasks": tasks, "delete-files": _delete_files(metadata, plan, deletes)}


def _delete_files(
    metadata: TableMetadata, plan: ScanPlan, deletes: pl.DataFrame
) -> list[dict[str, Any]]:
    found = []
    files = _files(metadata, plan.schema, deletes, _OPTIONAL_OF_DELETES)
    rows = deletes.select("content", "equality_ids").iter_rows()
    for file, (content, equality_ids) in zip(files, rows, strict=True):
        if content == POSITION_DELETES:
            found.append({"content": "position-deletes", **file})
        else:
            ids = list(equality_ids or ())
            found.append({"content": "equality-deletes", **file, "equality-ids": ids})
    return found


def _files(
    metadata: TableMetadata, schema: Schema, files: pl.DataFrame, optional: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """What data and delete files have alike, in the frame's order."""
    rows = files.iter_rows(named=True)
    for row, partition in zip(rows, _partitions(metadata, schema, files), strict=True):
        found = {
            "spec-id": row["spec_id"],
            "partition": partition,
            "file-path": row["file_path"],
            "file-format": row["file_format"],
            "file-size-in-bytes": row["file_size_in_bytes"],
            "record-count": row["record_count"],
        }
        for name in optional:
            if row[name] is not None:
                found[name.replace("_", "-")] = row[name]
        if row["key_metadata"] is not None:
            found["key-metadata"] = row["key_metadata"].hex().upper()
        yield found


def _partitions(metadata: TableMetadata, schema: Schema, files: pl.DataFrame) -> list[list[Any]]:
    """The partition of each file, in the order of its spec's fields."""
    found: list[list[Any]] = [[] for _ in range(len(files))]
    columns = unpacked(files)
    whole = schema_with_sources(metadata, schema)
    for spec_id in files["spec_id"].unique().to_list():
        spec = metadata.spec_by_id(spec_id)
        fields = spec.partition_type(whole).fields
        places = (files["spec_id"] == spec_id).arg_true().to_list()
        rows = partition_rows(spec, whole, columns.filter(pl.col("spec_id") == spec_id))
        for place, row in zip(places, rows, strict=True):
            found[place] = [
                _json(field.field_type, value) for field, value in zip(fields, row, strict=True)
            ]
    return found


def _statistics_of(row: Mapping[str, Any], types: Mapping[int, IcebergType]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in STATISTICS:
        keys, values = [], []
        for field_id, kind in types.items():
            value = row.get(value_column(name, field_id))
            if value is not None:
                keys.append(field_id)
                values.append(_json(kind, from_bytes(kind, value)) if name in BOUNDS else value)
        if keys:
            found[name.replace("_", "-")] = {"keys": keys, "values": values}
    return found


def _json(kind: IcebergType, value: Any) -> Any:
    if value is not None and isinstance(kind, BinaryType | FixedType):
        return bytes(value).hex().upper()
    return to_json(kind, value)
