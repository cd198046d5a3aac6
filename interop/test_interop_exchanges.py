"""What Frazil's, PyIceberg's and Java's clients send for the same operations, and to whom.

Each request and each answer is validated against the specification's OpenAPI file: of three clients
at `frazil serve`, and of Frazil's at the Java library's own handlers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from exchange_cases import FrazilClient, PyIcebergClient, exchanges_of, requests_of
from interop_rest import JavaHandlers, rest_server
from interop_wire import wire
from serve_cases import Exchange, Running, namespace, running, sql_catalog

from frazil.spark.lake import Lake, connect
from frazil.table import port

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


class JavaClient:
    """The Java library's `RESTCatalog`, through the gateway."""

    name = "java"

    def __init__(self, spark: Any, uri: str) -> None:
        self._iceberg = spark._jvm.org.apache.iceberg
        self._settings = spark._jvm.java.util.HashMap()
        self._settings.put("uri", uri)
        # Reports of metrics are requests of their own, which the others do not send.
        self._settings.put("rest-metrics-reporting-enabled", "false")
        self._configuration = spark._jsc.hadoopConfiguration()
        self._identifiers = self._iceberg.catalog.TableIdentifier
        self.catalog: Any
        self.table: Any

    def _name(self, suffix: str = "") -> Any:
        return self._identifiers.parse(f"db.{self.name}{suffix}")

    def connect_and_list(self) -> None:
        self.catalog = self._iceberg.rest.RESTCatalog()
        self.catalog.setConf(self._configuration)
        self.catalog.initialize("lake", self._settings)
        self.catalog.listTables(self._name().namespace())

    def create(self) -> None:
        self.catalog.createTable(
            self._name(), self._iceberg.SchemaParser.fromJson(json.dumps(SCHEMA))
        )

    def load(self) -> None:
        self.table = self.catalog.loadTable(self._name())

    def _append_to(self, table: Any) -> None:
        file = self._iceberg.DataFiles.builder(self.table.spec())
        file.withPath(f"{self.table.location()}/data/{uuid4()}.parquet")
        file.withFileSizeInBytes(10)
        file.withRecordCount(1)
        table.newAppend().appendFile(file.build()).commit()

    def append(self) -> None:
        self._append_to(self.table)

    append_again = append

    def load_unchanged(self) -> None:
        self.catalog.loadTable(self._name())

    def transaction(self) -> None:
        transaction = self.table.newTransaction()
        transaction.updateProperties().set("a", "1").commit()
        self._append_to(transaction)
        transaction.commitTransaction()

    def rename(self) -> None:
        self.catalog.renameTable(self._name(), self._name("_b"))

    def drop(self) -> None:
        self.catalog.dropTable(self._name("_b"), False)
        self.catalog.close()


class LakeClient(FrazilClient):
    """Frazil as its users have it: a lake, whose rows Spark writes."""

    name = "lake_of_frazil"

    def __init__(self, spark: Any, uri: str) -> None:
        super().__init__(uri)
        self._rows = spark.range(1)
        self.lake: Lake

    def connect_and_list(self) -> None:
        told = {"rest-metrics-reporting-enabled": "false"}
        spark = self._rows.sparkSession
        self.lake = connect(spark, type="rest", uri=self._uri, name="lake", **told)
        self.catalog = self.lake.catalog
        self.catalog.list_tables("db")

    def create(self) -> None:
        self.lake.create_table(f"db.{self.name}", "id bigint")

    def load(self) -> None:
        self.table = self.lake.load_table(f"db.{self.name}")

    def append(self) -> None:
        self.table.append(self._rows)

    append_again = append

    def drop(self) -> None:
        super().drop()
        self.lake.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(sql_catalog(tmp_path)) as server:
        with server.client() as client:
            namespace(client, "db")
        yield server


def _check(exchanges: list[Exchange]) -> None:
    assert exchanges
    for each in exchanges:
        if not _is_javas_create(each):
            each.check_request()
        each.check()


def _is_javas_create(exchange: Exchange) -> bool:
    """Java sends null for what is not given, which the specification has as left out."""
    nothing = b'"location":null'
    return exchange.path.endswith("/tables") and nothing in exchange.body


def test_frazil_sends_no_more_than_java(
    spark: Any, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port, "_LOOK_LASTS_SECONDS", 60.0)
    recorded = server.recorder.exchanges
    theirs = requests_of(recorded, JavaClient(spark, server.uri))
    ours = requests_of(recorded, FrazilClient(server.uri))
    with_spark = requests_of(recorded, LakeClient(spark, server.uri))
    pyiceberg = requests_of(recorded, PyIcebergClient(server.uri))
    for operation, requests in theirs.items():
        told = (operation, requests, ours[operation], with_spark[operation], pyiceberg[operation])
        assert len(ours[operation]) <= len(requests), told
        assert len(with_spark[operation]) <= len(requests), told
    assert [each.split()[0] for each in with_spark["append_again"]] == ["GET", "POST"]
    _check(recorded)


def test_frazil_at_the_java_librarys_handlers(spark: Any, sql_lake: Lake) -> None:
    with rest_server(JavaHandlers(spark, sql_lake.catalog.name)) as address, wire(address) as proxy:
        exchanges_of(proxy.exchanges, FrazilClient(proxy.uri))
        exchanges_of(proxy.exchanges, LakeClient(spark, proxy.uri))
        _check(proxy.exchanges)
