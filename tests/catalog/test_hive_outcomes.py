"""What becomes of a change in a Hive metastore that refuses, falls silent, or loses a lock.

The metastore is one of this process: a real one cannot be made to fail at one call.  What real ones
do is in interop/catalogs.
"""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from catalog_cases import QUICK_CHECKS, made_table, opened, set_properties
from view_cases import made_view

from frazil.catalog.pointer.hive.connection import MetastoreConnection, Metastores, thrift_types
from frazil.catalog.pointer.hive.settings import Address
from frazil.catalog.protocol import Catalog
from frazil.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    FrazilError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)

transport = pytest.importorskip("thrift.transport.TTransport")
pytest.importorskip("pymetastore")

Fault = Callable[["FakeMetastore", Callable[[], Any]], Any]
LOCKED = {"iceberg.hive.lock-heartbeat-interval-ms": "10000"}
BEATING = {"iceberg.hive.lock-heartbeat-interval-ms": "2"}
UNLOCKED = {"iceberg.engine.hive.lock-enabled": "false"}
POINTER = "metadata_location"


class FakeMetastore:
    """The calls that the catalog makes, on tables in memory.

    Faults come in turn; the last one of a call stays.
    """

    def __init__(self) -> None:
        self.tables: dict[tuple[str, str], Any] = {}
        self.databases: set[str] = set()
        self.faults: dict[str, list[Fault]] = {}
        self.locks: dict[int, Any] = {}
        self.calls: Counter[str] = Counter()
        self.types = thrift_types()

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if name.startswith("_") or not callable(found):
            return found

        def faulty(*arguments: Any) -> Any:
            self.calls[name] += 1
            waiting = self.faults.get(name)
            if waiting:
                fault = waiting.pop(0) if len(waiting) > 1 else waiting[0]
                return fault(self, lambda: found(*arguments))
            return found(*arguments)

        return faulty

    def get_database(self, name: str) -> Any:
        if name not in self.databases:
            raise self.types.NoSuchObjectException("no database")
        return self.types.Database(name=name)

    def create_database(self, database: Any) -> None:
        self.databases.add(database.name)

    def get_table_req(self, asked: Any) -> Any:
        found = self.tables.get((asked.dbName, asked.tblName))
        if found is None:
            raise self.types.NoSuchObjectException("no table")
        return self.types.GetTableResult(table=copy.deepcopy(found))

    def create_table(self, table: Any) -> None:
        if (table.dbName, table.tableName) in self.tables:
            raise self.types.AlreadyExistsException("it exists")
        self.tables[table.dbName, table.tableName] = copy.deepcopy(table)

    def alter_table_with_environment_context(
        self, database: str, name: str, table: Any, context: Any
    ) -> None:
        found = self.tables.get((database, name))
        if found is None:
            raise self.types.InvalidOperationException("the table does not exist")
        expected = context.properties.get("expected_parameter_value")
        if expected is not None and found.parameters[POINTER] != expected:
            raise self.types.MetaException("The table has been modified")
        del self.tables[database, name]
        self.tables[table.dbName, table.tableName] = copy.deepcopy(table)

    def drop_table(self, database: str, name: str, delete_data: bool) -> None:
        if self.tables.pop((database, name), None) is None:
            raise self.types.NoSuchObjectException("no table")

    def lock(self, request: Any) -> Any:
        state = self.types.LockState.ACQUIRED
        self.locks[7] = self.types.ShowLocksResponseElement(
            lockid=7, state=state, agentInfo=request.agentInfo
        )
        return self.types.LockResponse(lockid=7, state=state)

    def check_lock(self, request: Any) -> Any:
        return self.types.LockResponse(lockid=7, state=self.types.LockState.ACQUIRED)

    def show_locks(self, request: Any) -> Any:
        return self.types.ShowLocksResponse(locks=list(self.locks.values()))

    def heartbeat(self, request: Any) -> None:
        return None

    def unlock(self, request: Any) -> None:
        del self.locks[request.lockid]


# -- faults: each has the metastore, and the call as it would be without it ------------------------


def silent(server: FakeMetastore, call: Callable[[], Any]) -> None:
    """The connection breaks before the call arrives."""
    raise transport.TTransportException(message="broken")


def silent_after(server: FakeMetastore, call: Callable[[], Any]) -> None:
    """The call is carried out, and its answer is lost."""
    call()
    raise transport.TTransportException(message="broken")


def refused(server: FakeMetastore, call: Callable[[], Any]) -> None:
    """The metastore fails before it does anything."""
    raise server.types.MetaException("no")


def refused_after(server: FakeMetastore, call: Callable[[], Any]) -> None:
    """The metastore carries it out by a first try of its own, and answers what a second met."""
    call()
    raise server.types.MetaException("no")


def exists_after(server: FakeMetastore, call: Callable[[], Any]) -> None:
    call()
    raise server.types.AlreadyExistsException("it exists")


def then(first: Fault, happens: Callable[[FakeMetastore], None]) -> Fault:
    """A fault after which something else happens, whatever it raises."""

    def fault(server: FakeMetastore, call: Callable[[], Any]) -> Any:
        try:
            return first(server, call)
        finally:
            happens(server)

    return fault


def done(server: FakeMetastore, call: Callable[[], Any]) -> Any:
    return call()


def slow(server: FakeMetastore, call: Callable[[], Any]) -> Any:
    """A heartbeat becomes due while the call is under way."""
    time.sleep(0.02)
    return call()


def asks_fail(server: FakeMetastore) -> None:
    server.faults["get_table_req"] = [refused]


def beats_fail(server: FakeMetastore) -> None:
    server.faults["heartbeat"] = [refused]


def dropped(server: FakeMetastore) -> None:
    server.tables.clear()


def points_nowhere(server: FakeMetastore) -> None:
    """Another writer's metadata, which cannot be read."""
    server.tables["db", "t"].parameters[POINTER] += ".gone"


class Lake:
    """A catalog with the table db.t, and the commit of another writer on it."""

    def __init__(self, folder: Path, server: FakeMetastore, properties: dict[str, str]) -> None:
        self.folder, self.server = folder, server
        self.catalog: Catalog = opened(
            {
                "type": "hive",
                "uri": "thrift://metastore",
                "warehouse": str(folder),
                **QUICK_CHECKS,
                **properties,
            }
        )

    def other_commits(self, server: FakeMetastore) -> None:
        """Another writer commits on the base, whatever has been made of it."""
        ours = server.tables["db", "t"]
        server.tables["db", "t"] = self.base
        faults, server.faults = server.faults, {}
        with closing(opened({**self.catalog.properties, **UNLOCKED})) as other:
            set_properties(other, "db.t", other="1")
        server.faults = faults
        assert ours is not server.tables["db", "t"]

    def make(self) -> None:
        made_table(self.catalog, **QUICK_CHECKS)
        self.base = copy.deepcopy(self.server.tables["db", "t"])

    def metadata_files(self) -> set[str]:
        return {path.name for path in self.folder.rglob("*.metadata.json*")}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeMetastore:
    made = FakeMetastore()
    connection = MetastoreConnection(Address("metastore", 9083), made, transport.TMemoryBuffer())
    monkeypatch.setattr(Metastores, "_unused_connection", lambda metastores: connection)
    return made


@contextmanager
def lake_on(folder: Path, server: FakeMetastore, properties: dict[str, str]) -> Iterator[Lake]:
    lake = Lake(folder, server, properties)
    with closing(lake.catalog):
        yield lake


@pytest.fixture
def lake(tmp_path: Path, server: FakeMetastore) -> Iterator[Lake]:
    """Commits lock its table, which is made."""
    with lake_on(tmp_path, server, LOCKED) as made:
        made.make()
        yield made


COMMITS: dict[str, tuple[dict[str, str], Any, type[FrazilError] | None, bool]] = {
    # what happens: settings, faults of the alter, the error, whether the new file stays
    "the answer is lost before": (LOCKED, [silent], None, True),
    "the answer is lost after": (LOCKED, [silent_after], None, True),
    "both answers are lost": (LOCKED, [silent, silent_after], None, True),
    "refused": (LOCKED, [refused], CommitFailedError, False),
    "refused, but done": (LOCKED, [refused_after], None, True),
    "refused, and no one can tell": (
        *(LOCKED, [then(refused, asks_fail)], CommitStateUnknownError, True),
    ),
    "refused, and the pointer's file is gone": (
        *(LOCKED, [then(refused, points_nowhere)], CommitStateUnknownError, True),
    ),
    "refused, and the table is dropped": (
        *(LOCKED, [then(refused, dropped)], CommitStateUnknownError, True),
    ),
    "lost, and then refused": (*(LOCKED, [silent, *[refused] * 4], CommitStateUnknownError, True),),
    "lost, and it cannot compare": (LOCKED, [silent, refused], None, True),
    "lost, and then the table is dropped": (
        *(LOCKED, [then(silent, dropped)], CommitStateUnknownError, True),
    ),
    "lost, and no one can tell": (
        *(LOCKED, [then(silent, asks_fail)], CommitStateUnknownError, True),
    ),
    "lost, and so is the lock": (
        *(LOCKED, [then(silent, beats_fail)], CommitStateUnknownError, True),
    ),
    "lost without a lock": (UNLOCKED, [silent], None, True),
    "lost after without a lock": (UNLOCKED, [silent_after], None, True),
    "refused without a lock": (UNLOCKED, [refused], CommitFailedError, False),
    "lost without a lock, and then refused": (
        *(UNLOCKED, [silent, refused, refused], CommitStateUnknownError, True),
    ),
    "the lock is lost meanwhile, the commit is there": (
        *(BEATING, [then(slow, beats_fail)], None, True),
    ),
}


@pytest.mark.parametrize("case", COMMITS)
def test_a_commit(case: str, tmp_path: Path, server: FakeMetastore) -> None:
    settings, faults, error, is_kept = COMMITS[case]
    with lake_on(tmp_path, server, settings) as lake:
        lake.make()
        before = lake.metadata_files()
        server.faults["alter_table_with_environment_context"] = [*faults, done]
        assert outcome_of(lambda: set_properties(lake.catalog, "db.t", a="1")) is error
        server.faults.clear()
        assert bool(lake.metadata_files() - before) is is_kept
        if error is None:
            assert lake.catalog.load_table("db.t").metadata.properties["a"] == "1"


@pytest.mark.parametrize(
    ("settings", "fault"), [(UNLOCKED, silent), (UNLOCKED, refused), (BEATING, slow)]
)
def test_another_writer_is_first(
    settings: dict[str, str], fault: Fault, tmp_path: Path, server: FakeMetastore
) -> None:
    with lake_on(tmp_path, server, settings) as lake:
        lake.make()

        def others_turn(server: FakeMetastore) -> None:
            lake.other_commits(server)
            beats_fail(server)

        faults = [then(fault, others_turn), done]
        server.faults["alter_table_with_environment_context"] = faults
        assert outcome_of(lambda: set_properties(lake.catalog, "db.t", a="1")) is CommitFailedError
        server.faults.clear()
        table = lake.catalog.load_table("db.t")
        assert "a" not in table.metadata.properties
        assert len(lake.metadata_files()) == 2


def test_another_writer_is_first_before_it_is_sent_again(lake: Lake, server: FakeMetastore) -> None:
    """The lock ends after the last heartbeat, while the second call is on its way."""

    def late(server: FakeMetastore, call: Callable[[], Any]) -> Any:
        lake.other_commits(server)
        beats_fail(server)
        return call()

    server.faults["alter_table_with_environment_context"] = [silent, late, done]
    outcome = outcome_of(lambda: set_properties(lake.catalog, "db.t", a="1"))
    # The first call compares nothing, and may be under way for ever.
    assert outcome is CommitStateUnknownError
    server.faults.clear()
    found = lake.catalog.load_table("db.t").metadata.properties
    assert found["other"] == "1"
    assert "a" not in found
    assert len(lake.metadata_files()) == 3


def test_a_lock_that_is_lost_before_the_commit(lake: Lake, server: FakeMetastore) -> None:
    beats_fail(server)
    assert outcome_of(lambda: set_properties(lake.catalog, "db.t", a="1")) is CommitFailedError
    assert server.calls["alter_table_with_environment_context"] == 0
    assert len(lake.metadata_files()) == 1


@pytest.mark.parametrize("fault", [silent, silent_after, refused, refused_after])
def test_no_lock_is_left(fault: Fault, lake: Lake, server: FakeMetastore) -> None:
    server.faults["lock"] = [fault, done]
    outcome = outcome_of(lambda: set_properties(lake.catalog, "db.t", a="1"))
    assert outcome is (CommitFailedError if fault in (refused, refused_after) else None)
    assert server.locks == {}


def test_nobody_waits_for_a_lock_once_another_writer_was_first(
    lake: Lake, server: FakeMetastore
) -> None:

    def waits(server: FakeMetastore, call: Callable[[], Any]) -> Any:
        return server.types.LockResponse(lockid=call().lockid, state=2)

    server.faults["lock"] = [waits]
    server.faults["check_lock"] = [waits, then(waits, lake.other_commits)]
    assert outcome_of(lambda: set_properties(lake.catalog, "db.t", a="1")) is CommitFailedError
    assert server.calls["check_lock"] == 2
    assert server.locks == {}
    assert len(lake.metadata_files()) == 2


def test_a_table_that_is_dropped_meanwhile(lake: Lake, server: FakeMetastore) -> None:

    def late(server: FakeMetastore, call: Callable[[], Any]) -> Any:
        dropped(server)
        return call()

    server.faults["alter_table_with_environment_context"] = [late]
    assert outcome_of(lambda: set_properties(lake.catalog, "db.t", a="1")) is NoSuchTableError
    assert len(lake.metadata_files()) == 1


@pytest.mark.parametrize(
    ("faults", "error"),
    [
        ([silent], None),
        ([silent_after], None),
        ([exists_after], None),
        ([refused], CommitFailedError),
        ([then(refused, asks_fail)], CommitStateUnknownError),
        ([silent, refused, refused], CommitStateUnknownError),
    ],
)
def test_a_creation(
    faults: list[Fault],
    error: type[FrazilError] | None,
    tmp_path: Path,
    server: FakeMetastore,
) -> None:
    with lake_on(tmp_path, server, LOCKED) as lake:
        server.faults["create_table"] = [*faults, done]
        assert outcome_of(lake.make) is error
        server.faults.clear()
        assert bool(lake.metadata_files()) is (error is not CommitFailedError)


def test_a_creation_of_a_taken_name(lake: Lake, server: FakeMetastore) -> None:
    metadata = lake.catalog.load_table("db.t").metadata
    staged = lake.catalog.stage_table("db.u", metadata)
    server.tables["db", "u"] = server.tables["db", "t"]
    # The other table has the same UUID here, so only its file tells it from ours.
    error = outcome_of(lambda: lake.catalog.create_staged_table(staged))
    assert error in (TableAlreadyExistsError, CommitStateUnknownError)


@pytest.fixture(params=["table", "view"])
def kind(request: pytest.FixtureRequest, lake: Lake) -> str:
    """What db.t is."""
    if request.param == "view":
        lake.catalog.drop_table("db.t")
        made_view(lake.catalog, "db.t")
    return str(request.param)


@pytest.mark.parametrize("faults", [[silent], [silent_after], [refused_after]])
def test_drops_and_renames(
    faults: list[Fault], kind: str, lake: Lake, server: FakeMetastore
) -> None:
    server.faults["alter_table_with_environment_context"] = [*faults, done]
    getattr(lake.catalog, f"rename_{kind}")("db.t", "db.u")
    assert list(server.tables) == [("db", "u")]
    assert server.locks == {}
    server.faults = {"drop_table": [*faults, done]}
    drop = getattr(lake.catalog, f"drop_{kind}")
    drop("db.u")
    assert server.tables == {}
    with pytest.raises(NoSuchTableError if kind == "table" else NoSuchViewError):
        drop("db.u")


def test_a_name_that_is_taken_meanwhile(kind: str, lake: Lake, server: FakeMetastore) -> None:
    """Hive's answer does not say so: the name is looked for."""

    def late(server: FakeMetastore, call: Callable[[], Any]) -> None:
        server.tables["db", "u"] = server.types.Table(dbName="db", tableName="u")
        raise server.types.InvalidOperationException("no")

    server.faults["alter_table_with_environment_context"] = [late]
    rename = getattr(lake.catalog, f"rename_{kind}")
    taken = TableAlreadyExistsError if kind == "table" else ViewAlreadyExistsError
    assert outcome_of(lambda: rename("db.t", "db.u")) is taken
    assert list(server.tables) == [("db", "t"), ("db", "u")]
    assert server.locks == {}


def outcome_of(change: Callable[[], Any]) -> type[BaseException] | None:
    """The class of the error that a change raises."""
    try:
        change()
    except FrazilError as error:
        return type(error)
    return None
