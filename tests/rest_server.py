"""A small server of the REST protocol over a catalog of Frazil, for tests, with faults on demand.

It checks requirements alone, as servers do. Tests that need no faults may use another server.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frazil import errors
from frazil.catalog.protocol import LoadedTable, LoadedView
from frazil.format.changes import check_requirements, requirement_from_json, update_from_json
from frazil.format.json_fields import JsonObject
from frazil.format.metadata import metadata_to_json
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import UNPARTITIONED, PartitionSpec
from frazil.format.schema import Schema
from frazil.format.sorting import UNSORTED, SortOrder
from frazil.format.views import (
    view_metadata_to_json,
    view_requirement_from_json,
    view_update_from_json,
    view_version_from_json,
)
from requirements_catalog import RequirementsCatalog

NAMES: list[tuple[type[Exception], int, str]] = [
    (errors.NoSuchNamespaceError, 404, "NoSuchNamespaceException"),
    (errors.NoSuchTableError, 404, "NoSuchTableException"),
    (errors.NoSuchViewError, 404, "NoSuchViewException"),
    (errors.MissingFileError, 404, "NotFoundException"),
    (errors.NamespaceNotEmptyError, 409, "NamespaceNotEmptyException"),
    (errors.AlreadyExistsError, 409, "AlreadyExistsException"),
    (errors.CommitFailedError, 409, "CommitFailedException"),
    (errors.CommitStateUnknownError, 500, "CommitStateUnknownException"),
    (errors.UnsupportedError, 406, "UnsupportedOperationException"),
    (errors.InvalidFormatError, 400, "BadRequestException"),
    (errors.ValidationError, 400, "BadRequestException"),
    (errors.ConfigurationError, 400, "BadRequestException"),
]


@dataclass
class Fault:
    """What goes wrong once: an answer in place of the work, after it, or a broken connection."""

    method: str = "POST"
    ends: str = ""
    status: int | None = 500
    after: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    delay: float = 0.0
    do: Callable[[], None] | None = None
    content: bytes | None = None

    def fits(self, method: str, path: str) -> bool:
        return self.times > 0 and method == self.method and path.endswith(self.ends)


@dataclass
class Exchange:
    """A request and its answer, as they were."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    status: int
    answered: dict[str, str]
    content: bytes


class Server:
    """The protocol over one catalog.

    Attributes:
        config: the answer to the first request; `endpoints` is added unless `names_endpoints`.
        table: what is added to each table's answer: its config, its storage-credentials.
        view: what is added to each view's answer.
        knows_refs: whether it can leave out the snapshots that no branch or tag is at.
        cuts_logs: whether it leaves their entries of the log of snapshots out too.
        clock: how many seconds its clock is ahead of this machine's.
    """

    def __init__(self, catalog: RequirementsCatalog, prefix: str = "main") -> None:
        self.catalog = catalog
        self.prefix = prefix
        self.config: dict[str, Any] = {"defaults": {}, "overrides": {"prefix": prefix}}
        self.names_endpoints = True
        self.table: dict[str, Any] = {}
        self.view: dict[str, Any] = {"config": {}}
        self.credentials: list[dict[str, Any]] = []
        self.etags = True
        self.knows_refs = True
        self.cuts_logs = False
        self.page = 2
        self.clock = 0.0
        self.check: Callable[[Request], bool] = lambda _: True
        self.grants: Callable[[dict[str, str]], tuple[int, dict[str, Any]]] | None = None
        self.faults: list[Fault] = []
        self.exchanges: list[Exchange] = []
        self.address = ""
        self._lock = threading.Lock()
        table, view = "namespaces/{ns}/tables/{name}", "namespaces/{ns}/views/{name}"
        self.routes: dict[str, Callable[..., Any]] = {
            "GET namespaces": self._namespaces,
            "POST namespaces": self._create_namespace,
            "GET namespaces/{ns}": self._namespace,
            "HEAD namespaces/{ns}": self._namespace,
            "DELETE namespaces/{ns}": lambda r, ns: self.catalog.drop_namespace(ns),
            "POST namespaces/{ns}/properties": self._properties,
            "GET namespaces/{ns}/tables": self._tables,
            "POST namespaces/{ns}/tables": self._create_table,
            "POST namespaces/{ns}/register": self._register,
            f"GET {table}": self._load,
            f"HEAD {table}": self._head,
            f"POST {table}": self._commit,
            f"DELETE {table}": self._drop,
            f"POST {table}/unregister": self._unregister,
            f"POST {table}/metrics": lambda r, ns, name: None,
            f"GET {table}/credentials": lambda r, ns, name: {
                "storage-credentials": self.credentials
            },
            "POST tables/rename": self._rename,
            "POST transactions/commit": self._transaction,
            "GET namespaces/{ns}/views": self._views,
            "POST namespaces/{ns}/views": self._create_view,
            "POST namespaces/{ns}/register-view": self._register_view,
            f"GET {view}": lambda r, ns, name: self._view(self.catalog.load_view((*ns, name))),
            f"HEAD {view}": self._head_view,
            f"POST {view}": self._replace_view,
            f"DELETE {view}": lambda r, ns, name: self.catalog.drop_view((*ns, name)),
            "POST views/rename": self._rename_view,
        }

    async def answer(self, request: Request) -> Response:
        body = await request.body()
        path = request.scope["raw_path"].decode()
        fault = next((each for each in self.faults if each.fits(request.method, path)), None)
        if fault is not None:
            fault.times -= 1
        response = await run_in_threadpool(self._answered, request, path, body, fault)
        query = request.scope["query_string"].decode()
        headers = dict(request.headers)
        answered = dict(response.headers)
        self.exchanges.append(
            Exchange(
                request.method,
                path,
                query,
                headers,
                body,
                response.status_code,
                answered,
                bytes(response.body),
            )
        )
        if fault is not None and fault.status is None:
            return _Broken()
        response.headers["date"] = formatdate(time.time() + self.clock, usegmt=True)
        return response

    def _answered(self, request: Request, path: str, body: bytes, fault: Fault | None) -> Response:
        if fault is not None:
            time.sleep(fault.delay)
            if fault.do is not None:
                fault.do()
        done = fault is None or fault.after
        response = self._done(request, path, body) if done else Response(status_code=500)
        if fault is None or fault.status in (None, 200):
            return response
        message = {"message": "it broke\x07\nhere", "type": "Broken", "code": fault.status}
        content = json.dumps({"error": message}) if fault.content is None else fault.content
        head = {"content-type": "application/json", **fault.headers}
        return Response(content, fault.status, headers=head)

    def _done(self, request: Request, path: str, body: bytes) -> Response:
        if path == "/v1/oauth/tokens" and self.grants is not None:
            pairs = (each.split("=", 1) for each in body.decode().split("&"))
            form = {key: unquote(value.replace("+", " ")) for key, value in pairs}
            status, granted = self.grants(form)
            return _json(granted, status)
        if not self.check(request):
            return _error(401, "NotAuthorizedException", "who are you?")
        if path == "/v1/config":
            named = [f"{r.split()[0]} /v1/{{prefix}}/{r.split()[1]}" for r in self.routes]
            named = [r.replace("{ns}", "{namespace}") for r in named]
            named = [
                r.replace("s/{name}", "s/{view}" if "views" in r else "s/{table}") for r in named
            ]
            return _json({**self.config, **({"endpoints": named} if self.names_endpoints else {})})
        parts = path.split("/")[2:]
        if self.prefix and parts.pop(0) != self.prefix:
            return _error(404, "NotFoundException", "no such prefix")
        for route, handler in self.routes.items():
            method, _, template = route.partition(" ")
            words = template.split("/")
            pairs = list(zip(words, parts, strict=False))
            if (method, len(words)) == (request.method, len(parts)) and all(
                word[0] == "{" or word == part for word, part in pairs
            ):
                values = {w[1:-1]: unquote(p) for w, p in pairs if w[0] == "{"}
                if "ns" in values:
                    separator = unquote(self.config["overrides"].get("namespace-separator", "%1F"))
                    values["ns"] = tuple(values["ns"].split(separator))
                request.scope["content"] = json.loads(body) if body else {}
                return self._handled(handler, request, values)
        return _error(404, "NotFoundException", f"no route for {path}")

    def _handled(self, handler: Any, request: Request, values: dict[str, Any]) -> Response:
        try:
            found = handler(request, **values)
        except errors.FrazilError as error:
            known = (each for each in NAMES if isinstance(error, each[0]))
            _, status, name = next(known, (Exception, 500, "InternalServerError"))
            return _error(status, name, str(error))
        if isinstance(found, Response):
            return found
        return Response(status_code=204) if found is None else _json(found)

    def _paged(self, request: Request, name: str, items: list[Any]) -> dict[str, Any]:
        token = request.query_params.get("pageToken")
        if token is None:
            return {name: items, "next-page-token": None}
        start = int(token or 0)
        size = min(self.page, int(request.query_params.get("pageSize", self.page)))
        more = str(start + size) if start + size < len(items) else None
        return {name: items[start : start + size], "next-page-token": more}

    def _namespaces(self, request: Request) -> Any:
        parent = request.query_params.get("parent", "")
        found = self.catalog.list_namespaces(tuple(parent.split("\x1f")) if parent else ())
        return self._paged(request, "namespaces", [list(each) for each in found])

    def _create_namespace(self, request: Request) -> Any:
        body = request.scope["content"]
        self.catalog.create_namespace(tuple(body["namespace"]), body.get("properties"))
        return {"namespace": body["namespace"], "properties": body.get("properties", {})}

    def _namespace(self, request: Request, ns: Any) -> Any:
        found = self.catalog.load_namespace_properties(ns)
        return None if request.method == "HEAD" else {"namespace": list(ns), "properties": found}

    def _properties(self, request: Request, ns: Any) -> Any:
        body = request.scope["content"]
        before = self.catalog.load_namespace_properties(ns)
        updates, removals = body.get("updates", {}), body.get("removals", [])
        self.catalog.update_namespace_properties(ns, updates=updates, removals=removals)
        there = [each for each in removals if each in before]
        gone = [each for each in removals if each not in before]
        return {"updated": sorted(updates), "removed": there, "missing": gone}

    def _tables(self, request: Request, ns: Any) -> Any:
        found = self.catalog.list_tables(ns)
        items = [{"namespace": list(each[:-1]), "name": each[-1]} for each in found]
        return self._paged(request, "identifiers", items)

    def _create_table(self, request: Request, ns: Any) -> Any:
        body = request.scope["content"]
        name = (*ns, body["name"])
        spec, order = body.get("partition-spec"), body.get("write-order")
        metadata = new_table_metadata(
            Schema.from_json(body["schema"]),
            UNPARTITIONED if spec is None else PartitionSpec.from_json(spec),
            UNSORTED if order is None else SortOrder.from_json(order),
            location=body.get("location") or self.catalog.default_table_location(name),
            properties=body.get("properties", {}),
        )
        staged = self.catalog.stage_table(name, metadata)
        if body.get("stage-create"):
            return {"metadata": metadata_to_json(metadata), "config": {}, **self.table}
        return self._table(self.catalog.create_staged_table(staged))

    def _register(self, request: Request, ns: Any) -> Any:
        body = request.scope["content"]
        found = self.catalog.register_table((*ns, body["name"]), body["metadata-location"])
        return self._table(found)

    def _load(self, request: Request, ns: Any, name: str) -> Any:
        loaded = self.catalog.load_table((*ns, name))
        if self.etags and request.headers.get("if-none-match") == _etag(loaded):
            return Response(status_code=304)
        if self.knows_refs and request.query_params.get("snapshots") == "refs":
            wanted = {ref.snapshot_id for ref in loaded.metadata.refs.values()}
            few = [each for each in loaded.metadata.snapshots if each.snapshot_id in wanted]
            metadata = replace(loaded.metadata, snapshots=tuple(few))
            if self.cuts_logs:
                log = [e for e in metadata.snapshot_log if e.snapshot_id in wanted][-1:]
                metadata = replace(metadata, snapshot_log=tuple(log))
            loaded = replace(loaded, metadata=metadata)
        return self._table(loaded)

    def _head(self, request: Request, ns: Any, name: str) -> None:
        if not self.catalog.table_exists((*ns, name)):
            raise errors.NoSuchTableError(name)

    def _commit(self, request: Request, ns: Any, name: str) -> Any:
        body = request.scope["content"]
        wanted = [requirement_from_json(each) for each in body["requirements"]]
        updates = [update_from_json(each) for each in body["updates"]]
        with self._lock:
            return self._table(self.catalog.commit_table((*ns, name), wanted, updates))

    def _transaction(self, request: Request) -> None:
        with self._lock:
            commits = []
            for each in request.scope["content"]["table-changes"]:
                name = (*each["identifier"]["namespace"], each["identifier"]["name"])
                wanted = [requirement_from_json(one) for one in each["requirements"]]
                check_requirements(self.catalog.load_table(name).metadata, wanted)
                commits.append((name, wanted, [update_from_json(u) for u in each["updates"]]))
            for commit in commits:
                self.catalog.commit_table(*commit)

    def _drop(self, request: Request, ns: Any, name: str) -> None:
        purge = request.query_params.get("purgeRequested") == "true"
        (self.catalog.purge_table if purge else self.catalog.drop_table)((*ns, name))

    def _unregister(self, request: Request, ns: Any, name: str) -> Any:
        loaded = self.catalog.load_table((*ns, name))
        self.catalog.drop_table((*ns, name))
        location = loaded.metadata_location
        return {"metadata-location": location, "metadata": metadata_to_json(loaded.metadata)}

    def _rename(self, request: Request) -> None:
        body = request.scope["content"]
        names = [(*body[k]["namespace"], body[k]["name"]) for k in ("source", "destination")]
        self.catalog.rename_table(*names)

    def _views(self, request: Request, ns: Any) -> Any:
        found = self.catalog.list_views(ns)
        items = [{"namespace": list(each[:-1]), "name": each[-1]} for each in found]
        return self._paged(request, "identifiers", items)

    def _create_view(self, request: Request, ns: Any) -> Any:
        body = request.scope["content"]
        made = self.catalog.create_view(
            (*ns, body["name"]),
            Schema.from_json(body["schema"]),
            view_version_from_json(JsonObject(body["view-version"])),
            location=body.get("location"),
            properties=body["properties"],
        )
        return self._view(made)

    def _register_view(self, request: Request, ns: Any) -> Any:
        body = request.scope["content"]
        name = (*ns, body["name"])
        return self._view(self.catalog.register_view(name, body["metadata-location"]))

    def _head_view(self, request: Request, ns: Any, name: str) -> None:
        if not self.catalog.view_exists((*ns, name)):
            raise errors.NoSuchViewError(name)

    def _replace_view(self, request: Request, ns: Any, name: str) -> Any:
        body = request.scope["content"]
        wanted = [view_requirement_from_json(each) for each in body["requirements"]]
        updates = [view_update_from_json(each) for each in body["updates"]]
        with self._lock:
            return self._view(self.catalog.commit_view((*ns, name), wanted, updates))

    def _rename_view(self, request: Request) -> None:
        body = request.scope["content"]
        names = [(*body[k]["namespace"], body[k]["name"]) for k in ("source", "destination")]
        self.catalog.rename_view(*names)

    def _view(self, loaded: LoadedView) -> Response:
        body = {
            "metadata-location": loaded.metadata_location,
            "metadata": view_metadata_to_json(loaded.metadata),
            **self.view,
        }
        return _json(body)

    def _table(self, loaded: LoadedTable) -> Response:
        body = {
            "metadata-location": loaded.metadata_location,
            "metadata": metadata_to_json(loaded.metadata),
            "config": {},
            **self.table,
        }
        return _json(body, headers={"etag": _etag(loaded)} if self.etags else {})


class _Broken(Response):
    """An answer that begins, and then the connection breaks."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"10")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})


def _etag(loaded: LoadedTable) -> str:
    return f'"{loaded.metadata_location}"'


def _json(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(body), status, headers, media_type="application/json")


def _error(status: int, kind: str, message: str) -> Response:
    return _json({"error": {"message": message, "type": kind, "code": status}}, status)


@contextmanager
def served(server: Server) -> Iterator[Server]:
    """Serve on a free port of this machine."""
    methods = ["GET", "HEAD", "POST", "DELETE"]
    app = Starlette(routes=[Route("/{path:path}", server.answer, methods=methods)])
    config = uvicorn.Config(
        app, "127.0.0.1", 0, log_level="critical", access_log=False, date_header=False
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, name="rest-server", daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    port = running.servers[0].sockets[0].getsockname()[1]
    server.address = f"http://127.0.0.1:{port}"
    try:
        yield server
    finally:
        running.should_exit = True
        thread.join(10)
