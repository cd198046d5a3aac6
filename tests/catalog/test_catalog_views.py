"""What every catalog that has views promises: their life, their names beside tables', writers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from catalog_cases import (
    BEHIND_A_SERVER,
    QUICK_CHECKS,
    made_table,
    new_metadata,
    opened,
    place_of,
    properties_of,
)
from pyiceberg.view.metadata import ViewMetadata as PyIcebergView
from test_catalog_faults import break_commit
from test_catalog_peers import columns, peer, v0_database
from view_cases import SCHEMA, files_of, made_view, refused, replaced, sql_of, version

from frazil.catalog.pointer.sql import SqlCatalog
from frazil.catalog.protocol import Capability, Catalog, LoadedView
from frazil.errors import (
    CommitFailedError,
    InvalidMetadataError,
    MissingFileError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    StorageError,
    TableAlreadyExistsError,
    ValidationError,
    ViewAlreadyExistsError,
)
from frazil.format.changes import RemoveProperties, SetProperties
from frazil.format.views import (
    AssertViewUUID,
    parse_view_metadata,
    replacing_updates,
    view_metadata_to_bytes,
)


@pytest.fixture(params=["sqlite", "postgres", *BEHIND_A_SERVER])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_view_lives(catalog: Catalog) -> None:
    assert catalog.can(Capability.VIEWS)
    view = made_view(catalog, comment="one")
    assert catalog.load_view("db.v") == view
    assert view.metadata.location.endswith("/wh/db/v")
    name = view.metadata_location.rpartition("/")[2]
    assert name.startswith("00000-")
    assert name.endswith(".gz.metadata.json")
    changed = replaced(catalog, "SELECT 2 AS a")
    assert changed.metadata_location.rpartition("/")[2].startswith("00001-")
    assert sql_of(catalog.load_view("db.v")) == "SELECT 2 AS a"
    assert replaced(catalog, "SELECT 2 AS a") == changed
    plain = catalog.commit_view(
        "db.v", (), [SetProperties({"write.metadata.compression-codec": "none"})]
    )
    assert plain.metadata_location.endswith(plain.metadata_location[-50:].rpartition("-")[2])
    assert ".gz." not in plain.metadata_location
    assert catalog.list_views("db") == [("db", "v")]
    catalog.drop_view("db.v")
    assert not catalog.view_exists("db.v")
    again = catalog.register_view("db.w", changed.metadata_location)
    assert again.metadata == changed.metadata


def test_names_are_shared_with_tables(catalog: Catalog) -> None:
    view = made_view(catalog)
    made_table(catalog, "db.t")
    with pytest.raises(ViewAlreadyExistsError, match=r"db\.t"):
        made_view(catalog, "db.t")
    with pytest.raises(ViewAlreadyExistsError):
        made_view(catalog)
    with pytest.raises(TableAlreadyExistsError, match="a view of that name"):
        catalog.create_table("db.v", new_metadata(catalog, "db.v"))
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table("db.t", "db.v")
    with pytest.raises(ViewAlreadyExistsError):
        catalog.rename_view("db.v", "db.t")
    for call in (catalog.load_table, catalog.metadata_location, catalog.drop_table):
        with pytest.raises(NoSuchTableError, match=r"db\.v is a view"):
            call("db.v")
    for change in (catalog.load_view, catalog.drop_view):
        with pytest.raises(NoSuchViewError):
            change("db.t")
    assert catalog.list_tables("db") == [("db", "t")]
    assert catalog.list_views("db") == [("db", "v")]
    assert not catalog.table_exists("db.v")
    assert not catalog.view_exists("db.t")
    catalog.drop_table("db.t")
    with pytest.raises(NamespaceNotEmptyError, match="v"):
        catalog.drop_namespace("db")
    catalog.rename_view("db.v", "db.t")
    assert catalog.load_view("db.t").metadata.location == view.metadata.location


def test_what_is_not_there(catalog: Catalog) -> None:
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_view("no.v", SCHEMA, version("x"))
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_views("no")
    view = made_view(catalog)
    for call in (
        lambda: catalog.load_view("db.no"),
        lambda: catalog.drop_view("db.no"),
        lambda: catalog.rename_view("db.no", "db.b"),
        lambda: catalog.rename_view("db.no", "db.no"),
        lambda: catalog.commit_view("db.no", (), ()),
    ):
        with pytest.raises(NoSuchViewError):
            call()
    with pytest.raises(NoSuchNamespaceError):
        catalog.rename_view("db.v", "no.v")
    catalog.rename_view("db.v", "db.v")
    # A server says that what it is asked for is wrong, or that it failed.
    table = made_table(catalog, "db.t").metadata_location
    with pytest.raises((InvalidMetadataError, ValidationError)):
        catalog.register_view("db.x", table)
    Path(view.metadata_location.removeprefix("file:")).unlink()
    with pytest.raises((MissingFileError, StorageError)):
        catalog.load_view("db.v")
    catalog.drop_view("db.v")


def test_requirements_and_properties(catalog: Catalog) -> None:
    view = made_view(catalog, a="1", b="2")
    files = files_of(view)
    with pytest.raises(CommitFailedError, match="uuid"):
        catalog.commit_view("db.v", [AssertViewUUID("other")], [SetProperties({"a": "b"})])
    assert files_of(view) == files
    own = AssertViewUUID(view.metadata.view_uuid)
    changes = [SetProperties({"c": "3"}), RemoveProperties(("a",))]
    changed = catalog.commit_view("db.v", [own], changes).metadata
    assert changed.properties == {"b": "2", "c": "3"}
    assert changed.current_version == view.metadata.current_version
    with pytest.raises(ValidationError, match="SQL for spark"):
        catalog.commit_view("db.v", (), replacing_updates(SCHEMA, version("x", "trino")))
    assert catalog.load_view("db.v").metadata == changed


NAMES = ["a.b", "ä ö", "it's", 'quo"te', "sl/ash", "per%2Fcent", "plus+", "tables"]


def test_odd_names_and_pages(catalog: Catalog) -> None:
    """A server answers with two names a page."""
    for levels in ("db", "n", "n.s"):
        catalog.create_namespace(levels)
    names = [("n", "s", name) for name in NAMES]
    for name in names:
        catalog.create_view(name, SCHEMA, version(name[-1]), location=place_of(catalog, "db.v"))
    assert catalog.list_views("n.s") == sorted(names)
    for name in names:
        assert sql_of(catalog.load_view(name)) == name[-1]
        catalog.rename_view(name, ("db", f"{name[-1]}2"))
        assert not catalog.view_exists(name)
        catalog.drop_view(("db", f"{name[-1]}2"))
    assert catalog.list_views("db") == catalog.list_views("n.s") == []


def test_concurrent_replacements_all_count(catalog: Catalog) -> None:
    """Every property of every writer is there at the end."""
    made_view(catalog)
    writers, commits = 4, 10

    def write(number: int) -> None:
        with closing(opened(catalog.properties)) as own:
            for commit in range(commits):
                while True:
                    try:
                        done = SetProperties({f"w{number}.{commit}": "done"})
                        new = replacing_updates(SCHEMA, version(f"SELECT {number} * {commit} AS a"))
                        own.commit_view("db.v", (), (done, *new))
                        break
                    except CommitFailedError:
                        continue

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    metadata = catalog.load_view("db.v").metadata
    assert len(metadata.properties) == writers * commits
    assert len(metadata.versions) == 10


def test_of_two_creators_one_wins(catalog: Catalog) -> None:
    catalog.create_namespace("db")

    def make(_: int) -> str:
        with closing(opened(catalog.properties)) as own:
            try:
                made_view(own)
            except ViewAlreadyExistsError:
                return "taken"
            return "made"

    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(make, range(4)))
    assert sorted(ends) == ["made", "taken", "taken", "taken"]
    assert len(files_of(catalog.load_view("db.v"))) == 1


def test_folders_have_no_views(tmp_path: Path) -> None:
    catalog = opened(properties_of("filesystem", tmp_path))
    catalog.create_namespace("db")
    assert not catalog.can(Capability.VIEWS)
    assert not catalog.view_exists("db.v")
    refused(catalog, "filesystem catalog lake has no views")


# -- as rows of a database: lost answers, older databases, PyIceberg beside them -------------------


def test_a_stale_writer_loses_and_leaves_nothing(sql: SqlCatalog) -> None:
    view = made_view(sql)
    replaced(sql, "SELECT 2 AS a")
    files = files_of(view)
    with pytest.raises(CommitFailedError, match="first"):
        replaced(sql, "SELECT 3 AS a", base=view)
    with pytest.raises(CommitFailedError, match="uuid"):
        sql.commit_view("db.v", [AssertViewUUID("other")], [SetProperties({"a": "b"})])
    assert files_of(view) == files


@pytest.mark.parametrize("committed", [True, False])
def test_a_lost_answer_while_others_replace(sql: SqlCatalog, committed: bool) -> None:
    """Another's two replacements follow before the catalog is asked what became of ours."""
    made_view(sql, **QUICK_CHECKS)
    other = opened(sql.properties)
    real = sql._view_took_place

    def later(base: LoadedView | None, view: LoadedView) -> bool | None:
        for number in (7, 8):
            replaced(other, f"SELECT {number} AS a")
        return real(base, view)

    sql._view_took_place = later  # type: ignore[method-assign]
    break_commit(sql, committed=committed)
    if committed:
        replaced(sql, "SELECT 2 AS a")
        assert len(other.load_view("db.v").metadata.versions) == 4
    else:
        with pytest.raises(CommitFailedError):
            replaced(sql, "SELECT 2 AS a")
        assert len(other.load_view("db.v").metadata.versions) == 3
    other.close()


def test_pyiceberg_beside_views(tmp_path: Path) -> None:
    """PyIceberg knows the format, and its SQL catalog takes no view for a table."""
    catalog = opened(properties_of("sqlite", tmp_path))
    made_view(catalog, comment="one")
    made_table(catalog, "db.t")
    metadata = replaced(catalog, "SELECT 2 AS a").metadata
    theirs = PyIcebergView.model_validate_json(view_metadata_to_bytes(metadata))
    assert theirs.versions[1].representations[0].root.sql == "SELECT 2 AS a"
    assert parse_view_metadata(theirs.model_dump_json(by_alias=True).encode()) == metadata
    other = peer(tmp_path)
    assert other.list_tables("db") == [("db", "t")]
    assert not other.table_exists("db.v")


def test_the_older_schema_has_no_views(tmp_path: Path) -> None:
    """As JdbcCatalog: rows of V0 have no type, and V1 is asked for by name."""
    v0_database(tmp_path)
    catalog = opened(properties_of("sqlite", tmp_path))
    catalog.create_namespace("db")
    assert not catalog.can(Capability.VIEWS)
    assert not catalog.view_exists("db.v")
    refused(catalog, r"jdbc\.schema-version")
    newer = opened({**properties_of("sqlite", tmp_path), "jdbc.schema-version": "V1"})
    assert newer.can(Capability.VIEWS)
    made_view(newer)
    assert "iceberg_type" in columns(tmp_path)
