"""Procedures that look for files that nothing reaches, count, and stage a table elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import polars as pl

from frazil.spark.procedures.parameters import ArgumentKind, Arguments, Parameter
from frazil.spark.procedures.procedure import (
    INT,
    TABLE,
    TEXT,
    Caller,
    Row,
    procedure,
    required_parameter,
)
from frazil.table.maintenance.orphans import OrphanFilesResult
from frazil.table.maintenance.table_path import RewriteTablePathResult

_SNAPSHOT: Final = Parameter("snapshot_id", ArgumentKind.LONG)
_ORPHAN_SETTINGS: Final = (
    "location",
    "equal_schemes",
    "equal_authorities",
    "max_concurrent_deletes",
)
_STAGED: Final = (
    "start_version",
    "end_version",
    "staging_location",
    "create_file_list",
)


def _remove_orphan_files(caller: Caller, given: Arguments) -> pl.DataFrame:
    return _orphans(caller, given, is_dry_run=bool(given["dry_run"])).frame


def _look_for_orphan_files(caller: Caller, given: Arguments) -> OrphanFilesResult:
    return _orphans(caller, given, is_dry_run=True)


def _orphans(caller: Caller, given: Arguments, *, is_dry_run: bool) -> OrphanFilesResult:
    settings: dict[str, Any] = _stated_values(given, _ORPHAN_SETTINGS)
    if given["prefix_mismatch_mode"] is not None:
        settings["prefix_mismatch_mode"] = given["prefix_mismatch_mode"].upper()
    if given["file_list_view"] is not None:
        settings["file_list"] = caller.spark.table(given["file_list_view"])
    return caller.table(given["table"]).maintenance.remove_orphan_files(
        older_than=given["older_than"],
        dry_run=is_dry_run,
        on_progress=caller.on_progress,
        **settings,
    )


def _compute_table_stats(caller: Caller, given: Arguments) -> list[Row]:
    result = caller.table(given["table"]).maintenance.compute_table_stats(
        snapshot_id=given["snapshot_id"], columns=given["columns"]
    )
    return [] if result.statistics_file is None else [(result.statistics_file,)]


def _compute_partition_stats(caller: Caller, given: Arguments) -> list[Row]:
    result = caller.table(given["table"]).maintenance.compute_partition_stats(
        snapshot_id=given["snapshot_id"]
    )
    path = result.partition_statistics_file
    return [] if path is None else [(path,)]


def _rewrite_table_path(caller: Caller, given: Arguments) -> RewriteTablePathResult:
    return caller.table(given["table"]).maintenance.rewrite_table_path(
        given["source_prefix"], given["target_prefix"], **_stated_values(given, _STAGED)
    )


def _stated_values(given: Arguments, names: Iterable[str]) -> dict[str, Any]:
    return {name: given[name] for name in names if given[name] is not None}


OF_MAINTENANCE: Final = (
    procedure(
        "remove_orphan_files",
        [
            TABLE,
            Parameter("older_than", ArgumentKind.TIMESTAMP),
            Parameter("location"),
            Parameter("dry_run", ArgumentKind.BOOLEAN),
            Parameter("max_concurrent_deletes", ArgumentKind.INT),
            Parameter("file_list_view"),
            Parameter("equal_schemes", ArgumentKind.TEXT_MAP),
            Parameter("equal_authorities", ArgumentKind.TEXT_MAP),
            Parameter("prefix_mismatch_mode"),
            Parameter("prefix_listing", ArgumentKind.BOOLEAN),
            Parameter("stream_results", ArgumentKind.BOOLEAN),
        ],
        [("orphan_file_location", TEXT)],
        _remove_orphan_files,
        look=_look_for_orphan_files,
    ),
    procedure(
        "compute_table_stats",
        [TABLE, _SNAPSHOT, Parameter("columns", ArgumentKind.TEXTS)],
        [("statistics_file", TEXT)],
        _compute_table_stats,
        optional=["statistics_file"],
    ),
    procedure(
        "compute_partition_stats",
        [TABLE, _SNAPSHOT],
        [("partition_statistics_file", TEXT)],
        _compute_partition_stats,
        optional=["partition_statistics_file"],
    ),
    procedure(
        "rewrite_table_path",
        [
            TABLE,
            required_parameter("source_prefix"),
            required_parameter("target_prefix"),
            Parameter("start_version"),
            Parameter("end_version"),
            Parameter("staging_location"),
            Parameter("create_file_list", ArgumentKind.BOOLEAN),
        ],
        [
            ("latest_version", TEXT),
            ("file_list_location", TEXT),
            ("rewritten_manifest_file_paths_count", INT),
            ("rewritten_delete_file_paths_count", INT),
        ],
        _rewrite_table_path,
        optional=[
            "latest_version",
            "file_list_location",
            "rewritten_manifest_file_paths_count",
            "rewritten_delete_file_paths_count",
        ],
    ),
)
"""The procedures of this file."""
