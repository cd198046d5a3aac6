"""Bitmap rows against sets of positions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import UnsupportedError
from frazil.spark.deletes.bitmap import (
    KEY,
    WORDS,
    Words,
    in_one_set,
    words_by_file,
    words_of_files,
)

deleted = st.lists(
    st.tuples(
        st.integers(0, 2**31 - 1),
        st.one_of(st.integers(0, 200), st.integers(65_500, 65_600), st.integers(0, 2**37 - 1)),
    ),
    max_size=60,
)


def arrays(deleted: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    made = np.array(deleted, dtype=np.int64).reshape(-1, 2)
    return made[:, 0], made[:, 1]


def positions_of(batch: pa.RecordBatch) -> set[tuple[int, int]]:
    """The (ordinal, position) of every bit."""
    return {
        (row[KEY] >> 32, ((row[KEY] & (2**32 - 1)) << 6) + bit)
        for row in batch.to_pylist()
        for bit in range(64)
        if row[WORDS] >> bit & 1
    }


@settings(deadline=None)
@given(parts=st.lists(deleted, min_size=1, max_size=4))
def test_rows_hold_exactly_the_positions(parts: list[list[tuple[int, int]]]) -> None:
    """Of one part, and of the union of several; each key is there once."""
    sets = [words_of_files(*arrays(part)) for part in parts]
    assert positions_of(sets[0].rows()) == set(parts[0])
    rows = Words.union(sets).rows()
    assert positions_of(rows) == {row for part in parts for row in part}
    assert len(set(rows.column(KEY).to_pylist())) == len(rows)


@settings(deadline=None)
@given(deleted=deleted)
def test_sets_of_positions_as_rows(deleted: list[tuple[int, int]]) -> None:
    """Each file has its own set, and the rows hold what the sets do."""
    sets = words_by_file(*arrays(deleted))
    assert sets.keys() == {o for o, _ in deleted}
    assert positions_of(in_one_set(sets).rows()) == set(deleted)


@pytest.mark.parametrize("position", [-1, 2**40])
def test_a_position_beyond_the_key_is_refused(position: int) -> None:
    positions = np.array([position], dtype=np.int64)
    with pytest.raises(UnsupportedError, match=str(position)):
        words_of_files(0, positions)
    with pytest.raises(UnsupportedError, match=str(position)):
        words_by_file(np.zeros(1, dtype=np.int64), positions)
