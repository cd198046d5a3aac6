"""A lake in an empty folder for each test; tables of many small files from compaction's tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import frazil

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spark_compaction"))


@pytest.fixture
def lake(spark, tmp_path):
    """An embedded SQL catalog with the namespace `db`."""
    with frazil.connect(spark, warehouse=str(tmp_path / "lake")) as opened:
        opened.create_namespace("db")
        yield opened
