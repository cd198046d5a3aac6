"""A lake in an empty folder for each test."""

from __future__ import annotations

import pytest

import frazil


@pytest.fixture
def lake(spark, tmp_path):
    """An embedded SQL catalog with the namespace `db`."""
    with frazil.connect(spark, warehouse=str(tmp_path / "lake")) as opened:
        opened.create_namespace("db")
        yield opened
