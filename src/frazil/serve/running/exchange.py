"""A request as the web server hands it over, and an answer as it takes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from frazil.serve.answers import HttpAnswer, bad_request

CLOSE: Final = {"Connection": "close"}
"""The headers of an answer after which the connection ends."""

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


class DisconnectedError(Exception):
    """The client has gone before its request was complete."""


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

    @property
    def content_type(self) -> str:
        """The type of the body, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def body(self, *, most: int, seconds: float, what: str = "body") -> bytes:
        """Return the body.

        Args:
            most: how many bytes it may have.
            seconds: so long it may take to come.
            what: what it is called in errors.

        Raises:
            HttpError: it is longer, or does not come in time.
            DisconnectedError: the client has gone.
        """
        too_long = bad_request(f"a {what} may have {most} bytes at most", CLOSE)
        length = self.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            raise too_long
        content = bytearray()
        try:
            async with asyncio.timeout(seconds):
                while True:
                    message = await self.receive()
                    if message["type"] == "http.disconnect":
                        raise DisconnectedError
                    content += message.get("body", b"")
                    if len(content) > most:
                        raise too_long
                    if not message.get("more_body", False):
                        return bytes(content)
        except TimeoutError:
            text = f"the {what} did not come within {seconds:g} seconds"
            raise bad_request(text, CLOSE) from None


async def send_answer(answer: HttpAnswer, send: Send) -> None:
    """Send an answer whole."""
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in answer.headers.items()
    ]
    if answer.body is not None:
        headers += [
            (b"content-type", answer.content_type.encode()),
            (b"content-length", str(len(answer.body)).encode()),
        ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body or b""})
