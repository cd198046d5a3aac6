"""What a request tells of the browser that sent it: what it shows, and whose page it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from frazil.serve.answers import bad_request, forbidden

_PAGES: Final = ("text/html", "application/xhtml+xml")
_JSON: Final = "application/json"
_FORM: Final = "application/x-www-form-urlencoded"


def wants_page(headers: Mapping[str, str]) -> bool:
    """Whether a page is asked for by name, and JSON is not liked better, as browsers ask."""
    asked = dict(map(_with_quality, headers.get("accept", "").split(",")))
    page = max(asked.get(each, 0.0) for each in _PAGES)
    return page > 0 and page >= asked.get(_JSON, 0.0)


def is_over_tls(scheme: str, headers: Mapping[str, str]) -> bool:
    """Whether the browser speaks TLS, to this server or to a proxy before it."""
    # Who makes this header up changes its own cookie alone.
    return scheme == "https" or headers.get("x-forwarded-proto", "").strip().lower() == "https"


def require_same_site(headers: Mapping[str, str]) -> None:
    """Check that a form was sent by a page of this server, as every browser tells.

    Raises:
        HttpError: it was sent by another one, or nothing tells.
    """
    refused = forbidden("the form was not sent by a page of this server")
    site = headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        raise refused
    origin = headers.get("origin")
    if origin is None:
        if site is None:
            raise refused
        return
    # A form of another page cannot set the header of a proxy.
    hosts = {headers.get(name, "").strip().lower() for name in ("host", "x-forwarded-host")}
    if site is None and _host_of(origin) not in hosts - {""}:
        raise refused


def form_of(headers: Mapping[str, str], body: bytes) -> dict[str, str]:
    """Return the fields of a form.

    Raises:
        HttpError: it is none.
    """
    if headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise bad_request(f"the body must be of the type {_FORM}")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise bad_request("the form is not percent-encoded UTF-8") from None
    return dict(pairs)


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
