"""The clouds' emulators, started when a test first asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from remote_stores import S3, Azure, Gcs, RemoteStore, running_azure, running_gcs

from frazil.storage.files import FileIO


@pytest.fixture(scope="session")
def azure() -> Iterator[Azure]:
    """Azurite, or a skipped test."""
    with running_azure() as store:
        yield store


@pytest.fixture(scope="session")
def gcs() -> Iterator[Gcs]:
    """fake-gcs-server, or a skipped test."""
    with running_gcs() as store:
        yield store


@pytest.fixture(params=["s3", "azure", "gcs"])
def store(request: pytest.FixtureRequest) -> Any:
    """Each of the three."""
    server = request.getfixturevalue(request.param)
    return S3(server) if request.param == "s3" else server


@pytest.fixture
def bucket(store: RemoteStore) -> str:
    """The URI of a new bucket."""
    return store.new_bucket()


@pytest.fixture(scope="session")
def drivers() -> dict[frozenset[tuple[str, str]], FileIO]:
    """A FileIO a store: to make a driver takes longer than most tests."""
    return {}


@pytest.fixture
def io(store: RemoteStore, drivers: dict[frozenset[tuple[str, str]], FileIO]) -> FileIO:
    """A FileIO that reaches the store."""
    return drivers.setdefault(frozenset(store.properties.items()), FileIO(store.properties))
