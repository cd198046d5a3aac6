"""Metastores of Hive, each started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hive_server import VERSIONS, Metastore, metastore

from postgres_server import PostgresServer, postgres_server


@pytest.fixture(scope="session", params=VERSIONS)
def hive(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Metastore]:
    """A metastore of each version."""
    with metastore(request.param, tmp_path_factory.mktemp("hive")) as running:
        yield running


@pytest.fixture(scope="session")
def hive_in_postgres(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Metastore]:
    """A metastore with its tables in PostgreSQL, where it compares what a commit expects."""
    url = postgres.new_database("metastore")
    with metastore(VERSIONS[0], tmp_path_factory.mktemp("hive"), database=url) as running:
        yield running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server."""
    with postgres_server() as server:
        yield server
