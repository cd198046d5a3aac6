"""Sets of integers as words, and what is kept of them, against Python's sets."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import UnsupportedError
from frazil.format.types import LongType, NestedField
from frazil.spark.deletes.bitmap import (
    KEY,
    WORDS,
    Words,
    by_file,
    in_one_set,
    words_by_file,
    words_of_files,
)
from frazil.spark.deletes.deletion_cache import NOTHING, DeletedWords, Known
from frazil.spark.deletes.equality import IntegerKeys
from frazil.spark.session import costs
from frazil.storage.caches import BoundedCache
from frazil.storage.files import FileIO

integers = st.one_of(
    st.integers(-200, 200), st.integers(65_500, 65_600), st.integers(-(2**63), 2**63 - 1)
)
positions = st.one_of(st.integers(0, 200), st.integers(65_500, 65_600), st.integers(0, 2**37 - 1))


def words_of(values: Iterable[int]) -> Words:
    return Words.of_values(np.array(list(values), dtype=np.int64))


def values_of(words: Words) -> set[int]:
    return {
        place * 64 + bit
        for place, bits in zip(words.places.tolist(), words.bits.tolist(), strict=True)
        for bit in range(64)
        if bits >> bit & 1
    }


@settings(deadline=None)
@given(values=st.lists(integers, max_size=60), more=st.lists(integers, max_size=60))
def test_words_hold_exactly_the_integers(values: list[int], more: list[int]) -> None:
    assert values_of(words_of(values)) == set(values)
    both = Words.union([words_of(values), Words.empty(), words_of(more)])
    assert values_of(both) == {*values, *more}
    assert list(both.places) == sorted(set(both.places))


@settings(deadline=None)
@given(
    end=st.integers(0, 200),
    lacking=st.sets(st.integers(0, 200), max_size=1),
    more=st.lists(integers, max_size=20),
)
def test_words_say_whether_they_hold_all_up_to_an_end(
    end: int, lacking: set[int], more: list[int]
) -> None:
    held = {*range(end), *more} - lacking
    assert words_of(held).holds_all_below(end) == held.issuperset(range(end))


@settings(deadline=None)
@given(sets=st.dictionaries(st.integers(0, 2**31 - 1), st.sets(positions, max_size=40), max_size=4))
def test_several_sets_as_one_and_apart_again(sets: dict[int, set[int]]) -> None:
    both = in_one_set({number: words_of(values) for number, values in sets.items()})
    assert list(both.places) == sorted(set(both.places))
    assert {number: values_of(words) for number, words in by_file(both, sets).items()} == sets


def arrays(deleted: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    made = np.array(deleted, dtype=np.int64).reshape(-1, 2)
    return made[:, 0], made[:, 1]


def places_of(batch: pa.RecordBatch) -> set[tuple[int, int]]:
    """The (ordinal, position) of every bit."""
    return {
        (row[KEY] >> 32, ((row[KEY] & (2**32 - 1)) << 6) + bit)
        for row in batch.to_pylist()
        for bit in range(64)
        if row[WORDS] >> bit & 1
    }


@settings(deadline=None)
@given(
    parts=st.lists(
        st.lists(st.tuples(st.integers(0, 2**31 - 1), positions), max_size=60),
        min_size=1,
        max_size=4,
    )
)
def test_rows_hold_exactly_the_positions_of_files(parts: list[list[tuple[int, int]]]) -> None:
    """Of the union of several parts, where each key is once; and of one part, a set a file."""
    rows = Words.union([words_of_files(*arrays(part)) for part in parts]).rows()
    assert places_of(rows) == {row for part in parts for row in part}
    assert len(set(rows.column(KEY).to_pylist())) == len(rows)
    sets = words_by_file(*arrays(parts[0]))
    assert sets.keys() == {ordinal for ordinal, _ in parts[0]}
    assert places_of(in_one_set(sets).rows()) == set(parts[0])


@pytest.mark.parametrize("position", [-1, 2**40])
def test_a_position_beyond_the_key_is_refused(position: int) -> None:
    for act in (words_of_files, words_by_file):
        with pytest.raises(UnsupportedError, match=str(position)):
            act(np.zeros(1, dtype=np.int64), np.array([position], dtype=np.int64))


@pytest.mark.parametrize("values", [range(-70_000, 70_000, 3), range(-(2**62), 2**62, 2**57)])
def test_rows_of_one_set_take_negative_integers(values: range) -> None:
    rows = words_of(values).rows()
    found = [
        (row[KEY] << 6) + bit
        for row in rows.to_pylist()
        for bit in range(64)
        if row[WORDS] >> bit & 1
    ]
    assert sorted(found) == list(values)
    assert rows.schema.field(KEY).type == pa.int64()


def test_the_most_of_the_deletes_is_found() -> None:
    kept = DeletedWords(BoundedCache(256 << 20))
    for names, value in (("a", 1), ("ab", 2), ("abcd", 4)):
        kept.keep("file", Known(frozenset(names), words_of([value])))
    known = kept.known_words("file", frozenset("abc"))
    assert known.deletes == frozenset("ab")
    assert values_of(known.words) == {2}
    assert kept.known_words("other", frozenset("abc")).deletes == frozenset()
    assert kept.known_words("file", frozenset("bc")).deletes == frozenset()


def test_sets_that_are_asked_for_together_are_kept_as_one() -> None:
    kept = DeletedWords(BoundedCache(256 << 20))
    kept.keep("file", Known(frozenset("abc"), words_of([1, 2])))
    for number, name in enumerate("defghi", start=10):
        kept.keep("file", Known(frozenset(name), words_of([number])))
        known = kept.known_words("file", frozenset("abcdefghi"[: number - 6]))
        assert len(known.deletes) == number - 6
        assert kept.known_words("file", known.deletes).words is known.words
    assert values_of(known.words) == {1, 2, *range(10, 16)}


def test_keys_that_others_read_meanwhile_are_not_half_of_them(monkeypatch) -> None:
    """Too many keys are unknown at the first look, and few of them at the next."""
    deletes = pl.DataFrame(
        {"file_path": ["a", "b"], "file_format": ["parquet"] * 2, "record_count": [1, 1]}
    )
    looks = iter([(NOTHING, deletes), (NOTHING, deletes.head(1)), (NOTHING, deletes.head(0))])
    monkeypatch.setattr(IntegerKeys, "_known_keys", lambda _: next(looks))
    monkeypatch.setattr(costs, "KEY_FILES_HERE", 1)
    field = NestedField(1, "k", LongType(), required=False)
    assert IntegerKeys(FileIO({}), deletes, field).words(None) is None


def test_files_under_the_same_deletes_share_their_names() -> None:
    """A hundred names are counted once for a thousand files, and not at all when these are gone."""
    names = [f"s3://bucket/table/data/delete-{number}.parquet" for number in range(100)]
    sizes = [BoundedCache(256 << 20) for _ in range(3)]
    kept, single, rest = map(DeletedWords, sizes)
    single.keep("file", Known(frozenset(names), Words.empty()))
    for file in range(1000):
        kept.keep(file, Known(frozenset(names), Words.empty()))
    assert sizes[0].size_in_bytes < 30 * sizes[1].size_in_bytes
    for file in range(1000):
        kept.keep(file, Known(frozenset([f"other {file}"]), Words.empty()))
        for number in range(4):
            kept.keep(file, Known(frozenset([f"other {number}"]), Words.empty()))
    for file in range(1000):
        for number in range(4):
            rest.keep(file, Known(frozenset([f"other {number}"]), Words.empty()))
    assert sizes[0].size_in_bytes == sizes[2].size_in_bytes
