"""The clouds' emulators, started when a test first asks for one, and a view of Hadoop's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from remote_stores import S3, Azure, Gcs, RemoteStore, running_azure, running_gcs

from frazil.spark.hadoop.stores import stores_of
from frazil.storage.files import FileIO

VIEW = "fs.viewfs.mounttable.{}.link./lake"


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


@pytest.fixture
def place(spark: Any, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A folder in a view, and where it lies."""
    name = f"v{abs(hash(tmp_path)):x}"
    (tmp_path / "lake").mkdir()
    spark.conf.set(VIEW.format(name), f"file://{tmp_path}/lake")
    yield f"viewfs://{name}/lake", tmp_path / "lake"
    spark.conf.unset(VIEW.format(name))


@pytest.fixture
def here(spark: Any, place: tuple[str, Path]) -> FileIO:
    """The files, beside the session."""
    return FileIO({"io": "hadoop"}, stores=stores_of({"io": "hadoop"}, spark))
