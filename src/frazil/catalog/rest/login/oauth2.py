"""OAuth2: client credentials, the exchange of tokens, and tokens renewed before they end.

A failure to renew is no failure while the old token lives.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from frazil.catalog.rest.exchange.answers import Answer, LostAnswerError, NotSentError, Refusals
from frazil.catalog.rest.login.base import Authenticator, can_be_sent
from frazil.errors import AccessDeniedError, FrazilError, StorageError

if TYPE_CHECKING:
    from frazil.catalog.rest.exchange.transport import Transport

_LOG = logging.getLogger(__name__)
_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105
_LARGEST_MARGIN: Final = 60.0
_LONGEST_LIFETIME: Final = 1e9
_PAUSE_AFTER_FAILURE: Final = 10.0
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class OAuth2Settings:
    """How a token is had.

    Attributes:
        server: the address of the token's endpoint.
        client_id: may be missing from a credential.
        client_secret: the other part of it; None where there is only a token.
        in_header: send both as basic authentication rather than in the form.
        form: further fields: scope, audience, resource.
        token: one that the user has.
        subject: a user's token and its type, which is exchanged.
        lifetime_seconds: of tokens that say nothing of it.
        renews: whether tokens are renewed before they end.
        margin_seconds: how long before.
    """

    server: str
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    in_header: bool = False
    form: Mapping[str, str] = field(default_factory=dict)
    token: str | None = field(default=None, repr=False)
    subject: tuple[str, str] | None = field(default=None, repr=False)
    lifetime_seconds: float | None = None
    renews: bool = True
    margin_seconds: float = _LARGEST_MARGIN


@dataclass(frozen=True, slots=True)
class _Token:
    """A token, and when it is to be renewed and ends, by the monotonic clock."""

    text: str = field(repr=False)
    due: float | None = None
    ends: float | None = None


class OAuth2Authenticator(Authenticator):
    """A bearer token from a server of tokens."""

    def __init__(self, transport: Transport, settings: OAuth2Settings) -> None:
        self._transport = transport
        self._settings = settings
        self._lock = threading.Lock()
        self._token: _Token | None = None
        self._used: tuple[str, ...] = ()
        if settings.token is not None and settings.subject is None:
            self._keep(settings.token, _lifetime_in(settings.token) or settings.lifetime_seconds)

    @property
    def secrets(self) -> Mapping[str, str]:
        return {f"token {number}": text for number, text in enumerate(self._used)}

    def with_login(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> dict[str, str]:
        return {**headers, "Authorization": _header(self._current())}

    def renew(self, refused: Mapping[str, str]) -> bool:
        settings = self._settings
        if settings.client_secret is None and settings.subject is None:
            return False
        with self._lock:
            if self._token is not None and refused.get("Authorization") == _header(self._token):
                self._token = None
        return True

    def _current(self) -> _Token:
        with self._lock:
            token, now = self._token, time.monotonic()
            if token is None:
                return self._ask(None)
            if token.due is None or now < token.due or not self._settings.renews:
                return token
            try:
                return self._ask(token)
            except FrazilError as error:
                if token.ends is not None and now >= token.ends and self._settings.client_secret:
                    raise
                _LOG.warning("the token of the REST catalog was not renewed: %s", error)
                self._token = _Token(token.text, now + _PAUSE_AFTER_FAILURE, token.ends)
                return self._token

    def _ask(self, old: _Token | None) -> _Token:
        settings = self._settings
        if settings.subject is not None:
            kind, text = settings.subject
            actor = settings.token
            if actor is None and settings.client_secret is not None:
                actor = self._granted_token(self._client_form(), self._client_headers())[0]
            acting = {} if actor is None else {"actor_token": actor}
            acting |= {} if actor is None else {"actor_token_type": _ACCESS_TOKEN}
            form = {"grant_type": _EXCHANGE, "subject_token": text, "subject_token_type": kind}
            granted = self._granted_token({**form, **acting, **settings.form}, _bearer(actor))
        elif settings.client_secret is not None:
            granted = self._granted_token(self._client_form(), self._client_headers())
        elif old is not None:
            form = {
                "grant_type": _EXCHANGE,
                "subject_token": old.text,
                "subject_token_type": _ACCESS_TOKEN,
            }
            granted = self._granted_token({**form, **settings.form}, _bearer(old.text))
        else:
            raise AccessDeniedError("the token of the REST catalog has ended, and no credential is")
        return self._keep(*granted)

    def _client_form(self) -> dict[str, str]:
        settings = self._settings
        form = {"grant_type": "client_credentials", **settings.form}
        if not settings.in_header:
            form |= {"client_id": settings.client_id} if settings.client_id is not None else {}
            form |= {"client_secret": settings.client_secret or ""}
        return form

    def _client_headers(self) -> dict[str, str]:
        settings = self._settings
        if not settings.in_header:
            return {}
        pair = f"{quote(settings.client_id or '', safe='')}:"
        pair += quote(settings.client_secret or "", safe="")
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"}

    def _granted_token(
        self, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[str, float | None]:
        """The token that the server gives for a form, and how long it lives."""
        sent = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode(form).encode()
        what = f"get a token from {self._settings.server}"
        secrets = {f"secret {key}": value for key, value in form.items() if "secret" in key}
        secrets |= {f"token {key}": value for key, value in form.items() if "token" in key}
        answer = self._answer(sent, body, what)
        if not answer.is_success:
            refusals = Refusals(missing=AccessDeniedError, invalid=AccessDeniedError)
            raise refusals.error(answer, what, secrets)
        found = answer.json()
        token = found.get("access_token")
        if not isinstance(token, str) or not can_be_sent(token):
            raise StorageError(f"cannot {what}: the answer holds no access_token")
        lives = _stated_lifetime(found.get("expires_in"))
        return token, lives or _lifetime_in(token) or self._settings.lifetime_seconds

    def _answer(self, headers: Mapping[str, str], body: bytes, what: str) -> Answer:
        for left in reversed(range(_TRIES)):
            try:
                answer = self._transport.exchange(
                    "POST", self._settings.server, headers=headers, content=body
                )
            except (NotSentError, LostAnswerError) as error:
                if not left:
                    raise StorageError(f"cannot {what}: {error}") from None
            else:
                if (answer.status < 500 and answer.status != 429) or not left:
                    return answer
            time.sleep(0.2 * (_TRIES - left))
        raise StorageError(f"cannot {what}")

    def _keep(self, text: str, lives: float | None) -> _Token:
        now = time.monotonic()
        margin = min(self._settings.margin_seconds, (lives or 0) / 4)
        due, ends = (None, None) if lives is None else (now + lives - margin, now + lives)
        self._token = _Token(text, due, ends)
        self._used = (*self._used[-3:], text)
        return self._token


def _header(token: _Token) -> str:
    return f"Bearer {token.text}"


def _bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def _stated_lifetime(lives: Any) -> float | None:
    """How long a server says that a token lives; None where it says nothing that can be."""
    if isinstance(lives, bool) or not isinstance(lives, int | float) or not lives > 0:
        return None
    return float(min(lives, _LONGEST_LIFETIME))


def _lifetime_in(token: str) -> float | None:
    """How long a token lives, if it is a JSON web token that says so; it is not verified."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims: Any = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return max(0.001, float(claims["exp"]) - time.time())
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
