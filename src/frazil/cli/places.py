"""The catalog and the tables that a command line names; mistakes name what there is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from frazil.catalog.config import (
    DATABASE_NAME,
    CatalogConfig,
    implementation_of,
    open_catalog,
    resolve,
)
from frazil.catalog.identifiers import parse_table_identifier, shown
from frazil.catalog.kinds import IMPLEMENTATION
from frazil.catalog.protocol import Catalog
from frazil.errors import ConfigurationError, NoSuchNamespaceError, NoSuchTableError
from frazil.format.arguments import what_there_is
from frazil.later import later
from frazil.storage.paths import join, local_path, normalize_location
from frazil.table.handle import TableHandle

if TYPE_CHECKING:
    from frazil.catalog.pointer.sql import SqlCatalog
    from frazil.catalog.static import StaticCatalog
else:
    SqlCatalog = later("frazil.catalog.pointer.sql", "SqlCatalog")
    StaticCatalog = later("frazil.catalog.static", "StaticCatalog")


_MAKES_TABLES: Final = "init_catalog_tables"


class Place(Protocol):
    """Where the tables are: the name of a catalog, and settings."""

    @property
    def name(self) -> str | None: ...

    @property
    def properties(self) -> Mapping[str, str]: ...


def catalog_there_is(place: Place) -> Catalog:
    """Return the configured catalog; looking never makes one.

    Raises:
        ConfigurationError: nothing is configured, or there is no catalog at that place or of
            that name.
    """
    config = resolve(place.name, place.properties)
    database = _missing_database(config)
    if database is not None:
        # Opening a SQLite file that is not there would make it.
        raise ConfigurationError(
            f"there is no catalog {database}: check --warehouse, give --uri, or use --type hadoop "
            "for a folder of tables without a database; frazil create-namespace makes a catalog"
        )
    if issubclass(implementation_of(config), SqlCatalog):
        only_looks = {_MAKES_TABLES: "false", **place.properties}[_MAKES_TABLES]
        config = CatalogConfig(config.name, {**config.properties, _MAKES_TABLES: only_looks})
    catalog = open_catalog(config)
    if isinstance(catalog, SqlCatalog):
        _check_name(catalog)
    return catalog


def catalog_if_there(place: Place) -> Catalog | None:
    """Return the configured catalog; None where its database in the warehouse is still to be made.

    Raises:
        ConfigurationError: nothing is configured, or there is no catalog of that name.
    """
    missing = _missing_database(resolve(place.name, place.properties))
    return catalog_there_is(place) if missing is None else None


def new_or_old_catalog(place: Place) -> Catalog:
    """Return the configured catalog, made where it is not there.

    Raises:
        ConfigurationError: nothing is configured.
    """
    return open_catalog(resolve(place.name, place.properties))


def handle_there_is(name: str, place: Place) -> TableHandle:
    """Return a table by its name in the catalog, or by the path of its folder or metadata file.

    Raises:
        NoSuchTableError: there is none; the message names the nearest there is.
    """
    if os.sep in name or "/" in name:
        static = StaticCatalog(name, place.properties)
        return TableHandle(static, static.load_table(static.identifier))
    catalog = catalog_there_is(place)
    require(catalog, name)
    return TableHandle(catalog, catalog.load_table(name))


def require(catalog: Catalog, name: str) -> None:
    """Check that a catalog has a table.

    Raises:
        NoSuchTableError: it has not; the message names the nearest there is.
    """
    if not catalog.table_exists(name):
        raise NoSuchTableError(
            f"there is no table {shown(parse_table_identifier(name))} in the catalog "
            f"{catalog.name}{_tables_there_are(catalog, name)}"
        )


def _missing_database(config: CatalogConfig) -> str | None:
    """The SQLite file of a warehouse, if it is not there."""
    properties = config.properties
    kind = "" if IMPLEMENTATION in properties else properties.get("type", "sql").lower()
    if kind not in ("sql", "jdbc") or "uri" in properties or "warehouse" not in properties:
        return None
    warehouse = normalize_location(properties["warehouse"])
    database = local_path(join(warehouse, DATABASE_NAME))
    return None if database is None or os.path.exists(database) else database


def _check_name(catalog: SqlCatalog) -> None:
    """A database holds the tables of several catalogs: a mistyped name would show none of them."""
    names = catalog.catalog_names()
    if names and catalog.name not in names:
        held = "catalog" if len(names) == 1 else "catalogs"
        raise ConfigurationError(
            f"the database holds no catalog {catalog.name!r}; it holds the {held} "
            f"{', '.join(names)}: give --catalog NAME"
        )


def _tables_there_are(catalog: Catalog, name: str) -> str:
    identifier = parse_table_identifier(name)
    try:
        beside = [shown(each) for each in catalog.list_tables(identifier[:-1])]
    except (NoSuchNamespaceError, ConfigurationError):
        there = ", ".join(map(shown, catalog.list_namespaces())) or "none"
        return f"; the namespaces of the catalog are: {there}"
    if not beside:
        return f"; the namespace {shown(identifier[:-1])} is empty"
    return what_there_is(shown(identifier), beside, holder="its namespace")
