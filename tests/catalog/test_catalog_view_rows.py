"""Views as rows of a database: answers that are lost, older databases, PyIceberg beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from catalog_cases import made_table, opened, properties_of
from pyiceberg.view.metadata import ViewMetadata as PyIcebergView
from test_catalog_faults import QUICK_CHECKS, break_commit, silent
from test_catalog_peers import columns, peer, v0_database
from view_cases import files_of, made_view, refused, replaced, sql_of

from frazil.catalog.pointer.sql import SqlCatalog
from frazil.catalog.protocol import Capability, LoadedView
from frazil.errors import CommitFailedError, CommitStateUnknownError
from frazil.format.changes import SetProperties
from frazil.format.views import (
    AssertViewUUID,
    parse_view_metadata,
    view_metadata_to_bytes,
)


@pytest.fixture(params=["sqlite", "postgres"])
def sql(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlCatalog]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    catalog = opened(properties_of(request.param, tmp_path, url))
    assert isinstance(catalog, SqlCatalog)
    yield catalog
    catalog.close()


def test_a_stale_writer_loses_and_leaves_nothing(sql: SqlCatalog) -> None:
    view = made_view(sql)
    replaced(sql, "SELECT 2 AS a")
    files = files_of(view)
    with pytest.raises(CommitFailedError, match="first"):
        replaced(sql, "SELECT 3 AS a", base=view)
    with pytest.raises(CommitFailedError, match="uuid"):
        sql.commit_view("db.v", [AssertViewUUID("other")], [SetProperties({"a": "b"})])
    assert files_of(view) == files


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
