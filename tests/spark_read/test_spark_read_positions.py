"""Bitmap rows against sets of positions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import UnsupportedError
from frazil.spark.deletes.bitmap import word_rows, words_by_file
from frazil.spark.deletes.bitmap_rows import (
    KEY,
    WORDS,
    BitmapSize,
    Grain,
    bitmap_rows,
    merged_rows,
)

deleted = st.lists(
    st.tuples(
        st.integers(0, 2**31 - 1),
        st.one_of(st.integers(0, 200), st.integers(65_500, 65_600), st.integers(0, 2**37 - 1)),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(deleted=deleted, grain=st.sampled_from(list(Grain)))
def test_bitmap_rows_hold_exactly_the_positions(
    deleted: list[tuple[int, int]], grain: Grain
) -> None:
    ordinals = np.array([o for o, _ in deleted], dtype=np.int64)
    positions = np.array([p for _, p in deleted], dtype=np.int64)
    assert positions_of(bitmap_rows(ordinals, positions, grain), grain) == set(deleted)


@settings(deadline=None)
@given(parts=st.lists(deleted, min_size=1, max_size=4), grain=st.sampled_from(list(Grain)))
def test_merged_rows_have_each_key_once(parts: list[list[tuple[int, int]]], grain: Grain) -> None:
    batches = [
        bitmap_rows(
            np.array([o for o, _ in part], dtype=np.int64),
            np.array([p for _, p in part], dtype=np.int64),
            grain,
        )
        for part in parts
        if part
    ]
    table = pa.Table.from_batches(batches, schema=grain.arrow_schema)
    found = merged_rows(table, grain)
    assert positions_of(found, grain) == {row for part in parts for row in part}
    assert len(set(found.column(KEY).to_pylist())) == len(found)


def positions_of(batch: pa.RecordBatch, grain: Grain) -> set[tuple[int, int]]:
    """The (ordinal, position) of every bit."""
    found = set()
    for row in batch.to_pylist():
        words = row[WORDS] if isinstance(row[WORDS], list) else [row[WORDS]]
        for place, word in enumerate(words):
            for bit in range(64 if word else 0):
                if word >> bit & 1:
                    low = (row[KEY] & (2**32 - 1)) << grain.shift
                    found.add((row[KEY] >> 32, low + 64 * place + bit))
    return found


@settings(deadline=None)
@given(deleted=deleted)
def test_sets_of_positions_as_rows(deleted: list[tuple[int, int]]) -> None:
    """Each file has its own set, and the rows hold what the sets do, in the smaller grain."""
    ordinals = np.array([o for o, _ in deleted], dtype=np.int64)
    positions = np.array([p for _, p in deleted], dtype=np.int64)
    sets = words_by_file(ordinals, positions)
    assert sets.keys() == {o for o, _ in deleted}
    made = word_rows(sets)
    (batch,) = made.table.combine_chunks().to_batches() or [
        pa.RecordBatch.from_pylist([], schema=made.grain.arrow_schema)
    ]
    assert positions_of(batch, made.grain) == set(deleted)


@pytest.mark.parametrize("position", [-1, 2**40])
def test_a_position_beyond_the_key_is_refused(position: int) -> None:
    positions = np.array([position], dtype=np.int64)
    with pytest.raises(UnsupportedError, match=str(position)):
        bitmap_rows(0, positions, Grain.SPARSE)
    with pytest.raises(UnsupportedError, match=str(position)):
        words_by_file(np.zeros(1, dtype=np.int64), positions)


@pytest.mark.parametrize(
    ("positions", "rows", "grain"),
    [(500_000, 10_000_000, Grain.DENSE), (1_000, 10_000_000, Grain.SPARSE), (1, 10, Grain.SPARSE)],
)
def test_the_smaller_grain_is_chosen(positions: int, rows: int, grain: Grain) -> None:
    assert BitmapSize(positions=positions, rows=rows, files=1).grain is grain
