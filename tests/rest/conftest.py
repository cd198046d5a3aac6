"""A server of the protocol over SQLite, and catalogs that are its clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from catalog_cases import opened, properties_of
from rest_cases import NO_REPORTS, QUICK_CHECKS

from frazil.catalog.rest.catalog import RestCatalog
from requirements_catalog import RequirementsCatalog
from rest_server import Server, served


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server whose tables lie in a folder."""
    behind = RequirementsCatalog("behind", properties_of("sqlite", tmp_path))
    with served(Server(behind)) as running:
        yield running
    behind.close()


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[..., RestCatalog]]:
    """Opens catalogs that are clients of the server."""
    made: list[RestCatalog] = []

    def connect(**properties: Any) -> RestCatalog:
        given = {"type": "rest", "uri": server.address, **QUICK_CHECKS, **NO_REPORTS}
        given |= properties
        catalog = opened(given)
        assert isinstance(catalog, RestCatalog)
        made.append(catalog)
        return catalog

    yield connect
    for each in made:
        each.close()
