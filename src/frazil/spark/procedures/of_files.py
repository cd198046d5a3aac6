"""Procedures that rewrite files, delete them, or make tables of them."""

from __future__ import annotations

from typing import Final

from frazil.catalog.registration import register_table
from frazil.errors import ProcedureError
from frazil.spark.maintenance.compaction.results import (
    CompactionResult,
    ManifestsResult,
    PositionDeletesResult,
)
from frazil.spark.procedures.parameters import ArgumentKind, Arguments, Parameter
from frazil.spark.procedures.procedure import (
    INT,
    LONG,
    TABLE,
    Caller,
    Row,
    procedure,
    required_parameter,
)
from frazil.spark.table_maintenance import TableMaintenance
from frazil.table.maintenance.expire import ExpireResult

_OPTIONS: Final = Parameter("options", ArgumentKind.TEXT_MAP)
_WHERE: Final = Parameter("where")

_EXPIRED: Final = (
    "deleted_data_files",
    "deleted_position_delete_files",
    "deleted_equality_delete_files",
    "deleted_manifest_files",
    "deleted_manifest_lists",
    "deleted_statistics_files",
)


def _rewrite_data_files(caller: Caller, given: Arguments) -> CompactionResult:
    strategy = given["strategy"]
    if strategy is None:
        strategy = "binpack" if given["sort_order"] is None else "sort"
    return caller.table(given["table"]).maintenance.compact(
        given["where"],
        strategy=strategy.lower(),
        sort_order=given["sort_order"],
        options=given["options"],
        branch=given["branch"],
        on_progress=caller.on_progress,
    )


def _rewrite_position_delete_files(caller: Caller, given: Arguments) -> PositionDeletesResult:
    return caller.table(given["table"]).maintenance.rewrite_position_deletes(
        given["where"], options=given["options"]
    )


def _rewrite_manifests(caller: Caller, given: Arguments) -> ManifestsResult:
    return caller.table(given["table"]).maintenance.rewrite_manifests(
        spec_id=given["spec_id"],
        sort_by=given["sort_by"] or (),
        on_progress=caller.on_progress,
    )


def _look_for_expired(caller: Caller, given: Arguments) -> ExpireResult:
    return _expire(caller.table(given["table"]).maintenance, caller, given, is_dry_run=True)


def _expire_snapshots(caller: Caller, given: Arguments) -> list[Row]:
    deletes = given["max_concurrent_deletes"]
    if deletes is not None and deletes < 1:
        raise ProcedureError(f"max_concurrent_deletes is {deletes}; it must be positive")
    maintenance = caller.table(given["table"]).maintenance
    result = _expire(maintenance, caller, given, is_dry_run=False)
    if given["clean_expired_metadata"]:
        maintenance.remove_unused_specs_and_schemas()
    return [tuple(getattr(result, name) for name in _EXPIRED)]


def _expire(
    maintenance: TableMaintenance, caller: Caller, given: Arguments, *, is_dry_run: bool
) -> ExpireResult:
    return maintenance.expire_snapshots(
        older_than=given["older_than"],
        retain_last=given["retain_last"],
        snapshot_ids=given["snapshot_ids"] or (),
        dry_run=is_dry_run,
        on_progress=caller.on_progress,
    )


def _register_table(caller: Caller, given: Arguments) -> list[Row]:
    identifier = caller.identifier(given["table"])
    metadata = register_table(caller.catalog, identifier, given["metadata_file"]).metadata
    current = metadata.current_snapshot
    if current is None:
        return [(None, None, None)]
    summary = current.summary or {}
    totals = (summary.get(name) for name in ("total-records", "total-data-files"))
    return [(current.snapshot_id, *(None if each is None else int(each) for each in totals))]


OF_FILES: Final = (
    procedure(
        "rewrite_data_files",
        [
            TABLE,
            Parameter("strategy"),
            Parameter("sort_order"),
            _OPTIONS,
            _WHERE,
            Parameter("branch"),
        ],
        [
            ("rewritten_data_files_count", INT),
            ("added_data_files_count", INT),
            ("rewritten_bytes_count", LONG),
            ("failed_data_files_count", INT),
            ("removed_delete_files_count", INT),
        ],
        _rewrite_data_files,
    ),
    procedure(
        "rewrite_position_delete_files",
        [TABLE, _OPTIONS, _WHERE],
        [
            ("rewritten_delete_files_count", INT),
            ("added_delete_files_count", INT),
            ("rewritten_bytes_count", LONG),
            ("added_bytes_count", LONG),
        ],
        _rewrite_position_delete_files,
    ),
    procedure(
        "rewrite_manifests",
        [
            TABLE,
            Parameter("use_caching", ArgumentKind.BOOLEAN),
            Parameter("spec_id", ArgumentKind.INT),
            Parameter("sort_by", ArgumentKind.TEXTS),
        ],
        [("rewritten_manifests_count", INT), ("added_manifests_count", INT)],
        _rewrite_manifests,
    ),
    procedure(
        "expire_snapshots",
        [
            TABLE,
            Parameter("older_than", ArgumentKind.TIMESTAMP),
            Parameter("retain_last", ArgumentKind.INT),
            Parameter("max_concurrent_deletes", ArgumentKind.INT),
            Parameter("stream_results", ArgumentKind.BOOLEAN),
            Parameter("snapshot_ids", ArgumentKind.LONGS),
            Parameter("clean_expired_metadata", ArgumentKind.BOOLEAN),
        ],
        [(f"{name}_count", LONG) for name in _EXPIRED],
        _expire_snapshots,
        optional=[f"{name}_count" for name in _EXPIRED],
        look=_look_for_expired,
    ),
    procedure(
        "register_table",
        [TABLE, required_parameter("metadata_file")],
        [
            ("current_snapshot_id", LONG),
            ("total_records_count", LONG),
            ("total_data_files_count", LONG),
        ],
        _register_table,
        optional=["current_snapshot_id", "total_records_count", "total_data_files_count"],
    ),
)
"""The procedures of this file."""
