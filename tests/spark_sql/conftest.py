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


@pytest.fixture(scope="module")
def shared_lake(spark, tmp_path_factory):
    """A lake of one module, named `lake` too; no test changes its tables."""
    made = frazil.connect(spark, warehouse=str(tmp_path_factory.mktemp("lake")), name="lake")
    made.create_namespace("db")
    yield made
    made.close()


@pytest.fixture
def no_leftovers(spark):
    """Checks that a test leaves no temporary view behind."""
    before = {view.name for view in spark.catalog.listTables()}
    yield
    assert {view.name for view in spark.catalog.listTables()} == before
