"""Curves and sizes, without Spark."""

import numpy as np
import polars as pl
import pytest

from frazil.errors import ConfigurationError, ValidationError
from frazil.format.new_table import new_table_metadata
from frazil.format.predicates.expressions import AlwaysTrue
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField
from frazil.planning.delete_load import delete_load
from frazil.planning.deletes.index import DeleteIndex
from frazil.planning.deletes.runs import Runs
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.maintenance.compaction.arranging.curves import (
    ColumnRanges,
    CurveOfRows,
    bits_of,
    places_on_curve,
)
from frazil.spark.maintenance.compaction.options import CompactionOptions, FileSizes


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
    fitted = CurveOfRows.fit("hilbert", sample, 7)
    cells = sum(
        r.ranges[r.cells(values)] << (8 * number)
        for number, (r, values) in enumerate(zip(fitted.ranges, sample, strict=True))
    )
    counts = np.bincount(fitted.tasks[fitted.places[cells]], minlength=7)
    assert len(counts) == 7
    assert counts.max() < 1.5 * 50_000 / 7
    assert (np.diff(fitted.tasks) >= 0).all()


def test_of_a_place_on_the_curve_the_first_bytes_count():
    values = np.arange(4096.0)
    one, two, most = (
        CurveOfRows.fit("zorder", [values, values[::-1]], 3, place_bytes=count)
        for count in (1, 2, 2**31 - 1)
    )
    # The z-value of two ranges of 8 bits has 16 bits, of which one byte is the first half.
    for first, second in [(0b1011_0110, 0b0010_1101), (255, 0), (3, 200)]:
        text = "".join(f"{(first >> b) & 1}{(second >> b) & 1}" for b in range(7, -1, -1))
        cell = first | (second << 8)
        assert one.places[cell] == int(text[:8], 2)
        assert two.places[cell] == most.places[cell] == int(text, 2)
    shares = np.bincount(one.tasks[one.places], minlength=3)
    assert (len(shares), set(one.tasks[one.places])) == (3, {0, 1, 2})


# https://iceberg.apache.org/docs/latest/spark-procedures/#rewrite_data_files, with its defaults.
OPTIONS_OF_JAVA = {
    "max-concurrent-file-group-rewrites": "5",
    "partial-progress.enabled": "false",
    "partial-progress.max-commits": "10",
    "partial-progress.max-failed-commits": "10",
    "use-starting-sequence-number": "true",
    "rewrite-job-order": "none",
    "target-file-size-bytes": "536870912",
    "min-file-size-bytes": "402653184",
    "max-file-size-bytes": "966367641",
    "min-input-files": "5",
    "rewrite-all": "false",
    "max-file-group-size-bytes": "107374182400",
    "delete-file-threshold": "2147483647",
    "delete-ratio-threshold": "0.3",
    "output-spec-id": "0",
    "remove-dangling-deletes": "false",
    "compression-factor": "1.0",
    "shuffle-partitions-per-file": "1",
    "var-length-contribution": "8",
    "max-output-size": "2147483647",
}


WITHOUT_LIMIT = {"max-file-group-input-files": "9", "max-files-to-rewrite": "7"}
"""Java has no default of these."""


def test_the_options_of_java_are_known_and_have_its_defaults():
    schema = Schema((NestedField(1, "id", LongType()),))
    metadata = new_table_metadata(schema, location="file:/t")
    none = CompactionOptions.of(metadata, None)
    assert CompactionOptions.of(metadata, OPTIONS_OF_JAVA) == none
    assert (none.max_files, none.sizes.most_input_files) == (None, None)
    some = CompactionOptions.of(metadata, WITHOUT_LIMIT)
    assert (some.max_files, some.sizes.most_input_files) == (7, 9)
    for name in OPTIONS_OF_JAVA:
        with pytest.raises(ConfigurationError, match=name):
            CompactionOptions.of(metadata, {name: "-1"})


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
    runs = some.group_slices(np.array([4, 4, 4, 11, 1, 1, 9, 1]))
    assert [(run.start, run.stop) for run in runs] == [(0, 2), (2, 3), (3, 4), (4, 6), (6, 8)]
    few = FileSizes.of(
        2, smallest=1, largest=4, most_in_group=100, min_input_files=2, most_input_files=3
    )
    assert [run.stop for run in few.group_slices(np.ones(7, dtype=np.int64))] == [3, 6, 7]
    assert some.group_slices(np.array([], dtype=np.int64)) == []


def test_sizes_have_to_fit_together():
    with pytest.raises(ConfigurationError, match="has to lie between"):
        sizes(largest=100)


# How much is deleted of each file is the same from runs as from single pairs.


def plan_of(index, files, deletes):
    return ScanPlan(
        snapshot_id=1,
        schema=Schema(()),
        where=AlwaysTrue(),
        residual=AlwaysTrue(),
        files=files,
        deletes=deletes,
        delete_index=index,
    )


@pytest.mark.parametrize("seed", range(5))
def test_runs_and_pairs_say_the_same(seed):
    random = np.random.default_rng(seed)
    files = pl.DataFrame({"ordinal": np.arange(40), "record_count": random.integers(0, 100, 40)})
    deletes = pl.DataFrame(
        {
            "delete": np.arange(30),
            "record_count": random.integers(1, 50, 30),
            "content": np.full(30, 2),
            "referenced_data_file": pl.Series([None] * 30, dtype=pl.String),
        }
    )
    start = random.integers(0, 30, 20)
    runs = Runs(np.arange(20), random.permutation(40), start, start + random.integers(1, 10, 20))
    singles = DeleteIndex.of_pairs(random.integers(0, 40, 10), np.arange(20, 30))
    index = singles.union(DeleteIndex.of_runs(runs))
    pairs = index.expanded_pairs()
    expanded = DeleteIndex.of_pairs(pairs["ordinal"].to_numpy(), pairs["delete"].to_numpy())
    found, expected = (
        delete_load(plan_of(each, files, deletes)).sort("ordinal") for each in (index, expanded)
    )
    assert found["ordinal"].to_list() == expected["ordinal"].to_list()
    assert found["delete_files"].to_list() == expected["delete_files"].to_list()
    assert found["deleted_rows"].to_list() == pytest.approx(expected["deleted_rows"].to_list())
