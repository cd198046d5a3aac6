"""Server-side planning: a client's scan becomes files and their deletes.

A scan of many files is answered in parts. What names a part is the request itself with the
snapshot that it reads, so the server holds nothing for its clients, and any server of the same
catalog can go on.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import polars as pl

from frazil.catalog.protocol import LoadedTable
from frazil.errors import PredicateError, ValidationError
from frazil.format.json_fields import JsonObject
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import BinaryType, FixedType, IcebergType, PrimitiveType
from frazil.format.values import from_bytes, to_json
from frazil.planning.changes import appended_files
from frazil.planning.changes_range import snapshot_range
from frazil.planning.deletes.index import POSITION_DELETES
from frazil.planning.frames import unpack_partitions
from frazil.planning.plan import plan
from frazil.planning.scan_plan import ScanPlan
from frazil.serve.answers import HttpAnswer, HttpError, ok
from frazil.serve.calls import Call, flag_in, reading_request
from frazil.serve.scans.filters import filter_of
from frazil.serve.service import ServedCatalog
from frazil.storage.avro.columns import BOUNDS, value_column
from frazil.storage.avro.partition_summaries import partition_rows

_LARGEST_TASK: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class _Scan:
    """What a client asks for, with every default filled in.

    Attributes:
        snapshot_id: what is read; None where the table is empty.
        start_id: of an incremental scan; its end is the snapshot.
        filter: JSON.
        case_sensitive: how columns are found.
        by_snapshot: whether the snapshot's schema is read by.
        fields: names of the columns whose statistics are wanted.
    """

    snapshot_id: int | None
    start_id: int | None
    filter: Any
    case_sensitive: bool
    by_snapshot: bool
    fields: tuple[str, ...]


def plan_scan(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Plan a scan: its first files, and what the others are fetched by."""
    body = call.body()
    table = served.catalog.load_table(call.table)
    with reading_request():
        scan = _scan_of(body, table.metadata)
    found, is_exact, ids = _plan_of_scan(served, call, table, scan)
    size = served.settings.tasks_per_answer
    first = _tasks(table.metadata, found, ids, 0, size, is_exact=is_exact)
    beyond = range(size, found.file_count, size)
    with reading_request():
        tasks = [_task_text(table.metadata, scan, start, start + size) for start in beyond]
    more = {"plan-tasks": tasks} if tasks else {}
    return ok({"status": "completed", "plan-id": str(uuid4()), **first, **more})


def fetch_tasks(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with the files that a plan task stands for."""
    with call.reading_body() as body:
        text = body.string("plan-task")
    table = served.catalog.load_table(call.table)
    scan, start, stop = _of_task_text(text, table.metadata)
    if stop - start > served.settings.tasks_per_answer:
        raise _no_such_task()
    found, is_exact, ids = _plan_of_scan(served, call, table, scan)
    return ok(_tasks(table.metadata, found, ids, start, stop, is_exact=is_exact))


def no_such_plan(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer that nothing is held for the client: every plan was complete when it was answered."""
    served.catalog.metadata_location(call.table)
    raise HttpError(404, "NoSuchPlanIdException", "this server holds no plans")


def _scan_of(body: JsonObject, metadata: TableMetadata) -> _Scan:
    snapshot_id = body.optional_snapshot_id("snapshot-id")
    start_id = body.optional_snapshot_id("start-snapshot-id")
    end_id = body.optional_snapshot_id("end-snapshot-id")
    if snapshot_id is not None and (start_id is not None or end_id is not None):
        raise ValidationError("a scan is of one snapshot or of those between two, not of both")
    if start_id is not None and end_id is None:
        raise ValidationError("a scan from start-snapshot-id needs end-snapshot-id")
    if end_id is not None and start_id is None:
        raise ValidationError("a scan to end-snapshot-id needs start-snapshot-id")
    chosen = end_id if end_id is not None else snapshot_id
    if chosen is None:
        chosen = metadata.current_snapshot_id
    else:
        metadata.snapshot_by_id(chosen)
    return _Scan(
        snapshot_id=chosen,
        start_id=start_id,
        filter=body.fields.get("filter"),
        case_sensitive=flag_in(body, "case-sensitive", default=True),
        by_snapshot=flag_in(body, "use-snapshot-schema"),
        fields=body.strings("stats-fields") if "stats-fields" in body else (),
    )


def _plan_of_scan(
    served: ServedCatalog, call: Call, table: LoadedTable, scan: _Scan
) -> tuple[ScanPlan, bool, list[int]]:
    """The plan of a scan, whether its filter is exact, and the fields of its statistics."""
    metadata = table.metadata
    snapshot = None if scan.snapshot_id is None else metadata.snapshot_by_id(scan.snapshot_id)
    schema = _schema_of(metadata, snapshot, scan)
    where, is_exact = filter_of(scan.filter, schema, case_sensitive=scan.case_sensitive)
    ids = _field_ids(schema, scan)
    statistics = dict.fromkeys(STATISTICS, frozenset(ids)) if ids else None
    io = served.io_to_plan(call.principal, table)
    if scan.start_id is None or snapshot is None:
        found = plan(metadata, snapshot, io, where=where, schema=schema, statistics=statistics)
    else:
        between = snapshot_range(
            metadata, from_snapshot_id=scan.start_id, to_snapshot_id=scan.snapshot_id
        )
        found = appended_files(
            metadata, between.snapshots, io, where=where, schema=schema, statistics=statistics
        )
    return found, is_exact, ids


def _schema_of(metadata: TableMetadata, snapshot: Snapshot | None, scan: _Scan) -> Schema:
    if not scan.by_snapshot or snapshot is None or snapshot.schema_id is None:
        return metadata.schema
    return metadata.schema_by_id(snapshot.schema_id)


def _field_ids(schema: Schema, scan: _Scan) -> list[int]:
    """The columns whose statistics are wanted; those have none that are not of a single value."""
    found = []
    for name in scan.fields:
        field = schema.field_or_none(name, case_sensitive=scan.case_sensitive)
        if field is None:
            raise PredicateError(f"there is no column {name[:100]!r} to send statistics of")
        if isinstance(field.field_type, PrimitiveType):
            found.append(field.field_id)
    return sorted(set(found))


def _tasks(
    metadata: TableMetadata,
    found: ScanPlan,
    ids: list[int],
    start: int,
    stop: int,
    *,
    is_exact: bool,
) -> dict[str, Any]:
    keep = found.files.select(pl.int_range(pl.len()).is_between(start, stop, closed="left"))
    part = found.where_files(keep.to_series())
    return scan_tasks(metadata, part, statistics=ids, is_exact=is_exact)


def _task_text(metadata: TableMetadata, scan: _Scan, start: int, stop: int) -> str:
    content = {
        "table": metadata.table_uuid,
        "snapshot": scan.snapshot_id,
        "start": scan.start_id,
        "schema": metadata.current_schema_id,
        "filter": scan.filter,
        "case": scan.case_sensitive,
        "by-snapshot": scan.by_snapshot,
        "fields": list(scan.fields),
        "from": start,
        "to": stop,
    }
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(content).encode())).decode()


def _of_task_text(text: str, metadata: TableMetadata) -> tuple[_Scan, int, int]:
    """What a plan task stands for; the client may have made it itself."""
    try:
        packed = base64.b64decode(text, altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        content = json.loads(unpacker.decompress(packed, _LARGEST_TASK))
        if not unpacker.eof:
            raise _no_such_task()
        fields = JsonObject(content)
        start, stop = fields.integer("from"), fields.integer("to")
        scan = _Scan(
            snapshot_id=fields.optional_snapshot_id("snapshot"),
            start_id=fields.optional_snapshot_id("start"),
            filter=fields.fields.get("filter"),
            case_sensitive=flag_in(fields, "case", default=True),
            by_snapshot=flag_in(fields, "by-snapshot"),
            fields=fields.strings("fields"),
        )
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        raise _no_such_task() from None
    of_this = fields.fields.get("table") == metadata.table_uuid
    known = scan.snapshot_id in metadata.snapshots_by_id
    # By another schema the filter may mean another column.
    same_schema = fields.fields.get("schema") == metadata.current_schema_id
    if not (of_this and known and same_schema and 0 <= start < stop):
        raise _no_such_task()
    return scan, start, stop


def _no_such_task() -> HttpError:
    return HttpError(
        404, "NoSuchPlanTaskException", "there is no such plan task: plan the scan again"
    )


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
    data = _files(metadata, plan.schema, plan.files, _OPTIONAL)
    for row, file in zip(plan.files.iter_rows(named=True), data, strict=True):
        task: dict[str, Any] = {
            "data-file": {"content": "data", **file, **_statistics_of(row, types)}
        }
        if row["ordinal"] in references:
            task["delete-file-references"] = references[row["ordinal"]]
        # Without a residual the client tests the rows by its own filter.
        if row["all_rows_match"] and is_exact:
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
        stated = [name for name in optional if row[name] is not None]
        found |= {name.replace("_", "-"): row[name] for name in stated}
        if row["key_metadata"] is not None:
            found["key-metadata"] = row["key_metadata"].hex().upper()
        yield found


def _partitions(metadata: TableMetadata, schema: Schema, files: pl.DataFrame) -> list[list[Any]]:
    """The partition of each file, in the order of its spec's fields."""
    found: list[list[Any]] = [[] for _ in range(len(files))]
    columns = unpack_partitions(files)
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
        stated = {i: row.get(value_column(name, i)) for i in types}
        known: dict[int, Any] = {i: value for i, value in stated.items() if value is not None}
        if name in BOUNDS:
            known = {i: _json(types[i], from_bytes(types[i], each)) for i, each in known.items()}
        if known:
            found[name.replace("_", "-")] = {"keys": [*known], "values": [*known.values()]}
    return found


def _json(kind: IcebergType, value: Any) -> Any:
    if value is not None and isinstance(kind, BinaryType | FixedType):
        return bytes(value).hex().upper()
    return to_json(kind, value)
