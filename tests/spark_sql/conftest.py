"""A lake for statements."""

from __future__ import annotations

import pytest

import frazil


@pytest.fixture
def lake(spark, tmp_path):
    """A lake of one test, named `lake`."""
    made = frazil.connect(spark, warehouse=str(tmp_path / "lake"), name="lake")
    made.create_namespace("db")
    yield made
    made.close()


@pytest.fixture
def no_leftovers(spark):
    """Checks that a test leaves no temporary view behind."""
    before = {view.name for view in spark.catalog.listTables()}
    yield
    assert {view.name for view in spark.catalog.listTables()} == before


@pytest.fixture
def session(spark):
    """Sets session settings for one test."""
    before = {}

    def change(**settings):
        for name, value in settings.items():
            key = name.replace("__", ".")
            before.setdefault(key, spark.conf.get(key, None))
            spark.conf.set(key, value)

    yield change
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)
