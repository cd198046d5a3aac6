"""The same operations by several clients of the protocol, and the requests that each sends."""

from __future__ import annotations

from typing import Any, Protocol
from uuid import uuid4

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from serve_cases import Exchange

from frazil.catalog.config import load_catalog
from frazil.catalog.protocol import Catalog
from frazil.format.manifests import DataFile
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField
from frazil.table.handle import TableHandle
from frazil.table.snapshots.append import FastAppend

OPERATIONS = (
    "connect_and_list",
    "create",
    "load",
    "append",
    "append_again",
    "load_unchanged",
    "transaction",
    "rename",
    "drop",
)


class Client(Protocol):
    """A client that has a method an operation; tables are called by the client's own name."""

    name: str

    def connect_and_list(self) -> None: ...
    def create(self) -> None: ...
    def load(self) -> None: ...
    def append(self) -> None: ...
    def append_again(self) -> None: ...
    def load_unchanged(self) -> None: ...
    def transaction(self) -> None: ...
    def rename(self) -> None: ...
    def drop(self) -> None: ...


def exchanges_of(recorded: list[Exchange], client: Client) -> dict[str, list[Exchange]]:
    """The exchanges of each operation, out of the list in which a server keeps them."""
    found = {}
    for operation in OPERATIONS:
        before = len(recorded)
        getattr(client, operation)()
        found[operation] = recorded[before:]
    return found


def requests_of(recorded: list[Exchange], client: Client) -> dict[str, list[str]]:
    """The requests of each operation, tables by their endpoints alone."""
    return {
        operation: [f"{each.method} {_endpoint(each.path, client.name)}" for each in exchanges]
        for operation, exchanges in exchanges_of(recorded, client).items()
    }


def _endpoint(path: str, name: str) -> str:
    return path.removeprefix("/v1/").replace(f"{name}_b", "{table}").replace(name, "{table}")


class FrazilClient:
    """Frazil's catalog, without Spark."""

    name = "frazil"

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self.catalog: Catalog
        self.table: TableHandle

    def connect_and_list(self) -> None:
        # Reports go beside the work, so that their place among the requests is not told.
        told = {"rest-metrics-reporting-enabled": "false"}
        self.catalog = load_catalog("lake", type="rest", uri=self._uri, **told)
        self.catalog.list_tables("db")

    def create(self) -> None:
        schema = Schema((NestedField(1, "id", LongType()),))
        place = self.catalog.default_table_location(("db", self.name))
        metadata = new_table_metadata(schema, location=place)
        self.catalog.create_table(("db", self.name), metadata)

    def load(self) -> None:
        self.table = TableHandle(self.catalog, self.catalog.load_table(("db", self.name)))

    def append(self) -> None:
        path = f"{self.table.location}/data/{uuid4()}.parquet"
        file = DataFile(file_path=path, record_count=1, file_size_in_bytes=10)
        self.table.port.run(FastAppend(self.table.io, [file]))

    append_again = append

    def load_unchanged(self) -> None:
        self.catalog.load_table(("db", self.name))

    def transaction(self) -> None:
        with self.table.transaction() as transaction:
            transaction.set_properties({"a": "1"})
            transaction.create_branch("b")

    def rename(self) -> None:
        self.catalog.rename_table(("db", self.name), ("db", f"{self.name}_b"))

    def drop(self) -> None:
        self.catalog.drop_table(("db", f"{self.name}_b"))


class PyIcebergClient:
    """PyIceberg's.

    It commits onto what it has read, and is refused where another was first; so it loads before.
    """

    name = "pyiceberg"

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._rows = pa.table({"id": pa.array([1], pa.int64())})
        self.catalog: RestCatalog
        self.table: Any

    def connect_and_list(self) -> None:
        self.catalog = RestCatalog("lake", uri=self._uri)
        self.catalog.list_tables("db")

    def create(self) -> None:
        self.catalog.create_table(("db", self.name), self._rows.schema)

    def load(self) -> None:
        self.table = self.catalog.load_table(("db", self.name))

    def append(self) -> None:
        self.table.refresh().append(self._rows)

    append_again = append

    def load_unchanged(self) -> None:
        self.catalog.load_table(("db", self.name))

    def transaction(self) -> None:
        self.table.refresh()
        with self.table.transaction() as transaction:
            transaction.set_properties(a="1")
            with transaction.update_schema() as schema:
                schema.add_column("b", self.table.schema().find_type("id"))

    def rename(self) -> None:
        self.catalog.rename_table(("db", self.name), ("db", f"{self.name}_b"))

    def drop(self) -> None:
        self.catalog.drop_table(("db", f"{self.name}_b"))
