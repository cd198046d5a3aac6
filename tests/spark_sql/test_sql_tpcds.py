"""The queries of TPC-DS: the rows that Spark gives over plain Parquet files."""

import re

import pytest
from bench import tpcds

import frazil
from frazil.spark.session import costs

QUERIES = tpcds.queries()
IN_CI = (2,)
"""Unions below joins, over few tables."""


@pytest.fixture(scope="module")
def stores(spark, tmp_path_factory):
    """A lake, where tables that a query names are made, and as tables of Spark's own."""
    folder = tmp_path_factory.mktemp("tpcds")
    tpcds.write_parquet(folder, scale=0.01)
    left = {path.name: path for path in folder.iterdir()}
    lake = frazil.connect(spark, warehouse=str(tmp_path_factory.mktemp("lake")), name="lake")
    lake.create_namespace("tpcds")
    spark.sql("CREATE DATABASE plain_tpcds")
    lake.sql("USE tpcds")

    def with_tables_of(query):
        for name in left.keys() & set(re.findall(r"\w+", query)):
            path = left.pop(name)
            tpcds.make_table(spark, lake, "tpcds", path)
            tpcds.make_plain_table(spark, "plain_tpcds", path)
        return lake

    yield with_tables_of
    spark.sql("DROP DATABASE plain_tpcds CASCADE")
    lake.close()


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=pytest.mark.check if number in IN_CI else pytest.mark.soak)
        for number in sorted(QUERIES)
    ],
)
def test_the_rows_of_plain_tables(stores, spark, monkeypatch, number):
    # Every table counts as a large one: joins leave out what they can.
    monkeypatch.setattr(costs, "LARGE_SIDE_BYTES", 0)
    found = stores(QUERIES[number]).sql(QUERIES[number])
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
