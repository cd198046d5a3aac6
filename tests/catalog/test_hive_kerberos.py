"""What a Hive catalog says where Kerberos is asked for, and here is none or another name."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from socket import create_server, socket
from types import ModuleType

import pytest
from catalog_cases import opened

from frazil.catalog.outcome import Sending
from frazil.errors import AccessDeniedError, ConfigurationError

pytest.importorskip("thrift")
pytest.importorskip("pymetastore")

from frazil.catalog.pointer.hive.connection import Metastores, UnansweredError
from frazil.catalog.pointer.hive.settings import ConnectionSettings

KERBEROS = {"type": "hive", "uri": "thrift://127.0.0.1:1", "hive.kerberos-authentication": "true"}


@pytest.mark.parametrize("missing", [("puresasl", "puresasl.client"), ("kerberos",)])
def test_kerberos_without_its_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...]
) -> None:
    if missing == ("kerberos",):
        monkeypatch.setitem(sys.modules, "puresasl.client", ModuleType("puresasl.client"))
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    told = pytest.raises(ConfigurationError, match=rf"{missing[0]}.*frazil\[hive-kerberos\]")
    with closing(opened({**KERBEROS, "warehouse": str(tmp_path)})) as catalog, told:
        catalog.list_namespaces()


def test_a_ticket_and_a_name_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="remove ugi"):
        opened({**KERBEROS, "warehouse": str(tmp_path), "ugi": "eve"})


def refuses(asked: socket) -> None:
    """Answer as a metastore that wants a login."""
    asked.recv(1000)
    asked.sendall(b"\x03\0\0\0\0")


def falls_silent(asked: socket) -> None:
    """Take the call, and end the connection."""
    asked.recv(1000)


def change_at(sending: Sending, *answers: Callable[[socket], None]) -> None:
    """Make a change at a metastore that answers one connection after the other."""
    with create_server(("127.0.0.1", 0)) as server:
        uri = f"thrift://127.0.0.1:{server.getsockname()[1]}"

        def serve() -> None:
            for answer in answers:
                with server.accept()[0] as asked:
                    answer(asked)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        metastores = Metastores("lake", ConnectionSettings.from_properties("lake", {"uri": uri}))
        with closing(metastores):
            metastores.change(lambda client: client.drop_database("a", False, False), sending)


def test_a_change_that_is_refused_at_once_was_not_made() -> None:
    sending = Sending()
    with pytest.raises(AccessDeniedError, match="wants a login"):
        change_at(sending, refuses)
    assert not sending.is_begun


def test_what_another_connection_says_refutes_no_change() -> None:
    sending = Sending()
    with pytest.raises(UnansweredError, match="wants a login"):
        change_at(sending, falls_silent, refuses)
    assert sending.is_begun


def test_a_refusal_says_nothing_of_an_earlier_try() -> None:
    sending = Sending(is_begun=True)
    with pytest.raises(AccessDeniedError):
        change_at(sending, refuses)
    assert sending.is_begun
