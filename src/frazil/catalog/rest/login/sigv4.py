"""Requests signed as AWS wants them (SigV4), by botocore."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from frazil.catalog.rest.login.base import Authenticator
from frazil.catalog.rest.settings import SIGV4_KEYS, SIGV4_NAME, SIGV4_REGION
from frazil.errors import AccessDeniedError, ConfigurationError

_DEFAULT_NAME: Final = "execute-api"
_ORIGINAL: Final = "Original-Authorization"


class SigV4Authenticator(Authenticator):
    """Signs what another login has made; that one's header becomes ``Original-Authorization``."""

    def __init__(self, properties: Mapping[str, str], inner: Authenticator) -> None:
        """Begin.

        Raises:
            ConfigurationError: botocore is not installed, or no region is known.
        """
        try:
            self._auth = importlib.import_module("botocore.auth")
            self._requests = importlib.import_module("botocore.awsrequest")
            session = importlib.import_module("botocore.session").Session(
                profile=properties.get("client.profile-name")
            )
        except ImportError:
            raise ConfigurationError(
                "rest.sigv4-enabled needs botocore: install frazil[s3]"
            ) from None
        self._inner = inner
        self._name = properties.get(SIGV4_NAME, _DEFAULT_NAME)
        region = properties.get(SIGV4_REGION) or properties.get("client.region")
        self._region = region or session.get_config_variable("region")
        if not self._region:
            raise ConfigurationError(
                f"rest.sigv4-enabled needs a region: give {SIGV4_REGION} or client.region"
            )
        self._credentials = self._keys_of(properties, session)

    @property
    def secrets(self) -> Mapping[str, str]:
        return self._inner.secrets

    def renew(self, refused: Mapping[str, str]) -> bool:
        return self._inner.renew({"Authorization": refused.get(_ORIGINAL, "")})

    def with_login(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> dict[str, str]:
        logged_in = self._inner.with_login(method, url, headers, content)
        original = logged_in.pop("Authorization", None)
        if original is not None:
            logged_in[_ORIGINAL] = original
        logged_in["x-amz-content-sha256"] = hashlib.sha256(content or b"").hexdigest()
        parts = urlsplit(url)
        request = self._requests.AWSRequest(
            method=method,
            url=url.partition("?")[0],
            params=dict(parse_qsl(parts.query, keep_blank_values=True)),
            data=content or b"",
            headers=logged_in,
        )
        try:
            frozen = self._credentials.get_frozen_credentials()
            self._auth.SigV4Auth(frozen, self._name, self._region).add_auth(request)
        except Exception as error:
            raise AccessDeniedError(
                f"cannot sign a request for AWS: {type(error).__name__}"
            ) from None
        return {name: str(value) for name, value in request.headers.items()}

    def _keys_of(self, properties: Mapping[str, str], session: Any) -> Any:
        """The keys of the properties, or those of the environment."""
        for names in (
            SIGV4_KEYS,
            tuple(f"client.{name.removeprefix('rest.')}" for name in SIGV4_KEYS),
        ):
            key, secret, token = (properties.get(name) for name in names)
            if key and secret:
                credentials = importlib.import_module("botocore.credentials")
                return credentials.Credentials(key, secret, token)
        found = session.get_credentials()
        if found is None:
            raise ConfigurationError(
                "rest.sigv4-enabled needs keys: give client.access-key-id and "
                "client.secret-access-key, or set those of the environment"
            )
        return found
