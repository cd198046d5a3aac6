"""Snapshots through a server: made once, whatever is lost on the way, and no request too many."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from rest_cases import QUICK_CHECKS
from table_cases import as_if_by_others, data_file, make_table, names

from frazil.catalog.rest.catalog import RestCatalog
from frazil.errors import CommitStateUnknownError
from frazil.planning.plan import plan
from frazil.table.handle import TableHandle
from frazil.table.snapshots.append import FastAppend
from rest_server import Fault, Server

Connect = Callable[..., RestCatalog]
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
