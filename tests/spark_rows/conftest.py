"""A lake for all tests of this folder: each makes tables of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import frazil
from frazil.spark.lake import Lake


@pytest.fixture(scope="session")
def rows_lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """An embedded SQL catalog with the namespace `db`."""
    with frazil.connect(spark, warehouse=str(tmp_path_factory.mktemp("rows"))) as opened:
        opened.create_namespace("db")
        yield opened
