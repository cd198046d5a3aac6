"""Procedures that the Java runtime lacks."""

from __future__ import annotations

from typing import Final

import polars as pl

from frazil.format import types as I
from frazil.spark.maintenance.compaction.results import ConversionResult
from frazil.spark.procedures.parameters import Arguments, Parameter
from frazil.spark.procedures.procedure import INT, LONG, TABLE, TEXT, Caller, Row, procedure


def _convert_equality_deletes(caller: Caller, given: Arguments) -> ConversionResult:
    return caller.table(given["table"]).maintenance.convert_equality_deletes(
        given["where"], branch=given["branch"]
    )


def _check(caller: Caller, given: Arguments) -> pl.DataFrame:
    return caller.table(given["table"]).maintenance.check().frame


def _repair(caller: Caller, given: Arguments) -> list[Row]:
    result = caller.table(given["table"]).maintenance.repair()
    counts = [getattr(result, name) for name, _ in _REPAIRED[:-1]]
    return [(*counts, len(result.frame))]


_PROBLEMS: Final[list[tuple[str, I.IcebergType]]] = [
    ("file_path", TEXT),
    ("kind", TEXT),
    ("problem", TEXT),
    ("stated", LONG),
    ("found", LONG),
    ("content_offset", LONG),
    ("reason", TEXT),
    ("in_current_snapshot", I.BooleanType()),
]
_REPAIRED: Final = [
    ("removed_data_files_count", INT),
    ("corrected_files_count", INT),
    ("removed_statistics_count", INT),
    ("removed_delete_files_count", INT),
    ("left_problems_count", INT),
]

OF_FRAZIL: Final = (
    procedure(
        "convert_equality_deletes",
        [TABLE, Parameter("where"), Parameter("branch")],
        [
            ("converted_equality_delete_files_count", INT),
            ("added_position_delete_files_count", INT),
            ("removed_position_delete_files_count", INT),
            ("deleted_rows_count", LONG),
            ("left_equality_delete_files_count", INT),
        ],
        _convert_equality_deletes,
    ),
    procedure(
        "check",
        [TABLE],
        _PROBLEMS,
        _check,
        optional=["stated", "found", "content_offset", "reason", "in_current_snapshot"],
    ),
    procedure("repair", [TABLE], _REPAIRED, _repair),
)
"""The procedures of this file."""
