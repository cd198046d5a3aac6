"""What the tests of the REST catalog share: a check of exchanges by the protocol's description."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs

from catalog_cases import NO_REPORTS as NO_REPORTS
from catalog_cases import QUICK_CHECKS as QUICK_CHECKS
from openapi_core.datatypes import RequestParameters
from serve_cases import specification

from frazil.catalog.rest.catalog import RestCatalog
from rest_server import Exchange, Server


def check_request(exchange: Exchange) -> None:
    """Validate a request by the protocol's description."""
    specification().validate_request(_Sent(exchange))


def check_answer(exchange: Exchange) -> None:
    """Validate an answer by the protocol's description."""
    specification().validate_response(_Sent(exchange), _Answered(exchange))


def ask_together(server: Server, catalog: RestCatalog, valid: set[str], count: int = 4) -> None:
    """Ask from many threads, whose login the server takes back when each has sent it."""
    expected = catalog.list_namespaces()
    together = threading.Barrier(count)
    check, old = server.check, set(valid)

    def checked(request: Any) -> bool:
        if request.headers.get("authorization", "")[7:] in old:
            together.wait(20)
            return False
        return check(request)

    server.check = checked
    with ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(lambda _: catalog.list_namespaces(), range(count)))
    assert answers == [expected] * count


class _Sent:
    """A request as the validator wants it."""

    def __init__(self, exchange: Exchange) -> None:
        self.host_url = "https://localhost"
        self.path = exchange.path
        self.full_url_pattern = self.host_url + exchange.path
        self.method = exchange.method.lower()
        self.body = exchange.body or None
        self.content_type = exchange.headers.get("content-type", "application/json").split(";")[0]
        query = {key: each[0] for key, each in parse_qs(exchange.query, True).items()}
        self.parameters = RequestParameters(query=query, header=exchange.headers)


class _Answered:
    """An answer as the validator wants it."""

    def __init__(self, exchange: Exchange) -> None:
        self.status_code = exchange.status
        self.headers = exchange.answered
        self.content_type = exchange.answered.get("content-type", "application/json")
        self.data = exchange.content or None
