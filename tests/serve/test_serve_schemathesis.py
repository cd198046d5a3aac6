"""Requests that Schemathesis makes of the specification: no failure of the server, no answer that
the specification does not have."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from serve_cases import Running, namespace, running, specification_file, sql_catalog, table, view

from ci_share import examples

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
SERVED = [
    "getConfig",
    "listNamespaces",
    "createNamespace",
    "loadNamespaceMetadata",
    "namespaceExists",
    "dropNamespace",
    "updateProperties",
    "listTables",
    "createTable",
    "registerTable",
    "loadTable",
    "updateTable",
    "dropTable",
    "tableExists",
    "renameTable",
    "loadCredentials",
    "reportMetrics",
    "commitTransaction",
    "planTableScan",
    "fetchPlanningResult",
    "cancelPlanning",
    "fetchScanTasks",
    "listViews",
    "createView",
    "loadView",
    "replaceView",
    "dropView",
    "viewExists",
    "renameView",
    "registerView",
]


def _schema() -> Any:
    """The specification without the prefix, with names that are there often enough."""
    content = copy.deepcopy(specification_file())
    content["security"] = []
    parameters = content["components"]["parameters"]
    names = {"namespace": ["a", "none", "ä/ö"], "table": ["t", "none", "u.v"]}
    for name, values in {**names, "view": ["v", "none", "t"]}.items():
        parameters[name] = {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "enum": values},
        }
    paths = {}
    for path, item in content["paths"].items():
        listed = item.get("parameters", [])
        item["parameters"] = [
            each for each in listed if each.get("$ref") != "#/components/parameters/prefix"
        ]
        paths[path.replace("/{prefix}", "")] = item
    content["paths"] = paths
    return schemathesis.openapi.from_dict(content)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp("lake")
    with running(sql_catalog(folder)) as server:
        yield server


@pytest.fixture(scope="module")
def operations() -> dict[str, Any]:
    found = (each.ok() for each in _schema().get_all_operations())
    return {each.definition.raw["operationId"]: each for each in found}


@pytest.mark.parametrize("count", [4, pytest.param(200, marks=pytest.mark.soak)])
@pytest.mark.parametrize("operation", SERVED)
def test_requests_of_the_specification(
    server: Running, operations: dict[str, Any], operation: str, count: int
) -> None:
    with server.client() as client:

        @settings(
            max_examples=examples(count),
            deadline=None,
            database=None,
            derandomize=count < 10,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operations[operation].as_strategy())
        def requests(case: Any) -> None:
            _restore(client)
            response = case.call(base_url=server.uri)
            case.validate_response(response, checks=CHECKS)

        requests()


def _restore(client: httpx.Client) -> None:
    """Make the table and the view again that requests drop and rename."""
    if client.head("/v1/namespaces/a").status_code == 404:
        namespace(client, "a")
    if client.head("/v1/namespaces/a/tables/t").status_code == 404:
        assert table(client, "a", "t").status_code == 200
    if client.head("/v1/namespaces/a/views/v").status_code == 404:
        assert view(client, "a", "v").status_code == 200
