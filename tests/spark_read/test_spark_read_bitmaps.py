"""Rows without those whose position is deleted, in each form of bitmaps."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import pytest
from pyspark.sql import SparkSession

from ci_share import in_circles, one_in, one_of_each
from frazil.spark.deletes import joins as bitmaps
from frazil.spark.deletes.bitmap import Words
from frazil.spark.deletes.joins import ArrayBitmaps, Bitmaps, JoinedBitmaps, bitmaps_of_words
from frazil.spark.files.parquet.file_log import NAMED_PLACE, ORDINAL, POSITION
from frazil.spark.session import costs
from frazil.storage.caches import BoundedCache

Deleted = Mapping[int, set[int]]

ROWS = [(ordinal, position) for ordinal in (0, 1, 2, 5, 9) for position in range(200)]
CASES: dict[str, Deleted] = {
    "the edges of words": {0: {0, 63, 64, 127, 128, 199}, 1: {62, 65}},
    "a file without any": {0: {5}, 1: set(), 2: {199}},
    "not the first file": {5: {0, 1, 2}},
    "all of a file": {1: set(range(200))},
    "beyond the end of a file": {0: {199, 200, 100_000}},
    "many files apart": {2: {7}, 70_000: {1}},
    "one long file among many": {1: {63, 64}, 2: {0, 2_000_000}, 5: {199}, 100: {1}},
    "words like those of the next file": {0: {0}, 1: {1, 64}, 2: {128, 199}},
    "a few of many": {o: set(random.Random(o).sample(range(200), 20)) for o in (0, 1, 2, 5, 9)},
}


def made_of(spark: SparkSession, sets: dict[int, Words]) -> Bitmaps:
    return bitmaps_of_words(spark, sets, BoundedCache(1 << 20))


def words_of(deleted: Deleted) -> dict[int, Words]:
    return {o: Words.of_values(np.array(sorted(p), dtype=np.int64)) for o, p in deleted.items()}


def check(spark: SparkSession, made: Bitmaps, deleted: Deleted) -> None:
    rows = spark.createDataFrame(ROWS, f"{ORDINAL} long, {POSITION} long")
    gone = {(o, p) for o, p in ROWS if p in deleted.get(o, set())}
    assert {tuple(row) for row in made.at(NAMED_PLACE).without_deleted(rows).collect()} == set(
        ROWS
    ) - gone
    assert {tuple(row) for row in made.at(NAMED_PLACE).only_deleted(rows).collect()} == gone


@pytest.mark.parametrize("case", in_circles(one_in(2, list(CASES)), test=1))
def test_few_positions_as_a_value(spark: SparkSession, case: str) -> None:
    deleted = CASES[case]
    made = made_of(spark, words_of(deleted))
    assert isinstance(made, ArrayBitmaps)
    check(spark, made, deleted)


def test_a_value_is_bounded_where_one_file_is_long(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bitmaps, "ARRAY_BYTES", 4 << 20)
    deleted = CASES["one long file among many"]
    assert isinstance(made_of(spark, words_of(deleted)), JoinedBitmaps)
    parts = bitmaps.in_arrays(words_of(deleted))
    assert {ordinal for part in parts for ordinal in part} == deleted.keys()
    for part in parts:
        assert isinstance(made_of(spark, part), ArrayBitmaps)


SIZES = [0, costs.SENT_BYTES]


@pytest.mark.parametrize(
    ("case", "broadcast_bytes"),
    # Those that are no value in CI.
    one_of_each(CASES, SIZES, without=list(CASES)[::2]),
)
def test_many_positions_as_rows(
    spark: SparkSession, case: str, broadcast_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted = CASES[case]
    monkeypatch.setattr(bitmaps, "ARRAY_BYTES", 0)
    monkeypatch.setattr(costs, "SENT_BYTES", broadcast_bytes)
    made = made_of(spark, words_of(deleted))
    assert isinstance(made, JoinedBitmaps)
    check(spark, made, deleted)


def test_a_far_position_is_no_long_array(spark: SparkSession) -> None:
    deleted = {0: {3, 2**36}}
    made = made_of(spark, words_of(deleted))
    assert isinstance(made, JoinedBitmaps)
    check(spark, made, deleted)


def test_rows_that_share_a_value_can_be_joined(spark: SparkSession) -> None:
    made = made_of(spark, words_of(CASES["the edges of words"]))
    rows = spark.createDataFrame(ROWS, f"{ORDINAL} long, {POSITION} long")
    left = made.at(NAMED_PLACE).without_deleted(rows).where(f"{ORDINAL} = 0")
    right = made.at(NAMED_PLACE).without_deleted(rows).where(f"{ORDINAL} = 1")
    common = left.join(right, POSITION).select(POSITION).collect()
    gone = {0, 63, 64, 127, 128, 199, 62, 65}
    assert {row[0] for row in common} == set(range(200)) - gone
