"""Metrics reports: what a scan was and cost, beside the work, and never in its way."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import jsonschema
import pytest
import yaml
from catalog_cases import opened
from table_cases import data_file, make_table

from frazil.catalog.rest.catalog import RestCatalog
from frazil.catalog.rest.reports import Reporter
from frazil.format.predicates import bind, parse_predicate
from frazil.format.predicates.without_values import without_values
from frazil.planning.plan import plan
from frazil.planning.scan_report import PlannedScan
from frazil.table.handle import TableHandle
from open_api import open_api_text
from rest_server import Fault, Server

Connect = Callable[..., RestCatalog]


@cache
def components() -> Any:
    # Of several kinds of text a value may be more than one, which `oneOf` would refuse.
    text = open_api_text().replace("oneOf:", "anyOf:")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))["components"]


def check_protocol(report: dict[str, Any]) -> None:
    """It is a report by the specification's schema."""
    schema = {"$ref": "#/components/schemas/ReportMetricsRequest", "components": components()}
    jsonschema.validate(report, schema)


def planned(table: TableHandle, where: str | None = None) -> PlannedScan:
    metadata = table.metadata
    bound = None if where is None else bind(parse_predicate(where), metadata.schema)
    found = plan(metadata, metadata.current_snapshot, table.port.io, where=bound)
    columns = {field.field_id: field.name for field in metadata.schema.fields}
    return PlannedScan(metadata=metadata, plan=found, columns=columns, nanoseconds=17)


def reports(server: Server) -> list[dict[str, Any]]:
    sent = [each for each in server.exchanges if each.path.endswith("/metrics")]
    return [json.loads(each.body) for each in sent]


def test_reports_are_sent_unless_they_are_switched_off(server: Server) -> None:
    for given, kinds in [
        ({}, ["commit-report", "scan-report"]),
        ({"rest-metrics-reporting-enabled": "false"}, []),
    ]:
        server.exchanges.clear()
        catalog = opened({"uri": server.address, **given})
        table = make_table(catalog, name=f"db.t{len(kinds)}")
        catalog.report_scan(table.port.identifier, planned(table))
        table.files.append([data_file("a"), data_file("b", "tue")])
        catalog.report_scan(table.port.identifier, planned(table, "day = 'mon'"))
        catalog.close()
        found = reports(server)
        assert [each["report-type"] for each in found] == kinds
        for each in found:
            check_protocol(each)
        if found:
            scan = found[-1]
            assert scan["snapshot-id"] == table.metadata.current_snapshot_id
            assert scan["filter"] == {"type": "eq", "term": "day", "value": "(text)"}
            assert scan["metrics"]["result-data-files"] == {"unit": "count", "value": 1}
            assert scan["metrics"]["skipped-data-files"] == {"unit": "count", "value": 1}
            assert scan["metrics"]["total-planning-duration"]["total-duration"] == 17
            assert scan["projected-field-names"] == [f.name for f in table.metadata.schema.fields]


def test_a_server_that_breaks_slows_nothing(server: Server) -> None:
    catalog = opened({"uri": server.address})
    table = make_table(catalog)
    server.faults = [Fault(ends="/metrics", delay=3.0, times=1000)]
    table.files.append([data_file("a")])
    began = time.monotonic()
    for _ in range(300):
        catalog.report_scan(table.port.identifier, planned(table))
    table.files.append([data_file("b", "tue")])
    catalog.close()
    assert time.monotonic() - began < 60
    assert len(reports(server)) < 5


def test_a_report_that_cannot_be_made_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    reporter, told = Reporter(), threading.Event()

    def broken() -> None:
        raise RecursionError("s3cr3t")

    reporter.send(broken)
    reporter.send(told.set)
    assert told.wait(10)
    reporter.close()
    assert "was not taken: RecursionError" in caplog.text
    assert "s3cr3t" not in caplog.text
    again = threading.Event()
    reporter.send(again.set)
    assert again.wait(10)
    reporter.close()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("id = 123", {"type": "eq", "term": "id", "value": "(3-digit-int)"}),
        ("name = 'Ann'", {"type": "eq", "term": "name", "value": "(text)"}),
        ("name LIKE 'An%'", {"type": "starts-with", "term": "name", "value": "(text)"}),
        (
            "id IN (1, 2, 30)",
            {"type": "in", "term": "id", "values": ["(1-digit-int)", "(2-digit-int)"]},
        ),
        ("name IS NOT NULL", {"type": "not-null", "term": "name"}),
    ],
)
def test_a_filter_without_its_values(text: str, shown: dict[str, Any]) -> None:
    assert without_values(parse_predicate(text)) == shown
    many = parse_predicate(" AND ".join([text] * 50))
    assert "Ann" not in json.dumps(without_values(many))
