"""Connections whose answers have to begin in time: the limit of httpx is one of each read alone.

A server that sends its status line a byte a minute is never silent for long. So the time of a whole
head is limited to that of one read. Proxies are those of the environment, as with httpx.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from frazil.errors import ConfigurationError

_IDLE_SECONDS: Final = 5.0
_OF_HTTPCORE: Final = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProxyError,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
)


class TimedTransport(httpx.BaseTransport):
    """Sends requests of a client by pools of timed connections, one for each proxy."""

    def __init__(self, tls: ssl.SSLContext, *, max_connections: int) -> None:
        self._options: dict[str, Any] = {
            "ssl_context": tls,
            "max_connections": max_connections,
            "keepalive_expiry": _IDLE_SECONDS,
            "network_backend": _TimedBackend(),
        }
        self._direct = httpcore.ConnectionPool(**self._options)
        self._by_proxy = self._proxy_pools(getproxies())

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return the answer when its head is there.

        Raises httpx.HTTPError where there is none.
        """
        url = request.url
        sent = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=_parts(request.stream),
            extensions=request.extensions,
        )
        with _as_of_httpx():
            answer = self._pool(url).handle_request(sent)
        stream = answer.extensions.get("network_stream")
        if isinstance(stream, _TimedStream):
            stream.head_came()
        return httpx.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        """Close all connections."""
        for pool in (self._direct, *self._by_proxy.values()):
            pool.close()

    def _pool(self, url: httpx.URL) -> httpcore.ConnectionPool:
        found = self._by_proxy.get(url.scheme) or self._by_proxy.get("all")
        return self._direct if found is None or proxy_bypass(url.netloc.decode("ascii")) else found

    def _proxy_pools(self, proxies: Mapping[str, str]) -> dict[str, httpcore.ConnectionPool]:
        return {
            scheme: self._proxy_pool(scheme, address if "://" in address else f"http://{address}")
            for scheme, address in proxies.items()
            if scheme in ("http", "https", "all") and address
        }

    def _proxy_pool(self, scheme: str, address: str) -> httpcore.ConnectionPool:
        try:
            proxy = httpx.Proxy(address)
            url, login = proxy.url, proxy.raw_auth
            place = httpcore.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=b"/"
            )
            kind = httpcore.SOCKSProxy if url.scheme.startswith("socks") else httpcore.HTTPProxy
            return kind(place, proxy_auth=login, **self._options)
        except (ValueError, RuntimeError, httpx.InvalidURL):
            # The address may hold a password.
            raise ConfigurationError(
                f"the proxy that the environment names for {scheme} cannot be used: write "
                "http://host:port, or install httpx[socks] for socks5://host:port"
            ) from None


class _TimedBackend(httpcore.NetworkBackend):
    def __init__(self) -> None:
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        return _TimedStream(
            self._backend.connect_tcp(host, port, timeout, local_address, socket_options)
        )

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


class _TimedStream(httpcore.NetworkStream):
    """A connection that knows whether it waits for a head: what is read after a write."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self._waits = True
        self._ends: float | None = None

    def head_came(self) -> None:
        """Take what is read from now on for a body."""
        self._waits, self._ends = False, None

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._waits and timeout is not None:
            now = time.monotonic()
            if self._ends is None:
                self._ends = now + timeout
            left = self._ends - now
            if left <= 0:
                raise httpcore.ReadTimeout(f"the answer did not begin within {timeout:g} s")
            timeout = left
        return self._stream.read(max_bytes, timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._waits, self._ends = True, None
        self._stream.write(buffer, timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return _TimedStream(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Body(httpx.SyncByteStream):
    """The body of an answer, with the errors of httpx."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _as_of_httpx():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


def _parts(stream: httpx.SyncByteStream | httpx.AsyncByteStream) -> httpx.SyncByteStream:
    if not isinstance(stream, httpx.SyncByteStream):
        raise httpx.StreamError("a request of this transport is not asynchronous")
    return stream


@contextmanager
def _as_of_httpx() -> Iterator[None]:
    """The errors of httpcore under the same names in httpx."""
    try:
        yield
    except _OF_HTTPCORE as error:
        kind: type[httpx.TransportError] = getattr(httpx, type(error).__name__)
        raise kind(str(error)) from error
