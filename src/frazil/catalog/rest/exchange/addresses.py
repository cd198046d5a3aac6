"""The address of a server, and what carries requests there: its library comes with an extra."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from frazil.catalog.rest.settings import TransportSettings, tls_context
from frazil.errors import ConfigurationError
from frazil.later import later

if TYPE_CHECKING:
    from frazil.catalog.rest.exchange.transport import Transport
else:
    Transport = later("frazil.catalog.rest.exchange.transport", "Transport")


def transport_of(properties: Mapping[str, str]) -> Transport:
    """Return what carries requests as a catalog's properties say.

    Raises:
        ConfigurationError: a property is malformed, a certificate cannot be read, or the library
            is not installed.
    """
    settings, tls = TransportSettings.of(properties), tls_context(properties)
    try:
        return Transport(settings, tls)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"a REST catalog needs {error.name}: pip install 'frazil[rest]'"
        ) from error


def origin_of(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of an address.

    Raises:
        ConfigurationError: it is no address of a server, or holds a password.
    """
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
