"""The Java runtime's catalog behind the REST protocol, for an engine that writes through no other.

What a request means is the Java library's: it reads the requests and carries them out. Only the
routes are here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from interop_java import java_catalog
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

_STATUS: Final = {
    "BadRequestException": 400,
    "IllegalArgumentException": 400,
    "ValidationException": 400,
    "NamespaceNotEmptyException": 409,
    "NoSuchNamespaceException": 404,
    "NoSuchTableException": 404,
    "NoSuchViewException": 404,
    "NotFoundException": 404,
    "UnsupportedOperationException": 406,
    "AlreadyExistsException": 409,
    "CommitFailedException": 409,
}
"""The protocol's status for the Java library's exceptions; any other is the server's fault."""

_Answer = tuple[int, str | None]
_Handler = Callable[..., _Answer]
_Route = tuple[_Handler, list[str]]
_NOTHING: Final[_Answer] = (204, None)
_SEPARATOR: Final = "\x1f"


class JavaHandlers:
    """The Java library's own handlers of requests, on one catalog of a Spark session."""

    def __init__(self, spark: Any, catalog: str) -> None:
        jvm = spark._jvm
        self._catalog = java_catalog(spark, catalog)
        self._texts = lambda count: spark._sc._gateway.new_array(jvm.java.lang.String, count)
        self._levels = jvm.org.apache.iceberg.catalog.Namespace
        self._handlers = jvm.org.apache.iceberg.rest.CatalogHandlers
        self._all_snapshots = jvm.org.apache.iceberg.rest.RESTCatalogProperties.SnapshotMode.ALL
        self._identifiers = jvm.org.apache.iceberg.catalog.TableIdentifier
        # Each thread of a request has a class loader of its own, which does not see the runtime.
        self._loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self._json = _object_mapper(jvm)
        self._routes: dict[tuple[str, str], _Handler] = {
            ("GET", "config"): self._config,
            ("GET", "namespaces"): self._list_namespaces,
            ("POST", "namespaces"): self._create_namespace,
            ("GET", "namespaces/{namespace}"): self._load_namespace,
            ("HEAD", "namespaces/{namespace}"): self._load_namespace,
            ("DELETE", "namespaces/{namespace}"): self._drop_namespace,
            ("POST", "namespaces/{namespace}/properties"): self._update_namespace,
            ("POST", "namespaces/{namespace}/register"): self._register_table,
            ("GET", "namespaces/{namespace}/tables"): self._list_tables,
            ("POST", "namespaces/{namespace}/tables"): self._create_table,
            ("GET", "namespaces/{namespace}/tables/{table}"): self._load_table,
            ("HEAD", "namespaces/{namespace}/tables/{table}"): self._load_table,
            ("POST", "namespaces/{namespace}/tables/{table}"): self._update_table,
            ("DELETE", "namespaces/{namespace}/tables/{table}"): self._drop_table,
            ("POST", "namespaces/{namespace}/tables/{table}/metrics"): self._take_metrics,
            ("POST", "tables/rename"): self._rename_table,
            ("POST", "transactions/commit"): self._commit,
            ("GET", "namespaces/{namespace}/views"): self._list_views,
            ("POST", "namespaces/{namespace}/views"): self._create_view,
            ("GET", "namespaces/{namespace}/views/{view}"): self._load_view,
            ("HEAD", "namespaces/{namespace}/views/{view}"): self._load_view,
            ("POST", "namespaces/{namespace}/views/{view}"): self._replace_view,
            ("DELETE", "namespaces/{namespace}/views/{view}"): self._drop_view,
            ("POST", "views/rename"): self._rename_view,
        }

    def answer(self, method: str, path: str, body: str) -> _Answer:
        """The status and the JSON that answer a request."""
        asked = urlsplit(path)
        self._query = {name: values[-1] for name, values in parse_qs(asked.query).items()}
        _version, *parts = (unquote(part) for part in asked.path.strip("/").split("/"))
        found = self._route(method, parts)
        if found is None:
            return _error(404, "NoSuchRouteException", f"{method} {path}")
        handler, names = found
        try:
            return handler(*names, *([body] if method == "POST" else []))
        except Py4JJavaError as failure:
            kind = failure.java_exception.getClass().getSimpleName()
            return _error(_STATUS.get(kind, 500), kind, failure.java_exception.getMessage())
        except CapturedException as failure:
            # PySpark raises some of Java's exceptions as its own of the same name.
            kind = type(failure).__name__
            return _error(_STATUS.get(kind, 500), kind, str(failure))

    def _route(self, method: str, parts: list[str]) -> _Route | None:
        for (wanted, template), handler in self._routes.items():
            words = template.split("/")
            if (wanted, len(words)) != (method, len(parts)):
                continue
            pairs = list(zip(words, parts, strict=True))
            if all(word == part or word.startswith("{") for word, part in pairs):
                return handler, [part for word, part in pairs if word.startswith("{")]
        return None

    def _read(self, name: str, body: str) -> Any:
        kind = self._loader.loadClass(f"org.apache.iceberg.rest.requests.{name}")
        return self._json.readValue(body, kind)

    def _ok(self, response: Any) -> _Answer:
        return 200, self._json.writeValueAsString(response)

    def _table(self, namespace: str, table: str) -> Any:
        return self._identifiers.of(self._namespace(namespace), table)

    def _namespace(self, namespace: str) -> Any:
        levels = namespace.split(_SEPARATOR) if namespace else []
        texts = self._texts(len(levels))
        for number, level in enumerate(levels):
            texts[number] = level
        return self._levels.of(texts)

    def _config(self) -> _Answer:
        endpoints = [f"{method} /v1/{{prefix}}/{template}" for method, template in self._routes]
        return 200, json.dumps({"defaults": {}, "overrides": {}, "endpoints": endpoints})

    def _list_namespaces(self) -> _Answer:
        parent = self._namespace(self._query.get("parent", ""))
        return self._ok(self._handlers.listNamespaces(self._catalog, parent))

    def _create_namespace(self, body: str) -> _Answer:
        request = self._read("CreateNamespaceRequest", body)
        return self._ok(self._handlers.createNamespace(self._catalog, request))

    def _drop_namespace(self, namespace: str) -> _Answer:
        self._handlers.dropNamespace(self._catalog, self._namespace(namespace))
        return _NOTHING

    def _update_namespace(self, namespace: str, body: str) -> _Answer:
        request = self._read("UpdateNamespacePropertiesRequest", body)
        levels = self._namespace(namespace)
        return self._ok(self._handlers.updateNamespaceProperties(self._catalog, levels, request))

    def _load_namespace(self, namespace: str) -> _Answer:
        return self._ok(self._handlers.loadNamespace(self._catalog, self._namespace(namespace)))

    def _list_tables(self, namespace: str) -> _Answer:
        return self._ok(self._handlers.listTables(self._catalog, self._namespace(namespace)))

    def _create_table(self, namespace: str, body: str) -> _Answer:
        request = self._read("CreateTableRequest", body)
        staged = self._handlers.stageTableCreate
        create = staged if request.stageCreate() else self._handlers.createTable
        return self._ok(create(self._catalog, self._namespace(namespace), request))

    def _register_table(self, namespace: str, body: str) -> _Answer:
        request = self._read("RegisterTableRequest", body)
        levels = self._namespace(namespace)
        return self._ok(self._handlers.registerTable(self._catalog, levels, request))

    def _load_table(self, namespace: str, table: str) -> _Answer:
        name = self._table(namespace, table)
        return self._ok(self._handlers.loadTable(self._catalog, name, self._all_snapshots))

    def _update_table(self, namespace: str, table: str, body: str) -> _Answer:
        request = self._read("UpdateTableRequest", body)
        name = self._table(namespace, table)
        return self._ok(self._handlers.updateTable(self._catalog, name, request))

    def _drop_table(self, namespace: str, table: str) -> _Answer:
        purges = self._query.get("purgeRequested") == "true"
        drop = self._handlers.purgeTable if purges else self._handlers.dropTable
        drop(self._catalog, self._table(namespace, table))
        return _NOTHING

    def _rename_table(self, body: str) -> _Answer:
        self._handlers.renameTable(self._catalog, self._read("RenameTableRequest", body))
        return _NOTHING

    def _take_metrics(self, _namespace: str, _table: str, _body: str) -> _Answer:
        return _NOTHING

    def _commit(self, body: str) -> _Answer:
        # One table after another: the catalog has no commit of several.
        for change in self._read("CommitTransactionRequest", body).tableChanges():
            self._handlers.updateTable(self._catalog, change.identifier(), change)
        return _NOTHING

    def _list_views(self, namespace: str) -> _Answer:
        return self._ok(self._handlers.listViews(self._catalog, self._namespace(namespace)))

    def _create_view(self, namespace: str, body: str) -> _Answer:
        request = self._read("CreateViewRequest", body)
        levels = self._namespace(namespace)
        return self._ok(self._handlers.createView(self._catalog, levels, request))

    def _load_view(self, namespace: str, view: str) -> _Answer:
        return self._ok(self._handlers.loadView(self._catalog, self._table(namespace, view)))

    def _replace_view(self, namespace: str, view: str, body: str) -> _Answer:
        request = self._read("UpdateTableRequest", body)
        name = self._table(namespace, view)
        return self._ok(self._handlers.updateView(self._catalog, name, request))

    def _drop_view(self, namespace: str, view: str) -> _Answer:
        self._handlers.dropView(self._catalog, self._table(namespace, view))
        return _NOTHING

    def _rename_view(self, body: str) -> _Answer:
        self._handlers.renameView(self._catalog, self._read("RenameTableRequest", body))
        return _NOTHING


def _object_mapper(jvm: Any) -> Any:
    """JSON as the protocol has it; the Java library keeps its own mapper to itself."""
    jackson = jvm.org.apache.iceberg.shaded.com.fasterxml.jackson
    names = jackson.databind.PropertyNamingStrategies.KebabCaseStrategy()
    field = jackson.annotation.PropertyAccessor.FIELD
    unknown = jackson.databind.DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES
    mapper = jackson.databind.ObjectMapper()
    mapper.setVisibility(field, jackson.annotation.JsonAutoDetect.Visibility.ANY)
    mapper.configure(unknown, False)
    mapper.setPropertyNamingStrategy(names)
    jvm.org.apache.iceberg.rest.RESTSerializers.registerAll(mapper)
    return mapper


def _error(status: int, kind: str, message: str | None) -> _Answer:
    return status, json.dumps({"error": {"message": message or "", "type": kind, "code": status}})


@contextmanager
def java_server(spark: Any, folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Handlers over Java's JDBC catalog, in which there is nothing.

    Returns:
        their address, and the properties of a catalog of ours on the same database.
    """
    name = f"java_{folder.name}"
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{folder / 'catalog.db'}",
        ".jdbc.schema-version": "V1",
        ".warehouse": str(folder / "wh"),
        ".cache-enabled": "false",
    }
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
    behind = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": str(folder / "wh"),
        "name": name,
    }
    with rest_server(JavaHandlers(spark, name)) as uri:
        yield uri, behind


@contextmanager
def rest_server(handlers: JavaHandlers) -> Iterator[str]:
    """Serve on a free port of this machine; gives the address."""

    class Requests(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            status, text = handlers.answer(self.command, self.path, body)
            content = (text or "").encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_DELETE = _answer

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are not of interest."""

    with HTTPServer(("127.0.0.1", 0), Requests) as server:
        thread = Thread(target=server.serve_forever, name="rest-catalog", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
