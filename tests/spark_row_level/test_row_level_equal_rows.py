"""Rows of version 2 that are found by their values: exactly equal ones, as many as there were."""

import math
from collections import Counter
from decimal import Decimal

import pytest
from pyroaring import BitMap64
from pyspark.sql import Row

from ci_share import in_circles
from frazil.format.predicates.expressions import AlwaysTrue
from frazil.spark.row_level.rivals.moved_rows import places_of
from frazil.spark.row_level.rivals.rows_by_value import equal_rows
from frazil.spark.row_level.target import Target

COLUMNS = (
    "n int, f float, d double, t string, b binary, c decimal(9, 2), "
    "s struct<x: double, y: string>, a array<double>, m map<string, double>"
)
PLAIN = (1, 1.5, 2.5, "x", b"x", Decimal("1.10"), Row(1.0, "y"), [1.0], {"k": 1.0})
OTHERS = [
    (0, None),
    (1, -0.0), (1, 0.0), (1, math.nan), (1, None),
    (2, -0.0), (2, 0.0), (2, math.nan), (2, None),
    (3, ""), (3, "X"), (3, "x "), (3, None),
    (4, b""), (4, b"\x00"), (4, None),
    (5, Decimal("1.11")), (5, None),
    (6, Row(-0.0, "y")), (6, Row(0.0, "y")), (6, Row(None, None)), (6, Row(1.0, None)), (6, None),
    (7, []), (7, [None]), (7, [-0.0]), (7, [0.0]), (7, [1.0, 1.0]), (7, None),
    (8, {}), (8, {"k": None}), (8, {"k": -0.0}), (8, {"k": 0.0}), (8, {"k": 1.0, "l": 2.0}),
    (8, None),
]  # fmt: skip
"""The place of a column, and a value that only this column has otherwise."""

ROWS = [
    *[PLAIN] * 3,
    *((*PLAIN[:place], value, *PLAIN[place + 1 :]) for place, value in OTHERS),
    *((*PLAIN[:place], value, *PLAIN[place + 1 :]) for place, value in OTHERS[::2]),
]


def text(row):
    """The row as text: it tells -0.0 from 0.0, and NaN is as itself."""
    return repr(tuple(row)).replace("bytearray", "bytes")


def target_of(lake, name):
    table = lake.load_table(name)
    head = table.metadata.current_snapshot
    return Target.of(lake.spark, table.metadata, table.io, head, where=AlwaysTrue())


def values_at(target, places):
    rows = target.only(places).rows_at(places).drop(target.place)
    return Counter(text(row) for row in rows.collect())


@pytest.fixture(scope="module")
def tables(spark, shared_lake):
    for name, order in (("old", 1), ("new", -1)):
        table = shared_lake.create_table(f"db.{name}", COLUMNS, format_version=2)
        for part in (ROWS[::order][:20], ROWS[::order][20:]):
            table.append(spark.createDataFrame(part, COLUMNS).coalesce(1))
    return shared_lake


@pytest.mark.check
@pytest.mark.parametrize("step", [1, 2, 3])
def test_equal_rows_are_found_and_no_others(tables, step):
    then, now = target_of(tables, "db.old"), target_of(tables, "db.new")
    places = {}
    for ordinal, count in then.plan.files.select("ordinal", "record_count").iter_rows():
        rows = {path: BitMap64(range(0, count, step)) for path in then.paths([ordinal])}
        places |= places_of(then, rows)
    found = equal_rows(then, places, now)
    assert found is not None
    wanted = values_at(then, places)
    assert values_at(now, dict(enumerate(found.words(now.plan.file_count)))) == wanted
    assert len(found.files) == wanted.total()


@pytest.mark.parametrize("left_out", in_circles([0, 5, 6, len(ROWS) - 1], test=1))
def test_a_row_without_an_equal_one_is_told(tables, left_out):
    """One fewer in the new files, of rows that are there once or three times."""
    name = f"db.without_{left_out}"
    table = tables.create_table(name, COLUMNS, format_version=2)
    rows = [row for n, row in enumerate(ROWS) if n != left_out]
    table.append(tables.spark.createDataFrame(rows, COLUMNS))
    then = target_of(tables, "db.old")
    files = then.plan.files.select("file_path", "record_count").iter_rows()
    every = places_of(then, {path: BitMap64(range(count)) for path, count in files})
    assert equal_rows(then, every, target_of(tables, name)) is None
