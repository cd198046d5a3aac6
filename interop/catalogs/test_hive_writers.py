"""Many writers on a Hive metastore, writers that die, answers that are lost, servers that go."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import catalog_worker
import pytest
from catalog_cases import QUICK_CHECKS, made_table, opened, set_properties, set_properties_retrying
from hive_server import LOCKS_END_SOON, Metastore, properties_of
from thrift_proxy import Cut, Proxy, proxy

from frazil.catalog.pointer.hive.catalog import HiveCatalog
from frazil.catalog.pointer.hive.connection import Metastores
from frazil.catalog.protocol import Catalog, LoadedTable
from frazil.errors import CommitFailedError, StorageError
from programs import run_program

QUICK = {
    "iceberg.hive.lock-check-max-wait-ms": "200",
    "iceberg.hive.lock-heartbeat-interval-ms": "1000",
}
UNLOCKED = {"iceberg.engine.hive.lock-enabled": "false"}
ALTER = "alter_table_with_environment_context"
WORKER = Path(catalog_worker.__file__)


@contextmanager
def new_table(properties: dict[str, str]) -> Iterator[Catalog]:
    """A catalog where `db.t` is new."""
    with closing(opened(properties)) as catalog:
        empty(catalog)
        made_table(catalog, **{"write.metadata.previous-versions-max": "1000", **QUICK_CHECKS})
        yield catalog


def empty(catalog: Catalog) -> None:
    """Forget the namespace `db`, which lies in another test's warehouse."""
    if catalog.namespace_exists("db"):
        for table in catalog.list_tables("db"):
            catalog.drop_table(table)
        catalog.drop_namespace("db")


def metadata_files(catalog: Catalog) -> set[str]:
    place = catalog.load_table("db.t").metadata.location
    return {file.path for file in catalog.io.list(place) if file.path.endswith(".metadata.json")}


def whole(catalog: Catalog, names: set[str]) -> LoadedTable:
    """The table, of which exactly those commits are part; no file of its log is lost."""
    table = catalog.load_table("db.t")
    done = {name for name, value in table.metadata.properties.items() if value == "done"}
    assert done == names
    assert len(table.metadata.metadata_log) == len(names)
    assert {entry.metadata_file for entry in table.metadata.metadata_log} < metadata_files(catalog)
    return table


def committed_by_processes(
    properties: dict[str, str], writers: int = 8, commits: int = 25
) -> set[str]:
    """What writers in processes of their own have committed."""
    acknowledged = run_program(WORKER, properties, writers, commits).split()
    assert len(acknowledged) == writers * commits
    return set(acknowledged)


def test_no_acknowledged_commit_is_lost(hive: Metastore) -> None:
    if hive.version.startswith("4."):
        pytest.skip("calls of Hive 4 for locks wait for each other in Derby, each time a minute")
    properties = properties_of(hive, **QUICK)
    with new_table(properties) as catalog:
        whole(catalog, committed_by_processes(properties))
        assert len(metadata_files(catalog)) == 201


@pytest.mark.parametrize("settings", [QUICK, UNLOCKED], ids=["locked", "unlocked"])
def test_none_is_lost_in_a_large_database(
    hive_in_postgres: Metastore, settings: dict[str, str]
) -> None:
    properties = properties_of(hive_in_postgres, **settings)
    with new_table(properties) as catalog:
        whole(catalog, committed_by_processes(properties))
        assert len(metadata_files(catalog)) == 201


def test_without_locks_a_metastore_that_cannot_compare_refuses(hive: Metastore) -> None:
    if not hive.version.startswith("4."):
        pytest.skip(f"Hive {hive.version} compares nothing, and does not say so")
    with new_table(properties_of(hive, **UNLOCKED)) as catalog:
        with pytest.raises(CommitFailedError, match="not supported"):
            set_properties(catalog, "db.t", a="done")
        whole(catalog, set())
        assert len(metadata_files(catalog)) == 1


# -- answers that are lost -------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [QUICK, UNLOCKED], ids=["locked", "unlocked"])
@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("call", ["create_table", "lock", ALTER, "unlock", "get_table_req"])
def test_an_answer_is_lost(
    hive_in_postgres: Metastore, settings: dict[str, str], arrives: bool, call: str
) -> None:
    with proxy(hive_in_postgres.port) as between:
        properties = properties_of(hive_in_postgres, **settings) | {"uri": between.uri}
        with closing(opened(properties)) as catalog:
            lost(catalog, between, Cut(call, arrives))


def test_an_answer_of_an_older_metastore_is_lost(hive: Metastore) -> None:
    """Of one that compares nothing, and of one that cannot."""
    for arrives in (False, True):
        with proxy(hive.port) as between:
            properties = properties_of(hive, **QUICK) | {"uri": between.uri}
            with closing(opened(properties)) as catalog:
                lost(catalog, between, Cut(ALTER, arrives))


def lost(catalog: Catalog, between: Proxy, cut: Cut) -> None:
    """Make a table and change it while a connection breaks; all of it takes place, once."""
    empty(catalog)
    if cut.call == "create_table":
        between.cuts.append(cut)
    made_table(catalog, **QUICK_CHECKS)
    if cut.call != "create_table":
        between.cuts.append(cut)
    set_properties(catalog, "db.t", a="done")
    set_properties(catalog, "db.t", b="done")
    whole(catalog, {"a", "b"})
    assert len(metadata_files(catalog)) == 3
    used = "lock" not in cut.call or catalog.properties.get(*UNLOCKED) is None
    assert between.cuts == ([] if used else [cut])


def test_answers_are_lost_again_and_again(hive_in_postgres: Metastore) -> None:
    """The catalog does not know what became of it, or it took place; never is it half."""
    with proxy(hive_in_postgres.port) as between:
        properties = properties_of(hive_in_postgres, **QUICK) | {"uri": between.uri}
        with new_table(properties) as catalog:
            names = set()
            for number in range(8):
                between.cuts += [Cut(ALTER, bool(number & bit)) for bit in (1, 2, 4)]
                name = f"n{number}"
                try:
                    set_properties(catalog, "db.t", **{name: "done"})
                    names.add(name)
                except Exception:
                    if name in catalog.load_table("db.t").metadata.properties:
                        names.add(name)
                between.cuts.clear()
            whole(catalog, names)
            set_properties(catalog, "db.t", last="done")


# -- writers that die or sleep ---------------------------------------------------------------------


def struck(step: int, strike: Callable[[], object], *, after: bool) -> None:
    """Strike at a call of the metastore by this process, before or after it."""
    count, real = 0, Metastores._send_call

    def called(self: Metastores, call: Any, connection: Any) -> Any:
        nonlocal count
        count += 1
        mine = count
        if mine == step and not after:
            strike()
        answer = real(self, call, connection)
        if mine == step and after:
            strike()
        return answer

    Metastores._send_call = called  # type: ignore[assignment,method-assign]


def in_a_process(change: Callable[[], object]) -> int:
    """The number of a process that makes a change and ends with 0, or 3 where it fails."""
    child = os.fork()
    if child == 0:
        try:
            change()
        except BaseException:
            os._exit(3)
        os._exit(0)
    return child


def test_a_writer_that_dies_leaves_a_whole_table(hive_in_postgres: Metastore) -> None:
    properties = properties_of(hive_in_postgres, **QUICK)
    expected: set[str] = set()
    with new_table(properties) as catalog:
        for step in range(1, 100):
            ends, name = [], f"k{step}"

            def killed(after: bool, name: str = name, step: int = step) -> None:
                with closing(opened(properties)) as own:
                    own.table_exists("db.t")
                    struck(step, lambda: os.kill(os.getpid(), signal.SIGKILL), after=after)
                    set_properties(own, "db.t", **{name: "done"})

            for after in (False, True):
                child = in_a_process(lambda after=after: killed(after))  # type: ignore[misc]
                ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
                expected |= {name} & set(catalog.load_table("db.t").metadata.properties)
                # The next one waits until the metastore ends the lock of the dead.
                set_properties_retrying(catalog, "db.t", alive=f"after {step} {after}")
            found = catalog.load_table("db.t").metadata
            assert {key for key in found.properties if found.properties[key] == "done"} == expected
            assert set(ends) <= {0, -signal.SIGKILL}
            if ends == [0, 0]:
                break
    # Found, locked, found, beaten, altered, beaten, unlocked: at the change it is there.
    assert step == 8
    assert {f"k{step}"} < expected
    assert "k1" not in expected


def test_a_writer_that_sleeps_finds_its_lock_gone(hive_in_postgres: Metastore) -> None:
    """It has read the record and holds the lock; meanwhile the metastore gives that to another."""
    properties = properties_of(hive_in_postgres, **QUICK)
    with new_table(properties) as catalog:

        def sleeping() -> None:
            real = HiveCatalog._record_at

            def slept(self: HiveCatalog, base: LoadedTable) -> Any:
                record = real(self, base)
                os.kill(os.getpid(), signal.SIGSTOP)
                return record

            HiveCatalog._record_at = slept  # type: ignore[method-assign]
            with closing(opened(properties)) as own, pytest.raises(CommitFailedError, match="lost"):
                set_properties(own, "db.t", sleeper="done")

        child = in_a_process(sleeping)
        os.waitpid(child, os.WUNTRACED)
        begun = time.monotonic()
        set_properties(catalog, "db.t", other="done")
        assert time.monotonic() - begun > LOCKS_END_SOON - 2
        os.kill(child, signal.SIGCONT)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        whole(catalog, {"other"})
        assert len(metadata_files(catalog)) == 2


def test_a_lock_lives_as_long_as_its_writer(hive_in_postgres: Metastore) -> None:
    """Longer than the metastore waits for a sign of life; others are told who holds it."""
    properties = properties_of(hive_in_postgres, **QUICK)
    with new_table(properties) as catalog:
        impatient = properties | {"iceberg.hive.lock-timeout-ms": str(LOCKS_END_SOON * 2000)}
        ready, done = os.pipe(), os.pipe()

        def slow() -> None:
            with closing(opened(properties)) as own:
                assert isinstance(own, HiveCatalog)
                with own._locks.hold(("db", "t")) as lock:
                    os.write(ready[1], b"1")
                    os.read(done[0], 1)
                    assert lock.is_held()

        child = in_a_process(slow)
        os.read(ready[0], 1)
        with closing(opened(impatient)) as other, pytest.raises(CommitFailedError) as caught:
            set_properties(other, "db.t", a="done")
        assert "it is held by lock" in str(caught.value)
        os.write(done[1], b"1")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        set_properties(catalog, "db.t", b="done")
        whole(catalog, {"b"})


# -- several servers -------------------------------------------------------------------------------


def test_calls_go_to_a_server_that_lives(hive: Metastore) -> None:
    with proxy(hive.port) as first, proxy(hive.port) as second:
        uri = f"{first.uri},{second.uri}"
        properties = properties_of(hive, **QUICK) | {"uri": uri}
        with new_table(properties) as catalog:
            set_properties(catalog, "db.t", a="done")
            first.stop()
            set_properties(catalog, "db.t", b="done")
            assert catalog.list_tables("db") == [("db", "t")]
            first.start()
            second.stop()
            set_properties(catalog, "db.t", c="done")
            # The one in use goes in the middle of a commit.
            second.start()
            first.cuts.append(Cut(ALTER, arrives=True))
            set_properties(catalog, "db.t", d="done")
            whole(catalog, {"a", "b", "c", "d"})
            for each in (first, second):
                each.stop()
            with pytest.raises(StorageError, match=f"{first.port}.*{second.port}|reached"):
                catalog.list_namespaces()
            second.start()
            assert catalog.table_exists("db.t")


def test_a_server_that_is_dead_from_the_start(hive: Metastore) -> None:
    with proxy(hive.port) as gone:
        gone.stop()
        properties = properties_of(hive) | {"uri": f"{gone.uri},{hive.uri}"}
        with closing(opened(properties)) as catalog:
            name = f"db{uuid4().hex[:10]}"
            made_table(catalog, f"{name}.t")
            set_properties(catalog, f"{name}.t", a="1")
