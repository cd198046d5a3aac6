"""Remote signing: the server signs each request for a table's files on S3, and gives no keys.

A signature is asked for with the table's own login. One for a read that the server allows to keep
(``Cache-Control: private``) is used again for the same request, for half a minute.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.rest import routes
from frazil.catalog.rest.client import RestClient, RestRequest
from frazil.catalog.rest.connection import Connection
from frazil.catalog.rest.exchange.opening import transport_of
from frazil.catalog.rest.login.base import HeaderAuthenticator
from frazil.catalog.rest.login.sigv4 import SigV4Authenticator
from frazil.catalog.rest.settings import (
    CA_BUNDLE,
    CLIENT_CERTIFICATE,
    CLIENT_KEY,
    MAX_RETRIES,
    SIGNER_ENDPOINT,
    SIGNER_URI,
    SIGNING,
    origin_of,
)
from frazil.errors import ConfigurationError, StorageError, UnsupportedError
from frazil.storage.caches import Caches
from frazil.storage.files import FileIO
from frazil.storage.stores.open import store_key
from frazil.storage.stores.remote_options import S3_SCHEMES
from frazil.storage.stores.signed import SignedRequest, StoreRequest, signed_store
from frazil.storage.stores.store import Store

_CONFIG: Final = "remote-signing-config"
_OLD_ENDPOINT: Final = "v1/aws/s3/sign"
_KEPT_SECONDS: Final = 30.0
_MOST_KEPT: Final = 1000
_TLS: Final = (CA_BUNDLE, CLIENT_CERTIFICATE, CLIENT_KEY)


def is_signed(body: Mapping[str, Any], properties: Mapping[str, str]) -> bool:
    """Whether a server that answered so wants to sign the requests for a table's files."""
    return _CONFIG in body or properties.get(SIGNING, "").lower() == "true"


@dataclass(frozen=True, slots=True)
class SigningPlace:
    """Where signatures of a table's requests come from.

    Attributes:
        uri: the signer's address.
        path: below it.
        what: what is asked, for messages.
        token: of requests about this table; the catalog's login without.
        properties: that go with each request.
        headers: that go with each request.
    """

    uri: str
    path: str
    what: str
    token: str | None = field(default=None, repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        connection: Connection,
        name: Identifier,
        body: Mapping[str, Any],
        config: Mapping[str, str],
        token: str | None,
    ) -> SigningPlace:
        """Return what an answer means.

        Raises ConfigurationError where the signer's address is without TLS and the catalog's is
        not.
        """
        signing = _object(body, _CONFIG, name)
        properties, headers = (_object(signing, part, name) for part in ("properties", "headers"))
        merged = {**connection.properties, **config}
        uri = _first_property(merged, SIGNER_URI) or connection.client.uri
        path = _first_property(merged, SIGNER_ENDPOINT)
        if path is None:
            has_own = _CONFIG in body or connection.has_endpoint(routes.SIGN_REQUEST)
            path = connection.routes.table(name, "sign") if has_own else _OLD_ENDPOINT
        if path.startswith(("http://", "https://")):
            parts = urlsplit(path)
            uri, path = f"{parts.scheme}://{parts.netloc}", path.split(parts.netloc, 1)[1]
        return cls(
            uri.rstrip("/"),
            path.lstrip("/"),
            f"sign a request for the files of the table {shown(name)}",
            token,
            {str(key): str(value) for key, value in properties.items()},
            {str(key): ", ".join(map(str, _as_list(value))) for key, value in headers.items()},
        )


def _object(body: Mapping[str, Any], part: str, name: Identifier) -> Mapping[str, Any]:
    found = body.get(part)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise StorageError(f"the server answered with a malformed {_CONFIG} of {shown(name)}")
    return found


class RemoteSigner:
    """Asks a server for signatures; safe under threads."""

    def __init__(self, client: RestClient, place: SigningPlace) -> None:
        self._client = client
        self._place = place
        self._lock = threading.Lock()
        self._kept: dict[StoreKey, tuple[float, SignedRequest]] = {}

    def sign(self, request: StoreRequest) -> SignedRequest:
        key = (request.method, request.url, tuple(sorted(request.headers.items())))
        now = time.monotonic()
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and now < kept[0]:
            return kept[1]
        place = self._place
        asked: dict[str, Any] = {
            "region": request.region,
            "uri": request.url,
            "method": request.method,
            "headers": {name: [value] for name, value in request.headers.items()},
            "provider": "s3",
        }
        asked |= {"properties": dict(place.properties)} if place.properties else {}
        asked |= {} if request.body is None else {"body": request.body}
        answer = self._client.read(
            RestRequest(
                "POST",
                place.path,
                place.what,
                body=asked,
                headers=place.headers,
                token=place.token,
            )
        )
        signed = _signed_request(answer.json(), request, place.what)
        may_keep = "private" in answer.headers.get("cache-control", "").lower()
        if request.method in ("GET", "HEAD") and may_keep:
            with self._lock:
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.clear()
                self._kept[key] = (now + _KEPT_SECONDS, signed)
        return signed


StoreKey = tuple[str, str, tuple[tuple[str, str], ...]]


class SignedFileIO(FileIO):
    """Files of a table whose requests to S3 the server signs.

    Args:
        properties: of stores.
        connection: to the catalog's server.
        place: where signatures come from.
        caches: those of the catalog.
    """

    signed_schemes = S3_SCHEMES

    def __init__(
        self,
        properties: Mapping[str, str],
        connection: Connection,
        place: SigningPlace,
        *,
        caches: Caches | None = None,
    ) -> None:
        super().__init__(properties, caches=caches)
        self._place = place
        self._client = connection.client.at_address(place.uri)
        self._settings = {
            name: text
            for name, text in connection.properties.items()
            if name in _TLS or name.startswith("rest.client.")
        }
        self._signer = RemoteSigner(self._client, place)

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs: the login goes with it as it is now, and is not renewed.

        Raises UnsupportedError where the login signs each request by itself.
        """
        login = self._client.authenticator
        if isinstance(login, SigV4Authenticator):
            raise UnsupportedError(
                "executors cannot ask the server to sign requests for the table's files where the "
                "catalog logs in with SigV4: log in with a token"
            )
        headers = login.with_login("POST", f"{self._place.uri}/{self._place.path}", {}, b"")
        return {
            **super().__getstate__(),
            "place": self._place,
            "login": headers.get("Authorization"),
            "settings": self._settings,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._place, self._settings = state["place"], state["settings"]
        transport = transport_of(self._settings)
        self._client = RestClient(
            transport,
            self._place.uri,
            authenticator=HeaderAuthenticator(state["login"] or ""),
            headers={"User-Agent": "frazil", "Accept": "application/json"},
            secrets={},
            max_retries=MAX_RETRIES.of(self._settings),
        )
        self._signer = RemoteSigner(self._client, self._place)

    def _store(self, path: str) -> Store:
        scheme, authority = store_key(path)
        if scheme not in self.signed_schemes:
            return super()._store(path)
        key = (os.getpid(), scheme, authority)
        if key not in self._stores:
            self._stores[key] = signed_store(self.properties, self._signer)
        return self._stores[key]


def _signed_request(body: Any, request: StoreRequest, what: str) -> SignedRequest:
    uri = body.get("uri") if isinstance(body, dict) else None
    headers = body.get("headers") if isinstance(body, dict) else None
    if not isinstance(uri, str) or not isinstance(headers, dict):
        raise StorageError(f"cannot {what}: the server answered without uri or headers")
    try:
        origin_of(uri)
    except ConfigurationError:
        raise StorageError(f"cannot {what}: the server answered with a uri that is none") from None
    if request.url.startswith("https://") and not uri.startswith("https://"):
        raise StorageError(f"cannot {what}: the server answered with a uri without TLS")
    return SignedRequest(
        uri, {str(name): ", ".join(map(str, _as_list(value))) for name, value in headers.items()}
    )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _first_property(properties: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((properties[name] for name in names if properties.get(name)), None)
