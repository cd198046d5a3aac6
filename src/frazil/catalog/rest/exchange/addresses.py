"""The address of a server."""

from __future__ import annotations

from urllib.parse import urlsplit

from frazil.errors import ConfigurationError


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
