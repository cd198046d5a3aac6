"""Which login the properties of a catalog mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from frazil.catalog.rest.login.base import (
    Anonymous,
    Authenticator,
    ForeignAuthenticator,
    HeaderAuthenticator,
)
from frazil.catalog.rest.login.google import GoogleAuthenticator
from frazil.catalog.rest.login.oauth2 import OAuth2Authenticator, OAuth2Settings
from frazil.catalog.rest.login.sigv4 import SigV4Authenticator
from frazil.catalog.rest.settings import (
    AUDIENCE,
    AUTH_PREFIX,
    CREDENTIAL,
    OAUTH2_SERVER,
    RESOURCE,
    SCOPE,
    SIGV4,
    SUBJECT_TOKENS,
    TOKEN,
    TOKEN_LIFETIME,
    TOKEN_REFRESH,
    origin_of,
)
from frazil.errors import ConfigurationError, UnsupportedError

if TYPE_CHECKING:
    from frazil.catalog.rest.exchange.transport import Transport

_DEFAULT_SCOPE: Final = "catalog"
_OWN_ENDPOINT: Final = "v1/oauth/tokens"
_TYPES: Final = ("noop", "basic", "oauth2", "google", "custom")


def login_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that decide how to log in."""
    names = (TOKEN, CREDENTIAL, OAUTH2_SERVER, SCOPE, AUDIENCE, RESOURCE, *SUBJECT_TOKENS)
    kept = (*names, TOKEN_REFRESH.name, TOKEN_LIFETIME.name, SIGV4.name)
    prefixes = (AUTH_PREFIX, "rest.signing-", "client.")
    return {
        name: value
        for name, value in properties.items()
        if name in kept or name.startswith(prefixes)
    }


def authenticator_of(
    uri: str, properties: Mapping[str, str], transport: Transport
) -> Authenticator:
    """Return the login that the properties mean."""
    kind = properties.get("auth.type")
    found = (
        _by_token(uri, properties, transport)
        if kind is None
        else _by_type(kind.lower(), properties, transport)
    )
    return SigV4Authenticator(properties, found) if SIGV4.of(properties) else found


def _by_token(uri: str, properties: Mapping[str, str], transport: Transport) -> Authenticator:
    token, credential = properties.get(TOKEN), properties.get(CREDENTIAL)
    subject = next(
        ((kind, properties[kind]) for kind in SUBJECT_TOKENS if kind in properties), None
    )
    if token is None and credential is None and subject is None:
        return Anonymous()
    if token is not None:
        HeaderAuthenticator.bearer(token)
    server = properties.get(OAUTH2_SERVER)
    if server is None:
        server = f"{uri}/{_OWN_ENDPOINT}"
    elif not server.startswith(("http://", "https://")):
        server = f"{uri}/{server.lstrip('/')}"
    origin_of(server)
    client_id, colon, secret = (credential or "").partition(":")
    optional = {name: properties[name] for name in (AUDIENCE, RESOURCE) if properties.get(name)}
    lifetime = TOKEN_LIFETIME.of(properties)
    return OAuth2Authenticator(
        transport,
        OAuth2Settings(
            server=server,
            client_id=client_id if colon else None,
            client_secret=None if credential is None else secret if colon else client_id,
            form={SCOPE: properties.get(SCOPE) or _DEFAULT_SCOPE, **optional},
            token=token,
            subject=subject,
            lifetime_seconds=None if lifetime is None else lifetime / 1000,
            renews=TOKEN_REFRESH.of(properties),
        ),
    )


def _by_type(kind: str, properties: Mapping[str, str], transport: Transport) -> Authenticator:
    own = {
        name.removeprefix(f"{AUTH_PREFIX}{kind}.").replace("-", "_"): value
        for name, value in properties.items()
        if name.startswith(f"{AUTH_PREFIX}{kind}.")
    }
    if kind in ("noop", "none"):
        return Anonymous()
    if kind == "basic":
        return HeaderAuthenticator.basic(
            _require_property(own, kind, "username"), own.get("password", "")
        )
    if kind == "oauth2":
        return OAuth2Authenticator(transport, _oauth2_settings(own))
    if kind == "custom":
        path = properties.get("auth.impl")
        if path is None:
            raise ConfigurationError("auth.type is custom: give auth.impl='package.module.Class'")
        return ForeignAuthenticator(path, own)
    if kind == "google":
        return GoogleAuthenticator(own)
    if kind in ("entra", "legacyoauth2"):
        raise UnsupportedError(
            f"auth.type {kind} is not in this release: use oauth2, or custom with a class as "
            f"auth.impl; PyIceberg's classes of such logins fit"
        )
    raise ConfigurationError(f"auth.type is {kind!r}: it must be one of {', '.join(_TYPES)}")


def _oauth2_settings(own: Mapping[str, str]) -> OAuth2Settings:
    server = _require_property(own, "oauth2", "token_url")
    origin_of(server)
    try:
        margin = float(own.get("refresh_margin", 60))
        lifetime = float(own["expires_in"]) if "expires_in" in own else None
    except ValueError:
        raise ConfigurationError(
            "auth.oauth2.refresh_margin and auth.oauth2.expires_in must be numbers of seconds"
        ) from None
    return OAuth2Settings(
        server=server,
        client_id=_require_property(own, "oauth2", "client_id"),
        client_secret=_require_property(own, "oauth2", "client_secret"),
        in_header=True,
        form={"scope": own["scope"]} if "scope" in own else {},
        lifetime_seconds=lifetime,
        margin_seconds=margin,
    )


def _require_property(own: Mapping[str, str], kind: str, name: str) -> str:
    if not own.get(name):
        raise ConfigurationError(f"auth.type is {kind}: give auth.{kind}.{name}")
    return own[name]
