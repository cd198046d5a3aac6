"""A server once it has said what it wants: its configuration, its endpoints, its routes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from frazil.catalog.rest import routes
from frazil.catalog.rest.client import RestClient, RestRequest
from frazil.catalog.rest.exchange.answers import Refusals
from frazil.catalog.rest.exchange.opening import transport_of
from frazil.catalog.rest.login.base import Authenticator
from frazil.catalog.rest.login.choice import authenticator_of, login_settings
from frazil.catalog.rest.settings import (
    AUTH_PREFIX,
    CREDENTIAL,
    MAX_RETRIES,
    NAMESPACE_SEPARATOR,
    PREFIX,
    VIEW_ENDPOINTS,
    custom_headers,
    origin_of,
)
from frazil.errors import ConfigurationError, NotFoundError, StorageError, UnsupportedError
from frazil.storage.paths import is_secret

if TYPE_CHECKING:
    from frazil.catalog.rest.exchange.transport import Transport

_DELEGATION: Final = "X-Iceberg-Access-Delegation"
_AGENT: Final = {"User-Agent": "frazil", "Accept": "application/json"}
_DURATION: Final = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d+)?S)?)?", re.ASCII
)
_SECONDS: Final = (86_400, 3_600, 60, 1)


@dataclass(frozen=True, slots=True)
class Connection:
    """A catalog's server.

    Attributes:
        client: sends requests.
        routes: its paths.
        endpoints: those that it has.
        properties: the server's defaults, the catalog's own, and the server's overrides.
    """

    client: RestClient
    routes: routes.Routes
    endpoints: frozenset[str]
    properties: Mapping[str, str] = field(repr=False)

    def has_endpoint(self, endpoint: str) -> bool:
        """Whether the server has an endpoint."""
        return endpoint in self.endpoints

    def is_there(
        self,
        path: str,
        what: str,
        *,
        head: str,
        refusals: Refusals,
        missing: tuple[type[NotFoundError], ...],
    ) -> bool:
        """Whether the server has what a path names, by the lighter endpoint if it offers that.

        Args:
            head: the endpoint that answers without a body.
            missing: the errors that say that it is not there.
        """
        method = "HEAD" if self.has_endpoint(head) else "GET"
        try:
            self.client.read(RestRequest(method, path, what, refusals=refusals))
        except missing:
            return False
        return True

    def request(
        self,
        endpoint: str,
        path: str,
        what: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        token: str | None = None,
        refusals: Refusals,
    ) -> RestRequest:
        """Return a request to an endpoint; UnsupportedError if the server does not have it."""
        if endpoint not in self.endpoints:
            raise UnsupportedError(
                f"cannot {what}: the server of the REST catalog does not offer {endpoint}"
            )
        method = endpoint.partition(" ")[0]
        return RestRequest(
            method, path, what, params or {}, body=body, token=token, refusals=refusals
        )


def connect(name: str, properties: Mapping[str, str]) -> Connection:
    """Ask a server for its configuration.

    Raises StorageError: the server does not answer.
    """
    uri = properties.get("uri", "").rstrip("/")
    if not uri:
        raise ConfigurationError(
            f"the REST catalog {name} needs the property uri, such as https://host/catalog"
        )
    origin_of(uri)
    transport = transport_of(properties)
    try:
        return _connection_to(uri, properties, transport)
    except BaseException:
        transport.close()
        raise


def _connection_to(uri: str, properties: Mapping[str, str], transport: Transport) -> Connection:
    login = authenticator_of(uri, properties, transport)
    client = _client(uri, properties, transport, login)
    warehouse = properties.get("warehouse")
    request = RestRequest(
        "GET",
        "v1/config",
        "read the configuration of the REST catalog",
        params={} if warehouse is None else {"warehouse": warehouse},
        refusals=Refusals(invalid=ConfigurationError, missing=ConfigurationError),
    )
    try:
        answer = client.read(request).json()
    except NotFoundError as error:
        raise ConfigurationError(str(error)) from None
    # How this side logs in is its own choice: a server must not name a class that is run here.
    defaults, overrides = (
        {
            name: text
            for name, text in _texts(answer, kind).items()
            if not name.startswith(AUTH_PREFIX)
        }
        for kind in ("defaults", "overrides")
    )
    merged = {**defaults, **properties, **overrides}
    merged |= {"type": properties["type"]} if "type" in properties else {}
    there = merged["uri"].rstrip("/")
    if there != uri:
        origin_of(there)
        if urlsplit(uri).scheme == "https" and urlsplit(there).scheme != "https":
            raise ConfigurationError("the server names an address without TLS as its own (uri)")
    if login_settings(merged) != login_settings(properties) or there != uri:
        login = authenticator_of(there, merged, transport)
    final = _client(there, merged, transport, login)
    final.key_lifetime_seconds = _lifetime(answer.get("idempotency-key-lifetime"))
    return Connection(
        final,
        routes.Routes.of(merged.get(PREFIX), merged.get(NAMESPACE_SEPARATOR)),
        _endpoints(answer.get("endpoints"), merged),
        merged,
    )


def _client(
    uri: str, properties: Mapping[str, str], transport: Transport, login: Authenticator
) -> RestClient:
    given = custom_headers(properties)
    names = {name.lower() for name in given}
    delegation = {} if _DELEGATION.lower() in names else {_DELEGATION: "vended-credentials"}
    return RestClient(
        transport,
        uri,
        authenticator=login,
        headers={**_AGENT, **delegation, **given},
        secrets={
            name: value
            for name, value in properties.items()
            if is_secret(name) or name.startswith("urn:")
        }
        | {"client secret": properties.get(CREDENTIAL, "").partition(":")[2]},
        max_retries=MAX_RETRIES.of(properties),
    )


def _texts(answer: Mapping[str, Any], name: str) -> dict[str, str]:
    """A map of texts; nulls are left out, as servers write them for what is not set."""
    found = answer.get(name) or {}
    if not isinstance(found, dict):
        raise StorageError(f"the REST catalog's server answered with {name} that are no properties")
    return {key: _text(value) for key, value in found.items() if value is not None}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _endpoints(named: object, properties: Mapping[str, str]) -> frozenset[str]:
    if not isinstance(named, list) or not named:
        has_views = VIEW_ENDPOINTS.of(properties)
        return routes.DEFAULT_ENDPOINTS | (routes.VIEW_ENDPOINTS if has_views else frozenset())
    parts = [str(each).split() for each in named]
    return frozenset(f"{each[0].upper()} {each[1]}" for each in parts if len(each) == 2)


def _lifetime(duration: object) -> float:
    """The seconds of an ISO duration; one that cannot be read is taken for a minute."""
    if not isinstance(duration, str):
        return 0.0
    found = _DURATION.fullmatch(duration)
    if found is None or not any(found.groups()):
        return 60.0
    return float(
        sum(
            int(part) * seconds
            for part, seconds in zip(found.groups(), _SECONDS, strict=True)
            if part
        )
    )
