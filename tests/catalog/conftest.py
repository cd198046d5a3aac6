"""Catalogs of the kinds that a module or a test says, and catalogs of databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from catalog_cases import (
    BEHIND_A_SERVER,
    REFERENCED,
    S3_KINDS,
    opened,
    properties_of,
    rest_properties,
)

from frazil.catalog.pointer.sql import SqlCatalog
from frazil.catalog.protocol import Catalog


@pytest.fixture
def properties(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[dict[str, str]]:
    """The properties of a catalog of that kind, with what it needs of this session's servers."""
    if kind in (*BEHIND_A_SERVER, REFERENCED):
        with rest_properties(tmp_path, kind) as found:
            yield found
    elif kind == "glue":
        yield request.getfixturevalue("glue").emptied((tmp_path / "wh").as_uri())
    elif kind in S3_KINDS:
        s3 = request.getfixturevalue("s3")
        bucket = s3.new_bucket(f"lake-{abs(hash(request.node.nodeid))}")
        yield properties_of(kind, tmp_path, bucket=bucket, s3_properties=s3.properties)
    else:
        url = request.getfixturevalue("postgres_url") if kind == "postgres" else None
        yield properties_of(kind, tmp_path, url)


@pytest.fixture
def catalog(properties: dict[str, str]) -> Iterator[Catalog]:
    """A catalog of that kind."""
    with closing(opened(properties)) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def sql(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlCatalog]:
    """A catalog of a database of its own."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    with closing(opened(properties_of(request.param, tmp_path, url))) as catalog:
        assert isinstance(catalog, SqlCatalog)
        yield catalog
