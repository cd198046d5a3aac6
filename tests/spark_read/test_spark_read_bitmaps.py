"""Which form bitmaps of deleted positions have: a value of a query, or rows that are joined."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession

from frazil.spark.deletes import joins as bitmaps
from frazil.spark.deletes.bitmap import Words
from frazil.spark.deletes.joins import ArrayBitmaps, JoinedBitmaps, bitmaps_of_words
from frazil.storage.caches import BoundedCache


def words_of(deleted: dict[int, list[int]]) -> dict[int, Words]:
    return {o: Words.of_values(np.array(p, dtype=np.int64)) for o, p in deleted.items()}


def test_a_value_is_bounded_where_one_file_is_long(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bitmaps, "ARRAY_BYTES", 4 << 20)
    cache = BoundedCache[ArrayBitmaps](1 << 20)
    deleted = words_of({1: [63, 64], 2: [0, 2_000_000], 5: [199], 100: [1]})
    assert isinstance(bitmaps_of_words(spark, deleted, cache), JoinedBitmaps)
    parts = bitmaps.in_arrays(deleted)
    assert {ordinal for part in parts for ordinal in part} == deleted.keys()
    for part in parts:
        assert isinstance(bitmaps_of_words(spark, part, cache), ArrayBitmaps)


def test_a_far_position_is_no_long_array(spark: SparkSession) -> None:
    cache = BoundedCache[ArrayBitmaps](1 << 20)
    assert isinstance(bitmaps_of_words(spark, words_of({0: [3, 2**36]}), cache), JoinedBitmaps)
