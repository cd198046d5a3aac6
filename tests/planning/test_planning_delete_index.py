"""The index of deletes says as runs what it would say as pairs, in memory that does not grow so."""

from __future__ import annotations

import time
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_planning_deletes import (
    SCHEMA,
    SPECS,
    data_files,
    delete_files,
    frame_of,
    within_bounds,
)

from ci_share import examples
from delete_rules import deletes_for
from frazil.planning.deletes import match
from frazil.planning.deletes.index import DeleteIndex

PATHS = [f"s3://b/t/data/f{i}.parquet" for i in range(8)]


@settings(max_examples=examples(75), deadline=None)
@given(st.data(), st.sampled_from([0, 20, 1_000_000]))
def test_runs_hold_what_scope_and_number_say(draw: st.DataObject, most_pairs: int) -> None:
    """Rules 176-181, 222; metrics leave out pairs, and only pairs that no row can be in."""
    data = [draw.draw(data_files(path)) for path in PATHS[: draw.draw(st.integers(1, 8))]]
    deletes = [draw.draw(delete_files(data, i)) for i in range(draw.draw(st.integers(0, 8)))]
    vectors = [d.data_file.referenced_data_file for d in deletes if d.data_file.is_deletion_vector]
    assume(len(vectors) == len(set(vectors)))
    by_rule = {
        (i, deletes.index(found))
        for i, file in enumerate(data)
        for found in deletes_for(file, deletes, specs=SPECS)
    }
    with pytest.MonkeyPatch.context() as patched:
        exact = _index(data, deletes)
        patched.setattr(match, "_MOST_PAIRS", most_pairs)
        index = _index(data, deletes)
    pairs = set(index.expanded().rows())
    assert set(exact.expanded().rows()) <= pairs <= by_rule
    assert set(exact.expanded().rows()) == {
        (i, j)
        for i, j in by_rule
        if within_bounds(data[i].data_file.file_path, deletes[j].data_file)
    }
    if most_pairs == 0:
        assert not index.runs or index.pair_count == len(pairs)
    wanted = pl.Series(draw.draw(st.lists(st.integers(0, 8), unique=True)), dtype=pl.Int64)
    _is_alike(index, pairs)
    _is_alike(index.on(wanted), {(f, d) for f, d in pairs if f in wanted})
    _is_alike(index.of(wanted), {(f, d) for f, d in pairs if d in wanted})
    _is_alike(index.without(wanted), {(f, d) for f, d in pairs if d not in wanted})
    _is_alike(
        index.on(wanted).of(wanted), {(f, d) for f, d in pairs if f in wanted and d in wanted}
    )
    values = pl.Series([3**place for place in range(len(deletes))], dtype=pl.Int64)
    sums: dict[int, int] = {}
    for file, delete in pairs:
        sums[file] = sums.get(file, 0) + 3**delete
    assert dict(index.sums(pl.int_range(len(deletes), eager=True), values).rows()) == sums


def _index(data: Any, deletes: Any) -> DeleteIndex:
    found = match.match_deletes(frame_of(data), frame_of(deletes), specs=SPECS, schemas=[SCHEMA])
    return found.index


def _is_alike(index: DeleteIndex, pairs: set[tuple[int, int]]) -> None:
    assert index.expanded().rows() == sorted(pairs)
    assert index.pair_count == len(pairs)
    assert index.is_empty is (not pairs)
    assert index.ordinals().to_list() == sorted({file for file, _ in pairs})
    assert index.deletes().to_list() == sorted({delete for _, delete in pairs})


def test_sixty_million_pairs_take_no_more_room_than_their_files_and_deletes() -> None:
    files, deletes, partitions = 100_000, 10_000, 16
    data = pl.DataFrame(
        {
            "file_path": [f"s3://b/t/{i:06d}.parquet" for i in range(files)],
            "spec_id": [1] * files,
            "partition.1000": [float(i % partitions) for i in range(files)],
            "sequence_number": [1] * files,
            "record_count": [10] * files,
        },
        schema_overrides={"spec_id": pl.Int32},
    )
    found = pl.DataFrame(
        {
            "content": [1] * deletes,
            "file_path": [f"d{i}" for i in range(deletes)],
            "file_format": ["parquet"] * deletes,
            "spec_id": [1] * deletes,
            "partition.1000": [float(i % partitions) for i in range(deletes)],
            "sequence_number": [2 + i // partitions for i in range(deletes)],
            "record_count": [1] * deletes,
            "equality_ids": [None] * deletes,
            "referenced_data_file": [None] * deletes,
        },
        schema_overrides={
            "spec_id": pl.Int32,
            "equality_ids": pl.List(pl.Int32),
            "referenced_data_file": pl.String,
        },
    )
    start = time.perf_counter()
    index = match.match_deletes(data, found, specs=SPECS, schemas=[SCHEMA]).index
    seconds = time.perf_counter() - start
    assert index.pair_count == files * deletes // partitions
    assert index.size_in_bytes < 32 * (files + deletes)
    assert index.on(pl.Series([17])).deletes().to_list() == list(range(1, deletes, partitions))
    assert seconds < 30  # about 0.1 s on an idle machine; pair by pair it would take minutes
