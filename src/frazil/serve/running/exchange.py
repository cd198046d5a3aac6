"""A request as the web server hands it over, and an answer as it takes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from frazil.serve.answers import HttpAnswer

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


class DisconnectedError(Exception):
    """The client has gone before its request was complete."""


class TooLongError(Exception):
    """The body has more bytes than it may have."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """The head of a request, and the way to its body.

    Attributes:
        method: of HTTP.
        path: percent-encoded.
        query: percent-encoded, without its question mark.
        headers: by names in lower case; of one that is given twice the last.
        client: the address of who asks.
        receive: gives the body, part by part.
        scheme: http or https, as the client speaks to this server.
    """

    method: str
    path: str
    query: bytes
    headers: dict[str, str]
    client: str
    receive: Receive
    scheme: str = "http"

    @classmethod
    def of(cls, scope: MutableMapping[str, Any], receive: Receive) -> HttpRequest:
        """Return the request of a scope of ASGI."""
        client = scope.get("client")
        return cls(
            scope["method"],
            scope["raw_path"].decode("latin-1"),
            scope["query_string"],
            {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]},
            client[0] if client else "-",
            receive,
            scope.get("scheme", "http"),
        )

    async def body(self, *, most: int, seconds: float) -> bytes:
        """Return the body.

        Raises:
            TooLongError: it has more than `most` bytes.
            TimeoutError: it did not come within the time.
            DisconnectedError: the client has gone.
        """
        content = bytearray()
        async with asyncio.timeout(seconds):
            while True:
                message = await self.receive()
                if message["type"] == "http.disconnect":
                    raise DisconnectedError
                content += message.get("body", b"")
                if len(content) > most:
                    raise TooLongError
                if not message.get("more_body", False):
                    return bytes(content)


async def send_answer(answer: HttpAnswer, send: Send) -> None:
    """Send an answer whole."""
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in answer.headers.items()
    ]
    if answer.body is not None:
        headers.append((b"content-type", answer.content_type.encode()))
        headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body or b""})
