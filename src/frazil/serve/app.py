"""The server as an ASGI application: tokens, limits, threads and the log around the endpoints."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from frazil.catalog.identifiers import Identifier
from frazil.serve.answers import (
    HttpAnswer,
    HttpError,
    answer_of_error,
    bad_request,
    error_answer,
    forbidden,
    ok,
)
from frazil.serve.calls import Call, fields_of
from frazil.serve.endpoints import Endpoint, route_of
from frazil.serve.keys import (
    RequestKey,
    RequestKeys,
    carry_out_once,
    forget_old_requests,
    kept_seconds,
)
from frazil.serve.pages.sessions import Sessions
from frazil.serve.pages.site import Site
from frazil.serve.rights.access import ANYBODY, Principal, Tokens
from frazil.serve.running.exchange import (
    CLOSE,
    DisconnectedError,
    HttpRequest,
    Receive,
    Send,
    send_answer,
)
from frazil.serve.running.pointers import PointerLookups
from frazil.serve.service import ServedCatalog
from frazil.serve.settings import is_loopback
from frazil.serve.tables import load_table, unchanged_answer

_LOG = logging.getLogger("frazil.serve")
_HEALTH: Final = "/health"
_LONGEST_LOGGED: Final = 300
_DISCONNECTED: Final = HttpAnswer(499, error="ClientDisconnect")
_FORGETTING_SECONDS: Final = 300.0


class ServeApp:
    """Answers requests of the protocol and of browsers; catalogs are asked in threads.

    Args:
        served: the catalog.
        tokens: of clients; without them everybody may do everything.
        host: where the server listens, for the check of who is asked.
        session_key: what the cookies of browsers are signed with; all processes that serve one
            address have the same.
    """

    def __init__(
        self, served: ServedCatalog, tokens: Tokens | None, *, host: str, session_key: bytes
    ) -> None:
        self._served = served
        self._tokens = tokens
        self._host = host.strip("[]").lower()
        settings = served.settings
        self._threads = ThreadPoolExecutor(settings.threads, "frazil-serve")
        self._most = settings.threads + settings.max_waiting
        self._running = 0
        self._keys = RequestKeys(kept_seconds(settings))
        self._forgets_at = 0.0
        together = served.catalog.looks_up_together
        self._pointers = PointerLookups(served.catalog) if together else None
        self._site = Site(
            None if tokens is None else Sessions(tokens, session_key, hours=settings.session_hours),
            self._principal,
            self._answer_of_work,
            settings.body_seconds,
        )

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request and write its line of the log."""
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        request = HttpRequest.of(scope, receive)
        who = ["-"]
        answer = await self._answer(request, who)
        if answer is not _DISCONNECTED:
            await send_answer(answer, send)
        self._log(request, answer, who[0], time.perf_counter() - started)

    def close(self) -> None:
        """Wait for what runs, and end."""
        self._threads.shutdown()
        if self._pointers is not None:
            self._pointers.close()
        self._served.catalog.close()

    async def _answer(self, request: HttpRequest, who: list[str]) -> HttpAnswer:
        try:
            if request.path == _HEALTH and request.method in ("GET", "HEAD"):
                return ok({"status": "ok"})
            if self._site.is_page(request):
                return await self._site.answer(request, who)
            principal = self._principal(request)
            who[0] = principal.name
            catalog = self._served.catalog.name
            endpoint, namespace, name = route_of(request.method, request.path, catalog)
            self._check(principal, endpoint, namespace)
            query = fields_of(request.query)
            content = await self._content(request)
            call = Call(principal, namespace, name, query, request.headers, content)
            answer = await self._answer_of_no_change(endpoint, call)
            if answer is None:
                answer = await self._within_limit(endpoint, self._work_on(endpoint, call))
            return endpoint.as_specified(answer)
        except HttpError as error:
            return error.answer
        except DisconnectedError:
            return _DISCONNECTED

    async def _answer_of_no_change(self, endpoint: Endpoint, call: Call) -> HttpAnswer | None:
        """The answer that the client has the table as it is; None where more is to be done."""
        is_asked = endpoint.handler is load_table and "if-none-match" in call.headers
        if self._pointers is None or not is_asked:
            return None
        location = await self._pointers.location(call.table)
        return None if location is None else unchanged_answer(call, location)

    async def _answer_of_work(self, endpoint: Endpoint, call: Call) -> HttpAnswer:
        return await self._within_limit(endpoint, self._start(endpoint, call, None))

    def _principal(self, request: HttpRequest) -> Principal:
        if self._tokens is None:
            self._check_host(request.headers.get("host", ""))
            return ANYBODY
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        found = self._tokens.principal(token.strip()) if kind.lower() == "bearer" else None
        if found is None:
            raise HttpError(
                401,
                "NotAuthorizedException",
                "a bearer token of this server is needed",
                {"WWW-Authenticate": "Bearer"},
            )
        return found

    def _check_host(self, header: str) -> None:
        """Refuse pages of the web that had a browser look this machine up by their own name."""
        name = header.rpartition(":")[0] if header.rpartition(":")[2].isdecimal() else header
        if is_loopback(self._host) and not is_loopback(name) and name.lower() != self._host:
            raise bad_request("the Host header names another host")

    def _check(self, principal: Principal, endpoint: Endpoint, namespace: Identifier) -> None:
        """Check that the client may do what it asks for, before its body is read."""
        if endpoint.changes and self._served.settings.read_only:
            raise forbidden("this server is read-only")
        if endpoint.changes and not principal.writes:
            raise forbidden("this token may not change anything")
        if namespace and endpoint.changes:
            self._served.require_write(principal, namespace)
        elif namespace:
            self._served.require_read(principal, namespace)

    async def _content(self, request: HttpRequest) -> bytes:
        """The body, within the limits; only JSON, which no page of the web may send unasked."""
        if request.method != "POST":
            return b""
        if request.content_type != "application/json":
            raise bad_request("the body must be of the type application/json", CLOSE)
        settings = self._served.settings
        return await request.body(most=settings.max_body_bytes, seconds=settings.body_seconds)

    def _work_on(self, endpoint: Endpoint, call: Call) -> asyncio.Future[HttpAnswer]:
        """The work on a request, that of an earlier one where it has the same key."""
        key = RequestKey.of(endpoint, call)
        if key is None:
            return self._start(endpoint, call, None)
        now = time.monotonic()
        if now >= self._forgets_at:
            self._forgets_at = now + _FORGETTING_SECONDS
            self._threads.submit(forget_old_requests, self._served)
        return self._keys.work_on(key, lambda: self._start(endpoint, call, key))

    def _start(
        self, endpoint: Endpoint, call: Call, key: RequestKey | None
    ) -> asyncio.Future[HttpAnswer]:
        """Let a thread work. What it does goes on whatever becomes of the client."""
        if self._running >= self._most:
            raise HttpError(
                503, "ServiceUnavailableException", "the server is busy", {"Retry-After": "1"}
            )
        self._running += 1
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._threads, self._work, endpoint, call, key)
        work.add_done_callback(self._forget_work)
        return work

    async def _within_limit(
        self, endpoint: Endpoint, work: asyncio.Future[HttpAnswer]
    ) -> HttpAnswer:
        try:
            limit = self._served.settings.request_seconds
            return await asyncio.wait_for(asyncio.shield(work), limit)
        except TimeoutError:
            kind = "CommitStateUnknownException" if endpoint.makes_tables else "TimeoutException"
            return error_answer(504, kind, "the request takes too long; it may still take place")

    def _forget_work(self, _work: object) -> None:
        self._running -= 1

    def _work(self, endpoint: Endpoint, call: Call, key: RequestKey | None) -> HttpAnswer:
        try:
            if key is not None:
                return carry_out_once(self._served, endpoint, call, key)
            return endpoint.handler(self._served, call)
        except Exception as error:
            return answer_of_error(
                error,
                secrets=self._served.catalog.properties,
                documented=endpoint.statuses,
                may_have_taken_place=endpoint.makes_tables,
            )

    def _log(self, request: HttpRequest, answer: HttpAnswer, who: str, seconds: float) -> None:
        cut = "…" if len(request.path) > _LONGEST_LOGGED else ""
        _LOG.info(
            "%s %s %s %.1f ms %s %s%s",
            _one_word(request.method),
            _one_word(f"{request.path[:_LONGEST_LOGGED]}{cut}"),
            answer.status,
            seconds * 1000,
            request.client,
            _one_word(who),
            f" {answer.error}" if answer.error else "",
        )


def _one_word(text: str) -> str:
    """The text with everything escaped that could begin another line or column of the log."""
    if text.isprintable() and " " not in text:
        return text
    return "".join(
        each if each.isprintable() and each != " " else f"\\x{ord(each):02x}" for each in text
    )
