"""The check by the protocol's description refuses what the protocol does not have."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from catalog_cases import made_table, set_properties
from openapi_core.exceptions import OpenAPIError
from rest_cases import as_served

from frazil.catalog.rest.catalog import RestCatalog
from open_api import open_api_text
from rest_server import Exchange, Server

Change = Callable[[dict[str, Any]], object]

TABLE = "/v1/main/namespaces/db/tables/t"
PLACES = {
    "namespace": ("POST", "/v1/main/namespaces"),
    "creation": ("POST", "/v1/main/namespaces/db/tables"),
    "load": ("GET", TABLE),
    "commit": ("POST", TABLE),
}


@pytest.fixture
def exchanges(server: Server, connect: Callable[..., RestCatalog]) -> dict[str, Exchange]:
    """A real exchange of each kind, which the check takes as it is."""
    catalog = connect()
    made_table(catalog)
    connect().load_table("db.t")
    set_properties(catalog, "db.t", a="1")
    found = {
        kind: next(each for each in server.exchanges if (each.method, each.path) == place)
        for kind, place in PLACES.items()
    }
    for each in found.values():
        as_served(each).check_request()
        as_served(each).check()
    return found


def changed(content: bytes, change: Change) -> bytes:
    value = json.loads(content)
    change(value)
    return json.dumps(value).encode()


def first_field(body: dict[str, Any]) -> dict[str, Any]:
    schema = body["schema"] if "schema" in body else body["metadata"]["schemas"][0]
    field: dict[str, Any] = schema["fields"][0]
    return field


ANSWERS: dict[str, tuple[str, Change]] = {
    "no metadata": ("load", lambda body: body.pop("metadata")),
    "a type of no name": ("load", lambda body: first_field(body).update(type={"type": "heap"})),
}
REQUESTS: dict[str, tuple[str, Change]] = {
    "no namespace": ("namespace", lambda body: body.pop("namespace")),
    "a type of no name": ("creation", lambda body: first_field(body).update(type={"type": "heap"})),
    "a requirement without its value": (
        "commit",
        lambda body: body["requirements"].append({"type": "assert-table-uuid"}),
    ),
    "an action of no name": ("commit", lambda body: body["updates"].append({"action": "conjure"})),
}


def test_what_is_broken_is_refused(exchanges: dict[str, Exchange]) -> None:
    load = exchanges["load"]
    answers = {
        **{case: replace(exchanges[kind], content=changed(exchanges[kind].content, change))
           for case, (kind, change) in ANSWERS.items()},
        "a status that is not described": replace(exchanges["namespace"], status=207),
        "no JSON": replace(load, content=b"<html>"),
    }  # fmt: skip
    requests = {
        **{case: replace(exchanges[kind], body=changed(exchanges[kind].body, change))
           for case, (kind, change) in REQUESTS.items()},
        "a path of no endpoint": replace(load, path=f"{TABLE}/pages"),
    }  # fmt: skip
    checks = [(case, as_served(each).check) for case, each in answers.items()]
    checks += [(case, as_served(each).check_request) for case, each in requests.items()]
    for case, check in checks:
        try:
            check()
        except OpenAPIError:
            continue
        raise AssertionError(case)


def test_without_the_description_a_test_is_skipped_but_in_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("FRAZIL_REQUIRE_ALL", raising=False)
    monkeypatch.setenv("FRAZIL_REST_SPECIFICATION", "/nowhere/rest.yaml")
    with pytest.raises(pytest.skip.Exception, match="not at /nowhere/rest"):
        open_api_text()
    monkeypatch.setenv("FRAZIL_REQUIRE_ALL", "1")
    with pytest.raises(pytest.fail.Exception, match="not at /nowhere/rest"):
        open_api_text()
