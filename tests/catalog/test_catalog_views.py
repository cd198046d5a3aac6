"""Views in the catalogs: their life, their names beside tables', writers, answers that are lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from catalog_cases import made_table, new_metadata, opened, properties_of
from pyiceberg.view.metadata import ViewMetadata as PyIcebergView
from test_catalog_faults import QUICK_CHECKS, break_commit, silent
from test_catalog_peers import columns, peer, v0_database

from frazil.catalog.pointer.sql import SqlCatalog
from frazil.catalog.protocol import Capability, Catalog, LoadedView
from frazil.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    FrazilError,
    InvalidMetadataError,
    MissingFileError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    UnsupportedError,
    ViewAlreadyExistsError,
)
from frazil.format.changes import LAST_ADDED, SetProperties
from frazil.format.schema import Schema
from frazil.format.types import IntegerType, NestedField
from frazil.format.views import (
    AssertViewUUID,
    SqlRepresentation,
    ViewVersion,
    parse_view_metadata,
    replacing_updates,
    view_metadata_to_bytes,
)

SCHEMA = Schema((NestedField(1, "a", IntegerType()),))


def version(sql: str) -> ViewVersion:
    return ViewVersion(1, LAST_ADDED, 1000, {}, (SqlRepresentation(sql, "spark"),), ("db",))


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


@pytest.fixture(params=["sqlite", "postgres"])
def sql(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlCatalog]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    catalog = opened(properties_of(request.param, tmp_path, url))
    assert isinstance(catalog, SqlCatalog)
    yield catalog
    catalog.close()


def test_a_view_lives(sql: SqlCatalog) -> None:
    assert sql.can(Capability.VIEWS)
    view = made_view(sql, comment="one")
    assert sql.load_view("db.v") == view
    assert view.metadata.location.endswith("/wh/db/v")
    name = view.metadata_location.rpartition("/")[2]
    assert name.startswith("00000-")
    assert name.endswith(".gz.metadata.json")
    changed = replaced(sql, "SELECT 2 AS a")
    assert changed.metadata_location.rpartition("/")[2].startswith("00001-")
    assert sql_of(sql.load_view("db.v")) == "SELECT 2 AS a"
    assert replaced(sql, "SELECT 2 AS a") == changed
    plain = sql.commit_view(
        "db.v", (), [SetProperties({"write.metadata.compression-codec": "none"})]
    )
    assert plain.metadata_location.endswith(plain.metadata_location[-50:].rpartition("-")[2])
    assert ".gz." not in plain.metadata_location
    assert sql.list_views("db") == [("db", "v")]
    sql.drop_view("db.v")
    assert not sql.view_exists("db.v")
    again = sql.register_view("db.w", changed.metadata_location)
    assert again.metadata == changed.metadata


def test_names_are_shared_with_tables(sql: SqlCatalog) -> None:
    made_view(sql)
    made_table(sql, "db.t")
    with pytest.raises(ViewAlreadyExistsError, match=r"db\.t"):
        made_view(sql, "db.t")
    with pytest.raises(ViewAlreadyExistsError):
        made_view(sql)
    with pytest.raises(TableAlreadyExistsError, match="a view of that name"):
        sql.create_table("db.v", new_metadata(sql, "db.v"))
    with pytest.raises(TableAlreadyExistsError):
        sql.rename_table("db.t", "db.v")
    with pytest.raises(ViewAlreadyExistsError):
        sql.rename_view("db.v", "db.t")
    for call in (sql.load_table, sql.drop_table):
        with pytest.raises(NoSuchTableError, match=r"db\.v is a view"):
            call("db.v")
    for change in (sql.load_view, sql.drop_view):
        with pytest.raises(NoSuchViewError):
            change("db.t")
    assert sql.list_tables("db") == [("db", "t")]
    assert sql.list_views("db") == [("db", "v")]
    assert not sql.table_exists("db.v")
    assert not sql.view_exists("db.t")
    sql.drop_table("db.t")
    with pytest.raises(NamespaceNotEmptyError, match="v"):
        sql.drop_namespace("db")
    sql.rename_view("db.v", "db.t")
    assert sql.load_view("db.t").metadata.location.endswith("/db/v")


def test_what_is_not_there(sql: SqlCatalog) -> None:
    with pytest.raises(NoSuchNamespaceError):
        sql.create_view("no.v", SCHEMA, version("x"))
    with pytest.raises(NoSuchNamespaceError):
        sql.list_views("no")
    view = made_view(sql)
    for call in (
        lambda: sql.load_view("db.no"),
        lambda: sql.drop_view("db.no"),
        lambda: sql.rename_view("db.no", "db.b"),
        lambda: sql.rename_view("db.no", "db.no"),
        lambda: sql.commit_view("db.no", (), ()),
    ):
        with pytest.raises(NoSuchViewError):
            call()
    with pytest.raises(NoSuchNamespaceError):
        sql.rename_view("db.v", "no.v")
    sql.rename_view("db.v", "db.v")
    with pytest.raises(InvalidMetadataError):
        sql.register_view("db.x", made_table(sql, "db.t").metadata_location)
    Path(view.metadata_location.removeprefix("file:")).unlink()
    with pytest.raises(MissingFileError):
        sql.load_view("db.v")
    sql.drop_view("db.v")


def test_a_stale_writer_loses_and_leaves_nothing(sql: SqlCatalog) -> None:
    view = made_view(sql)
    replaced(sql, "SELECT 2 AS a")
    files = files_of(view)
    with pytest.raises(CommitFailedError, match="first"):
        replaced(sql, "SELECT 3 AS a", base=view)
    with pytest.raises(CommitFailedError, match="uuid"):
        sql.commit_view("db.v", [AssertViewUUID("other")], [SetProperties({"a": "b"})])
    assert files_of(view) == files


def test_concurrent_replacements_all_count(sql: SqlCatalog) -> None:
    """Eight writers, each of whose 25 properties is there at the end."""
    made_view(sql)
    lost: list[BaseException] = []

    def write(number: int) -> None:
        catalog = opened(sql.properties)
        try:
            for commit in range(25):
                while True:
                    try:
                        done = SetProperties({f"w{number}.{commit}": "done"})
                        new = replacing_updates(SCHEMA, version(f"SELECT {number} * {commit} AS a"))
                        catalog.commit_view("db.v", (), (done, *new))
                        break
                    except CommitFailedError:
                        continue
        except BaseException as error:
            lost.append(error)
        finally:
            catalog.close()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert not lost
    metadata = sql.load_view("db.v").metadata
    assert len(metadata.properties) == 8 * 25
    assert len(metadata.versions) == 10


def test_of_two_creators_one_wins(sql: SqlCatalog) -> None:
    sql.create_namespace("db")
    ends: list[str] = []

    def make() -> None:
        catalog = opened(sql.properties)
        try:
            made_view(catalog)
            ends.append("made")
        except ViewAlreadyExistsError:
            ends.append("taken")
        finally:
            catalog.close()

    makers = [threading.Thread(target=make) for _ in range(4)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert sorted(ends) == ["made", "taken", "taken", "taken"]
    assert len(files_of(sql.load_view("db.v"))) == 1


def test_an_answer_lost_after_the_commit(sql: SqlCatalog) -> None:
    sql.create_namespace("db")
    break_commit(sql, committed=True)
    view = made_view(sql, **QUICK_CHECKS)
    assert sql.load_view("db.v") == view
    break_commit(sql, committed=True)
    assert replaced(sql, "SELECT 2 AS a") == sql.load_view("db.v")
    break_commit(sql, committed=True)
    sql.rename_view("db.v", "db.w")
    break_commit(sql, committed=True)
    sql.drop_view("db.w")
    assert sql.list_views("db") == []


def test_an_answer_lost_before_the_commit(sql: SqlCatalog) -> None:
    sql.create_namespace("db")
    break_commit(sql, committed=False)
    with pytest.raises(CommitFailedError):
        made_view(sql, **QUICK_CHECKS)
    view = made_view(sql, **QUICK_CHECKS)
    assert len(files_of(view)) == 1
    for change in (
        lambda: replaced(sql, "SELECT 2 AS a"),
        lambda: sql.rename_view("db.v", "db.w"),
        lambda: sql.drop_view("db.v"),
    ):
        break_commit(sql, committed=False)
        with pytest.raises(CommitFailedError):
            change()
        assert sql.load_view("db.v") == view
    assert len(files_of(view)) == 1


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


def test_no_answer_can_be_had(sql: SqlCatalog) -> None:
    view = made_view(sql, **QUICK_CHECKS)
    break_commit(sql, committed=True)
    with silent(sql), pytest.raises(CommitStateUnknownError, match="no file was"):
        replaced(sql, "SELECT 2 AS a")
    assert len(files_of(view)) == 2
    assert sql_of(sql.load_view("db.v")) == "SELECT 2 AS a"


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


def test_folders_have_no_views(tmp_path: Path) -> None:
    catalog = opened(properties_of("filesystem", tmp_path))
    catalog.create_namespace("db")
    assert not catalog.can(Capability.VIEWS)
    assert not catalog.view_exists("db.v")
    refused(catalog, "filesystem catalog lake has no views")


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
