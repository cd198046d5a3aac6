"""A lake, and folders that Spark's own writers filled."""

import pytest
from migration_rows import COLUMNS, KEYS, ROWS


@pytest.fixture
def lake_settings(tmp_path_factory):
    """A lake beside the folder of a test, which some tests bring in whole."""
    return {"warehouse": str(tmp_path_factory.mktemp("lake"))}


@pytest.fixture
def people(spark):
    """Five rows of every kind of partition."""
    return spark.sql(f"SELECT * FROM VALUES {ROWS} AS t(id, name, at, point, dept, n, day)")


@pytest.fixture
def folder(people, tmp_path):
    """The rows as Parquet files of Spark in Hive's layout, with what Spark leaves beside them."""
    place = tmp_path / "source"
    people.repartition(1).write.partitionBy(*KEYS).parquet(str(place))
    assert (place / "_SUCCESS").exists()
    assert list(place.rglob(".*.crc"))
    return place


@pytest.fixture
def target(lake):
    """Makes an empty table for the rows."""

    def make(name="people", **settings):
        return lake.create_table(f"db.{name}", COLUMNS, partition_by=KEYS, **settings)

    return make


@pytest.fixture
def spark_tables(spark):
    """Names of tables of Spark's session catalog that are free, and dropped in the end."""
    made = []

    def name(text):
        made.append(text)
        spark.sql(f"DROP TABLE IF EXISTS {text}")
        return text

    yield name
    for text in made:
        for each in (text, f"{text}_BACKUP_"):
            spark.sql(f"DROP TABLE IF EXISTS {each}")
