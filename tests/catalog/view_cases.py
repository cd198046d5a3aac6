"""What the tests of views in catalogs share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from frazil.catalog.protocol import Catalog, LoadedView
from frazil.errors import FrazilError, UnsupportedError
from frazil.format.changes import LAST_ADDED
from frazil.format.schema import Schema
from frazil.format.types import IntegerType, NestedField
from frazil.format.views import SqlRepresentation, ViewVersion, replacing_updates

SCHEMA = Schema((NestedField(1, "a", IntegerType()),))


def version(sql: str, *dialects: str) -> ViewVersion:
    """A version with the same text for some engines, Spark unless others are named."""
    texts = tuple(SqlRepresentation(sql, each) for each in dialects or ("spark",))
    return ViewVersion(1, LAST_ADDED, 1000, {}, texts, ("db",))


def made_view(catalog: Catalog, name: str = "db.v", **properties: str) -> LoadedView:
    if not catalog.namespace_exists("db"):
        catalog.create_namespace("db")
    return catalog.create_view(name, SCHEMA, version("SELECT 1 AS a"), properties=properties)


def replaced(catalog: Catalog, sql: str, base: LoadedView | None = None) -> LoadedView:
    return catalog.commit_view("db.v", (), replacing_updates(SCHEMA, version(sql)), base=base)


def sql_of(view: LoadedView) -> str | None:
    return view.metadata.current_version.sql_for("spark")


def files_of(view: LoadedView) -> set[str]:
    folder = Path(view.metadata.location.removeprefix("file:")) / "metadata"
    return {path.name for path in folder.iterdir() if path.is_file()}


def refused(catalog: Catalog, said: str) -> None:
    calls: tuple[Any, ...] = (
        lambda: made_view(catalog),
        lambda: catalog.load_view("db.v"),
        lambda: catalog.list_views("db"),
        lambda: catalog.drop_view("db.v"),
        lambda: catalog.rename_view("db.v", "db.w"),
        lambda: catalog.commit_view("db.v", (), ()),
        lambda: catalog.register_view("db.v", "file:/x"),
    )
    for call in calls:
        with pytest.raises(FrazilError, match=said) as raised:
            call()
        assert isinstance(raised.value, UnsupportedError)
