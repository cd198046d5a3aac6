"""Frazil's client and PyIceberg's do the same: the same requests, or fewer of Frazil's."""

from __future__ import annotations

from pathlib import Path

import pytest
from exchange_cases import FrazilClient, PyIcebergClient, exchanges_of, requests_of
from serve_cases import namespace, running, sql_catalog

TABLES = "namespaces/db/tables"
WANTED = {
    "connect_and_list": ["GET config", f"GET {TABLES}"],
    "create": [f"POST {TABLES}"],
    "load": [f"GET {TABLES}/{{table}}"],
    "append": [f"GET {TABLES}/{{table}}", f"POST {TABLES}/{{table}}"],
    "append_again": [f"GET {TABLES}/{{table}}", f"POST {TABLES}/{{table}}"],
    "load_unchanged": [f"GET {TABLES}/{{table}}"],
    "transaction": [f"GET {TABLES}/{{table}}", f"POST {TABLES}/{{table}}"],
    "rename": ["POST tables/rename"],
    "drop": [f"DELETE {TABLES}/{{table}}"],
}
"""Of Frazil; a table that has not changed is answered without its metadata."""


def test_the_same_requests_or_fewer(tmp_path: Path) -> None:
    with running(sql_catalog(tmp_path)) as server:
        with server.client() as client:
            namespace(client, "db")
        ours = requests_of(server.recorder.exchanges, FrazilClient(server.uri))
        theirs = requests_of(server.recorder.exchanges, PyIcebergClient(server.uri))
    assert ours == WANTED
    for operation, requests in ours.items():
        assert len(requests) <= len(theirs[operation]), (operation, theirs[operation])


@pytest.mark.parametrize("client", [FrazilClient, PyIcebergClient])
def test_every_request_and_answer_is_of_the_protocol(
    tmp_path: Path, client: type[FrazilClient] | type[PyIcebergClient]
) -> None:
    with running(sql_catalog(tmp_path)) as server:
        with server.client() as plain:
            namespace(plain, "db")
        exchanges_of(server.recorder.exchanges, client(server.uri))
    for each in server.recorder.exchanges:
        each.check_request()
        each.check()
