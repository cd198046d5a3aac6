"""PostgreSQL: answers lost while the server is still at it, silence, forks and lost races."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from catalog_cases import (
    made_table,
    new_metadata,
    opened,
    properties_of,
    set_properties,
    set_properties_retrying,
)

from ci_share import in_circles, one_of_each
from frazil.catalog.protocol import Catalog
from frazil.errors import AlreadyExistsError, CommitStateUnknownError, FrazilError, StorageError
from programs import forked

SLOW_SECONDS = 1.5
PATIENT = {"commit.status-check.num-retries": "3", "commit.status-check.min-wait-ms": "10"}
IMPATIENT = {
    "commit.status-check.num-retries": "0",
    "commit.status-check.min-wait-ms": "1",
    "sql.statement-timeout-ms": "300",
}


class Proxy:
    """Stands between client and server, and fails as it is told."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cuts_after_commit = False
        self.swallows = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.own_port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.port))
            for run in (self.forward, self.backward):
                threading.Thread(target=run, args=(client, server), daemon=True).start()

    def forward(self, client: socket.socket, server: socket.socket) -> None:
        while data := client.recv(65536):
            if self.swallows:
                continue
            server.sendall(data)
            if self.cuts_after_commit and b"COMMIT" in data:
                # The server hears of nothing and goes on.
                self.cuts_after_commit = False
                client.shutdown(socket.SHUT_RDWR)
                return

    def backward(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := server.recv(65536):
                client.sendall(data)
        except OSError:
            return


@pytest.fixture
def proxy(postgres: Any) -> Iterator[Proxy]:
    made = Proxy(postgres.port)
    yield made
    made.listener.close()


@pytest.fixture
def properties(postgres_url: str, tmp_path: Path) -> dict[str, str]:
    return properties_of("postgres", tmp_path, postgres_url)


def through(proxy: Proxy, properties: dict[str, str], **others: str) -> Catalog:
    uri = properties["uri"].replace(f":{proxy.port}/", f":{proxy.own_port}/")
    return opened({**properties, "uri": uri, **others})


def run_sql(properties: dict[str, str], *statements: str) -> None:
    url = properties["uri"].replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def make_commits_slow(properties: dict[str, str], event: str) -> None:
    """COMMITs take long, as those that wait for a standby or a slow disk."""
    run_sql(
        properties,
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN PERFORM pg_sleep({SLOW_SECONDS}); RETURN NULL; END $$",
        f"CREATE CONSTRAINT TRIGGER slow AFTER {event} ON iceberg_tables "
        "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()",
    )


CHANGES: dict[str, tuple[str, Callable[[Catalog], object]]] = {
    "create": (
        "INSERT",
        lambda catalog: catalog.create_table("db.new", new_metadata(catalog, "db.new")),
    ),
    "swap": ("UPDATE", lambda catalog: set_properties(catalog, "db.t", new="1")),
    "drop": ("DELETE", lambda catalog: catalog.drop_table("db.t")),
    "rename": ("UPDATE", lambda catalog: catalog.rename_table("db.t", "db.new")),
}


def is_done(catalog: Catalog, change: str) -> bool:
    if change == "drop":
        return not catalog.table_exists("db.t")
    if change == "swap":
        return "new" in catalog.load_table("db.t").metadata.properties
    # It must also open.
    return catalog.table_exists("db.new") and bool(catalog.load_table("db.new"))


@pytest.mark.parametrize("change", in_circles(CHANGES, test=2))
def test_the_server_ends_a_commit_after_its_client_is_gone(
    change: str, proxy: Proxy, properties: dict[str, str]
) -> None:
    looking = opened(properties)
    made_table(looking)
    event, run = CHANGES[change]
    make_commits_slow(properties, event)
    acting = through(proxy, properties, **PATIENT)
    proxy.cuts_after_commit = True
    run(acting)
    assert is_done(looking, change)


@pytest.mark.parametrize("change", ["create", "swap"])
def test_whose_patience_ends_first_deletes_nothing(
    change: str, proxy: Proxy, properties: dict[str, str]
) -> None:
    looking = opened(properties)
    made_table(looking, **IMPATIENT)
    event, run = CHANGES[change]
    make_commits_slow(properties, event)
    acting = through(proxy, properties, **IMPATIENT)
    proxy.cuts_after_commit = True
    with pytest.raises(CommitStateUnknownError, match="no file was deleted"):
        run(acting)
    deadline = time.monotonic() + 20
    while not is_done(looking, change):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_silent_server_hangs_nobody(proxy: Proxy, properties: dict[str, str]) -> None:
    made_table(opened(properties))
    limits = {"sql.connect-timeout-ms": "2000", "sql.statement-timeout-ms": "400"}
    acting = through(proxy, properties, **limits)
    acting.load_table("db.t")
    proxy.swallows = True
    started = time.monotonic()
    with pytest.raises(StorageError):
        set_properties(acting, "db.t", a="1")
    assert time.monotonic() - started < 15
    proxy.swallows = False
    assert "a" in set_properties(acting, "db.t", a="1").metadata.properties


def test_a_lock_that_another_holds_hangs_nobody(properties: dict[str, str]) -> None:
    table = made_table(opened(properties))
    acting = opened({**properties, "sql.statement-timeout-ms": "300"})
    with psycopg.connect(properties["uri"].replace("+psycopg", "")) as holder:
        holder.execute("SELECT * FROM iceberg_tables FOR UPDATE")
        with pytest.raises(StorageError, match="no answer within 300 ms"):
            set_properties(acting, "db.t", a="1")
    assert acting.load_table("db.t") == table


def test_forked_children_make_their_own_connections(properties: dict[str, str]) -> None:
    catalog = opened(properties)
    made_table(catalog)

    def write(number: int) -> None:
        for commit in range(5):
            set_properties_retrying(catalog, "db.t", **{f"w{number}.{commit}": "1"})

    children = [forked(write, number) for number in range(3)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 3
    found = catalog.load_table("db.t").metadata.properties
    assert found.keys() >= {f"w{number}.{commit}" for number in range(3) for commit in range(5)}


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_lost_races_are_tried_again_at_every_isolation(
    level: str, properties: dict[str, str]
) -> None:
    made_table(opened(properties))
    database = properties["uri"].rpartition("/")[2]
    run_sql(properties, f"ALTER DATABASE {database} SET default_transaction_isolation = '{level}'")

    def write(number: int) -> None:
        own = opened(properties)
        for commit in range(5):
            set_properties_retrying(own, "db.t", **{f"w{number}.{commit}": "1"})
            mine = {f"w{number}.{commit}": "1", "shared": str(number)}
            own.update_namespace_properties("db", updates=mine)
        own.update_namespace_properties("db", removals=[f"w{number}.0"])

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(write, range(4)))
    catalog = opened(properties)
    wanted = {f"w{number}.{commit}" for number in range(4) for commit in range(5)}
    assert wanted <= set(catalog.load_table("db.t").metadata.properties)
    found = catalog.load_namespace_properties("db")
    assert found.pop("shared") in "0123"
    assert set(found) == {each for each in wanted if not each.endswith(".0")}


def test_limits_are_whole_numbers(properties: dict[str, str]) -> None:
    with pytest.raises(FrazilError, match=r"sql\.statement-timeout-ms"):
        opened({**properties, "sql.statement-timeout-ms": "a minute"})


WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"
NAMES: dict[str, tuple[str, Callable[[Catalog], object], Callable[[Catalog], object]]] = {
    "namespace, then table": (
        "iceberg_namespace_properties",
        lambda catalog: catalog.create_namespace("db.new"),
        lambda catalog: catalog.create_table("db.new", new_metadata(catalog, "db.new")),
    ),
    "namespace, then another table's new name": (
        "iceberg_namespace_properties",
        lambda catalog: catalog.create_namespace("db.new.below"),
        lambda catalog: catalog.rename_table("db.t", "db.new"),
    ),
    "table, then namespace": (
        "iceberg_tables",
        lambda catalog: catalog.create_table("db.new", new_metadata(catalog, "db.new")),
        lambda catalog: catalog.create_namespace("db.new"),
    ),
}


@pytest.mark.parametrize("case", one_of_each(NAMES, test=1))
def test_a_name_is_a_tables_or_a_namespaces_at_the_same_moment_too(
    properties: dict[str, str], case: str
) -> None:
    """The first one has looked and is held at its INSERT; the second one waits for its end."""
    table, first, second = NAMES[case]
    catalog, other = opened(properties), opened(properties)
    made_table(catalog)
    url = properties["uri"].replace("+psycopg", "")
    with (
        psycopg.connect(url, autocommit=True) as watching,
        psycopg.connect(url) as holding,
        ThreadPoolExecutor(2) as threads,
    ):
        holding.execute(f"LOCK TABLE {table} IN EXCLUSIVE MODE".encode())
        changes = []
        for waiting, (change, where) in enumerate([(first, catalog), (second, other)], 1):
            changes.append(threads.submit(change, where))
            end = time.monotonic() + 20
            while watching.execute(WAITING).fetchone() != (waiting,):
                if changes[-1].done() or time.monotonic() > end:
                    break
                time.sleep(0.01)
        holding.rollback()
        outcomes = [type(each.exception()) for each in changes]
    assert outcomes[0] is type(None)
    assert issubclass(outcomes[1], AlreadyExistsError)
    assert catalog.namespace_exists("db.new") != catalog.table_exists("db.new")
