"""A session with a lake attached, and a database of Spark's own beside it."""

import pytest

import frazil

ROWS = "SELECT CAST(id AS INT) AS id, concat('n', id % 3) AS n FROM range(1, 6)"


@pytest.fixture
def lake(spark, lake):
    """The lake of one test, attached as `lake`."""
    lake.attach(name="lake")
    yield lake
    spark.catalog.setCurrentCatalog("spark_catalog")


@pytest.fixture
def other(spark, tmp_path):
    """Another lake, attached as `other`, with a namespace `db`."""
    made = frazil.connect(spark, warehouse=str(tmp_path / "other"))
    made.create_namespace("db")
    made.attach(name="other")
    yield made
    made.close()


@pytest.fixture
def plain(spark):
    """A database of Spark's own, which goes with its tables."""
    spark.sql("CREATE DATABASE spark_catalog.plain_db")
    yield "plain_db"
    spark.sql("DROP DATABASE spark_catalog.plain_db CASCADE")


@pytest.fixture
def rows(spark):
    """Rows to write."""
    return spark.sql(ROWS)
