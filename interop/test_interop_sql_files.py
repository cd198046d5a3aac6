"""The queries of TPC-DS: the rows of the Java runtime, from as few data files or fewer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any

import pytest
from bench import tpcds

from ci_share import only_in_interop, only_in_soak
from frazil.spark.lake import Lake
from frazil.spark.session import costs

QUERIES = tpcds.queries()
IN_INTEROP = (3, 7, 37, 64, 95)
"""Selective joins of one and of several facts, the longest, and sub-queries of one table."""
MORE_DATES = {5: 2}
"""Query 5 joins facts that are smaller than the dates here. Spark sends the smaller side of a join
to every task, and knows other sizes of them, so that the file of the dates is read again."""
NAMESPACE = "tpcds_files"
METRICS = ("number of files read", "number of result data files")
"""What Spark's scan and that of the Java runtime call it."""


@pytest.fixture(scope="module")
def stores(sql_lake: Lake, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("tpcds")
    tpcds.write_parquet(folder, scale=0.01)
    tpcds.make_tables(spark, sql_lake, NAMESPACE, folder)
    # Which scans an adaptive plan leaves out depends on which ends first.
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    yield sql_lake
    spark.conf.unset("spark.sql.adaptive.enabled")


def files_read(spark: Any, run: Callable[[], Any]) -> tuple[list[Any], int]:
    """The rows of a query, and how many data files its scans read."""
    store = spark._jsparkSession.sharedState().statusStore()
    reported = spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty
    reported()
    before = latest_executions(store, after=-1)[0]
    rows = run().collect()
    reported()
    count = 0
    for execution in latest_executions(store, after=before):
        values = store.executionMetrics(execution)
        nodes = store.planGraph(execution).allNodes()
        for node in (nodes.apply(n) for n in range(nodes.size())):
            metrics = node.metrics()
            for metric in (metrics.apply(n) for n in range(metrics.size())):
                if metric.name() in METRICS and values.contains(metric.accumulatorId()):
                    count += int(values.apply(metric.accumulatorId()).replace(",", ""))
    return rows, count


def latest_executions(store: Any, *, after: int) -> list[int]:
    """Ids of executions later than one, the last first: Spark forgets old ones, so places move."""
    kept = store.executionsList()
    ids = (kept.apply(place).executionId() for place in reversed(range(kept.size())))
    return list(takewhile(lambda each: each > after, ids))


@pytest.mark.parametrize(
    "number",
    [
        IN_INTEROP[0],
        *map(only_in_interop, IN_INTEROP[1:]),
        *map(only_in_soak, sorted(set(QUERIES) - set(IN_INTEROP))),
    ],
)
def test_no_more_files_than_the_java_runtime(
    stores: Lake, spark: Any, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small tables are pruned as large ones are.
    monkeypatch.setattr(costs, "LARGE_SIDE_BYTES", 0)
    text = QUERIES[number]
    stores.sql(f"USE {NAMESPACE}")
    # What a first run asks of the tables, such as the keys of a join's small side, is kept.
    stores.sql(text).collect()
    found, ours = files_read(spark, lambda: stores.sql(text))
    spark.sql(f"USE java_sql.{NAMESPACE}")
    try:
        expected, theirs = files_read(spark, lambda: spark.sql(text))
    finally:
        spark.sql("USE spark_catalog.default")
    assert comparable(found) == comparable(expected)
    assert ours <= theirs + MORE_DATES.get(number, 0)


def comparable(rows: list[Any]) -> list[str]:
    """The rows in one order, with as many digits of a float as its sums keep in any order."""
    return sorted(
        repr([float(f"{v:.9g}") if isinstance(v, float) else v for v in row]) for row in rows
    )
