"""A lake for statements."""

import pytest


@pytest.fixture
def lake_settings(lake_settings):
    """A lake named `lake`, as statements call it."""
    return {**lake_settings, "name": "lake"}


@pytest.fixture
def no_leftovers(spark):
    """Checks that a test leaves no temporary view behind."""
    before = {view.name for view in spark.catalog.listTables()}
    yield
    assert {view.name for view in spark.catalog.listTables()} == before
