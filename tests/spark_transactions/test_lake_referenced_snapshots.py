"""What Spark does with tables that are loaded with their referenced snapshots alone."""

import pytest
from catalog_cases import REFERENCED, rest_properties

import frazil


@pytest.fixture
def properties(tmp_path):
    """The properties of a client that loads tables in this way."""
    with rest_properties(tmp_path, REFERENCED) as found:
        yield found


@pytest.fixture
def lake_settings(properties):
    return {**properties, "name": "lake"}


def rows(frame):
    return sorted((r["id"], r["v"]) for r in frame.collect())


def frame(spark, *given):
    return spark.createDataFrame(given, "id bigint, v string")


def test_two_writers_of_one_table(lake, spark, properties):
    """A rival's snapshots that are not at hand are found when a commit is tried again."""
    lake.create_table(
        "db.t", "id bigint, v string", properties={"write.delete.mode": "merge-on-read"}
    )
    lake.load_table("db.t").append(frame(spark, (1, "a"), (2, "b"), (3, "c")))
    lake.catalog.caches.clear()
    late = lake.load_table("db.t")
    with frazil.connect(spark, **properties, name="rival") as other:
        rival = other.load_table("db.t")
        rival.append(frame(spark, (4, "d")))
        rival.delete("id = 1")
    with lake.transaction() as changes:
        changes.table("db.t").delete("id = 2")
    late.append(frame(spark, (5, "e")))
    late.delete("id = 3")
    assert rows(late.to_df()) == [(4, "d"), (5, "e")]
