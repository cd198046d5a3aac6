"""Catalogs of databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from catalog_cases import opened, properties_of

from frazil.catalog.pointer.sql import SqlCatalog


@pytest.fixture(params=["sqlite", "postgres"])
def sql(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlCatalog]:
    """A catalog of a database of its own."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    with closing(opened(properties_of(request.param, tmp_path, url))) as catalog:
        assert isinstance(catalog, SqlCatalog)
        yield catalog
