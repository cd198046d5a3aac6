"""Every endpoint, on catalogs of every kind; all answers are those of the specification."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from serve_cases import SCHEMA, Running, namespace, running, set_property, sql_catalog, table

from frazil.catalog.config import load_catalog


@pytest.fixture(params=["sqlite", "filesystem", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    kinds = {
        "sqlite": lambda: sql_catalog(tmp_path),
        "filesystem": lambda: load_catalog("lake", type="filesystem", warehouse=str(tmp_path)),
        "postgres": lambda: sql_catalog(
            tmp_path, uri=request.getfixturevalue("postgres_url"), type="sql"
        ),
    }
    with running(kinds[request.param]()) as server:
        yield server
        server.check_exchanges()


@pytest.fixture
def client(server: Running) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def test_namespaces(server: Running, client: httpx.Client) -> None:
    namespace(client, "a")
    namespace(client, "a", "b c/d" if server.catalog.kind == "sql" else "b c")
    below = "b%20c%2Fd" if server.catalog.kind == "sql" else "b%20c"
    assert client.get("/v1/namespaces").json()["namespaces"] == [["a"]]
    listed = client.get("/v1/namespaces", params={"parent": "a"}).json()["namespaces"]
    assert len(listed) == 1
    assert listed[0][0] == "a"
    assert client.head(f"/v1/namespaces/a%1F{below}").status_code == 204
    assert client.head("/v1/namespaces/none").status_code == 404
    assert client.get("/v1/namespaces/none").json()["error"]["type"] == "NoSuchNamespaceException"
    again = client.post("/v1/namespaces", json={"namespace": ["a"]})
    assert (again.status_code, again.json()["error"]["type"]) == (409, "AlreadyExistsException")
    full = client.delete("/v1/namespaces/a")
    assert (full.status_code, full.json()["error"]["type"]) == (409, "NamespaceNotEmptyException")
    assert client.delete(f"/v1/namespaces/a%1F{below}").status_code == 204
    assert client.delete("/v1/namespaces/a").status_code == 204
    assert client.delete("/v1/namespaces/a").status_code == 404


def test_properties_of_namespaces(server: Running, client: httpx.Client) -> None:
    namespace(client, "a")
    url = "/v1/namespaces/a/properties"
    changed = client.post(url, json={"removals": ["x"], "updates": {"y": "1"}})
    if server.catalog.kind == "filesystem":
        assert changed.status_code == 406
        refused = client.post("/v1/namespaces", json={"namespace": ["p"], "properties": {"k": "v"}})
        assert refused.status_code == 406
        return
    assert changed.json() == {"updated": ["y"], "removed": [], "missing": ["x"]}
    assert client.get("/v1/namespaces/a").json()["properties"]["y"] == "1"
    both = client.post(url, json={"removals": ["y"], "updates": {"y": "2"}})
    assert both.status_code == 422
    assert client.post(url, json={"removals": ["y"]}).json()["removed"] == ["y"]
    assert client.post(url, json={"updates": {"k": "v" * 1001}}).status_code == 400
    missing = client.post("/v1/namespaces/none/properties", json={"updates": {"k": "v"}})
    assert missing.status_code == 404


def test_tables(server: Running, client: httpx.Client) -> None:
    namespace(client, "a")
    made = table(client, "a", "t", properties={"format-version": "3", "k": "v"})
    assert made.status_code == 200
    metadata = made.json()["metadata"]
    assert (metadata["format-version"], metadata["properties"]["k"]) == (3, "v")
    assert made.json()["metadata-location"].endswith(".metadata.json")
    assert table(client, "a", "t").json()["error"]["type"] == "AlreadyExistsException"
    assert table(client, "none", "t").status_code == 404
    listed = client.get("/v1/namespaces/a/tables").json()["identifiers"]
    assert listed == [{"namespace": ["a"], "name": "t"}]
    url = "/v1/namespaces/a/tables/t"
    assert client.get(url).json() == made.json()
    assert client.get(url).headers["etag"] == made.headers["etag"]
    assert client.get("/v1/lake" + url.removeprefix("/v1")).json() == made.json()
    assert client.head(url).status_code == 204
    assert client.head(url + "x").status_code == 404
    assert client.get(url + "x").json()["error"]["type"] == "NoSuchTableException"
    report = {
        "report-type": "commit-report",
        "table-name": "a.t",
        "snapshot-id": 1,
        "sequence-number": 1,
        "operation": "append",
        "metrics": {},
    }
    assert client.post(f"{url}/metrics", json=report).status_code == 204
    assert client.post(f"{url}x/metrics", json=report).status_code == 404
    assert client.get(f"{url}/credentials").json() == {"storage-credentials": []}
    assert client.delete(url).status_code == 204
    assert client.delete(url).status_code == 404


def test_what_a_client_has_is_not_sent_again(server: Running, client: httpx.Client) -> None:
    namespace(client, "a")
    first = table(client, "a", "t").headers["etag"]
    other = table(client, "a", "other").headers["etag"]
    url = "/v1/namespaces/a/tables/t"
    assert client.get(url, headers={"If-None-Match": first}).status_code == 304
    assert client.get(url, headers={"If-None-Match": other}).status_code == 200
    held = {"If-None-Match": f'"other", W/{first}'}
    assert client.get(url, headers=held).status_code == 304
    for snapshots, status in (("refs", 200), ("some", 400)):
        refs = client.get(url, params={"snapshots": snapshots}, headers=held)
        assert refs.status_code == status
    refs = client.get(url, params={"snapshots": "refs"})
    assert refs.headers["etag"] != first
    second = set_property(client, url, "k", "v").headers["etag"]
    assert client.get(url, headers={"If-None-Match": first}).status_code == 200
    assert client.get(url, headers={"If-None-Match": second}).status_code == 304
    # A table that takes the name, and with a filesystem catalog the names of the files, is another.
    assert client.delete(url).status_code == 204
    assert client.get(url, headers={"If-None-Match": first}).status_code == 404
    table(client, "a", "t")
    assert client.get(url, headers={"If-None-Match": first}).status_code == 200


def test_staged_tables(server: Running, client: httpx.Client) -> None:
    namespace(client, "a")
    staged = table(client, "a", "t", **{"stage-create": True})
    assert staged.status_code == 200
    assert "metadata-location" not in staged.json()
    url = "/v1/namespaces/a/tables/t"
    assert client.head(url).status_code == 404
    metadata = staged.json()["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "set-properties", "updates": {"k": "v"}},
    ]
    commit = {"requirements": [{"type": "assert-create"}], "updates": updates}
    made = client.post(url, json=commit)
    assert made.status_code == 200
    assert made.json()["metadata"]["table-uuid"] == metadata["table-uuid"]
    again = client.post(url, json=commit)
    assert (again.status_code, again.json()["error"]["type"]) == (409, "CommitFailedException")


def test_commits(server: Running, client: httpx.Client) -> None:
    namespace(client, "a")
    made = table(client, "a", "t").json()
    url = "/v1/namespaces/a/tables/t"
    uuid = {"type": "assert-table-uuid", "uuid": made["metadata"]["table-uuid"]}
    done = set_property(client, url, "k", "1", requirements=[uuid])
    assert done.json()["metadata"]["properties"]["k"] == "1"
    assert done.json()["metadata-location"] != made["metadata-location"]
    wrong = {**uuid, "uuid": "00000000-0000-0000-0000-000000000000"}
    failed = set_property(client, url, "k", "2", requirements=[wrong])
    assert (failed.status_code, failed.json()["error"]["type"]) == (409, "CommitFailedException")
    unknown = client.post(url, json={"requirements": [], "updates": [{"action": "be-nice"}]})
    assert unknown.status_code == 400
    unknown = client.post(url, json={"requirements": [{"type": "assert-joy"}], "updates": []})
    assert unknown.status_code == 400
    other = {"namespace": ["a"], "name": "other"}
    assert set_property(client, url, "k", "2", identifier=other).status_code == 400
    assert set_property(client, url + "x", "k", "2").status_code == 404
    assert client.get(url).json()["metadata"]["properties"]["k"] == "1"


def test_registering_renaming_purging(server: Running, client: httpx.Client) -> None:
    namespace(client, "a")
    namespace(client, "b")
    location = table(client, "a", "t").json()["metadata-location"]
    url = "/v1/namespaces/a/tables/t"
    rename = {
        "source": {"namespace": ["a"], "name": "t"},
        "destination": {"namespace": ["b"], "name": "u"},
    }
    renamed = client.post("/v1/tables/rename", json=rename)
    if server.catalog.kind == "filesystem":
        assert renamed.status_code == 406
        assert client.delete(url, params={"purgeRequested": "true"}).status_code == 204
        assert not Path(location.removeprefix("file://")).exists()
        return
    assert renamed.status_code == 204
    assert client.post("/v1/tables/rename", json=rename).status_code == 404
    assert client.head("/v1/namespaces/b/tables/u").status_code == 204
    assert client.delete("/v1/namespaces/b/tables/u").status_code == 204
    body = {"name": "t", "metadata-location": location}
    assert client.post("/v1/namespaces/a/register", json=body).json()["metadata-location"] == (
        location
    )
    assert client.post("/v1/namespaces/a/register", json=body).status_code == 409
    overwriting = {**body, "overwrite": True}
    assert client.post("/v1/namespaces/a/register", json=overwriting).status_code == 400
    assert client.delete(url, params={"purgeRequested": "true"}).status_code == 204
    assert not Path(location.removeprefix("file://")).exists()


def test_pages(client: httpx.Client) -> None:
    for name in "edcba":
        namespace(client, name)
        assert table(client, "e", name).status_code == 200
    assert len(client.get("/v1/namespaces", params={"pageSize": 2}).json()["namespaces"]) == 5
    for url, key in (("/v1/namespaces", "namespaces"), ("/v1/namespaces/e/tables", "identifiers")):
        found, token = [], ""
        sizes = []
        while token is not None:
            answer = client.get(url, params={"pageSize": 2, "pageToken": token}).json()
            sizes.append(len(answer[key]))
            found += answer[key]
            token = answer["next-page-token"]
        assert sizes == [2, 2, 1]
        names = [each[-1] if key == "namespaces" else each["name"] for each in found]
        assert names == sorted("abcde")
        assert client.get(url, params={"pageToken": "%%"}).status_code == 400
        for size in ("0", "-1", "many", "9" * 30):
            assert client.get(url, params={"pageSize": size, "pageToken": ""}).status_code == 400


def test_the_list_of_endpoints(server: Running, client: httpx.Client) -> None:
    answer = client.get("/v1/config", params={"warehouse": "lake"}).json()
    offered = set(answer["endpoints"])
    assert "GET /v1/config" in offered
    assert "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan" in offered
    renames = "POST /v1/{prefix}/tables/rename" in offered
    assert renames is (server.catalog.kind == "sql")
    assert client.get("/v1/config", params={"warehouse": "other"}).status_code == 404
    warehouse = server.catalog.properties["warehouse"]
    assert client.get("/v1/config", params={"warehouse": warehouse}).status_code == 200
    assert client.get("/health").json() == {"status": "ok"}


def test_a_schema_with_the_last_id_that_java_sends(client: httpx.Client) -> None:
    """Java replaces a table with the highest id of its new schema, below the table's own."""
    namespace(client, "a")
    assert table(client, "a", "t").status_code == 200
    schema = {"type": "struct", "schema-id": 1, "fields": SCHEMA["fields"][:1]}
    updates = [
        {"action": "add-schema", "schema": schema, "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    body = {"requirements": [], "updates": updates}
    done = client.post("/v1/namespaces/a/tables/t", json=body)
    assert done.status_code == 200, done.text
    assert done.json()["metadata"]["last-column-id"] == 2
