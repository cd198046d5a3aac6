"""Databases behind the servers of tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from serve_cases import sql_catalog

from frazil.catalog.protocol import Catalog


@pytest.fixture(params=["sqlite", "postgres"])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Catalog]:
    """Opens a catalog of one database, as often as it is asked."""
    if request.param == "sqlite":
        return lambda: sql_catalog(tmp_path)
    url = request.getfixturevalue("postgres_url")
    return lambda: sql_catalog(tmp_path, uri=url, type="sql")
