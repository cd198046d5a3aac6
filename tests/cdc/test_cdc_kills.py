"""Both sides killed: the table has what the source has, and each change once."""

from __future__ import annotations

import random
import signal
import threading
import time
from pathlib import Path

import psycopg
import pytest

from frazil.cdc.positions import lsn_of
from postgres_server import postgres_server
from programs import Program

pytestmark = pytest.mark.spark

RUNNER = Path(__file__).with_name("cdc_runner.py")


def following(database, place, moment, *more):
    """A process of its own that follows the table."""
    warehouse = str(database.lake.catalog.properties["warehouse"])
    words = ["--warehouse", warehouse, "cdc", "postgres", database.dsn, "--table", "db.t"]
    words += ["--slot", database.slot, *more]
    return Program(RUNNER, place, moment, *words)


def killed(database, place, moment, *more):
    with following(database, place, moment, "--once", *more) as process:
        process.end(code=-signal.SIGKILL, seconds=200)


def positions(table):
    """Of the snapshots, in their order."""
    return [lsn_of(s.summary["frazil.cdc.lsn"]) for s in table.metadata.snapshots]


@pytest.mark.soak
def test_killed_within_the_load(database):
    database.run(
        "create table t (id int primary key, v int)",
        "insert into t select n, n from generate_series(1, 100) n",
    )
    killed(database, "created", 1)
    assert database.table.current_snapshot is None
    # The rows that come meanwhile are of the second load.
    database.run("insert into t values (101, 1)", "delete from t where id = 1")
    database.drain()
    ours, theirs = database.both()
    assert ours == theirs


@pytest.mark.check
def test_killed_after_a_commit(database):
    database.run(
        "create table t (id int primary key, v int)",
        "insert into t select n, n from generate_series(1, 100) n",
    )
    database.drain()
    database.run("update t set v = v + 1 where id < 50", "delete from t where id = 90")
    # The slot is not moved after the commit, and hands the changes out again.
    killed(database, "committed", 1)
    assert database.both()[0] == database.both()[1]
    count = len(database.table.metadata.snapshots)
    database.drain()
    assert len(database.table.metadata.snapshots) == count
    assert database.both()[0] == database.both()[1]
    at = positions(database.table)
    assert at == sorted(set(at))


@pytest.mark.check
def test_the_server_is_killed_while_it_is_followed(database_of):
    with postgres_server("wal_level=logical") as server:
        database = database_of(server)
        database.run("create table t (id serial primary key, v int)")
        stop, errors = threading.Event(), []
        follower = database.follower(batch_rows=5)
        thread = threading.Thread(
            target=lambda: follower.follow(interval=0.1, stop=stop, on_error=errors.append)
        )
        thread.start()
        try:
            wait_until(lambda: database.told)
            database.run("insert into t (v) select n from generate_series(1, 20) n")
            server.stop()
            wait_until(lambda: errors)
            server.start()
            database.run("update t set v = v * 2", "delete from t where id % 3 = 0")
            wait_until(lambda: database.both()[0] == database.both()[1])
        finally:
            stop.set()
            thread.join(60)
        assert not thread.is_alive()
        assert {type(error).__name__ for error in errors} == {"StorageError"}


def wait_until(holds, seconds=60):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


class Load(threading.Thread):
    """Transactions as of pgbench, from several connections, over restarts of the server."""

    def __init__(self, database, seed, ends):
        super().__init__()
        self.database, self.random, self.ends, self.transactions = database, seed, ends, 0

    def run(self):
        r = random.Random(self.random)
        while time.monotonic() < self.ends:
            try:
                with psycopg.connect(self.database.dsn, connect_timeout=5) as connection:
                    while time.monotonic() < self.ends:
                        for _ in range(r.randrange(1, 5)):
                            self.change(connection, r)
                        connection.commit()
                        self.transactions += 1
            except psycopg.Error:
                time.sleep(0.2)

    def change(self, connection, r):
        key, kind = r.randrange(1, 5000), r.random()
        if kind < 0.6:
            connection.execute("update t set v = v + %s where id = %s", [r.randrange(99), key])
        elif kind < 0.8:
            connection.execute(
                "insert into t values (%s, 0, repeat('x', 3000)) on conflict (id) do nothing",
                [key],
            )
        elif kind < 0.95:
            connection.execute("delete from t where id = %s", [key])
        else:
            connection.execute(
                "update t set id = %s where id = %s and not exists (select 1 from t where id = %s)",
                [key + 5000, key, key + 5000],
            )


@pytest.mark.soak
def test_a_minute_of_load_with_kills_of_both_sides(database_of):
    r = random.Random(11)
    with postgres_server("wal_level=logical") as server:
        database = database_of(server)
        database.run(
            "create table t (id int primary key, v int, s text)",
            "insert into t select n, 0, repeat(md5(n::text), 100) from generate_series(1, 4000) n",
        )
        begun = time.monotonic()
        loads = [Load(database, seed, begun + 60) for seed in range(3)]
        for load in loads:
            load.start()
        deaths = 0
        while deaths < 5:
            place = r.choice(["created", "commit", "committed", "advanced", "time", "time"])
            moment = r.randrange(50, 600) if place == "time" else r.randrange(1, 4)
            with following(database, place, moment, "--interval", "0.3"):
                time.sleep(r.uniform(8, 12))
                server.stop()
                server.start()
                time.sleep(r.uniform(0, 3))
            deaths += 1
        for load in loads:
            load.join()
        assert sum(load.transactions for load in loads) > 1000
        with following(database, "never", 0, "--once") as process:
            process.end(seconds=300)
        columns = "concat_ws('|', id, v, md5(s))"
        ours, theirs = database.both(columns)
        assert ours == theirs
        at = positions(database.table)
        assert at == sorted(set(at))
