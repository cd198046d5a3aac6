"""Rows in the task that a number of theirs names."""

from __future__ import annotations

import struct
from typing import Final

import mmh3
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.spark.abilities import HAS_PLACEMENT

_SEED: Final = 42


def repartition_by_id(rows: DataFrame, tasks: int, number: Column | str) -> DataFrame:
    """Return rows in tasks, each in that of its number, modulo their count."""
    if HAS_PLACEMENT:
        return rows.repartitionById(tasks, number)
    column = F.col(number) if isinstance(number, str) else number
    place = F.pmod(column.cast("int"), F.lit(tasks)) + 1
    keys = F.array(*map(F.lit, _keys(tasks)))
    return rows.repartition(tasks, F.element_at(keys, place))


def _keys(tasks: int) -> list[int]:
    """An int for each task that Spark's hash puts there."""
    found: dict[int, int] = {}
    key = 0
    while len(found) < tasks:
        found.setdefault(mmh3.hash(struct.pack("<i", key), _SEED, signed=True) % tasks, key)
        key += 1
    return [found[task] for task in range(tasks)]
