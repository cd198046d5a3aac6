"""Timestamps written without a zone mean the session's, wherever a predicate is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import frazil

ROWS = "values (1, timestamp'2024-01-01T03:00:00Z'), (2, timestamp'2024-01-01T09:00:00Z')"
# Midnight and six in Los Angeles are 08:00 and 14:00 UTC.
WHERE = "ts < '2024-01-01 00:00:00'"


@pytest.fixture
def table(spark: Any, tmp_path: Path) -> Iterator[frazil.Table]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    with frazil.connect(spark, warehouse=str(tmp_path)) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", "id int, ts timestamp", partition_by=["hour(ts)"])
        table.append(spark.sql(f"select * from {ROWS} as t(id, ts)"))
        yield table
    spark.conf.set("spark.sql.session.timeZone", before)


def test_a_scan_reads_them_in_the_sessions_zone(table: frazil.Table) -> None:
    assert [row.id for row in table.scan(where=WHERE).to_df().collect()] == [1]
    assert [row.id for row in table.to_df().where(WHERE).collect()] == [1]


def test_an_overwrite_replaces_what_the_scan_reads(spark: Any, table: frazil.Table) -> None:
    new = spark.sql("select 3 as id, timestamp'2024-02-01T00:00:00Z' as ts")
    table.overwrite(new, where=WHERE)
    assert sorted(row.id for row in table.to_df().collect()) == [2, 3]


def test_an_overwrite_of_part_of_a_file_too(spark: Any, table: frazil.Table) -> None:
    with table.update_partitioning() as change:
        change.remove_field("ts_hour")
    table.overwrite(spark.sql(f"select * from {ROWS} as t(id, ts)").coalesce(1))
    new = spark.sql("select 3 as id, timestamp'2024-02-01T00:00:00Z' as ts")
    table.overwrite(new, where=WHERE)
    assert sorted(row.id for row in table.to_df().collect()) == [2, 3]
