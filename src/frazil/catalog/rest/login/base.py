"""How a catalog logs in: not at all, by a name and a password, by a token, or by a class."""

from __future__ import annotations

import base64
import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from frazil.errors import ConfigurationError

NO_SECRETS: Final[Mapping[str, str]] = MappingProxyType({})


def can_be_sent(token: str) -> bool:
    """Whether a text can be a bearer token in a header."""
    return bool(token) and token.isascii() and token.isprintable() and " " not in token


class Authenticator(ABC):
    """Adds a login to requests; safe under threads."""

    @property
    def secrets(self) -> Mapping[str, str]:
        """What it knows beside the catalog's properties, to be left out of messages."""
        return NO_SECRETS

    @abstractmethod
    def with_login(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> dict[str, str]:
        """Return the headers with a login.

        Raises StorageError: whoever gives logins does not answer.
        """

    def renew(self, refused: Mapping[str, str]) -> bool:
        """After the server has refused a login: whether there may be a newer one.

        Many threads may have sent the same login: the first of them renews it for all.
        `refused` are the headers that were sent with it.
        """
        return False


class Anonymous(Authenticator):
    """No login."""

    def with_login(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> dict[str, str]:
        return dict(headers)


class HeaderAuthenticator(Authenticator):
    """A header that stays as it is: a bearer token, or a name and a password."""

    def __init__(self, value: str) -> None:
        self._value = value

    @classmethod
    def bearer(cls, token: str) -> HeaderAuthenticator:
        """A token that is never renewed.

        One that cannot be sent is refused, and not shown.
        """
        if not can_be_sent(token):
            raise ConfigurationError("the property token is no bearer token: it holds other text")
        return cls(f"Bearer {token}")

    @classmethod
    def basic(cls, username: str, password: str) -> HeaderAuthenticator:
        """A name and a password."""
        packed = base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
        return cls(f"Basic {packed}")

    @property
    def secrets(self) -> Mapping[str, str]:
        return {"authorization": self._value.partition(" ")[2]}

    def with_login(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> dict[str, str]:
        return {**headers, "Authorization": self._value}


class ForeignAuthenticator(Authenticator):
    """A class of the user's, with PyIceberg's one method ``auth_header``."""

    def __init__(self, path: str, settings: Mapping[str, str]) -> None:
        """Make the class's object.

        Raises:
            ConfigurationError: there is no such class, or it does not take the settings.
        """
        module, _, name = path.rpartition(".")
        try:
            self._manager: Any = getattr(importlib.import_module(module), name)(**settings)
            self._header = self._manager.auth_header
        except Exception as error:
            raise ConfigurationError(
                f"auth.impl is {path!r}, of which no object with a method auth_header can be "
                f"made: {type(error).__name__}"
            ) from None

    def with_login(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> dict[str, str]:
        value = self._header()
        return {**headers, **({"Authorization": str(value)} if value else {})}
