"""What the tests of the REST catalog share: exchanges for a check, and many threads at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qsl

import serve_cases
from catalog_cases import NO_REPORTS as NO_REPORTS
from catalog_cases import QUICK_CHECKS as QUICK_CHECKS

from frazil.catalog.rest.catalog import RestCatalog
from rest_server import Exchange, Server


def as_served(exchange: Exchange) -> serve_cases.Exchange:
    """The same as the tests of `frazil serve` have it: without a prefix."""
    return serve_cases.Exchange(
        exchange.method,
        exchange.path.replace("/v1/main/", "/v1/"),
        dict(parse_qsl(exchange.query, keep_blank_values=True)),
        exchange.body,
        exchange.status,
        exchange.content,
        exchange.answered.get("content-type", "application/json"),
        exchange.headers,
    )


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
