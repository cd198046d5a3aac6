"""Metastores of Hive, each started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hive_server import VERSIONS, Metastore, metastore


@pytest.fixture(scope="session", params=VERSIONS)
def hive(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Metastore]:
    """A metastore of each version."""
    with metastore(request.param, tmp_path_factory.mktemp("hive")) as running:
        yield running
