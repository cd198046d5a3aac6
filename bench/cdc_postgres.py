"""Rows a second of `frazil cdc postgres`: a table's first rows, and changes of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from tests.postgres_server import postgres_server

from bench.context import Context
from bench.figures import Figure, report
from frazil.cdc.connections import Dsn
from frazil.cdc.follow import PostgresFollower
from frazil.cdc.settings import CdcProgress, CdcSettings

SHARE = 10
NAME = "bench.cdc_followed"


def run(context: Context) -> Iterator[Figure]:
    """A tenth of the rows loaded, and then as many changed; nothing without a server."""
    try:
        with postgres_server("wal_level=logical", "max_wal_size=4GB") as server:
            server.new_database("bench")
            dsn = f"postgresql://frazil:s3cr3t-pw@127.0.0.1:{server.port}/bench"
            yield from _figures(context, dsn, context.rows // SHARE)
    except pytest.skip.Exception as without:
        print(f"frazil cdc: {without}")


def _figures(context: Context, dsn: str, rows: int) -> Iterator[Figure]:
    def execute(statement: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(statement)

    execute("create table t (id bigint primary key, k bigint, d float8, s text)")
    execute(
        f"insert into t select n, n * 7, n / 3.0, 'name-' || n from generate_series(1, {rows}) n"
    )
    settings = CdcSettings(dsn=Dsn.of(dsn), source="public.t", slot="bench", publication="bench")
    told: list[CdcProgress] = []
    follower = PostgresFollower(
        lake=context.lake, name=NAME, settings=settings, on_progress=told.append
    )
    loaded = _seconds(follower.drain)
    yield report(f"frazil cdc, first rows{context.suffix}", rows / loaded, unit="rows/s")
    execute("update t set k = k + 1")
    followed = _seconds(follower.drain)
    table = context.lake.load_table(NAME)
    found = table.scan().to_df().selectExpr("count(*)", "sum(k - id * 7)").collect()[0]
    if tuple(found) != (rows, rows):
        raise AssertionError(f"the table has {tuple(found)}, not {(rows, rows)}")
    yield report(f"frazil cdc, changes{context.suffix}", rows / followed, unit="rows/s")
    context.lake.purge_table(NAME)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
