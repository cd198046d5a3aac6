"""Procedures that bring in files and tables of Spark."""

from __future__ import annotations

from typing import Final

from frazil.catalog.protocol import LoadedTable
from frazil.spark.migration.add_files import AddFilesResult
from frazil.spark.migration.new_tables import migrate, snapshot_table
from frazil.spark.procedures.parameters import ArgumentKind, Arguments, Parameter
from frazil.spark.procedures.procedure import (
    LONG,
    TABLE,
    Caller,
    Row,
    procedure,
    required_parameter,
)

_PROPERTIES: Final = Parameter("properties", ArgumentKind.TEXT_MAP)
_PARALLELISM: Final = Parameter("parallelism", ArgumentKind.INT)
_IGNORE_MISSING: Final = Parameter("ignore_missing_files", ArgumentKind.BOOLEAN)


def _add_files(caller: Caller, given: Arguments) -> AddFilesResult:
    checks = given["check_duplicate_files"]
    return caller.table(given["table"]).maintenance.add_files(
        given["source_table"],
        partition_filter=given["partition_filter"],
        check_duplicate_files=True if checks is None else checks,
        parallelism=given["parallelism"],
    )


def _snapshot(caller: Caller, given: Arguments) -> list[Row]:
    table = snapshot_table(
        caller.spark,
        caller.catalog,
        given["source_table"],
        caller.identifier(given["table"]),
        location=given["location"],
        properties=given["properties"],
        parallelism=given["parallelism"],
        ignore_missing_files=bool(given["ignore_missing_files"]),
    )
    return [(_files_of(table),)]


def _migrate(caller: Caller, given: Arguments) -> list[Row]:
    table = migrate(
        caller.spark,
        caller.catalog,
        given["table"],
        properties=given["properties"],
        drop_backup=bool(given["drop_backup"]),
        backup_table_name=given["backup_table_name"],
        parallelism=given["parallelism"],
        ignore_missing_files=bool(given["ignore_missing_files"]),
    )
    return [(_files_of(table),)]


def _files_of(table: LoadedTable) -> int:
    current = table.metadata.current_snapshot
    summary = {} if current is None else current.summary or {}
    return int(summary.get("total-data-files", 0))


OF_MIGRATION: Final = (
    procedure(
        "add_files",
        [
            TABLE,
            required_parameter("source_table"),
            Parameter("partition_filter", ArgumentKind.TEXT_MAP),
            Parameter("check_duplicate_files", ArgumentKind.BOOLEAN),
            _PARALLELISM,
        ],
        [("added_files_count", LONG), ("changed_partition_count", LONG)],
        _add_files,
        optional=["changed_partition_count"],
    ),
    procedure(
        "snapshot",
        [
            required_parameter("source_table"),
            TABLE,
            Parameter("location"),
            _PROPERTIES,
            _PARALLELISM,
            _IGNORE_MISSING,
        ],
        [("imported_files_count", LONG)],
        _snapshot,
    ),
    procedure(
        "migrate",
        [
            TABLE,
            _PROPERTIES,
            Parameter("drop_backup", ArgumentKind.BOOLEAN),
            Parameter("backup_table_name"),
            _PARALLELISM,
            _IGNORE_MISSING,
        ],
        [("migrated_files_count", LONG)],
        _migrate,
    ),
)
"""The procedures of this file."""
