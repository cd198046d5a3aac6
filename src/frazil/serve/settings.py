"""How a catalog is served."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from frazil.errors import ConfigurationError

_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """How a catalog is served.

    Attributes:
        read_only: whether requests that change something are refused.
        any_location: whether clients may name places outside of the warehouse.
        vend_credentials: whether clients that may write the whole catalog get the store's
            credentials with a table.
        is_open: whether a server without tokens may listen on other addresses than this machine's.
        max_body_bytes: a longer body of a request is refused.
        body_seconds: so long a client may take to send a request's head, and then its body.
        request_seconds: after this time a request is answered though its work goes on.
        threads: so many requests are worked on beside each other.
        max_waiting: so many more may wait; others are told to come again.
        max_connections: requests on more connections than these are told to come again too.
        tasks_per_answer: so many files of a scan are in one answer; the others come by plan tasks.
        key_minutes: so long clients may send a request again with its Idempotency-Key; the server
            knows keys twice as long.
        session_hours: so long a browser stays logged in.
        page_rows: so many tables and views are on one page of the index.
    """

    read_only: bool = False
    any_location: bool = False
    vend_credentials: bool = False
    is_open: bool = False
    max_body_bytes: int = 32 * _MEBIBYTE
    body_seconds: float = 30.0
    request_seconds: float = 120.0
    threads: int = 12
    max_waiting: int = 500
    max_connections: int = 1000
    tasks_per_answer: int = 1000
    key_minutes: int = 30
    session_hours: float = 12.0
    page_rows: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where a server listens.

    Attributes:
        host: a name or an address of this machine.
        port: 0 takes a free one.
        certificate, key: files of PEM; without them the server speaks plain HTTP.
    """

    host: str = "127.0.0.1"
    port: int = 8181
    certificate: Path | None = None
    key: Path | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether only programs of this machine reach the server."""
        return is_loopback(self.host)

    def check(self, *, has_tokens: bool, is_open: bool) -> None:
        """Check that nobody is let in by mistake.

        Raises:
            ConfigurationError: other machines would reach a server without tokens, or a
                certificate is given without its key.
        """
        if (self.certificate is None) != (self.key is None):
            raise ConfigurationError("--tls-certificate and --tls-key are given together")
        if not (self.is_loopback or has_tokens or is_open):
            raise ConfigurationError(
                f"a server on {self.host} without tokens lets everybody change tables: give "
                f"--token-file, or --without-tokens where the network keeps others out"
            )


@lru_cache(maxsize=100)
def is_loopback(host: str) -> bool:
    """Whether a host is this machine, seen from itself."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
