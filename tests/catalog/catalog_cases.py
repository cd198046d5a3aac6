"""What the catalog tests share: catalogs by kind, a schema, and commits that try again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from frazil.catalog.config import CatalogConfig, open_catalog
from frazil.catalog.kinds import catalog_class, register_catalog
from frazil.catalog.protocol import Catalog, LoadedTable
from frazil.errors import CommitFailedError
from frazil.format.changes import SetProperties
from frazil.format.metadata import TableMetadata
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField, StringType
from frazil.serve.server import CatalogServer
from frazil.serve.settings import Listening, ServeSettings
from requirements_catalog import RequirementsCatalog
from rest_server import Server, served

SCHEMA = Schema(
    (NestedField(1, "id", LongType(), required=True), NestedField(2, "s", StringType()))
)
SERVED: dict[str, Catalog] = {}
"""The catalogs behind servers of this process, by the servers' addresses."""
KINDS = ("filesystem", "sqlite", "postgres")
LIKE_A_SERVER = ("requirements",)
BEHIND_A_SERVER = ("rest", "serve")
REFERENCED = "serve refs"
S3_KINDS = ("filesystem on s3",)
SWAPS = {
    "filesystem": ("create", "link", "rename"),
    "sqlite": ("do_commit",),
    "postgres": ("do_commit",),
}
"""Calls of a store, a disk or a database that may have moved a pointer, whatever came of them."""
NO_REPORTS = {"rest-metrics-reporting-enabled": "false"}
"""No report comes between the requests that a test counts, or breaks."""

QUICK_CHECKS = {
    "commit.status-check.num-retries": "1",
    "commit.status-check.min-wait-ms": "1",
}


def properties_of(
    kind: str,
    folder: Path,
    postgres_url: str | None = None,
    *,
    bucket: str = "",
    s3_properties: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """The properties of a catalog in the folder, or with its tables in the bucket."""
    if kind in S3_KINDS:
        base = properties_of(kind.split()[0], folder)
        return {**base, **s3_properties, "warehouse": f"{bucket}/wh"}
    if kind == "filesystem":
        return {"type": "filesystem", "warehouse": str(folder / "wh")}
    if kind == "requirements":
        register_catalog(kind, RequirementsCatalog)
        return {**properties_of("sqlite", folder), "type": kind}
    uri = postgres_url if kind == "postgres" else f"sqlite:///{folder}/catalog.db"
    assert uri is not None
    return {"type": "sql", "uri": uri, "warehouse": str(folder / "wh")}


def class_of(kind: str) -> type[Catalog]:
    """The class of a catalog of that kind."""
    name = kind.split()[0]
    return catalog_class(kind, "sql" if name in ("sqlite", "postgres") else name)


def opened(properties: Mapping[str, str], name: str = "lake") -> Catalog:
    """A catalog of those properties."""
    return open_catalog(CatalogConfig(name, properties))


def place_of(catalog: Catalog, name: str = "db.t") -> str:
    """Where the catalog puts a table of that name; a server is asked by its own catalog."""
    behind = SERVED.get(catalog.properties.get("uri", ""))
    return (catalog if behind is None else behind).default_table_location(name)


@contextmanager
def rest_properties(folder: Path, kind: str = "rest") -> Iterator[dict[str, str]]:
    """The properties of a catalog whose server has its tables in the folder.

    Args:
        kind: ``rest`` for the tests' small server, ``serve`` for Frazil's own, ``serve refs`` for
            it with tables that are loaded with their referenced snapshots.
    """
    if kind.startswith("serve"):
        with serve_properties(folder) as properties:
            partly = {"snapshot-loading-mode": "refs"} if kind == REFERENCED else {}
            yield {**properties, **partly}
        return
    behind = RequirementsCatalog("behind", properties_of("sqlite", folder))
    with served(Server(behind)) as server:
        SERVED[server.address] = behind
        yield {"type": "rest", "uri": server.address, **NO_REPORTS}
        del SERVED[server.address]
    behind.close()


@contextmanager
def serve_properties(folder: Path) -> Iterator[dict[str, str]]:
    """The properties of a catalog behind Frazil's own server."""
    behind = opened(properties_of("sqlite", folder), "behind")
    server = CatalogServer(behind, ServeSettings(any_location=True), listening=Listening(port=0))
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    SERVED[server.uri] = behind
    try:
        yield {"type": "rest", "uri": server.uri, **NO_REPORTS}
    finally:
        del SERVED[server.uri]
        server.stop()
        thread.join(20)
        assert not thread.is_alive()


def new_metadata(catalog: Catalog, name: str | tuple[str, ...], **properties: str) -> TableMetadata:
    """New metadata in the place that the catalog gives the table."""
    location = catalog.default_table_location(name)
    return new_table_metadata(SCHEMA, location=location, properties=properties)


def made_table(catalog: Catalog, name: str = "db.t", **properties: str) -> LoadedTable:
    """A new table, its namespace made where it is missing."""
    namespace = name.rpartition(".")[0]
    if not catalog.namespace_exists(namespace):
        catalog.create_namespace(namespace)
    return catalog.create_table(name, new_metadata(catalog, name, **properties))


def set_properties(catalog: Catalog, name: str, **properties: str) -> LoadedTable:
    """One commit, without trying again."""
    return catalog.commit_table(name, (), (SetProperties(properties),))


def set_properties_retrying(catalog: Catalog, name: str, **properties: str) -> LoadedTable:
    """One commit, tried again until it is first."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return set_properties(catalog, name, **properties)
        except CommitFailedError:
            if time.monotonic() > deadline:
                raise
