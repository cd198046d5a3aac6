"""A table of four snapshots for each test."""

import pytest


@pytest.fixture
def trips(spark, lake):
    """`db.trips`: four appends of ten rows, a file each."""
    table = lake.create_table("db.trips", "id bigint, city string")
    for start in range(0, 40, 10):
        rows = spark.range(start, start + 10, 1, 1)
        table.append(rows.selectExpr("id", "concat('c', id % 3) as city"))
    return table


@pytest.fixture
def called(lake):
    """Runs a CALL and gives its rows as dictionaries."""

    def run(text):
        return [row.asDict() for row in lake.call(text).collect()]

    return run
