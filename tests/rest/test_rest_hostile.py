"""Servers that lie, logins that end in the middle, and clocks that differ."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from catalog_cases import made_table, set_properties
from rest_cases import QUICK_CHECKS

from frazil.catalog.rest.catalog import RestCatalog
from frazil.catalog.rest.exchange import transport
from frazil.catalog.rest.files.credentials import VendedFileIO, ends_of
from frazil.errors import (
    AccessDeniedError,
    CommitStateUnknownError,
    ConfigurationError,
    FrazilError,
    StorageError,
)
from frazil.storage.stores.remote_options import StorageCredential
from rest_server import Fault, Server

Connect = Callable[..., RestCatalog]


# -- logins that end -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "took_place"), [(401, False), (403, False), (419, False), (403, True)]
)
@pytest.mark.parametrize("keyed", [True, False])
def test_a_login_that_ends_after_a_lost_answer(
    server: Server, connect: Connect, status: int, took_place: bool, keyed: bool
) -> None:
    """The refusal is of the second request: the first one may still be at work, or be seen."""
    if keyed:
        server.config["idempotency-key-lifetime"] = "PT30M"
    catalog = connect()
    made_table(catalog, **QUICK_CHECKS)
    server.faults = [
        Fault(ends="/t", status=503, headers={"Retry-After": "0"}, after=took_place),
        Fault(ends="/t", status=status),
    ]
    if took_place:
        assert set_properties(catalog, "db.t", a="1").metadata.properties["a"] == "1"
        return
    with pytest.raises(CommitStateUnknownError, match="no file was deleted"):
        set_properties(catalog, "db.t", a="1")


# -- what a server configures --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["defaults", "overrides"])
def test_a_server_chooses_no_code(
    server: Server, connect: Connect, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_the_server.py").write_text("class Login: pass")
    monkeypatch.syspath_prepend(str(tmp_path))
    server.config[kind] = {
        **server.config[kind], "auth.type": "custom", "auth.impl": "of_the_server.Login",
    }  # fmt: skip
    assert connect(token="mine").list_namespaces() == []
    assert "of_the_server" not in sys.modules
    assert server.exchanges[-1].headers["authorization"] == "Bearer mine"


# -- tokens --------------------------------------------------------------------------------------

UNSENDABLE = ["t0ken-s3cr3t\nX-Other: 1", "t0ken-s3cr3t\x00", "t0ken s3cr3t", "t0ken-s3cr3t\r"]


@pytest.mark.parametrize("token", UNSENDABLE)
def test_a_token_that_cannot_be_sent_is_not_shown(
    server: Server, connect: Connect, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.grants = lambda _: (200, {"access_token": token, "token_type": "bearer"})
    with pytest.raises(StorageError) as caught:
        connect(credential="me:mine")
    assert "s3cr3t" not in str(caught.value) + caplog.text


@pytest.mark.parametrize("token", UNSENDABLE)
def test_a_tables_token_that_cannot_be_sent_is_not_shown(
    server: Server, connect: Connect, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    catalog = connect()
    made_table(catalog)
    server.table = {"config": {"token": token}}
    with pytest.raises(CommitStateUnknownError, match="took place") as unknown:
        set_properties(catalog, "db.t", a="1")
    assert "s3cr3t" not in str(unknown.value)
    with pytest.raises(StorageError) as caught:
        connect().load_table("db.t")
    assert "s3cr3t" not in str(caught.value) + caplog.text


@pytest.mark.parametrize("lives", [10**400, "soon", -1, True, [], 1e999, float("nan")])
def test_lifetimes_that_are_none(server: Server, connect: Connect, lives: Any) -> None:
    told = {"access_token": "t1", "token_type": "bearer", "expires_in": lives}
    server.grants = lambda _: (200, told)
    catalog = connect(credential="me:mine")
    assert catalog.list_namespaces() == []
    assert server.exchanges[-1].headers["authorization"] == "Bearer t1"


# -- clocks --------------------------------------------------------------------------------------


def test_a_clock_that_is_fast_asks_no_more_than_needed(caplog: pytest.LogCaptureFixture) -> None:
    """By such a clock all credentials have ended, also those that are new."""
    asked: list[int] = []

    def renew() -> list[StorageCredential]:
        asked.append(1)
        return [credential(f"s3cr3t-{len(asked)}")]

    def credential(key: str) -> StorageCredential:
        ended = int(time.time() * 1000) - 7_200_000
        return StorageCredential("s3://b", {"s3.secret-access-key": key}, ended)

    io = VendedFileIO({}, [credential("s3cr3t-0")], location="s3://b/t", renew=renew)
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            io._io_for("s3://b/x")
    assert len(asked) <= 1
    assert "s3cr3t" not in caplog.text


def test_a_clock_that_is_fast_loads_no_more_than_needed(server: Server, connect: Connect) -> None:
    ended = str(int(time.time() * 1000) - 7_200_000)
    config = {"s3.access-key-id": "AK", "s3.session-token-expires-at-ms": ended}
    server.table = {"storage-credentials": [{"prefix": "s3", "config": config}]}
    catalog = connect()
    made_table(catalog)
    for _ in range(3):
        catalog.load_table("db.t")
    assert [each.status for each in server.exchanges[-2:]] == [304, 304]


@pytest.mark.parametrize("ends", ["9" * 5000, "٣", "²", "-1", "soon", ""])
def test_ends_that_are_none(ends: str) -> None:
    assert (
        ends_of({"s3.session-token-expires-at-ms": ends, "gcs.oauth2.token-expires-at": "7"}) == 7
    )


@pytest.mark.parametrize("hours", [-3, 3])
def test_ends_are_by_the_servers_clock(server: Server, connect: Connect, hours: int) -> None:
    """The server's answers say what time it is there."""
    server.clock = -hours * 3600
    ends = str(int((time.time() + server.clock + 1800) * 1000))
    config = {"s3.access-key-id": "AK", "s3.session-token-expires-at-ms": ends}
    server.table = {"storage-credentials": [{"prefix": "s3", "config": config}]}
    catalog = connect()
    made_table(catalog)
    io = catalog.load_table("db.t").io
    assert isinstance(io, VendedFileIO)
    assert io.ends_ms is not None
    assert abs(io.ends_ms / 1000 - time.time() - 1800) < 120


# -- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("keyed", [True, False])
def test_an_answer_without_end_is_not_asked_for_again(
    server: Server, connect: Connect, keyed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if keyed:
        server.config["idempotency-key-lifetime"] = "PT30M"
    catalog = connect()
    made_table(catalog, **QUICK_CHECKS)
    server.table = {"more": "x" * 50_000}
    server.etags = False
    monkeypatch.setattr(transport, "_LARGEST_ANSWER", 20_000)
    server.exchanges.clear()
    with pytest.raises(StorageError, match="longer than 20000 bytes"):
        connect().load_table("db.t")
    assert [each.method for each in server.exchanges] == ["GET", "GET"]
    server.exchanges.clear()
    with pytest.raises(CommitStateUnknownError, match="no file was deleted"):
        set_properties(catalog, "db.t", a="1")
    assert [each.method for each in server.exchanges].count("POST") == 1
    server.table = {}
    assert catalog.load_table("db.t").metadata.properties["a"] == "1"


def test_a_server_that_says_what_cannot_be(server: Server, connect: Connect) -> None:
    catalog = connect()
    made_table(catalog)
    for headers in ({"ETag": "\x7f\x01"}, {"Retry-After": "9" * 400}, {"Retry-After": "-5"}):
        server.faults = [Fault("GET", ends="/t", status=503, headers=headers)]
        if headers.get("Retry-After", "").startswith("9"):
            with pytest.raises(StorageError, match="not available"):
                catalog.load_table("db.t")
        else:
            assert catalog.load_table("db.t").metadata.table_uuid


def test_names_of_endpoints_that_are_none(server: Server, connect: Connect) -> None:
    server.names_endpoints = False
    for named in ([1, None, {}, "", "GET", "GET /v1 /v2"], "GET /v1/{prefix}/namespaces", {}):
        server.config["endpoints"] = named
        catalog = connect()
        with pytest.raises((FrazilError, AccessDeniedError)):
            catalog.unregister_table("db.t")


def test_configurations_that_are_none(server: Server, connect: Connect) -> None:
    for name, value in [("overrides", [1]), ("defaults", "x"), ("overrides", {"uri": "file:///x"})]:
        kept = server.config[name]
        server.config[name] = value
        with pytest.raises((StorageError, ConfigurationError)):
            connect()
        server.config[name] = kept
