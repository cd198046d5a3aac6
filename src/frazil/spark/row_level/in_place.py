"""Whether files that are written anew keep their rows' layout, so that no row need be moved.

A task that reads a file writes its rows. That leaves no more files than there were, but joins none
either: where many small files are rewritten, their rows are brought together by partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl
from pyspark.sql import Column

from frazil.format.metadata import TableMetadata
from frazil.format.predicates.sql.implied import words_in_text
from frazil.format.properties.table import DISTRIBUTION_MODE, TARGET_FILE_SIZE
from frazil.spark.row_level.command import Command
from frazil.spark.row_level.target import Target
from frazil.spark.write.distribute import Placement

FILES_FOR_ONE: Final = 2
"""Rows are moved where that would leave less than one file for so many."""


def in_place(command: Command, rewritten: Target) -> Placement | None:
    """Return how to leave rows where they are; None where they are placed as for any write.

    It is for rows that stay in their partition and that no join moves.

    Args:
        rewritten: the files whose rows are written anew.
    """
    base, plan = command.base, rewritten.plan
    asked = command.options.options or DISTRIBUTION_MODE.of(base.properties)
    if asked or base.spec.is_unpartitioned or not base.sort_order.is_unsorted:
        return None
    # What deletes leave may come out of a join.
    if not plan.file_count or not plan.delete_index.is_empty:
        return None
    if (plan.files["spec_id"] != base.spec.spec_id).any():
        return None
    sizes = plan.files.group_by("partition").agg(pl.col("file_size_in_bytes").sum())
    target = TARGET_FILE_SIZE.of(base.properties)
    joined = int((sizes["file_size_in_bytes"] // target + 1).sum())
    return Placement(moves="stay") if plan.file_count <= FILES_FOR_ONE * joined else None


def partition_columns(metadata: TableMetadata) -> frozenset[str]:
    """Return the top-level columns that tell a row's partition."""
    return frozenset(
        metadata.schema.name_path(field.source_id)[0]
        for field in metadata.spec.fields
        if not field.is_void
    )


def without_queries(values: Mapping[str, Any]) -> bool:
    """Return whether values surely have no sub-query, which Spark may evaluate by a join."""
    return not any(isinstance(value, Column) or _has_query(value) for value in values.values())


def _has_query(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    words = words_in_text(value)
    return words is None or words.has_query
