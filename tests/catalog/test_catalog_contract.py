"""What every catalog promises, on a folder, on SQLite, on PostgreSQL, on S3 and behind a server."""

from __future__ import annotations

import re

import pytest
from catalog_cases import (
    BEHIND_A_SERVER,
    KINDS,
    LIKE_A_SERVER,
    REFERENCED,
    S3_KINDS,
    SCHEMA,
    made_table,
    new_metadata,
    place_of,
    set_properties,
)

from ci_share import only_in_soak
from frazil.catalog.pointer.catalog import PointerCatalog
from frazil.catalog.protocol import Catalog
from frazil.errors import (
    CommitFailedError,
    ConfigurationError,
    InvalidFormatError,
    MissingFileError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)
from frazil.format.changes import AssertCreate, AssertTableUUID, SetLocation, SetProperties
from frazil.format.new_table import creation_updates, new_table_metadata


# In CI the double that is like a server is the one behind the tests' small server alone.
@pytest.fixture(
    params=[
        *(*KINDS, *S3_KINDS, *BEHIND_A_SERVER),
        *map(only_in_soak, (*LIKE_A_SERVER, REFERENCED)),
    ]
)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def metadata_files(catalog: Catalog, name: str = "db.t") -> list[str]:
    files = catalog.io.list(f"{place_of(catalog, name)}/metadata")
    return sorted(file.path for file in files if file.path.endswith(".json"))


def test_a_table_lives(catalog: Catalog) -> None:
    created = made_table(catalog, "db.t", a="1")
    assert created.identifier == ("db", "t")
    assert catalog.load_table("db.t") == created
    assert catalog.list_tables("db") == [("db", "t")]
    assert catalog.table_exists(("db", "t"))
    changed = set_properties(catalog, "db.t", b="2")
    assert changed.metadata.properties.items() >= {"a": "1", "b": "2"}.items()
    assert [e.metadata_file for e in changed.metadata.metadata_log] == [created.metadata_location]
    assert catalog.load_table("db.t") == changed
    catalog.drop_table("db.t")
    assert not catalog.table_exists("db.t")
    assert catalog.list_tables("db") == []
    for call in (catalog.load_table, catalog.drop_table, catalog.purge_table):
        with pytest.raises(NoSuchTableError, match=r"db\.t"):
            call("db.t")


def test_namespaces(catalog: Catalog) -> None:
    assert catalog.list_namespaces() == []
    catalog.create_namespace("a.b.c")
    catalog.create_namespace("a_b")
    catalog.create_namespace(("aXb",))
    assert catalog.list_namespaces() == [("a",), ("aXb",), ("a_b",)]
    assert catalog.list_namespaces("a") == [("a", "b")]
    assert catalog.list_namespaces("a.b") == [("a", "b", "c")]
    assert catalog.namespace_exists("a")
    assert not catalog.namespace_exists("a.c")
    assert not catalog.namespace_exists("A")
    with pytest.raises(NamespaceAlreadyExistsError, match="a_b"):
        catalog.create_namespace("a_b")
    made_table(catalog, "a_b.t")
    for full in ("a", "a_b"):
        with pytest.raises(NamespaceNotEmptyError):
            catalog.drop_namespace(full)
    catalog.drop_namespace("aXb")
    assert catalog.list_namespaces() == [("a",), ("a_b",)]
    for call in (
        catalog.drop_namespace,
        catalog.list_tables,
        catalog.list_namespaces,
        catalog.load_namespace_properties,
    ):
        with pytest.raises(NoSuchNamespaceError, match="none"):
            call("none")
    with pytest.raises(NoSuchNamespaceError, match="create_namespace"):
        catalog.create_table("none.t", new_metadata(catalog, "none.t"))


def test_a_table_is_no_namespace(catalog: Catalog) -> None:
    made_table(catalog, "db.t")
    assert catalog.list_namespaces("db") == []
    assert not catalog.namespace_exists("db.t")


def test_of_two_creators_the_first_wins(catalog: Catalog) -> None:
    first = made_table(catalog)
    with pytest.raises(TableAlreadyExistsError, match=r"db\.t"):
        catalog.create_table("db.t", new_metadata(catalog, "db.t"))
    if isinstance(catalog, PointerCatalog):
        with pytest.raises(TableAlreadyExistsError):
            catalog._create(("db", "t"), new_metadata(catalog, "db.t"))
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table("db.t", first.metadata_location)
    assert catalog.load_table("db.t") == first
    assert len(metadata_files(catalog)) == 1


def test_a_table_made_by_a_commit(catalog: Catalog) -> None:
    catalog.create_namespace("db")
    updates = creation_updates(new_table_metadata(SCHEMA, location=place_of(catalog)))
    with pytest.raises(NoSuchTableError):
        catalog.commit_table("db.t", (), updates)
    created = catalog.commit_table("db.t", (AssertCreate(),), updates)
    assert catalog.load_table("db.t") == created
    with pytest.raises(CommitFailedError):
        catalog.commit_table("db.t", (AssertCreate(),), updates)


def test_a_stale_writer_loses_and_leaves_nothing(catalog: Catalog) -> None:
    base = made_table(catalog)
    set_properties(catalog, "db.t", other="1")
    if not isinstance(catalog, PointerCatalog):
        pytest.skip("a server looks at requirements alone")
    files = metadata_files(catalog)
    with pytest.raises(CommitFailedError, match="another writer was first"):
        catalog._swap(base, base.metadata)
    assert metadata_files(catalog) == files
    assert catalog.load_table("db.t").metadata.properties["other"] == "1"


def test_a_broken_requirement_changes_nothing(catalog: Catalog) -> None:
    table = made_table(catalog)
    files = metadata_files(catalog)
    with pytest.raises(CommitFailedError, match="uuid"):
        catalog.commit_table("db.t", (AssertTableUUID("no"),), (SetProperties({"a": "1"}),))
    assert catalog.load_table("db.t") == table
    assert metadata_files(catalog) == files


def test_an_empty_commit_writes_nothing(catalog: Catalog) -> None:
    table = made_table(catalog)
    assert catalog.commit_table("db.t", (), ()) == table
    assert len(metadata_files(catalog)) == 1


def test_old_metadata_files_go_when_asked(catalog: Catalog) -> None:
    made_table(
        catalog,
        **{
            "write.metadata.previous-versions-max": "2",
            "write.metadata.delete-after-commit.enabled": "true",
        },
    )
    for number in range(5):
        set_properties(catalog, "db.t", n=str(number))
    assert len(metadata_files(catalog)) == 3
    assert catalog.load_table("db.t").metadata.properties["n"] == "4"


def test_metadata_is_compressed_when_asked(catalog: Catalog) -> None:
    made_table(catalog, **{"write.metadata.compression-codec": "gzip"})
    changed = set_properties(catalog, "db.t", a="1")
    assert changed.metadata_location.endswith(".gz.metadata.json")
    assert catalog.io.read(changed.metadata_location)[:2] == b"\x1f\x8b"
    changed = set_properties(catalog, "db.t", **{"write.metadata.compression-codec": "none"})
    assert catalog.load_table("db.t") == changed
    with pytest.raises((ConfigurationError, ValidationError), match="zip9"):
        set_properties(catalog, "db.t", **{"write.metadata.compression-codec": "zip9"})
    assert catalog.load_table("db.t") == changed


def test_purge_refuses_without_gc(catalog: Catalog) -> None:
    made_table(catalog, **{"gc.enabled": "false"})
    with pytest.raises(ValidationError, match=r"gc\.enabled"):
        catalog.purge_table("db.t")
    assert catalog.table_exists("db.t")


def test_purge_removes_metadata(catalog: Catalog) -> None:
    made_table(catalog)
    set_properties(catalog, "db.t", a="1")
    catalog.purge_table("db.t")
    assert not list(catalog.io.list(place_of(catalog)))
    made_table(catalog)


def test_purge_removes_metadata_that_only_older_logs_name(catalog: Catalog) -> None:
    made_table(catalog, **{"write.metadata.previous-versions-max": "2"})
    for number in range(6):
        set_properties(catalog, "db.t", a=str(number))
    assert len(metadata_files(catalog)) == 7
    catalog.purge_table("db.t")
    assert not list(catalog.io.list(place_of(catalog)))


def test_a_missing_metadata_file_is_typed(catalog: Catalog, request: pytest.FixtureRequest) -> None:
    if {"serve", REFERENCED} & {*request.node.callspec.params.values()}:
        pytest.skip("the server keeps what it has read: no metadata file ever changes")
    table = made_table(catalog)
    path = table.metadata_location
    catalog.io.write(path, b"{broken", overwrite=True)
    with pytest.raises(
        (InvalidFormatError, ValidationError), match=re.escape(path.rpartition("/")[2])
    ):
        catalog.load_table("db.t")
    catalog.io.delete(path)
    with pytest.raises((MissingFileError, NoSuchTableError)):
        catalog.load_table("db.t")


def test_malformed_names(catalog: Catalog) -> None:
    for name in (
        *("t", "", "db.", ".t", "db..t", "db.`t", ("db", ""), ("db", "a\n"), ("db", "\0")),
        *(("db", "\ud800"), ("\udfff", "t")),
    ):
        with pytest.raises(ValidationError):
            catalog.load_table(name)


def test_no_default_place_of_a_table_is_shared_or_outside(catalog: Catalog) -> None:
    for number, name in enumerate(("..", ".", "a/b", "../t", "a\\b")):
        namespace = f"db{number}"
        catalog.create_namespace(namespace)
        check_place_of(catalog, namespace, name)


def check_place_of(catalog: Catalog, namespace: str, name: str) -> None:
    if catalog.kind in BEHIND_A_SERVER:
        with pytest.raises(ValidationError, match="folder's name"):
            catalog.create_table((namespace, name), new_metadata(catalog, (namespace, name)))
        place = place_of(catalog, f"{namespace}.own")
        catalog.create_table((namespace, name), new_table_metadata(SCHEMA, location=place))
        assert catalog.list_tables(namespace) == [(namespace, name)]
        assert catalog.load_table((namespace, name)).metadata.location == place
        catalog.drop_table((namespace, name))
        return
    with pytest.raises(ValidationError, match="folder's name"):
        catalog.default_table_location((namespace, name))
    if catalog.kind != "filesystem":
        # In a place of its own it may have any name.
        place = catalog.default_table_location(f"{namespace}.own")
        catalog.create_table((namespace, name), new_table_metadata(SCHEMA, location=place))
        assert catalog.list_tables(namespace) == [(namespace, name)]
        catalog.update_namespace_properties(namespace, updates={"location": place})
        with pytest.raises(ValidationError, match="folder's name"):
            catalog.default_table_location((namespace, name))


def test_odd_names_are_kept(catalog: Catalog) -> None:
    made_table(catalog, "my db.tab le%20=[x]")
    assert catalog.list_tables("my db") == [("my db", "tab le%20=[x]")]
    set_properties(catalog, "my db.`tab le%20=[x]`", a="1")
    assert catalog.load_table(("my db", "tab le%20=[x]")).metadata.properties["a"] == "1"


def test_relocation(catalog: Catalog) -> None:
    table = made_table(catalog)
    update = SetLocation(f"{table.metadata.location}-moved")
    if catalog.kind == "filesystem":
        with pytest.raises(ValidationError, match="stay in their folder"):
            catalog.commit_table("db.t", (), (update,))
        return
    moved = catalog.commit_table("db.t", (), (update,))
    assert moved.metadata_location.startswith(f"{table.metadata.location}-moved/metadata/")
    assert catalog.load_table("db.t") == moved


def test_renames(catalog: Catalog) -> None:
    table = made_table(catalog, "db.t")
    made_table(catalog, "other.u")
    if catalog.kind == "filesystem":
        with pytest.raises(UnsupportedError, match="folder"):
            catalog.rename_table("db.t", "other.t")
        return
    catalog.rename_table("db.t", "other.t")
    assert catalog.load_table("other.t").metadata == table.metadata
    assert not catalog.table_exists("db.t")
    with pytest.raises(TableAlreadyExistsError, match=r"other\.u"):
        catalog.rename_table("other.t", "other.u")
    with pytest.raises(NoSuchTableError, match=r"db\.t"):
        catalog.rename_table("db.t", "other.v")
    with pytest.raises(NoSuchNamespaceError, match="nowhere"):
        catalog.rename_table("other.t", "nowhere.t")


def test_registering(catalog: Catalog) -> None:
    table = made_table(catalog)
    if catalog.kind == "filesystem":
        with pytest.raises(UnsupportedError, match="location"):
            catalog.register_table("db.copy", table.metadata_location)
        return
    catalog.drop_table("db.t")
    registered = catalog.register_table("db.again", table.metadata_location)
    assert registered.metadata == table.metadata
    changed = set_properties(catalog, "db.again", a="1")
    assert changed.metadata_location.rpartition("/")[2].startswith("00001-")
    # A server says that what it is asked for is wrong.
    with pytest.raises((MissingFileError, ValidationError)):
        catalog.register_table("db.nothing", f"{table.metadata_location}x")


def test_properties_of_namespaces(catalog: Catalog) -> None:
    if catalog.kind == "filesystem":
        with pytest.raises(UnsupportedError):
            catalog.create_namespace("db", {"a": "1"})
        catalog.create_namespace("db")
        assert list(catalog.load_namespace_properties("db")) == ["location"]
        with pytest.raises(UnsupportedError):
            catalog.update_namespace_properties("db", updates={"a": "1"})
        return
    catalog.create_namespace("db", {"a": "1", "b": "2"})
    assert catalog.load_namespace_properties("db") == {"a": "1", "b": "2"}
    catalog.update_namespace_properties("db", updates={"b": "3", "c": "4"}, removals=["a", "x"])
    assert catalog.load_namespace_properties("db") == {"b": "3", "c": "4"}
    catalog.update_namespace_properties("db", removals=["b", "c"])
    assert catalog.load_namespace_properties("db") == {}
    assert catalog.namespace_exists("db")
    with pytest.raises(ValidationError, match="both"):
        catalog.update_namespace_properties("db", updates={"b": "3"}, removals=["b"])
    with pytest.raises(NoSuchNamespaceError):
        catalog.update_namespace_properties("none", updates={"b": "3"})
