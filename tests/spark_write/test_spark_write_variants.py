"""Columns of variants, on Sparks that know their files and on one that does not."""

from __future__ import annotations

import pyspark
import pytest

from frazil.errors import UnsupportedError


def test_variants_are_written_and_read_or_refused_by_name(lake, spark):
    """A Parquet reader that does not know the type reads no column of such a file."""
    table = lake.create_table("db.t", "id bigint, v variant", format_version=3)
    rows = spark.sql("""SELECT 1L AS id, parse_json('{"a": 2}') AS v""")
    if pyspark.__version__ >= "4.1":
        table.append(rows)
        assert table.to_df().selectExpr("id", "to_json(v)").collect() == [(1, '{"a":2}')]
        return
    with pytest.raises(UnsupportedError, match=r"type variant: take Spark 4\.1 or newer"):
        table.append(rows)
    assert table.refresh().current_snapshot is None
