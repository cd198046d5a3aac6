"""A scan under deletes is a DataFrame like any other, wherever it stands in a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from spark_read_model import MadeTable

from ci_share import only_in_soak
from frazil.spark.session.facts import prepare_session

LIVE = [number for number in range(20) if number not in (3, 4)]
QUERIES: dict[str, tuple[str, list[int]]] = {
    "exists": (
        "select id from range(10) r where exists (select 1 from rows t where t.id = r.id)",
        [n for n in LIVE if n < 10],
    ),
    "not exists": (
        "select id from range(10) r where not exists (select 1 from rows t where t.id = r.id)",
        [3, 4],
    ),
    "in": ("select id from range(10) r where id in (select id from rows)", LIVE[:8]),
    "not in": ("select id from range(10) r where id not in (select id from rows)", [3, 4]),
    "correlated scalar": (
        "select (select count(*) from rows t where t.id < r.id) as n from range(3, 6) r",
        [3, 3, 3],
    ),
    "lateral": (
        "select t.id from range(5) r, lateral (select id from rows t where t.id = r.id) t",
        [0, 1, 2],
    ),
    "self join": ("select a.id from rows a join rows b on a.id = b.id", LIVE),
    "window": (
        "select id from (select id, row_number() over (order by id) as n from rows) where n > 16",
        [18, 19],
    ),
    "union": ("select id from rows where id < 6 union all select id from rows where id = 7",
              [0, 1, 2, 5, 7]),
    "with": ("with a as (select * from rows) select id from a where id in (select id from a)",
             LIVE),
    "limit": ("select count(*) from (select * from rows limit 5)", [5]),
}  # fmt: skip


@pytest.fixture
def made(tmp_path: Path, spark: SparkSession) -> MadeTable:
    prepare_session(spark)
    made = MadeTable(tmp_path / "table")
    made.folder.mkdir()
    made.add([(number, number % 3, "x") for number in range(20)], sequence=1)
    made.delete_positions([(0, 3), (0, 4)], sequence=2)
    return made


@pytest.mark.check
@pytest.mark.parametrize("adaptive", ["true", only_in_soak("false")])
def test_in_sql(spark: SparkSession, made: MadeTable, adaptive: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        made.dataframe(spark).createOrReplaceTempView("rows")
        for name, (query, expected) in QUERIES.items():
            found = [row[0] for row in spark.sql(query).collect()]
            assert sorted(found) == sorted(expected), name
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
        spark.catalog.dropTempView("rows")


def test_kept_and_handed_on(spark: SparkSession, made: MadeTable, tmp_path: Path) -> None:
    rows = made.dataframe(spark)
    cached = rows.cache()
    assert cached.count() == cached.count() == len(LIVE)
    cached.unpersist()
    assert not rows.isEmpty()
    assert sorted(row.id for row in rows.toLocalIterator()) == LIVE
    assert rows.toArrow().num_rows == len(rows.toPandas()) == len(LIVE)
    assert len(rows.localCheckpoint().collect()) == len(LIVE)
    rows.write.parquet(str(tmp_path / "copy"))
    assert spark.read.parquet(str(tmp_path / "copy")).count() == len(LIVE)
    assert len(rows.take(3)) == 3


@pytest.mark.check
def test_beside_a_stream(spark: SparkSession, made: MadeTable, tmp_path: Path) -> None:
    """Every batch reads the rows that are not deleted."""
    (tmp_path / "in").mkdir()
    spark.range(2, 6).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id bigint").parquet(str(tmp_path / "in"))
    joined = stream.join(made.dataframe(spark), "id")
    found: list[Any] = []

    def keep(batch: Any, _: int) -> None:
        found.extend(row.id for row in batch.collect())

    for _ in range(2):
        query = joined.writeStream.foreachBatch(keep).option("checkpointLocation", tmp_path / "c")
        query.trigger(availableNow=True).start().awaitTermination()
        spark.range(4, 8).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    assert sorted(found) == [2, 5, 5, 6, 7]
