"""Views on every endpoint: answers of the specification, tokens of namespaces, places of files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyiceberg.catalog.rest import RestCatalog as PyIcebergRest
from pyiceberg.exceptions import NoSuchViewError as PyIcebergNoSuchViewError
from pyiceberg.exceptions import ViewAlreadyExistsError as PyIcebergViewExistsError
from pyiceberg.schema import Schema as PyIcebergSchema
from pyiceberg.types import LongType, NestedField
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion
from serve_cases import (
    SQL,
    VERSION,
    Running,
    namespace,
    running,
    sql_catalog,
    table,
    view,
)

from frazil.catalog.config import load_catalog
from frazil.serve.rights.access import read_tokens
from frazil.serve.settings import ServeSettings

OWNER, SALES, READER = (f"{name}-0123456789abcdef" for name in ("own", "sal", "rd"))
TOKEN_FILE = f"""
tokens:
  - {{name: owner, token: {OWNER}, write: ["*"]}}
  - {{name: sales, token: {SALES}, write: [sales]}}
  - {{name: reader, token: {READER}, read: [sales, hr]}}
"""
URL = "/v1/namespaces/a/views"
VIEW = f"{URL}/v"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(sql_catalog(tmp_path)) as server:
        yield server
        server.check_exchanges()


@pytest.fixture
def client(server: Running) -> Iterator[httpx.Client]:
    with server.client() as client:
        namespace(client, "a")
        yield client


def commit(client: httpx.Client, *updates: dict[str, Any], **more: Any) -> httpx.Response:
    return client.post(VIEW, json={"updates": list(updates), **more})


def setting(key: str, value: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": {key: value}}


def told(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["type"]


def test_refusals(client: httpx.Client) -> None:
    view(client)
    table(client, "a", "t")
    taken = (409, "AlreadyExistsException")
    assert told(view(client)) == told(view(client, name="t")) == taken
    assert told(table(client, "a", "v")) == taken
    assert told(table(client, "a", "v", **{"stage-create": True})) == taken
    for old, new, kind in (("v", "t", "views"), ("t", "v", "tables")):
        names = [{"namespace": ["a"], "name": name} for name in (old, new)]
        body = {"source": names[0], "destination": names[1]}
        assert told(client.post(f"/v1/{kind}/rename", json=body)) == taken
    assert told(client.delete("/v1/namespaces/a")) == (409, "NamespaceNotEmptyException")
    assert told(view(client, "none")) == (404, "NoSuchNamespaceException")
    assert told(client.get("/v1/namespaces/none/views")) == (404, "NoSuchNamespaceException")
    for path in (f"{URL}/t", f"{URL}/none"):
        assert client.head(path).status_code == 404
        assert told(client.get(path)) == told(client.delete(path)) == (404, "NoSuchViewException")
        assert told(client.post(path, json={"updates": []})) == (404, "NoSuchViewException")
    assert told(client.get("/v1/namespaces/a/tables/v")) == (404, "NoSuchTableException")
    wrong = {"type": "assert-view-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}
    lost = commit(client, setting("k", "v"), requirements=[wrong])
    assert told(lost) == (409, "CommitFailedException")
    bad = "BadRequestException"
    none = {"action": "set-current-view-version", "view-version-id": 9}
    for updates, more, kind in (
        ([setting("k", "v")], {"identifier": {"namespace": ["a"], "name": "w"}}, bad),
        ([{"action": "be-nice"}], {}, "UnsupportedOperationException"),
        ([{"action": "set-statistics"}], {}, bad),
        ([none], {}, bad),
        ([setting("k", "v")], {"requirements": [{"type": "x"}]}, "UnsupportedOperationException"),
        ([setting("version.history.num-entries", "x")], {}, bad),
    ):
        assert told(commit(client, *updates, **more)) == (400, kind), updates
    assert client.get(VIEW).json()["metadata"]["properties"] == {}


FORMS: list[dict[str, Any]] = [
    {**VERSION, "representations": []},
    {**VERSION, "representations": [SQL, SQL]},
    {**VERSION, "representations": [{"type": "tree", "tree": {}}]},
    {**VERSION, "representations": [{**SQL, "sql": 3}]},
    {key: each for key, each in VERSION.items() if key != "timestamp-ms"},
]


@pytest.mark.parametrize("form", range(len(FORMS)))
def test_versions_that_are_refused(client: httpx.Client, form: int) -> None:
    refused = view(client, **{"view-version": FORMS[form]})
    assert refused.status_code == 400, refused.text
    assert client.head(VIEW).status_code == 404
    view(client)
    added = {"action": "add-view-version", "view-version": FORMS[form]}
    assert commit(client, added).status_code == 400
    assert client.get(VIEW).json()["metadata"]["versions"] == [VERSION]


def test_the_list_of_endpoints(tmp_path: Path) -> None:
    views = {
        "GET /v1/{prefix}/namespaces/{namespace}/views",
        "GET /v1/{prefix}/namespaces/{namespace}/views/{view}",
        "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}",
    }
    changes = {
        "POST /v1/{prefix}/namespaces/{namespace}/views",
        "POST /v1/{prefix}/namespaces/{namespace}/views/{view}",
        "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}",
        "POST /v1/{prefix}/namespaces/{namespace}/register-view",
        "POST /v1/{prefix}/views/rename",
    }
    folders = load_catalog("lake", type="filesystem", warehouse=str(tmp_path / "f"))
    for catalog, settings, wanted in (
        (sql_catalog(tmp_path), ServeSettings(), views | changes),
        (sql_catalog(tmp_path), ServeSettings(read_only=True), views),
        (folders, ServeSettings(), set()),
    ):
        with running(catalog, settings) as server, server.client() as client:
            offered = client.get("/v1/config").json()["endpoints"]
            assert {each for each in offered if "view" in each} == wanted
            server.check_exchanges()


def test_a_catalog_without_views(tmp_path: Path) -> None:
    catalog = load_catalog("lake", type="filesystem", warehouse=str(tmp_path))
    with running(catalog) as server, server.client() as client:
        namespace(client, "a")
        for answer in (client.get(URL), view(client), client.get(VIEW), commit(client)):
            assert told(answer) == (400, "UnsupportedOperationException")
        assert client.head(VIEW).status_code == 404
        server.check_exchanges()


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Running]:
    """A server with tokens, and a view in each of three namespaces."""
    file = tmp_path / "tokens.yaml"
    file.write_text(TOKEN_FILE)
    with running(sql_catalog(tmp_path / "lake"), tokens=read_tokens(file)) as server:
        with server.client(OWNER) as owner:
            for levels in ("sales", "hr", "pay"):
                namespace(owner, levels)
                assert view(owner, levels).status_code == 200
        yield server
        server.check_exchanges()


def _changes(levels: str) -> Iterator[tuple[str, str, Any]]:
    url = f"/v1/namespaces/{levels}"
    here, there = ({"namespace": [each], "name": "v"} for each in (levels, "sales"))
    yield "POST", f"{url}/views", {"name": "n"}
    yield "POST", f"{url}/views/v", {"updates": []}
    yield "DELETE", f"{url}/views/v", None
    yield "POST", f"{url}/register-view", {"name": "n", "metadata-location": "x"}
    yield "POST", "/v1/views/rename", {"source": here, "destination": there}
    yield "POST", "/v1/views/rename", {"source": there, "destination": here}


@pytest.mark.parametrize(
    ("token", "reads", "changes"),
    [(READER, {"sales", "hr"}, set()), (SALES, {"sales"}, {"sales"}), (None, set(), set())],
)
def test_tokens_of_namespaces(
    guarded: Running, token: str | None, reads: set[str], changes: set[str]
) -> None:
    refused = 401 if token is None else 403
    with guarded.client(token) as client:
        for levels in ("sales", "hr", "pay"):
            for path in ("views", "views/v"):
                status = client.get(f"/v1/namespaces/{levels}/{path}").status_code
                assert status == (200 if levels in reads else refused)
            status = client.head(f"/v1/namespaces/{levels}/views/v").status_code
            assert status == (204 if levels in reads else refused)
            for method, path, body in _changes(levels):
                if levels not in changes:
                    assert client.request(method, path, json=body).status_code == refused, path
        for levels in changes:
            url = f"/v1/namespaces/{levels}/views/v"
            assert client.post(url, json={"updates": [setting("k", "v")]}).status_code == 200
            assert view(client, levels, "n").status_code == 200
            assert client.delete(url).status_code == 204


def test_files_of_others_cannot_be_named(guarded: Running, tmp_path: Path) -> None:
    lake, secret = tmp_path / "lake", tmp_path / "secret.json"
    secret.write_text('{"password": "not for you"}')
    with guarded.client(OWNER) as owner:
        other = owner.get("/v1/namespaces/hr/views/v").json()["metadata-location"]
    outside = (f"{tmp_path}/x", f"file://{lake}/../x", "/etc", "s3://b/x", "relative")
    for token, places in ((OWNER, outside), (SALES, (*outside, f"{lake}/hr/v", f"{lake}/sale"))):
        with guarded.client(token) as client:
            url = "/v1/namespaces/sales"
            for place in places:
                path = {"write.metadata.path": place}
                assert view(client, "sales", "n", location=place).status_code == 400, place
                assert view(client, "sales", "n", properties=path).status_code == 400
                for update in (
                    {"action": "set-location", "location": place},
                    {"action": "set-properties", "updates": path},
                ):
                    answer = client.post(f"{url}/views/v", json={"updates": [update]})
                    assert answer.status_code == 400
            files = (str(secret), f"{lake}/../secret.json")
            for file in files if token == OWNER else (*files, other):
                body = {"name": "n", "metadata-location": file}
                answer = client.post(f"{url}/register-view", json=body)
                assert answer.status_code == 400
                assert "not for you" not in answer.text


def test_metadata_that_names_places_of_others_is_not_registered(
    guarded: Running, tmp_path: Path
) -> None:
    tree = {"type": "tree", "tree": {}}
    with guarded.client(SALES) as client:
        held = client.get("/v1/namespaces/sales/views/v").json()
        folder = tmp_path / "lake" / "sales" / "v"
        folder.mkdir(exist_ok=True)
        for number, (key, value) in enumerate(
            (
                ("location", f"{tmp_path}/lake/hr/v"),
                ("properties", {"write.metadata.path": "/etc"}),
                ("versions", [{**VERSION, "representations": [tree]}]),
                ("current-version-id", 7),
            )
        ):
            file = folder / f"{number}.metadata.json"
            file.write_text(json.dumps({**held["metadata"], key: value}))
            body = {"name": "m", "metadata-location": str(file)}
            answer = client.post("/v1/namespaces/sales/register-view", json=body)
            assert answer.status_code == 400, key
        assert client.head("/v1/namespaces/sales/views/m").status_code == 404


def test_pyiceberg(server: Running, client: httpx.Client) -> None:
    """PyIceberg's client makes, loads, lists, registers and drops views."""
    theirs = PyIcebergRest("lake", uri=server.uri)
    sql = SQLViewRepresentation(type="sql", sql="SELECT 1 AS id", dialect="spark")
    version = ViewVersion(
        version_id=1,
        schema_id=0,
        timestamp_ms=1000,
        summary={},
        representations=[sql],
        default_namespace=["a"],
    )
    schema = PyIcebergSchema(NestedField(1, "id", LongType(), required=False))
    made = theirs.create_view("a.v", schema, version, properties={"k": "v"})
    assert theirs.list_views("a") == [("a", "v")]
    assert theirs.view_exists("a.v")
    loaded = server.catalog.load_view("a.v")
    assert str(made.metadata.view_uuid) == loaded.metadata.view_uuid
    assert loaded.metadata.current_version.sql_for("spark") == "SELECT 1 AS id"
    assert theirs.load_view("a.v").metadata.properties == {"k": "v"}
    with pytest.raises(PyIcebergViewExistsError):
        theirs.create_view("a.v", schema, version)
    theirs.drop_view("a.v")
    with pytest.raises(PyIcebergNoSuchViewError):
        theirs.drop_view("a.v")
    theirs.register_view("a.w", loaded.metadata_location)
    assert server.catalog.load_view("a.w").metadata == loaded.metadata
