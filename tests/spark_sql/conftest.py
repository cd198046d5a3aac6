"""A lake for statements."""

import pytest

from frazil.spark.session import costs

OPENED_FILES = costs.OPENED_FILES


@pytest.fixture(autouse=True)
def small_tables_are_asked_about(monkeypatch):
    """Files are left out of the small tables of tests too, as they are of large ones."""
    monkeypatch.setattr(costs, "OPENED_FILES", 0)


@pytest.fixture
def small_tables_are_opened_whole(monkeypatch, small_tables_are_asked_about):
    """What a small table is to users."""
    monkeypatch.setattr(costs, "OPENED_FILES", OPENED_FILES)


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
