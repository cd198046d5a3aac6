"""Who a browser is logged in as: a signed cookie that stands for a token, and is none."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Final

from frazil.serve.rights.access import Principal, Tokens

_TIME: Final = 8
_MAC: Final = 32
_BYTES: Final = _TIME + 2 * _MAC
_HOUR: Final = 3600


class Sessions:
    """Logs browsers in and out; any process with the same key and tokens knows them.

    The cookie has an end, a mark that stands for the token, and a signature of both. A token that
    the server does not have any more has no mark, so its sessions end with it.

    Args:
        tokens: of the server.
        key: what cookies are signed with; secret.
        hours: so long a browser stays logged in.
    """

    def __init__(self, tokens: Tokens, key: bytes, *, hours: float) -> None:
        self._tokens = tokens
        self._key = key
        self._seconds = int(hours * _HOUR)
        # Cookies know no ports: a second server of this host must not take this one's.
        self.name: Final = f"frazil-session-{hashlib.sha256(key).hexdigest()[:8]}"

    def begin(self, token: str, *, is_secure: bool) -> str | None:
        """Return the cookie that logs a browser in; None if the token is none of the server's.

        Args:
            token: as it was typed.
            is_secure: whether the browser may send the cookie over TLS alone.
        """
        mark = self._tokens.mark(token, self._key)
        if mark is None:
            return None
        content = int(time.time() + self._seconds).to_bytes(_TIME, "big") + mark
        value = base64.urlsafe_b64encode(content + self._signature(content)).decode()
        return self._cookie(value, self._seconds, is_secure=is_secure)

    def end(self, *, is_secure: bool) -> str:
        """Return the cookie that logs a browser out."""
        return self._cookie("", 0, is_secure=is_secure)

    def principal(self, headers: Mapping[str, str]) -> Principal | None:
        """Return who a request's cookie says that asks; None where it says nothing true."""
        for each in headers.get("cookie", "").split(";"):
            name, _, value = each.strip().partition("=")
            found = self._principal(value) if name == self.name else None
            if found is not None:
                return found
        return None

    def _principal(self, value: str) -> Principal | None:
        try:
            held = base64.b64decode(value, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        content, signature = held[:-_MAC], held[-_MAC:]
        is_ours = len(held) == _BYTES and hmac.compare_digest(self._signature(content), signature)
        if not is_ours or int.from_bytes(content[:_TIME], "big") <= time.time():
            return None
        return self._tokens.principal_of_mark(content[_TIME:], self._key)

    def _signature(self, content: bytes) -> bytes:
        return hmac.digest(self._key, b"session" + content, "sha256")

    def _cookie(self, value: str, seconds: int, *, is_secure: bool) -> str:
        # Without a path it is of the folder that the login lies in, also behind a prefix.
        secure = "; Secure" if is_secure else ""
        return f"{self.name}={value}; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}"
