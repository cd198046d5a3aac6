"""The charts of a report: what they count, and how their axes are marked."""

import polars as pl
import pytest

from frazil.table.report.charts import deletes_chart, sizes_chart

MIB = 1024 * 1024


def partitions(*rows):
    names = ("partition", "rows", "position_rows", "equality_rows")
    return pl.DataFrame([dict(zip(names, row, strict=True)) for row in rows])


def test_partitions_without_deletes_have_no_bar():
    chart = deletes_chart(partitions(("day=1", 200, 50.0, 0.0), ("day=2", 10, 0.0, 0.0)))
    by_position, by_equality = chart["data"]
    assert (by_position["y"], by_position["x"], by_equality["x"]) == (["day=1"], [25.0], [0.0])
    nothing = deletes_chart(partitions(("day=2", 10, 0.0, 0.0)))
    assert [note["text"] for note in nothing["layout"]["annotations"]] == ["no row is deleted"]


@pytest.mark.parametrize("count", [2, 7])
def test_few_files_are_marked_one_by_one(count):
    chart = sizes_chart(pl.Series([MIB, *[128 * MIB] * count]), target=128 * MIB)
    small, good = chart["data"]
    assert (small["y"][0], good["y"][-1]) == (1, count)
    assert sum(small["y"]) == 1
    assert sum(good["y"]) == count
    assert ("dtick" in chart["layout"]["yaxis"]) == (count == 2)
