"""Curves and sizes, without Spark."""

from __future__ import annotations

import numpy as np
import pytest

from frazil.errors import ConfigurationError, ValidationError
from frazil.spark.compaction.arranging.curves import (
    ColumnRanges,
    CurveOfRows,
    bits_of,
    places_on_curve,
)
from frazil.spark.compaction.sizes import FileSizes


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("curve", ["zorder", "hilbert"])
def test_a_curve_visits_every_cell_once(curve, columns):
    places = places_on_curve(curve, columns)
    assert sorted(places) == list(range(1 << (bits_of(columns) * columns)))


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5])
def test_neighbours_on_the_hilbert_curve_are_neighbours_in_space(columns):
    places = places_on_curve("hilbert", columns)
    bits = bits_of(columns)
    cells = np.argsort(places)
    axes = np.array([(cells >> (bits * c)) & ((1 << bits) - 1) for c in range(columns)])
    assert (np.abs(np.diff(axes, axis=1)).sum(axis=0) == 1).all()


def test_the_z_order_takes_bits_in_turns():
    places = places_on_curve("zorder", 2)
    bits = bits_of(2)
    for first, second in [(0b1, 0b0), (0b10, 0b1), (0b1011, 0b0110)]:
        text = "".join(
            f"{(first >> bit) & 1}{(second >> bit) & 1}" for bit in range(bits - 1, -1, -1)
        )
        assert places[first | (second << bits)] == int(text, 2)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(10_000.0),
        np.random.default_rng(1).lognormal(0, 1, 10_000),
        np.array([5.0] * 100),
        np.array([np.nan, np.nan]),
        np.array([]),
        np.array([-1e308, 0.0, 1e308, np.inf]),
    ],
    ids=["even", "skewed", "one value", "no value", "nothing", "wide"],
)
def test_ranges_are_ordered_and_even(values):
    ranges = ColumnRanges.of_sample(values, 4)
    found = ranges.ranges[ranges.cells(np.sort(values))]
    assert (np.diff(found) >= 0).all()
    assert ((found >= 0) & (found < 16)).all()
    if len(np.unique(values)) > 1000:
        counts = np.bincount(found, minlength=16)
        assert counts.max() < 2 * len(values) / 16


def test_tasks_get_about_as_many_rows():
    random = np.random.default_rng(3)
    sample = [random.normal(0, 1, 50_000), random.integers(0, 100, 50_000).astype(float)]
    fitted = CurveOfRows.fitted("hilbert", sample, 7)
    cells = sum(
        r.ranges[r.cells(values)] << (8 * number)
        for number, (r, values) in enumerate(zip(fitted.ranges, sample, strict=True))
    )
    counts = np.bincount(fitted.tasks[fitted.places[cells]], minlength=7)
    assert len(counts) == 7
    assert counts.max() < 1.5 * 50_000 / 7
    assert (np.diff(fitted.tasks) >= 0).all()


def test_columns_have_an_end():
    with pytest.raises(ValidationError, match="1 to 16 columns"):
        places_on_curve("zorder", 17)


MB = 1 << 20


def sizes(**more):
    return FileSizes.of(512 * MB, most_in_group=100 << 30, min_input_files=5, **more)


@pytest.mark.parametrize(
    ("size", "files"),
    [
        (1, 1),
        (511 * MB, 1),
        (512 * MB, 1),
        # Java's own tests: 10 % more than the target still fits into the files that are full.
        (520 * MB, 1),
        (600 * MB, 2),
        (1024 * MB, 2),
        (1024 * MB + 385 * MB, 3),
        (1024 * MB + 100 * MB, 2),
        (1024 * MB + 200 * MB, 3),
    ],
)
def test_output_files_are_those_of_java(size, files):
    assert sizes().output_files(size) == files


def test_groups_are_filled_one_after_the_other():
    some = FileSizes.of(2, smallest=1, largest=4, most_in_group=10, min_input_files=2)
    runs = some.packed(np.array([4, 4, 4, 11, 1, 1, 9, 1]))
    assert [(run.start, run.stop) for run in runs] == [(0, 2), (2, 3), (3, 4), (4, 6), (6, 8)]
    few = FileSizes.of(
        2, smallest=1, largest=4, most_in_group=100, min_input_files=2, most_input_files=3
    )
    assert [run.stop for run in few.packed(np.ones(7, dtype=np.int64))] == [3, 6, 7]
    assert some.packed(np.array([], dtype=np.int64)) == []


def test_sizes_have_to_fit_together():
    with pytest.raises(ConfigurationError, match="has to lie between"):
        sizes(largest=100)
