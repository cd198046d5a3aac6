"""Loads of many clients at once: one look-up for all who wait, and never an old answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
from serve_cases import namespace, running, set_property, sql_catalog, table

from frazil.catalog.protocol import Catalog

TABLES = [f"/v1/namespaces/a/tables/t{number}" for number in range(4)]
Opening = Callable[[], Catalog]


def made(client: httpx.Client) -> dict[str, str]:
    """Tables, and their tags."""
    namespace(client, "a")
    for path in TABLES:
        assert table(client, "a", path.rpartition("/")[2]).status_code == 200
    return {path: client.get(path).headers["etag"] for path in TABLES}


def asked(client: httpx.Client, path: str, tag: str) -> int:
    return client.get(path, headers={"If-None-Match": tag}).status_code


def test_a_load_sees_every_commit_that_was_answered_before(opening: Opening) -> None:
    with (
        running(opening()) as first,
        running(opening()) as second,
        first.client() as client,
        second.client() as other,
    ):
        tags = made(client)
        with ThreadPoolExecutor(8) as pool:
            for number in range(5):
                path = TABLES[number % len(TABLES)]
                old = dict(tags)
                changed = set_property(other, path, "p", str(number))
                tags[path] = changed.headers["etag"]
                asks = [partial(asked, client, each, old[each]) for each in TABLES * 4]
                statuses = [each.result() for each in [pool.submit(ask) for ask in asks]]
                assert statuses == [200 if each == path else 304 for each in TABLES] * 4
                assert {asked(client, each, tags[each]) for each in TABLES} == {304}


def test_tables_that_cannot_be_looked_up_disturb_no_other(tmp_path: Path) -> None:
    with running(sql_catalog(tmp_path)) as server, server.client() as client:
        tags = made(client)
        with sqlite3.connect(next(tmp_path.glob("*.db"))) as database:
            database.execute(
                "UPDATE iceberg_tables SET metadata_location = NULL WHERE table_name = 't0'"
            )
        assert client.delete(TABLES[1]).status_code == 204
        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda path: asked(client, path, tags[path]), TABLES * 4))
        assert statuses == [500, 404, 304, 304] * 4
        server.check_exchanges()
