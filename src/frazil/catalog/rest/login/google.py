"""Tokens of Google's, by its own library: of a file of credentials, or of those at hand."""

from __future__ import annotations

import importlib
import json
import logging
import threading
from collections.abc import Mapping
from typing import Any, Final

from frazil.catalog.rest.login.base import Authenticator, can_be_sent
from frazil.errors import AccessDeniedError, ConfigurationError, StorageError

_LOG = logging.getLogger(__name__)
_DEFAULT_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)


class GoogleAuthenticator(Authenticator):
    """A bearer token of Google's, had anew before it ends."""

    def __init__(self, own: Mapping[str, str]) -> None:
        """Find the credentials; no token is asked for yet.

        Args:
            own: `credentials_path`, a JSON file of a service account or of a user; unless given,
                the application default credentials. `scopes`, with commas or spaces between them.

        Raises:
            ConfigurationError: google-auth is not installed, or there are no credentials.
        """
        try:
            auth = importlib.import_module("google.auth")
            self._errors = importlib.import_module("google.auth.exceptions")
            requests = importlib.import_module("google.auth.transport.requests")
        except ImportError:
            raise ConfigurationError(
                "auth.type google needs google-auth: install frazil[google]"
            ) from None
        scopes = (own.get("scopes") or "").replace(",", " ").split() or list(_DEFAULT_SCOPES)
        path = own.get("credentials_path")
        try:
            if path:
                self._credentials: Any = _of_file(path, scopes)
            else:
                self._credentials, _ = auth.default(scopes=scopes)
        except ConfigurationError:
            raise
        except (self._errors.GoogleAuthError, OSError, ValueError) as error:
            where = f"the file {path}" if path else "the application default credentials"
            raise ConfigurationError(
                f"auth.type is google, and {where} cannot be used ({type(error).__name__}): give "
                "auth.google.credentials-path, or log in with gcloud auth application-default login"
            ) from None
        self._request = requests.Request()
        self._lock = threading.Lock()
        self._refused: str | None = None

    @property
    def secrets(self) -> Mapping[str, str]:
        token = self._credentials.token
        return {"authorization": token} if token else {}

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Ask for another token, unless there is a newer one or the server refuses that too."""
        with self._lock:
            token = self._credentials.token
            if token is None or token == self._refused:
                return False
            if refused.get("Authorization") != f"Bearer {token}":
                return True
            self._refused = token
            self._refresh()
            return bool(self._credentials.token != token)

    def with_login(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> dict[str, str]:
        with self._lock:
            # The library takes a token for invalid some minutes before it ends.
            if not self._credentials.valid:
                self._refresh()
            token = self._credentials.token
        if not can_be_sent(token or ""):
            raise AccessDeniedError("Google gave no bearer token")
        return {**headers, "Authorization": f"Bearer {token}"}

    def _refresh(self) -> None:
        try:
            self._credentials.refresh(self._request)
        except self._errors.TransportError as error:
            raise StorageError(
                f"Google's server of tokens does not answer: {type(error).__name__}"
            ) from None
        except self._errors.GoogleAuthError as error:
            _LOG.debug("no token of Google's: %s", type(error).__name__)
            raise AccessDeniedError(
                f"Google gave no token ({type(error).__name__}): look at the credentials and scopes"
            ) from None


def _of_file(path: str, scopes: list[str]) -> Any:
    """The credentials of a file: of a service account, or of a user.

    Others name addresses and programs to ask, which a file from elsewhere must not choose.
    """
    with open(path, encoding="utf-8") as stream:
        stated = json.load(stream)
    kind = stated.get("type") if isinstance(stated, dict) else None
    if kind == "service_account":
        module = importlib.import_module("google.oauth2.service_account")
        return module.Credentials.from_service_account_info(stated, scopes=scopes)
    if kind == "authorized_user":
        module = importlib.import_module("google.oauth2.credentials")
        return module.Credentials.from_authorized_user_info(stated, scopes=scopes)
    raise ConfigurationError(
        f"the credentials of {path} are of the type {kind!r}: auth.type google takes a file of a "
        "service_account or an authorized_user; for others set GOOGLE_APPLICATION_CREDENTIALS"
    )
