"""Views on every endpoint: answers of the specification, what is refused, PyIceberg's client."""

from __future__ import annotations

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
from serve_cases import SQL, VERSION, Running, namespace, running, sql_catalog, table, view

from frazil.catalog.config import load_catalog
from frazil.serve.settings import ServeSettings

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
