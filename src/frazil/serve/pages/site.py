"""Requests of browsers: which page they are for, who asks, and how they log in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from frazil.serve.answers import HttpAnswer, HttpError, bad_request, forbidden
from frazil.serve.calls import Call, fields_of
from frazil.serve.endpoints import Endpoint
from frazil.serve.pages.looks import (
    INDEX,
    TABLE,
    address_of,
    error_page,
    library_file,
    login_page,
    named_table,
    page_answer,
)
from frazil.serve.pages.sessions import Sessions
from frazil.serve.rights.access import Principal
from frazil.serve.running.exchange import HttpRequest

_LOOKS: Final = {"/": INDEX, "/table": TABLE}
_LOGIN, _LOGOUT, _LIBRARY = "/login", "/logout", "/plotly-"
_READING: Final = ("GET", "HEAD")
_MOST_BYTES: Final = 16 << 10
_SCRIPT: Final = "text/javascript; charset=utf-8"
_KEPT: Final = "public, max-age=31536000, immutable"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Vary": "Accept, Authorization, Cookie",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # Forms tell their origin, which they would not if no page told where it is.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Site:
    """The pages of a server.

    Attributes:
        sessions: of browsers; None where nobody needs a token.
        principal: tells who asks by a token of a request; HttpError where it is none.
        work: has an endpoint's handler work on a call.
        body_seconds: so long a browser may take to send a form.
    """

    sessions: Sessions | None
    principal: Callable[[HttpRequest], Principal]
    work: Callable[[Endpoint, Call], Awaitable[HttpAnswer]]
    body_seconds: float

    def is_page(self, request: HttpRequest) -> bool:
        """Whether a request is for a page or what belongs to it, and not for the protocol."""
        if request.method == "POST":
            return self.sessions is not None and request.path in (_LOGIN, _LOGOUT)
        is_look = request.path in (*_LOOKS, _LOGIN) and wants_page(request.headers)
        return request.method in _READING and (is_look or request.path.startswith(_LIBRARY))

    async def answer(self, request: HttpRequest, who: list[str]) -> HttpAnswer:
        """Return the answer to a request that the site has.

        Args:
            request: the request.
            who: its item is set to the name of who asks, for the log.

        Raises:
            DisconnectedError: the browser has gone.
        """
        try:
            answer = await self._answer(request, who)
        except HttpError as error:
            answer = error.answer
        if answer.error is not None:
            html = self._login(request) if answer.status == 401 else error_page(answer)
            shown = page_answer(html, answer.status, answer.error)
            answer = replace(shown, headers=answer.headers)
        return replace(answer, headers={**_HEADERS, **answer.headers})

    async def _answer(self, request: HttpRequest, who: list[str]) -> HttpAnswer:
        if request.method == "POST":
            return await self._form(request)
        if request.path.startswith(_LIBRARY):
            return _library_answer(request.path.removeprefix("/"))
        if request.path == _LOGIN:
            return page_answer(login_page()) if self.sessions is not None else _see("./")
        principal = self._principal_of(request)
        who[0] = principal.name
        call = Call(principal, query=fields_of(request.query), headers=request.headers)
        return await self.work(_LOOKS[request.path], call)

    def _principal_of(self, request: HttpRequest) -> Principal:
        """Who asks: by a token as for the protocol, else by the cookie."""
        if self.sessions is not None and "authorization" not in request.headers:
            found = self.sessions.principal(request.headers)
            if found is not None:
                return found
        return self.principal(request)

    async def _form(self, request: HttpRequest) -> HttpAnswer:
        assert self.sessions is not None
        require_same_site(request.headers)
        # The browser speaks TLS, to this server or to a proxy before it. Who makes the header up
        # changes its own cookie alone.
        forwarded = request.headers.get("x-forwarded-proto", "").strip().lower()
        is_secure = "https" in (request.scheme, forwarded)
        body = await request.body(most=_MOST_BYTES, seconds=self.body_seconds, what="form")
        if request.path == _LOGOUT:
            return _see("./", self.sessions.end(is_secure=is_secure))
        if request.content_type != _FORM:
            raise bad_request(f"the body must be of the type {_FORM}")
        fields = fields_of(body, "the form")
        then = fields.get("then", "")
        cookie = self.sessions.begin(fields.get("token", "").strip(), is_secure=is_secure)
        if cookie is None:
            problem = "This server has no such token."
            return page_answer(login_page(problem, then=then), 403)
        # Only a table's page is gone to, never an address that the form holds.
        return _see(address_of(named_table(then)) if then else "./", cookie)

    @staticmethod
    def _login(request: HttpRequest) -> str:
        """The login in the place of a page, which is shown afterwards if it is a table's."""
        if _LOOKS.get(request.path) is not TABLE:
            return login_page()
        try:
            then = fields_of(request.query).get("name", "")
            named_table(then)
        except HttpError:
            return login_page()
        return login_page(then=then)


def _see(address: str, cookie: str | None = None) -> HttpAnswer:
    """The answer that sends a browser to another page of this server."""
    cookies = {} if cookie is None else {"Set-Cookie": cookie}
    return HttpAnswer(303, b"", {"Location": address, **cookies}, content_type="text/plain")


def _library_answer(name: str) -> HttpAnswer:
    file = library_file()
    if file is None or name != file[0]:
        raise HttpError(404, "NotFoundException", "there is no such file")
    return HttpAnswer(200, file[1], {"Cache-Control": _KEPT}, content_type=_SCRIPT)


_PAGES: Final = ("text/html", "application/xhtml+xml")
_JSON: Final = "application/json"
_FORM: Final = "application/x-www-form-urlencoded"


def wants_page(headers: Mapping[str, str]) -> bool:
    """Whether a page is asked for by name, and JSON is not liked better, as browsers ask."""
    asked = dict(map(_with_quality, headers.get("accept", "").split(",")))
    page = max(asked.get(each, 0.0) for each in _PAGES)
    return page > 0 and page >= asked.get(_JSON, 0.0)


def require_same_site(headers: Mapping[str, str]) -> None:
    """Check that a form was sent by a page of this server, as every browser tells.

    Raises:
        HttpError: it was sent by another one, or nothing tells.
    """
    site = headers.get("sec-fetch-site")
    # A form of another page cannot set the header of a proxy.
    hosts = {headers.get(name, "").strip().lower() for name in ("host", "x-forwarded-host")}
    is_of_host = _host_of(headers.get("origin", "")) in hosts - {""}
    if not (is_of_host if site is None else site == "same-origin"):
        raise forbidden("the form was not sent by a page of this server")


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _with_quality(part: str) -> tuple[str, float]:
    kind, *parameters = (each.strip() for each in part.split(";"))
    quality = 1.0
    for each in parameters:
        name, _, value = each.partition("=")
        if name.strip().lower() == "q":
            try:
                quality = float(value)
            except ValueError:
                quality = 0.0
    return kind.lower(), quality
