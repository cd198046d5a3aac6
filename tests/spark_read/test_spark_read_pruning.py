"""Plans whose files executors prune: the same as those that the driver makes."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

import frazil
from frazil.errors import InvalidManifestError
from frazil.spark.lake import Lake
from frazil.spark.session import costs
from frazil.spark.session.costs import Cost
from frazil.storage.paths import local_path


@pytest.fixture
def on_executors(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every plan with a predicate is large, and each manifest a task's."""

    def switch() -> None:
        monkeypatch.setattr(costs, "PRUNED", Cost(here=-1, a_task=1, threads=1))
        monkeypatch.setattr(costs, "PRUNING_CORES", 0)

    return switch


def made(lake: Lake, spark: SparkSession) -> frazil.Table:
    """Files of three commits and two specs, of which one has deletes."""
    rows = spark.range(30).selectExpr("id", "concat('c', id % 3) city", "id / 2 x").coalesce(1)
    table = lake.create_table(
        "db.pruned", "id bigint, city string, x double", partition_by=["city"], format_version=2
    )
    table.append(rows)
    table.append(rows.selectExpr("id + 100 id", "city", "x"))
    with table.update_spec() as change:
        change.add_field("bucket(2, id)")
    table.append(rows.selectExpr("id + 200 id", "city", "x"))
    table.delete("id = 4")
    return table


@pytest.mark.check
def test_plans_are_those_of_the_driver(lake: Lake, spark: SparkSession, on_executors: Any) -> None:
    table = made(lake, spark)
    asked = ["id >= 100 and x < 3", "id in (4, 105, 207)"]
    before = [table.scan(where).plan() for where in asked]
    on_executors()
    for where, expected in zip(asked, before, strict=True):
        table.io.caches.clear()
        found = table.scan(where).plan()
        kept = [key[1][1] for key in table.io.caches["manifests"]._items if key[0] == "manifest"]
        assert not {*kept} & {*found.manifests}, "the driver decoded none"
        assert found.files.schema == expected.files.schema
        # Which number a scope has says nothing.
        assert found.files.drop("scope").equals(expected.files.drop("scope"))
        assert found.deletes.drop("scope").equals(expected.deletes.drop("scope"))
        assert found.pairs.equals(expected.pairs)
        assert found.skipped == expected.skipped
        assert found.residual == expected.residual
        assert found.summary() == expected.summary()
    assert table.delete("id = 105") is not None
    assert lake.sql("select count(*) from db.pruned where id in (207, 208)").collect() == [(2,)]


@pytest.mark.check
def test_a_damaged_manifest_is_the_same_error(
    lake: Lake, spark: SparkSession, on_executors: Any
) -> None:
    table = made(lake, spark)
    path = table.inspect.dataframes.manifests().where("content = 0").first().path
    local = local_path(path)
    assert local is not None
    with open(local, "r+b") as stream:
        stream.truncate(200)
    table.io.caches.clear()
    on_executors()
    with pytest.raises(InvalidManifestError, match=r"damaged Avro|not an Avro|cut short"):
        table.scan("id >= 0").plan()
