"""Answers that are lost, late or wrong: nothing is done twice, lost, or called by a wrong name."""

from __future__ import annotations

import json
import os
import pickle
import time
from collections.abc import Callable
from typing import Any

import pytest
from catalog_cases import made_table, new_metadata, opened, set_properties
from rest_cases import QUICK_CHECKS
from test_rest_views import CHANGES as VIEW_CHANGES
from view_cases import made_view

from ci_share import one_of_each, only_in_check
from frazil.catalog.protocol import TableCommit
from frazil.catalog.rest.catalog import RestCatalog
from frazil.errors import (
    AccessDeniedError,
    CommitFailedError,
    CommitStateUnknownError,
    FrazilError,
    NoSuchTableError,
    OutdatedUpdateError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)
from frazil.format.changes import AssertTableUUID, SetProperties
from programs import forked
from rest_server import Fault, Server

Connect = Callable[..., RestCatalog]
LOST = [Fault(status=None), *(Fault(status=each) for each in (500, 502, 503, 504))]


def changed(catalog: RestCatalog) -> str | None:
    return catalog.load_table("db.t").metadata.properties.get("a")


def lose(server: Server, fault: Fault, **how: Any) -> None:
    server.faults = [Fault(**{**fault.__dict__, **how})]
    server.exchanges.clear()


def posts(server: Server) -> int:
    return sum(each.method != "GET" and each.method != "HEAD" for each in server.exchanges)


@pytest.mark.parametrize("fault", LOST, ids=lambda each: each.status)
@pytest.mark.parametrize("after", [True, False])
def test_a_commit_without_an_answer_is_looked_for(
    server: Server, connect: Connect, fault: Fault, after: bool
) -> None:
    catalog = connect()
    made_table(catalog, **QUICK_CHECKS)
    lose(server, fault, after=after)
    if after:
        assert set_properties(catalog, "db.t", a="1") == catalog.load_table("db.t")
    else:
        with pytest.raises(CommitStateUnknownError, match="no file was deleted"):
            set_properties(catalog, "db.t", a="1")
    assert changed(catalog) == ("1" if after else None)
    assert posts(server) == 1


@pytest.mark.parametrize("retries", [0, only_in_check(2)])
def test_a_lost_answer_is_looked_for_once_and_as_often_again(
    server: Server, connect: Connect, retries: int
) -> None:
    catalog = connect()
    checks = {**QUICK_CHECKS, "commit.status-check.num-retries": str(retries)}
    made_table(catalog, **checks)
    lose(server, Fault(status=502), after=True)
    assert set_properties(catalog, "db.t", a="1").metadata.properties["a"] == "1"
    # Another value, which the server never has.
    lose(server, Fault(status=502))
    with pytest.raises(CommitStateUnknownError):
        set_properties(catalog, "db.t", a="2")
    methods = [each.method for each in server.exchanges]
    assert methods[methods.index("POST") + 1 :] == ["GET"] * (retries + 1)


@pytest.mark.parametrize(("fault", "after"), one_of_each(LOST, (False, True)))
def test_with_a_key_the_same_commit_is_sent_again(
    server: Server, connect: Connect, fault: Fault, after: bool
) -> None:
    # This server does not know keys, and properties may be set twice: both requests hold one key.
    server.config["idempotency-key-lifetime"] = "PT30M"
    catalog = connect()
    made_table(catalog, **QUICK_CHECKS)
    lose(server, fault, after=after)
    assert set_properties(catalog, "db.t", a="1").metadata.properties["a"] == "1"
    keys = {e.headers["idempotency-key"] for e in server.exchanges if e.method == "POST"}
    assert len(keys) == 1
    assert posts(server) == 2


def test_503_is_sent_again_where_the_server_says_so(server: Server, connect: Connect) -> None:
    catalog = connect()
    table = made_table(catalog, **QUICK_CHECKS)
    uuid = AssertTableUUID(table.metadata.table_uuid or "")
    for status in (503, 429):
        lose(server, Fault(status=status, headers={"Retry-After": "0"}, times=2))
        change = (SetProperties({"a": str(status)}),)
        made = catalog.commit_table("db.t", (uuid,), change)
        assert made.metadata.properties["a"] == str(status)
        assert posts(server) == 3


def test_a_refusal_of_what_was_sent_again_may_be_of_our_own(
    server: Server, connect: Connect
) -> None:
    catalog = connect()
    catalog.create_namespace("db")
    staged = catalog.stage_table("db.t", new_metadata(catalog, "db.t", **QUICK_CHECKS))
    lose(server, Fault(ends="/t", status=503, headers={"Retry-After": "0"}, after=True))
    assert catalog.create_staged_table(staged) == catalog.load_table("db.t")
    assert posts(server) == 2
    with pytest.raises(TableAlreadyExistsError):
        catalog.stage_table("db.t", new_metadata(catalog, "db.t"))
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_staged_table(
            type(staged)(
                staged.identifier,
                staged.metadata,
                staged.io,
                updates=_with_another_uuid(staged.updates),
            )
        )


def _with_another_uuid(updates: Any) -> Any:
    return tuple(
        type(each)("00000000-0000-0000-0000-000000000001") if each.action == "assign-uuid" else each
        for each in updates
    )


CHANGES: dict[str, tuple[Callable[[RestCatalog], Any], Callable[[RestCatalog], bool]]] = {
    "create namespace": (
        lambda c: c.create_namespace("new", {"k": "v"}),
        lambda c: c.namespace_exists("new"),
    ),
    "properties": (
        lambda c: c.update_namespace_properties("db", updates={"k": "v"}),
        lambda c: "k" in c.load_namespace_properties("db"),
    ),
    "drop namespace": (
        lambda c: c.drop_namespace("empty"),
        lambda c: not c.namespace_exists("empty"),
    ),
    "create": (
        lambda c: c.create_table("db.n", new_metadata(c, "db.n")),
        lambda c: c.table_exists("db.n"),
    ),
    "rename": (lambda c: c.rename_table("db.t", "db.r"), lambda c: c.table_exists("db.r")),
    "drop": (lambda c: c.drop_table("db.t"), lambda c: not c.table_exists("db.t")),
    "purge": (lambda c: c.purge_table("db.t"), lambda c: not c.table_exists("db.t")),
    "unregister": (lambda c: c.unregister_table("db.t"), lambda c: not c.table_exists("db.t")),
    "register": (
        lambda c: c.register_table("db.g", c.load_table("db.t").metadata_location),
        lambda c: c.table_exists("db.g"),
    ),
    "several": (
        lambda c: c.commit_tables([TableCommit(("db", "t"), (), (SetProperties({"a": "1"}),))]),
        lambda c: changed(c) == "1",
    ),
}


CHANGES |= VIEW_CHANGES


@pytest.mark.parametrize(("change", "after"), one_of_each(CHANGES, [False, True]))
def test_every_change_without_an_answer(
    server: Server, connect: Connect, change: str, after: bool
) -> None:
    catalog = connect()
    made_table(catalog)
    made_view(catalog)
    catalog.create_namespace("empty")
    make, is_made = CHANGES[change]
    server.faults = [Fault(method, status=None, after=after) for method in ("POST", "DELETE")]
    if after:
        made = make(catalog)
        if change.endswith("view"):
            assert made is None or made == catalog.load_view(made.identifier)
    else:
        with pytest.raises(CommitStateUnknownError):
            make(catalog)
    assert is_made(catalog) is after


@pytest.mark.parametrize("fault", [Fault(status=each) for each in (None, 429, 502, 503, 504)])
def test_reads_are_sent_again(server: Server, connect: Connect, fault: Fault) -> None:
    catalog = connect()
    table = made_table(catalog)
    lose(server, fault, method="GET", times=2, headers={"Retry-After": "0"})
    assert catalog.load_table("db.t") == table
    assert len(server.exchanges) == 3
    catalog = connect(**{"rest.client.max-retries": "1"})
    lose(server, fault, method="GET", times=2)
    with pytest.raises(StorageError, match=r"load the table db\.t"):
        catalog.load_table("db.t")


REFUSALS: list[tuple[int, str, str, type[FrazilError]]] = [
    (400, "BadRequestException", "x", ValidationError),
    (400, "ValidationException", "older than last sequence number 3", OutdatedUpdateError),
    (401, "NotAuthorizedException", "x", AccessDeniedError),
    (403, "ForbiddenException", "x", AccessDeniedError),
    (404, "NoSuchTableException", "x", NoSuchTableError),
    (404, "", "x", NoSuchTableError),
    (406, "UnsupportedOperationException", "x", UnsupportedError),
    (409, "CommitFailedException", "x", CommitFailedError),
    (419, "AuthenticationTimeoutException", "x", AccessDeniedError),
    (422, "UnprocessableEntityException", "x", ValidationError),
    (501, "NotImplemented", "x", UnsupportedError),
]


@pytest.mark.parametrize(("status", "kind", "text", "error"), REFUSALS)
def test_refusals_are_typed(
    server: Server,
    connect: Connect,
    status: int,
    kind: str,
    text: str,
    error: type[FrazilError],
) -> None:
    catalog = connect(token="s3cr3t-token", **{"header.X-Api-Token": "s3cr3t-header"})
    made_table(catalog)
    said = f"{text}\x1b[31m\nsaid s3cr3t-token and s3cr3t-header {'long ' * 500}"
    content = json.dumps({"error": {"message": said, "type": kind, "code": status}}).encode()
    server.faults = [Fault(status=status, content=content)]
    with pytest.raises(error, match="commit to the table") as caught:
        set_properties(catalog, "db.t", a="1")
    assert type(caught.value) is error
    shown = str(caught.value)
    assert shown.isprintable()
    assert len(shown) < 700
    assert "s3cr3t" not in shown + repr(catalog)
    server.faults = [Fault(status=status, content=b"<html>\xff" + b"x" * 100)]
    with pytest.raises(FrazilError, match=str(status)):
        set_properties(catalog, "db.t", a="1")


BROKEN = [b"", b"[]", b"{", b'{"metadata": {}}', b'{"metadata-location": "x", "metadata": {}}']


@pytest.mark.parametrize("content", BROKEN)
def test_broken_answers(server: Server, connect: Connect, content: bytes) -> None:
    catalog = connect()
    made_table(catalog)
    server.faults = [Fault("GET", status=201, content=content)]
    with pytest.raises(FrazilError):
        catalog.load_table("db.t")
    # What took place is no failure, though its answer cannot be read.
    server.faults = [Fault(status=201, content=content, after=True)]
    assert set_properties(catalog, "db.t", a="1").metadata.properties["a"] == "1"


def test_redirects(server: Server, connect: Connect) -> None:
    catalog = connect()
    table = made_table(catalog)
    there = {"location": "/v1/main/namespaces/db/tables/t"}
    server.faults = [Fault("GET", status=307, headers=there)]
    assert catalog.load_table("db.t") == table
    server.faults = [Fault(status=308, headers=there)]
    assert set_properties(catalog, "db.t", a="1").metadata.properties["a"] == "1"
    for method in ("GET", "POST"):
        server.faults = [Fault(method, status=307, headers={"location": "http://127.0.0.2:1/x"})]
        with pytest.raises(StorageError, match="another origin"):
            (catalog.load_table if method == "GET" else set_properties_of(catalog))("db.t")
    server.faults = [Fault("GET", status=302, headers=there | {"location": "x"}, times=99)]
    with pytest.raises(StorageError, match="redirects more than"):
        catalog.load_table("db.t")


def set_properties_of(catalog: RestCatalog) -> Callable[[str], object]:
    return lambda name: set_properties(catalog, name, b="1")


def test_a_server_that_is_slow_or_away(server: Server, connect: Connect) -> None:
    catalog = connect(**{"rest.client.socket-timeout-ms": "300", "rest.client.max-retries": "0"})
    made_table(catalog, **QUICK_CHECKS)
    server.faults = [Fault("GET", status=200, delay=3.0, after=True)]
    started = time.monotonic()
    with pytest.raises(StorageError, match="no answer came"):
        catalog.load_table("db.t")
    assert time.monotonic() - started < 2.9
    time.sleep(1)
    server.faults = [Fault(status=200, delay=1.0, after=True), Fault("GET", status=503, times=2)]
    with pytest.raises(CommitStateUnknownError):
        set_properties(catalog, "db.t", a="1")
    time.sleep(1)
    assert changed(catalog) == "1"
    away = {"uri": "http://127.0.0.1:9", "rest.client.max-retries": "0"}
    with pytest.raises(StorageError, match="cannot be reached"):
        opened(away)


def test_a_forked_child_has_connections_of_its_own(server: Server, connect: Connect) -> None:
    catalog = connect()
    made_table(catalog)
    child = forked(lambda: set_properties(catalog, "db.t", a="1"))
    for _ in range(20):
        catalog.load_table("db.t")
    assert os.waitpid(child, 0)[1] == 0
    assert changed(catalog) == "1"
    with pytest.raises(UnsupportedError, match="cannot be pickled"):
        pickle.dumps(catalog)
