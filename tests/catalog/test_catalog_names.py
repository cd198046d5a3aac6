"""A namespace and a table, or a view, never have one name: their folders would be one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from catalog_cases import SCHEMA, opened, properties_of
from view_cases import version

from frazil.catalog.protocol import Catalog, TableCommit
from frazil.errors import AlreadyExistsError, NamespaceAlreadyExistsError, ValidationError
from frazil.format.changes import AssertCreate
from frazil.format.metadata import TableMetadata
from frazil.format.new_table import creation_updates, new_table_metadata


def table(catalog: Catalog, name: str) -> TableMetadata:
    return new_table_metadata(SCHEMA, location=catalog.default_table_location(name))


def commit_of(catalog: Catalog, name: str) -> TableCommit:
    updates = tuple(creation_updates(table(catalog, name)))
    return TableCommit(tuple(name.split(".")), (AssertCreate(),), updates)


def register(catalog: Catalog, name: str) -> object:
    catalog.create_table("db.other", table(catalog, "db.other"))
    return catalog.register_table(name, catalog.metadata_location("db.other"))


def rename(catalog: Catalog, name: str) -> None:
    catalog.create_table("db.other", table(catalog, "db.other"))
    catalog.rename_table("db.other", name)


WAYS: dict[str, Callable[[Catalog, str], object]] = {
    "create": lambda catalog, name: catalog.create_table(name, table(catalog, name)),
    "stage": lambda catalog, name: catalog.stage_table(name, table(catalog, name)),
    "commit": lambda catalog, name: catalog.commit_table(
        name, (AssertCreate(),), creation_updates(table(catalog, name))
    ),
    "several": lambda catalog, name: catalog.commit_tables([commit_of(catalog, name)]),
    "register": register,
    "rename": rename,
    "view": lambda catalog, name: catalog.create_view(name, SCHEMA, version("SELECT 1 AS a")),
}
CASES = [("sqlite", way) for way in WAYS] + [
    ("filesystem", way) for way in ("create", "stage", "commit")
]


@pytest.mark.parametrize(("kind", "way"), CASES)
@pytest.mark.parametrize("holds", ["nothing", "a table"])
def test_a_name_of_a_namespace(catalog: Catalog, way: str, holds: str) -> None:
    for name in ("db", "db.x"):
        catalog.create_namespace(name)
    if holds == "a table":
        catalog.create_table("db.x.t", table(catalog, "db.x.t"))
    with pytest.raises(AlreadyExistsError, match=r"db\.x is a namespace"):
        WAYS[way](catalog, "db.x")
    assert catalog.namespace_exists("db.x")
    assert not catalog.table_exists("db.x")
    assert len(catalog.list_tables("db.x")) == (holds == "a table")


@pytest.mark.parametrize("kind", ["sqlite", "filesystem"])
def test_a_name_of_a_table(catalog: Catalog, kind: str) -> None:
    catalog.create_namespace("db")
    catalog.create_table("db.x", table(catalog, "db.x"))
    names = ["db.x", "db.x.y", "db.x.y.z"]
    if kind == "sqlite":
        catalog.create_view("db.v", SCHEMA, version("SELECT 1 AS a"))
        names += ["db.v", "db.v.w"]
    for name in names:
        with pytest.raises(NamespaceAlreadyExistsError, match=r"db\.[xv] is a table"):
            catalog.create_namespace(name)
    # The folder that the table had is free for a namespace again, and the other way round.
    catalog.drop_table("db.x")
    if kind == "sqlite":
        catalog.create_namespace("db.x")
        catalog.drop_namespace("db.x")
        catalog.create_table("db.x", table(catalog, "db.x"))


def test_a_table_in_the_folder_of_another_is_not_removed_with_it(tmp_path: Path) -> None:
    """As a Java catalog, or an older Frazil, may have left them."""
    catalog = opened(properties_of("filesystem", tmp_path))
    for name in ("db", "db.x"):
        catalog.create_namespace(name)
    catalog.create_table("db.x.t", table(catalog, "db.x.t"))
    inner, outer = tmp_path / "wh/db/x/t/metadata", tmp_path / "wh/db/x/metadata"
    outer.mkdir()
    text = (inner / "v1.metadata.json").read_text()
    (outer / "v1.metadata.json").write_text(text.replace("db/x/t", "db/x"))
    assert catalog.table_exists("db.x")
    for remove in (catalog.drop_table, catalog.purge_table):
        with pytest.raises(ValidationError, match=r"db\.x\.t lies in its folder"):
            remove("db.x")
    assert (inner / "v1.metadata.json").exists()
    assert catalog.table_exists("db.x")


def test_a_table_that_another_catalog_owns_is_registered(tmp_path: Path) -> None:
    one = opened(properties_of("sqlite", tmp_path))
    two = opened(properties_of("sqlite", tmp_path), name="two")
    for catalog in (one, two):
        catalog.create_namespace("db")
    made = one.create_table("db.t", table(one, "db.t"))
    assert two.register_table("db.u", made.metadata_location).metadata == made.metadata
    assert one.load_table("db.t").metadata == two.load_table("db.u").metadata
