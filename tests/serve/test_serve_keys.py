"""Idempotency keys: a request that is sent again changes nothing, and is answered as the first."""

from __future__ import annotations

import shutil
import sqlite3
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from serve_cases import SCHEMA as TWO_COLUMNS
from serve_cases import SQL, VERSION, namespace, running, sql_catalog, table, tokens_of, view

from ci_share import one_of_each
from frazil.catalog.config import load_catalog
from frazil.catalog.protocol import Catalog
from frazil.serve.endpoints import ENDPOINTS
from frazil.serve.server import ServeSettings
from frazil.storage.paths import local_path

T = "/v1/namespaces/a/tables/t"
TABLE = {"namespace": ["a"], "name": "t"}
KEYED = {"Idempotency-Key": "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"}
Opening = Callable[[], Catalog]


def prepare(client: httpx.Client) -> None:
    namespace(client, "a", k="0")
    namespace(client, "empty")
    for name in ("t", "other"):
        assert table(client, "a", name).status_code == 200
    assert view(client).status_code == 200


def updates(value: str) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {"p": value}}]}


def location(client: httpx.Client) -> str:
    return str(client.get(T).json()["metadata-location"])


def state(client: httpx.Client) -> object:
    """All that changes of the cases could change."""
    names = client.get("/v1/namespaces").json()["namespaces"]
    listed = client.get("/v1/namespaces/a/tables").json()["identifiers"]
    tables = [client.get(f"/v1/namespaces/a/tables/{each['name']}").json() for each in listed]
    views = client.get("/v1/namespaces/a/views").json()["identifiers"]
    made = [client.get(f"/v1/namespaces/a/views/{each['name']}").json() for each in views]
    return names, listed, tables, views, made, client.get("/v1/namespaces/a").json()


@dataclass(frozen=True)
class Case:
    """A change, and a change that undoes it or leads on."""

    endpoint: str
    send: Callable[[httpx.Client, dict[str, str]], httpx.Response]
    later: Callable[[httpx.Client], httpx.Response]


def _post(url: str, body: object) -> Callable[[httpx.Client, dict[str, str]], httpx.Response]:
    return lambda client, headers: client.post(url, json=body, headers=headers)


def _delete(url: str) -> Callable[[httpx.Client, dict[str, str]], httpx.Response]:
    return lambda client, headers: client.delete(url, headers=headers)


SCHEMA = {"type": "struct", "fields": []}
CASES = {
    "create namespace": Case(
        "POST namespaces",
        _post("/v1/namespaces", {"namespace": ["new"], "properties": {"x": "1"}}),
        lambda c: c.delete("/v1/namespaces/new"),
    ),
    "drop namespace": Case(
        "DELETE namespaces/{namespace}",
        _delete("/v1/namespaces/empty"),
        lambda c: c.post("/v1/namespaces", json={"namespace": ["empty"]}),
    ),
    "properties": Case(
        "POST namespaces/{namespace}/properties",
        _post("/v1/namespaces/a/properties", {"updates": {"k": "1"}, "removals": ["none"]}),
        lambda c: c.post("/v1/namespaces/a/properties", json={"updates": {"k": "2"}}),
    ),
    "create": Case(
        "POST namespaces/{namespace}/tables",
        _post("/v1/namespaces/a/tables", {"name": "new", "schema": SCHEMA}),
        lambda c: c.delete("/v1/namespaces/a/tables/new"),
    ),
    "commit": Case(
        "POST namespaces/{namespace}/tables/{table}",
        _post(T, updates("1")),
        lambda c: c.post(T, json=updates("2")),
    ),
    "drop": Case(
        "DELETE namespaces/{namespace}/tables/{table}",
        _delete(f"{T}?purgeRequested=true"),
        lambda c: table(c, "a", "t"),
    ),
    "register": Case(
        "POST namespaces/{namespace}/register",
        lambda c, headers: c.post(
            "/v1/namespaces/a/register",
            json={"name": "reg", "metadata-location": location(c)},
            headers=headers,
        ),
        lambda c: c.delete("/v1/namespaces/a/tables/reg"),
    ),
    "rename": Case(
        "POST tables/rename",
        _post("/v1/tables/rename", {"source": TABLE, "destination": {**TABLE, "name": "r"}}),
        lambda c: table(c, "a", "t"),
    ),
    "several": Case(
        "POST transactions/commit",
        _post(
            "/v1/transactions/commit",
            {"table-changes": [{"identifier": TABLE, **updates("1")}]},
        ),
        lambda c: c.post(T, json=updates("2")),
    ),
}

VIEW = "/v1/namespaces/a/views/v"


NEW_VIEW = {"name": "new", "schema": TWO_COLUMNS, "view-version": VERSION, "properties": {}}


def replacement(sql: str) -> dict[str, Any]:
    version = {**VERSION, "version-id": 2, "representations": [{**SQL, "sql": sql}]}
    return {
        "requirements": [],
        "updates": [
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
        ],
    }


def view_location(client: httpx.Client) -> str:
    return str(client.get(VIEW).json()["metadata-location"])


CASES |= {
    "create view": Case(
        "POST namespaces/{namespace}/views",
        _post("/v1/namespaces/a/views", NEW_VIEW),
        lambda c: c.delete("/v1/namespaces/a/views/new"),
    ),
    "replace view": Case(
        "POST namespaces/{namespace}/views/{view}",
        _post(VIEW, replacement("select 2 as x")),
        lambda c: c.post(VIEW, json=replacement("select 3 as x")),
    ),
    "drop view": Case(
        "DELETE namespaces/{namespace}/views/{view}",
        _delete(VIEW),
        view,
    ),
    "register view": Case(
        "POST namespaces/{namespace}/register-view",
        lambda c, headers: c.post(
            "/v1/namespaces/a/register-view",
            json={"name": "reg", "metadata-location": view_location(c)},
            headers=headers,
        ),
        lambda c: c.delete("/v1/namespaces/a/views/reg"),
    ),
    "rename view": Case(
        "POST views/rename",
        _post(
            "/v1/views/rename",
            {"source": {**TABLE, "name": "v"}, "destination": {**TABLE, "name": "w"}},
        ),
        view,
    ),
}


def test_every_endpoint_that_changes_something_has_a_case() -> None:
    changing = {f"{each.method} {each.template}" for each in ENDPOINTS if each.changes}
    assert changing == {each.endpoint for each in CASES.values()}


@pytest.mark.parametrize(
    ("opening", "name", "restarted"),
    one_of_each(["sqlite", "postgres"], CASES, [False, True], test=4),
    indirect=["opening"],
)
def test_a_request_that_comes_again_changes_nothing(
    opening: Opening, name: str, restarted: bool
) -> None:
    case = CASES[name]
    with running(opening()) as server, server.client() as client:
        prepare(client)
        first = case.send(client, KEYED)
        assert first.is_success
        if not restarted:
            again = case.send(client, KEYED)
            assert (again.status_code, again.content) == (first.status_code, first.content)
            assert case.later(client).is_success
            before = state(client)
            last = case.send(client, KEYED)
            assert (last.status_code, last.content) == (first.status_code, first.content)
            assert state(client) == before
            server.check_exchanges()
            return
    with running(opening()) as server, server.client() as client:
        again = case.send(client, KEYED)
        assert again.status_code == first.status_code
        if case.endpoint.endswith("properties"):
            assert again.json()["updated"] == first.json()["updated"]
        else:
            assert again.content == first.content
        server.check_exchanges()
    with running(opening()) as server, server.client() as client:
        assert case.later(client).is_success
        before = state(client)
        # What was made may be gone: then no answer lets the client believe that it never was.
        last = case.send(client, KEYED)
        assert last.status_code in (first.status_code, 500)
        assert last.is_success or last.json()["error"]["type"] == "CommitStateUnknownException"
        assert state(client) == before
        server.check_exchanges()


@pytest.mark.parametrize("restarted", [False, True])
def test_a_key_is_of_one_request(opening: Opening, restarted: bool) -> None:
    def refused(client: httpx.Client) -> None:
        for path, body in ((T, updates("2")), ("/v1/namespaces/a/tables/other", updates("1"))):
            again = client.post(path, json=body, headers=KEYED)
            assert (again.status_code, again.json()["error"]["type"]) == (
                400,
                "BadRequestException",
            )
            assert "another request" in again.json()["error"]["message"]
        assert client.get(T).json()["metadata"]["properties"]["p"] == "1"

    with running(opening()) as server, server.client() as client:
        prepare(client)
        assert client.post(T, json=updates("1"), headers=KEYED).status_code == 200
        if not restarted:
            refused(client)
    if restarted:
        with running(opening()) as server, server.client() as client:
            refused(client)


def test_a_key_is_of_one_client(tmp_path: Path) -> None:
    names = ("one-token-of-a-client", "another-token-of-one")
    lines = (f"  - {{name: {each}, token: {each}, write: ['*']}}" for each in names)
    tokens = tokens_of(tmp_path, "\n".join(["tokens:", *lines]))
    with running(sql_catalog(tmp_path), tokens=tokens) as server:
        with server.client(names[0]) as client:
            prepare(client)
            assert client.post(T, json=updates("1"), headers=KEYED).status_code == 200
        with server.client(names[1]) as client:
            assert client.post(T, json=updates("1"), headers=KEYED).status_code == 400


def test_a_refusal_is_final_and_a_failure_is_not(opening: Opening) -> None:
    with running(opening()) as server, server.client() as client:
        prepare(client)
        create = CASES["create"]
        assert table(client, "a", "new").status_code == 200
        assert create.send(client, KEYED).status_code == 409
        assert create.later(client).status_code == 204
        again = create.send(client, KEYED)
        assert (again.status_code, again.json()["error"]["type"]) == (409, "AlreadyExistsException")
        path = local_path(location(client))
        assert path is not None
        shutil.move(path, path + ".away")
        other = {"Idempotency-Key": str(uuid.uuid4())}
        assert client.post(T, json=updates("1"), headers=other).status_code == 500
        shutil.move(path + ".away", path)
        assert client.post(T, json=updates("1"), headers=other).status_code == 200


@pytest.mark.parametrize("key", ["", "1", "g" * 36, "017f22e279b07cc398c4dc0c0c07398f", "x" * 999])
def test_a_key_that_is_none(tmp_path: Path, key: str) -> None:
    with running(sql_catalog(tmp_path)) as server, server.client() as client:
        prepare(client)
        answer = client.post(T, json=updates("1"), headers={"Idempotency-Key": key})
        assert answer.status_code == 400
        assert "p" not in client.get(T).json()["metadata"]["properties"]
        assert client.get(T, headers={"Idempotency-Key": key}).status_code == 200


def _create(number: int) -> tuple[str, dict[str, Any]]:
    return "/v1/namespaces/a/tables", {"name": f"n{number}", "schema": SCHEMA}


def _add_column(number: int) -> tuple[str, dict[str, Any]]:
    """A commit that fails where it took place already."""
    fields = [
        {"id": each, "name": f"c{each}", "required": False, "type": "long"}
        for each in range(3, number + 4)
    ]
    schema = {**TWO_COLUMNS, "fields": [*TWO_COLUMNS["fields"], *fields]}
    return T, {
        "requirements": [
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": number + 2}
        ],
        "updates": [
            {"action": "add-schema", "schema": schema},
            {"action": "set-current-schema", "schema-id": -1},
        ],
    }


@pytest.mark.parametrize(("request_of", "servers"), one_of_each([_create, _add_column], [1, 2]))
def test_twins_at_the_same_time(
    opening: Opening, request_of: Callable[[int], tuple[str, dict[str, Any]]], servers: int
) -> None:
    with ExitStack() as stack:
        all_servers = [stack.enter_context(running(opening())) for _ in range(servers)]
        clients = [stack.enter_context(each.client()) for each in all_servers]
        prepare(clients[0])
        for number in range(3):
            url, body = request_of(number)
            key = {"Idempotency-Key": str(uuid.uuid4())}
            asks = [partial(each.post, url, json=body, headers=key) for each in clients]
            with ThreadPoolExecutor(6) as pool:
                answers = list(pool.map(lambda ask: ask(), asks * (6 // servers)))
            assert {each.status_code for each in answers} == {200}
            assert len({each.json()["metadata-location"] for each in answers}) == 1
            other = clients[0].post(url, json=body, headers={"Idempotency-Key": str(uuid.uuid4())})
            assert other.status_code == 409


def _lifetime(catalog: Catalog, **settings: Any) -> str | None:
    with running(catalog, ServeSettings(**settings)) as server, server.client() as client:
        found: str | None = client.get("/v1/config").json().get("idempotency-key-lifetime")
        server.check_exchanges()
        return found


def test_clients_are_told_of_keys_that_outlive_the_server(opening: Opening, tmp_path: Path) -> None:
    assert _lifetime(opening()) == "PT30M"
    assert _lifetime(opening(), key_minutes=5) == "PT5M"
    assert _lifetime(opening(), read_only=True) is None
    folder = load_catalog("lake", type="filesystem", warehouse=str(tmp_path / "folder"))
    assert _lifetime(folder) is None


def test_a_folder_knows_keys_while_the_server_runs(tmp_path: Path) -> None:
    folder = load_catalog("lake", type="filesystem", warehouse=str(tmp_path))
    with running(folder) as server, server.client() as client:
        namespace(client, "a")
        table(client, "a", "t")
        for _ in range(2):
            assert CASES["drop"].send(client, KEYED).status_code == 204
            assert table(client, "a", "t").status_code in (200, 409)
        assert client.head(T).status_code == 204


def test_old_notes_are_removed(opening: Opening) -> None:
    catalog = opening()
    log = catalog.request_log()
    assert log is not None
    catalog.create_namespace("a")
    with log.noting_request("k", "d"):
        catalog.update_namespace_properties("a", updates={"p": "1"})
    assert log.digest_of("k") == "d"
    log.forget(older_than_seconds=60)
    assert log.digest_of("k") == "d"
    log.forget(older_than_seconds=-1)
    assert log.digest_of("k") is None


def test_a_database_that_lets_no_table_be_made(tmp_path: Path) -> None:
    with running(sql_catalog(tmp_path)) as server, server.client() as client:
        prepare(client)
    with sqlite3.connect(next(tmp_path.glob("*.db"))) as database:
        database.execute("DROP TABLE frazil_requests")
    catalog = sql_catalog(tmp_path, init_catalog_tables="false")
    assert _lifetime(catalog) is None
