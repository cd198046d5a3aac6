"""What is sent: by the protocol's own description, no more than needed, names as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from catalog_cases import SCHEMA, made_table, new_metadata, set_properties
from rest_cases import QUICK_CHECKS, as_served
from table_cases import as_if_by_others, data_file, make_table, names
from view_cases import version

from frazil.catalog.protocol import Capability, LoadedView, TableCommit
from frazil.catalog.rest.catalog import RestCatalog
from frazil.catalog.rest.reports import ScanReport
from frazil.errors import (
    CommitFailedError,
    CommitStateUnknownError,
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
from frazil.planning.plan import plan
from frazil.table.handle import TableHandle
from frazil.table.snapshots.append import FastAppend
from rest_server import Fault, Server

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


# -- snapshots: made once, whatever is lost on the way ---------------------------------------------

A, B = data_file("a"), data_file("b", "tue")


def made(catalog: RestCatalog, version: int = 2) -> TableHandle:
    """A table of days."""
    return make_table(catalog, version=version, properties=QUICK_CHECKS)


def sent(server: Server) -> list[str]:
    """Methods and statuses of the requests since the last call."""
    found = [f"{each.method} {each.status}" for each in server.exchanges]
    server.exchanges.clear()
    return found


def test_two_requests_a_warm_append_and_one_a_plan(server: Server, connect: Connect) -> None:
    table = made(connect())
    table.files.append([A])
    sent(server)
    table.files.append([B])
    assert sent(server) == ["GET 304", "POST 200"]
    plan(table.refresh().metadata, table.current_snapshot, table.port.io)
    assert sent(server) == ["GET 304"]


def test_a_command_that_has_just_looked_does_not_look_again(
    server: Server, connect: Connect
) -> None:
    table, rival = made(connect()), TableHandle(connect(), connect().load_table("db.t"))
    port = table.port

    def command(name: str) -> list[str]:
        port.newest()
        sent(server)
        port.run(FastAppend(table.io, [data_file(name)]))
        return sent(server)

    assert command("a") == ["POST 200"]
    port.newest()
    rival.files.append([B])
    as_if_by_others(table)
    sent(server)
    port.run(FastAppend(table.io, [data_file("c")]))
    assert sent(server) == ["POST 409", "GET 200", "POST 200"]
    # Where others change the table, a first try starts from what is newest.
    assert command("d") == ["GET 304", "POST 200"]
    port._careful_until = 0.0
    assert command("e") == ["POST 200"]
    # One look is for one commit of rows.
    port.newest()
    sent(server)
    table.create_branch("audit")
    port.run(FastAppend(table.io, [data_file("f")]))
    assert sent(server) == ["GET 304", "POST 200", "GET 304", "POST 200"]
    assert names(table.refresh()) == ["a", "b", "c", "d", "e", "f"]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("after", [False, True])
def test_an_append_whose_answer_is_lost(
    server: Server, connect: Connect, version: int, after: bool
) -> None:
    table = made(connect(), version)
    server.faults = [Fault(status=None, after=after)]
    if after:
        table.files.append([A])
    else:
        with pytest.raises(CommitStateUnknownError):
            table.files.append([A])
        table.files.append([B])
    assert names(table.refresh()) == (["a"] if after else ["b"])


def test_an_append_that_another_overtook_is_made_again(server: Server, connect: Connect) -> None:
    table, other = made(connect()), connect()

    def overtake() -> None:
        TableHandle(other, other.load_table("db.t")).files.append([B])

    # Nothing of it took place, and its sequence number is another's now: it never will.
    server.faults = [Fault(status=502, do=overtake)]
    table.files.append([A])
    assert sorted(names(table.refresh())) == ["a", "b"]


def test_an_append_that_was_made_and_built_upon(server: Server, connect: Connect) -> None:
    table, other = made(connect()), connect()
    server.faults = [Fault(status=504, after=True), Fault("GET", status=503, times=1)]
    table.files.append([A])
    TableHandle(other, other.load_table("db.t")).files.append([B])
    assert sorted(names(table.refresh())) == ["a", "b"]


def test_a_new_schema_is_sent_under_an_id_of_its_own(server: Server, connect: Connect) -> None:
    """Nessie refuses one that another schema of the table has, as Java sends none."""
    table = made(connect())
    for name, number in (("more", 1), ("again", 2)):
        with table.update_schema() as change:
            change.add_column(name, "int")
        first = json.loads(server.exchanges[-1].body)["updates"][0]
        assert (first["action"], first["schema"]["schema-id"]) == ("add-schema", number)
        assert table.metadata.current_schema_id == number
