"""Formats of changes for `Table.apply_changes` and `Table.upsert_stream`."""

from __future__ import annotations

from frazil.spark.upserts.change_rows import ARRIVAL, Arrival
from frazil.spark.upserts.formats import (
    ChangeFormat,
    change_feed,
    debezium,
    debezium_flattened,
    dms,
    plain,
)
from frazil.spark.upserts.once import Batch

__all__ = [
    "ARRIVAL",
    "Arrival",
    "Batch",
    "ChangeFormat",
    "change_feed",
    "debezium",
    "debezium_flattened",
    "dms",
    "plain",
]
