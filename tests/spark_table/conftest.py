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
