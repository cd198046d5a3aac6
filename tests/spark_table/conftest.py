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


@pytest.fixture
def files(tmp_path):
    """What lies in the warehouse below `data` folders, by file name."""

    def found(suffix=".parquet"):
        return {str(p.relative_to(tmp_path)) for p in tmp_path.rglob(f"*{suffix}")}

    return found
