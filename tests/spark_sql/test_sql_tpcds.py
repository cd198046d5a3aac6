"""The queries of TPC-DS: the rows that Spark gives over plain Parquet files."""

from __future__ import annotations

import pytest
from bench import tpcds

import frazil
from frazil.spark.session import costs

QUERIES = tpcds.queries()
IN_CI = (2, 39, 64)
"""Unions below joins, joins of aggregates, the longest."""


@pytest.fixture(scope="module")
def stores(spark, tmp_path_factory):
    """The tables in a lake, and as tables of Spark's own."""
    folder = tmp_path_factory.mktemp("tpcds")
    tpcds.write_parquet(folder, scale=0.01)
    lake = frazil.connect(spark, warehouse=str(tmp_path_factory.mktemp("lake")), name="lake")
    tpcds.make_tables(spark, lake, "tpcds", folder)
    tpcds.make_plain_tables(spark, "plain_tpcds", folder)
    lake.sql("USE tpcds")
    yield lake
    spark.sql("DROP DATABASE plain_tpcds CASCADE")
    lake.close()


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=() if number in IN_CI else pytest.mark.soak)
        for number in sorted(QUERIES)
    ],
)
def test_the_rows_of_plain_tables(stores, spark, monkeypatch, number):
    # Every table counts as a large one: joins leave out what they can.
    monkeypatch.setattr(costs, "LARGE_SIDE_BYTES", 0)
    found = stores.sql(QUERIES[number])
    spark.sql("USE plain_tpcds")
    try:
        expected = spark.sql(QUERIES[number])
        assert found.columns == expected.columns
        assert comparable(found) == comparable(expected)
    finally:
        spark.sql("USE default")


def comparable(rows):
    """The rows in one order, with as many digits of a float as its sums keep in any order."""
    return sorted(
        repr([float(f"{v:.9g}") if isinstance(v, float) else v for v in row])
        for row in rows.collect()
    )
