"""Catalogs for the tests of the table plane."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from table_cases import CATALOGS, open_catalog

from frazil.catalog.protocol import Catalog


@pytest.fixture(params=CATALOGS)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """Each kind of catalog in turn."""
    opened = open_catalog(request.param, tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def files_catalog(tmp_path: Path) -> Catalog:
    """A filesystem catalog."""
    return open_catalog("filesystem", tmp_path)
