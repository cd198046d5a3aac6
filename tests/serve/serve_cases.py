"""Servers for tests, and a check of every exchange against the specification's OpenAPI file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import yaml
from openapi_core import Config, OpenAPI
from openapi_core.testing import MockRequest, MockResponse

from frazil.catalog.config import load_catalog
from frazil.catalog.protocol import Catalog
from frazil.serve.rights.access import Tokens, read_tokens
from frazil.serve.server import CatalogServer
from frazil.serve.settings import Listening, ServeSettings
from open_api import open_api_text
from programs import Program

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "city", "type": "string", "required": False},
    ],
}
SQL = {"type": "sql", "sql": "SELECT 1", "dialect": "spark"}
VERSION: dict[str, Any] = {
    "version-id": 1,
    "timestamp-ms": 1000,
    "schema-id": 0,
    "summary": {"engine-name": "test"},
    "representations": [SQL],
    "default-namespace": ["a"],
}


def specification_file() -> dict[str, Any]:
    """The specification's file, but for what keeps a validator from using it.

    ``nullable`` is a word of OpenAPI 3.0 that 3.1 does not know. One kind of a value is to fit,
    and every text fits several; a partition may be NULL. A discriminator alone is no rule for a
    validator: the requirements that it maps to are written out.
    """
    content = _as_of_3_1(yaml.load(open_api_text(), yaml.CSafeLoader))
    value = content["components"]["schemas"]["PrimitiveTypeValue"]
    value["anyOf"] = [*value.pop("oneOf"), {"type": "null"}]
    schemas = content["components"]["schemas"]
    kinds = schemas["TableRequirement"]["discriminator"]["mapping"].values()
    requirements = schemas["CommitTableRequest"]["properties"]["requirements"]
    requirements["items"] = {"oneOf": [{"$ref": each} for each in kinds]}
    # The text says that the first request for pages has an empty token.
    token = content["components"]["parameters"]["page-token"]
    token |= {"schema": {"type": "string"}, "allowEmptyValue": True}
    # Who may ask is another test's matter.
    content.pop("security")
    return dict(content)


def _as_of_3_1(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_of_3_1(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {str(key): _as_of_3_1(each) for key, each in value.items()}
    if found.get("nullable") is True and isinstance(found.get("type"), str):
        found["type"] = [found["type"], "null"]
    return found


@cache
def specification() -> OpenAPI:
    """The specification; that the file itself is valid is not tested here."""
    return OpenAPI.from_dict(specification_file(), config=Config(spec_validator_cls=None))


@dataclass(frozen=True)
class Exchange:
    """A request and its answer, as the server has seen them."""

    method: str
    path: str
    query: dict[str, str]
    body: bytes
    status: int
    content: bytes
    content_type: str
    headers: dict[str, str] = field(default_factory=dict)

    def check_request(self) -> None:
        """Validate the request against the specification."""
        if self.path == "/health":
            return
        request = MockRequest(
            "https://localhost/",
            self.method.lower(),
            self._with_prefix(),
            args=self.query,
            headers=self.headers,
            data=self.body or None,
            content_type=self.headers.get("content-type", "application/json").split(";")[0],
        )
        specification().validate_request(request)

    def check(self) -> None:
        """Validate the answer against the specification."""
        if self.path == "/health" or self.method == "HEAD" or self.status == 304:
            return
        request = MockRequest(
            "https://localhost/",
            self.method.lower(),
            self._with_prefix(),
            args=self.query,
            data=self.body or None,
        )
        content = self.content.decode() if self.content else ""
        response = MockResponse(
            data=content.encode(), status_code=self.status, content_type=self.content_type
        )
        specification().validate_response(request, response)

    def _with_prefix(self) -> str:
        rest = self.path.removeprefix("/v1/")
        beside = rest == "config" or rest.startswith(("oauth/", "lake/"))
        return self.path if beside else f"/v1/prefix/{rest}"


@dataclass
class Recorder:
    """An ASGI application around the server's, which keeps every exchange."""

    app: Any
    exchanges: list[Exchange] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        asked, answered, status, kind = bytearray(), bytearray(), [0], [""]
        held: list[Any] = []

        async def received() -> Any:
            message = await receive()
            asked.extend(message.get("body", b""))
            return message

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
                headers = {name.lower(): value for name, value in message["headers"]}
                kind[0] = headers.get(b"content-type", b"").decode()
            answered.extend(message.get("body", b""))
            held.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                # Before the client has the answer, which may end with its head, and asks for more.
                self.exchanges.append(exchange())
                for each in held:
                    await send(each)

        def exchange() -> Exchange:
            return Exchange(
                scope["method"],
                scope["raw_path"].decode(),
                dict(httpx.QueryParams(scope["query_string"].decode())),
                bytes(asked),
                status[0],
                bytes(answered),
                kind[0],
                {name.decode().lower(): value.decode() for name, value in scope["headers"]},
            )

        await self.app(scope, received, sent)


@dataclass
class Running:
    """A server that runs."""

    uri: str
    catalog: Catalog
    recorder: Recorder

    def client(self, token: str | None = None, **more: Any) -> httpx.Client:
        """A client of HTTP for it."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.uri, headers=headers, timeout=30, **more)

    def check_exchanges(self) -> int:
        """Validate every answer so far; how many there were."""
        for exchange in self.recorder.exchanges:
            exchange.check()
        return len(self.recorder.exchanges)


@contextmanager
def running(
    catalog: Catalog,
    settings: ServeSettings | None = None,
    *,
    tokens: Tokens | None = None,
    port: int = 0,
    certificate: Path | None = None,
    key: Path | None = None,
    session_key: bytes | None = None,
) -> Iterator[Running]:
    """A server of a catalog in a thread of this process, on a free port."""
    where = Listening(port=port, certificate=certificate, key=key)
    server = CatalogServer(
        catalog, settings, listening=where, tokens=tokens, session_key=session_key
    )
    config = server._server.config
    recorder = Recorder(config.loaded_app)
    config.loaded_app = recorder
    thread = threading.Thread(target=server.serve, name="serve", daemon=True)
    thread.start()
    try:
        yield Running(server.uri, catalog, recorder)
    finally:
        server.stop()
        thread.join(20)
        assert not thread.is_alive()


def started(folder: Path, *options: str, port: int = 0, **variables: str) -> tuple[Program, str]:
    """The command `frazil serve` in a process of its own, and its address.

    Args:
        variables: of its environment.
    """
    before = [each for each in options if each.startswith("--uri=")]
    after = [each for each in options if each not in before]
    arguments = ["--catalog", "lake", "--warehouse", folder, *before, "serve", "--port", port]
    server = Program(
        "frazil.cli", *arguments, *after, variables={"COVERAGE_PROCESS_START": "", **variables}
    )
    try:
        server.wait_until(lambda: server.has_printed(1))
        assert "is served on" in server.lines[0], server.said
    except BaseException:
        server.kill()
        raise
    return server, server.lines[0].split()[-1]


def tokens_of(folder: Path, text: str, name: str = "tokens.yaml") -> Tokens:
    """The tokens of a file that holds the text."""
    file = folder / name
    file.write_text(text)
    return read_tokens(file)


def sql_catalog(folder: Path, **more: str) -> Catalog:
    """A catalog on SQLite in a folder."""
    return load_catalog("lake", warehouse=str(folder), **more)


def namespace(client: httpx.Client, *levels: str, **properties: str) -> None:
    """Make a namespace."""
    body = {"namespace": list(levels), "properties": properties}
    assert client.post("/v1/namespaces", json=body).status_code == 200


def table(client: httpx.Client, levels: str, name: str, **more: Any) -> httpx.Response:
    """Make a table; levels as they stand in a path."""
    body = {"name": name, "schema": SCHEMA, **more}
    return client.post(f"/v1/namespaces/{levels}/tables", json=body)


def view(client: httpx.Client, levels: str = "a", name: str = "v", **more: Any) -> httpx.Response:
    """Make a view; levels as they stand in a path."""
    body = {"name": name, "schema": SCHEMA, "view-version": VERSION, "properties": {}, **more}
    return client.post(f"/v1/namespaces/{levels}/views", json=body)


def set_property(client: httpx.Client, path: str, key: str, value: str, **more: Any) -> Any:
    """Commit a property to a table."""
    updates = [{"action": "set-properties", "updates": {key: value}}]
    return client.post(path, json={"requirements": [], "updates": updates, **more})
