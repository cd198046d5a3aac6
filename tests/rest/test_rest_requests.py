"""What is sent: by the protocol's own description, no more than needed, names as they are."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from catalog_cases import SCHEMA, made_table, new_metadata, set_properties
from rest_cases import as_served
from view_cases import version

from frazil.catalog.protocol import Capability, LoadedView, TableCommit
from frazil.catalog.rest.catalog import RestCatalog
from frazil.catalog.rest.reports import ScanReport
from frazil.errors import (
    CommitFailedError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)
from frazil.format.changes import AssertCreate, AssertTableUUID, RemoveProperties, SetProperties
from frazil.format.new_table import creation_updates, new_table_metadata
from frazil.format.partitions.partitioning import spec_for
from frazil.format.sorting import order_for
from frazil.format.views import AssertViewUUID, replacing_updates
from frazil.table.handle import TableHandle
from rest_server import Server

Connect = Callable[..., RestCatalog]


def methods(server: Server) -> list[str]:
    """The requests since the last call, without the prefix."""
    found = [f"{each.method} {each.path.removeprefix('/v1/main/')}" for each in server.exchanges]
    server.exchanges.clear()
    return found


def test_every_request_of_a_run_is_of_the_protocol(server: Server, connect: Connect) -> None:
    server.config["idempotency-key-lifetime"] = "PT30M"
    catalog = connect(**{"rest-page-size": "1", "rest-metrics-reporting-enabled": "true"})
    catalog.create_namespace("a.b", {"k": "v"})
    catalog.create_namespace("c")
    catalog.update_namespace_properties("a.b", updates={"k": "w"}, removals=["x"])
    assert catalog.load_namespace_properties("a.b") == {"k": "w"}
    assert catalog.list_namespaces() == [("a",), ("c",)]
    assert catalog.list_namespaces("a") == [("a", "b")]
    spec = spec_for(SCHEMA, ["s"])
    metadata = new_table_metadata(
        SCHEMA, spec, order_for(SCHEMA, ["id"]), location=catalog.default_table_location("a.b.t")
    )
    catalog.create_table("a.b.t", metadata)
    handle = TableHandle(catalog, catalog.load_table("a.b.t"))
    handle.set_properties({"a": "1"})
    staged = catalog.stage_table("c.s", new_metadata(catalog, "c.s"))
    made = catalog.create_staged_table(staged)
    changes = (SetProperties({"z": "1"}),)
    uuids = [catalog.load_table(name).metadata.table_uuid or "" for name in ("a.b.t", "c.s")]
    catalog.commit_tables(
        [
            TableCommit(("a", "b", "t"), (AssertTableUUID(uuids[0]),), changes),
            TableCommit(("c", "s"), (AssertTableUUID(uuids[1]),), changes),
        ]
    )
    assert catalog.load_table("c.s").metadata.properties["z"] == "1"
    scan: Any = SimpleNamespace(
        report=lambda name: ScanReport(table_name=name, snapshot_id=1, schema_id=0)
    )
    catalog.report_scan("c.s", scan)
    catalog.rename_table("c.s", "c.r")
    location = catalog.unregister_table("c.r")
    assert (
        catalog.register_table("c.again", location).metadata.table_uuid == made.metadata.table_uuid
    )
    assert catalog.list_tables("c") == [("c", "again")]
    catalog.drop_table("c.again")
    catalog.purge_table("a.b.t")
    view = make_and_change_views(catalog)
    catalog.register_view("c.w", view.metadata_location)
    assert catalog.list_views("c") == [("c", "w")]
    catalog.drop_view("c.w")
    catalog.drop_namespace("c")
    assert not catalog.namespace_exists("c")
    catalog.close()
    kinds = {f"{each.method} {each.path.rpartition('/')[2]}" for each in server.exchanges}
    assert len(kinds) > 25
    for each in server.exchanges:
        as_served(each).check_request()
        as_served(each).check()
        if each.method in ("POST", "DELETE") and b'stage-create": true' not in each.body:
            assert each.headers["idempotency-key"][14] == "7"


def make_and_change_views(catalog: RestCatalog) -> LoadedView:
    """The views of `c` made, replaced, renamed, read and dropped; the last of them."""
    catalog.create_view("c.v", SCHEMA, version("SELECT 1"), properties={"comment": "one"})
    wanted = AssertViewUUID(catalog.load_view("c.v").metadata.view_uuid)
    changes = replacing_updates(SCHEMA, version("SELECT 2"), properties={"k": "v"})
    changed = catalog.commit_view("c.v", (wanted,), changes)
    catalog.commit_view("c.v", (), (SetProperties({"a": "1"}), RemoveProperties(("k",))))
    catalog.rename_view("c.v", "a.b.v")
    assert catalog.list_views("c") == []
    assert catalog.view_exists("a.b.v")
    catalog.drop_view("a.b.v")
    assert not catalog.view_exists("a.b.v")
    return changed


def test_no_more_requests_than_needed(server: Server, connect: Connect) -> None:
    catalog = connect()
    table = TableHandle(catalog, made_table(catalog))
    methods(server)
    table.set_properties({"a": "1"})
    assert methods(server) == ["GET namespaces/db/tables/t", "POST namespaces/db/tables/t"]
    before = table.refresh().metadata
    assert [each.status for each in server.exchanges] == [304]
    assert table.refresh().metadata is before
    assert catalog.table_exists("db.t")
    assert methods(server)[-1] == "HEAD namespaces/db/tables/t"
    other = connect()
    set_properties(other, "db.t", b="2")
    assert table.refresh().properties["b"] == "2"
    assert server.exchanges[-1].status == 200
    catalog.caches.clear()
    methods(server)
    catalog.load_table("db.t")
    assert server.exchanges[-1].status == 200


def test_a_server_without_etags_or_endpoints(server: Server, connect: Connect) -> None:
    server.etags, server.names_endpoints = False, False
    catalog = connect()
    loaded = made_table(catalog)
    assert catalog.load_table("db.t").metadata is loaded.metadata
    assert catalog.table_exists("db.t")
    assert not catalog.table_exists("db.u")
    assert catalog.namespace_exists("db")
    assert not any(each.method == "HEAD" for each in server.exchanges)
    with pytest.raises(UnsupportedError, match="unregister"):
        catalog.unregister_table("db.t")
    assert catalog.can(Capability.MULTI_TABLE_COMMITS)
    server.names_endpoints = True
    del server.routes["POST transactions/commit"]
    with pytest.raises(UnsupportedError, match="transactions/commit"):
        connect().commit_tables([TableCommit(("db", "t"), (), (SetProperties({"z": "1"}),))])
    assert not connect().can(Capability.MULTI_TABLE_COMMITS)


NAMES = ["a.b", "a/b", "a%2Fb", "a b", "a+b", "ä✓", "a?b#c", "..", "a%1Fb", "a&b=c", "*~", "'\""]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_kept(server: Server, connect: Connect, name: str) -> None:
    catalog = connect()
    # The catalog behind the server has no dots in namespaces.
    namespace = ("top", name.replace(".", "_"))
    catalog.create_namespace(namespace)
    location = f"file://{server.catalog.properties['warehouse']}/own"
    catalog.create_table((*namespace, name), new_table_metadata(SCHEMA, location=location))
    assert catalog.list_namespaces("top") == [namespace]
    assert catalog.list_tables(namespace) == [(*namespace, name)]
    assert catalog.load_table((*namespace, name)).identifier == (*namespace, name)
    assert catalog.table_exists((*namespace, name))
    assert set_properties(catalog, (*namespace, name), a="1").metadata.properties["a"] == "1"


def test_another_separator(server: Server, connect: Connect) -> None:
    server.config["overrides"]["namespace-separator"] = "%2E"
    catalog = connect()
    with pytest.raises(ValidationError, match="separator"):
        catalog.namespace_exists(("a.b",))
    assert not catalog.namespace_exists("a.b")
    assert server.exchanges[-1].path == "/v1/main/namespaces/a.b"


def test_commits_of_several_tables_are_all_or_none(server: Server, connect: Connect) -> None:
    catalog = connect()
    tables = [made_table(catalog, name) for name in ("db.a", "db.b")]
    uuid = AssertTableUUID(tables[0].metadata.table_uuid or "")
    changes = (SetProperties({"z": "1"}),)
    with pytest.raises(CommitFailedError):
        catalog.commit_tables(
            [
                TableCommit(("db", "a"), (uuid,), changes),
                TableCommit(("db", "b"), (AssertTableUUID("no"),), changes),
            ]
        )
    assert [catalog.load_table(each.identifier) for each in tables] == tables
    with pytest.raises(NoSuchTableError):
        catalog.commit_tables([TableCommit(("db", "c"), (), changes)])
    with pytest.raises(ValidationError, match="twice"):
        catalog.commit_tables([TableCommit(("db", "a"), (), changes)] * 2)
    made = creation_updates(new_metadata(catalog, "db.b"))
    with pytest.raises(TableAlreadyExistsError, match=r"db\.b"):
        catalog.commit_tables(
            [
                TableCommit(("db", "a"), (uuid,), changes),
                TableCommit(("db", "b"), (AssertCreate(),), tuple(made)),
            ]
        )
    assert [catalog.load_table(each.identifier) for each in tables] == tables


def test_pages_that_never_end(server: Server, connect: Connect) -> None:
    catalog = connect()
    server.routes["GET namespaces"] = lambda _: {"namespaces": [["a"]], "next-page-token": "x"}
    with pytest.raises(StorageError, match="repeats its pages"):
        catalog.list_namespaces()
