"""Properties of the REST catalog: PyIceberg's and Java's names, and what they mean."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from frazil.errors import ConfigurationError
from frazil.format.properties.kinds import FLAG, Property, one_of, optional, whole_number

TOKEN: Final = "token"  # noqa: S105
CREDENTIAL: Final = "credential"
OAUTH2_SERVER: Final = "oauth2-server-uri"
SCOPE: Final = "scope"
AUDIENCE: Final = "audience"
RESOURCE: Final = "resource"
PREFIX: Final = "prefix"
NAMESPACE_SEPARATOR: Final = "namespace-separator"
HEADER_PREFIX: Final = "header."
AUTH_PREFIX: Final = "auth."
SUBJECT_TOKENS: Final = tuple(
    f"urn:ietf:params:oauth:token-type:{kind}"
    for kind in ("id_token", "access_token", "jwt", "saml2", "saml1")
)
"""Tokens of a user, by their type: the first of these that is set is exchanged."""

CA_BUNDLE: Final = "ssl.cabundle"
CLIENT_CERTIFICATE: Final = "ssl.client.cert"
CLIENT_KEY: Final = "ssl.client.key"

SIGNING: Final = "s3.remote-signing-enabled"
SIGNER_URI: Final = ("s3.signer.uri", "signer.uri")
SIGNER_ENDPOINT: Final = ("s3.signer.endpoint", "signer.endpoint")

SIGV4_NAME: Final = "rest.signing-name"
SIGV4_REGION: Final = "rest.signing-region"
SIGV4_KEYS: Final = ("rest.access-key-id", "rest.secret-access-key", "rest.session-token")

_MILLISECONDS: Final = whole_number("milliseconds", smallest=1)
CONNECT_TIMEOUT: Final = Property("rest.client.connection-timeout-ms", _MILLISECONDS, 30_000)
READ_TIMEOUT: Final = Property("rest.client.socket-timeout-ms", _MILLISECONDS, 60_000)
MAX_RETRIES: Final = Property("rest.client.max-retries", whole_number(largest=100), 5)
MAX_CONNECTIONS: Final = Property("rest.client.max-connections", whole_number(smallest=1), 100)
PAGE_SIZE: Final = Property("rest-page-size", optional(whole_number(smallest=1)), None)
REPORTS_METRICS: Final = Property("rest-metrics-reporting-enabled", FLAG, True)
SNAPSHOT_LOADING: Final = Property("snapshot-loading-mode", one_of("all", "refs"), "all")
TOKEN_REFRESH: Final = Property("token-refresh-enabled", FLAG, True)
TOKEN_LIFETIME: Final = Property("token-expires-in-ms", optional(_MILLISECONDS), None)
SIGV4: Final = Property("rest.sigv4-enabled", FLAG, False)
VIEW_ENDPOINTS: Final = Property("view-endpoints-supported", FLAG, False)

PROPERTY_NAMES: Final = frozenset(
    {
        *(TOKEN, CREDENTIAL, OAUTH2_SERVER, SCOPE, AUDIENCE, RESOURCE, PREFIX),
        *(NAMESPACE_SEPARATOR, CA_BUNDLE, CLIENT_CERTIFICATE, CLIENT_KEY),
        *(SIGV4_NAME, SIGV4_REGION, *SIGV4_KEYS, *SUBJECT_TOKENS),
        *(SIGNING, *SIGNER_URI, *SIGNER_ENDPOINT),
        *(
            each.name
            for each in (
                *(CONNECT_TIMEOUT, READ_TIMEOUT, MAX_RETRIES, MAX_CONNECTIONS, PAGE_SIZE),
                *(REPORTS_METRICS, SNAPSHOT_LOADING, TOKEN_REFRESH, TOKEN_LIFETIME, SIGV4),
                VIEW_ENDPOINTS,
            )
        ),
    }
)
PROPERTY_PREFIXES: Final = (HEADER_PREFIX, AUTH_PREFIX)


@dataclass(frozen=True, slots=True)
class TransportSettings:
    """How a server is reached.

    Attributes:
        connect_seconds: until a connection stands.
        read_seconds: how long the server may be silent.
        max_connections: at the same time.
    """

    connect_seconds: float
    read_seconds: float
    max_connections: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> TransportSettings:
        """Return what the properties say."""
        return cls(
            CONNECT_TIMEOUT.of(properties) / 1000,
            READ_TIMEOUT.of(properties) / 1000,
            MAX_CONNECTIONS.of(properties),
        )


def tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Return how servers are verified; there is no way to switch that off."""
    bundle, certificate = properties.get(CA_BUNDLE), properties.get(CLIENT_CERTIFICATE)
    try:
        context = ssl.create_default_context(cafile=bundle)
        if certificate is not None:
            context.load_cert_chain(certificate, properties.get(CLIENT_KEY))
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(
            f"{CA_BUNDLE} or {CLIENT_CERTIFICATE} names a certificate that cannot be used: {reason}"
        ) from None
    return context


def custom_headers(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of the properties ``header.<name>``.

    A name or value that cannot be sent is refused; the value is not shown.
    """
    found = {
        name.removeprefix(HEADER_PREFIX): value
        for name, value in properties.items()
        if name.startswith(HEADER_PREFIX)
    }
    for name, value in found.items():
        is_token = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
        if not is_token or not value.isascii() or not value.isprintable():
            raise ConfigurationError(
                f"the property {HEADER_PREFIX}{name!r} is no header: use ASCII letters, digits and "
                f"hyphens for its name, and printable ASCII for its value"
            )
    return found


def origin_of(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of an address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError("uri of a REST catalog must begin with http:// or https://")
    if parts.username or parts.password:
        raise ConfigurationError(
            "uri of a REST catalog holds a user or a password: give auth.type='basic', "
            "auth.basic.username and auth.basic.password"
        )
    return parts.scheme, parts.hostname, port or {"http": 80, "https": 443}[parts.scheme]
