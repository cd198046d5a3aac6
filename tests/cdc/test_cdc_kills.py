"""Both sides killed: the table has what the source has, and each change once."""

import signal
import threading
import time
from pathlib import Path

import pytest

from frazil.cdc.positions import lsn_of
from postgres_server import postgres_server
from programs import Program

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


@pytest.mark.soak  # CI kills the follower
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
