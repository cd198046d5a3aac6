"""Any error at any call of a change, before or after it: what is left agrees with what was said.

The calls are those to the store and to the database.  Afterwards the table opens and is as before
or as after the change; a refusal means before, a return means after, every other error either.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from catalog_cases import (
    KINDS,
    QUICK_CHECKS,
    S3_KINDS,
    SWAPS,
    class_of,
    made_table,
    new_metadata,
    opened,
    set_properties,
)

from ci_share import in_circles
from frazil.catalog.pointer.sql import SqlCatalog
from frazil.catalog.protocol import Capability, Catalog, TableCommit
from frazil.errors import (
    AlreadyExistsError,
    CommitFailedError,
    MissingFileError,
    NotFoundError,
    StorageError,
    ValidationError,
)
from frazil.format.changes import SetProperties

TRIMMING = {
    "write.metadata.previous-versions-max": "1",
    "write.metadata.delete-after-commit.enabled": "true",
}
STORE_CALLS = (
    *("create", "create_unique", "write", "read", "exists", "list_folder", "make_folder"),
    *("delete", "delete_many", "delete_folder", "move_folder", "is_folder"),
)
DISK_CALLS = ("fsync", "link", "unlink", "replace", "rename")
DATABASE_CALLS = ("do_execute", "do_commit", "do_begin", "do_rollback", "do_close")


class JobIsOverError(Exception):
    """What the handler of a job's time limit raises."""


def interrupt(_signal: int, _frame: object) -> None:
    raise JobIsOverError("the job's time is over")


def by_signal() -> BaseException:
    os.kill(os.getpid(), signal.SIGALRM)
    return AssertionError("the signal's handler did not raise")


ERRORS: tuple[Callable[[], BaseException], ...] = (
    lambda: StorageError("the store failed"),
    lambda: RuntimeError("a driver's mistake"),
    lambda: MemoryError(),
    lambda: KeyboardInterrupt(),
    by_signal,
)
OTHER = "db.other"
NEW = (SetProperties({"new": "1"}),)
REFUSALS = (CommitFailedError, ValidationError, AlreadyExistsError, NotFoundError)


@dataclass
class Faults:
    """Raise one error at one of the counted calls, before or after it."""

    step: int = 0
    after: bool = False
    error: Callable[[], BaseException] = ERRORS[0]
    calls: list[str] = field(default_factory=list)

    def around(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.calls.append(name)
            strikes = len(self.calls) == self.step
            if strikes and not self.after:
                raise self.error()
            result = real(*args, **options)
            if strikes:
                raise self.error()
            return result

        return call


def armed(catalog: Catalog, faults: Faults, patched: pytest.MonkeyPatch) -> None:
    owners: list[tuple[Any, tuple[str, ...]]] = [(catalog.io, STORE_CALLS), (os, DISK_CALLS)]
    if isinstance(catalog, SqlCatalog):
        owners.append((catalog._database.engine.dialect, DATABASE_CALLS))
    for owner, names in owners:
        for name in names:
            patched.setattr(owner, name, faults.around(getattr(owner, name), name))


@pytest.fixture
def properties(properties: dict[str, str]) -> dict[str, str]:
    return {**properties, **QUICK_CHECKS, "sql.statement-timeout-ms": "3000"}


@pytest.fixture(autouse=True)
def time_limit() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Change:
    """A change, and what tells that it took place."""

    prepare: Callable[[Catalog, str], None]
    run: Callable[[Catalog, str], object]
    is_done: Callable[[Catalog, str], bool]


def make(catalog: Catalog, name: str) -> None:
    made_table(catalog, name, **QUICK_CHECKS, **TRIMMING)
    for number in range(2):
        set_properties(catalog, name, old=str(number))


def make_two(catalog: Catalog, name: str) -> None:
    make(catalog, name)
    if catalog.table_exists(OTHER):
        catalog.drop_table(OTHER)
    make(catalog, OTHER)


def are_both_changed(catalog: Catalog, name: str) -> bool:
    one, other = ("new" in catalog.load_table(each).metadata.properties for each in (name, OTHER))
    assert one == other
    return one


CHANGES = {
    "create": Change(
        prepare=lambda catalog, name: None,
        run=lambda catalog, name: catalog.create_table(
            name, new_metadata(catalog, name, **QUICK_CHECKS)
        ),
        is_done=lambda catalog, name: catalog.table_exists(name),
    ),
    "commit": Change(
        prepare=make,
        run=lambda catalog, name: set_properties(catalog, name, new="1"),
        is_done=lambda catalog, name: "new" in catalog.load_table(name).metadata.properties,
    ),
    "commit together": Change(
        prepare=make_two,
        run=lambda catalog, name: catalog.commit_tables(
            [TableCommit((*OTHER.split("."),), (), NEW), TableCommit((*name.split("."),), (), NEW)]
        ),
        is_done=are_both_changed,
    ),
    "drop": Change(
        prepare=make,
        run=lambda catalog, name: catalog.drop_table(name),
        is_done=lambda catalog, name: not catalog.table_exists(name),
    ),
}


CASES = [
    (kind, name)
    for kind in (*KINDS, *S3_KINDS)
    for name in CHANGES
    if name != "commit together" or class_of(kind).capabilities >= {Capability.MULTI_TABLE_COMMITS}
]
# Each change and each catalog is elsewhere too, and a commit together sends what one alone does.
AS_OTHERS = {
    *(("sqlite", "drop"), ("postgres", "create"), ("postgres", "commit"), ("sqlite", "create")),
    *(("postgres", "drop"), ("filesystem", "drop")),
    *((kind, name) for kind in S3_KINDS for name in ("create", "drop")),
}


@pytest.mark.parametrize(
    ("kind", "name"), in_circles([case for case in CASES if case not in AS_OTHERS], test=1)
)
def test_what_is_left_agrees_with_what_was_said(
    kind: str,
    properties: dict[str, str],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error comes before one call and after the next; at the swap always both."""
    change = CHANGES[name]
    errors = itertools.cycle(ERRORS)
    looking, acting = opened(properties), opened(properties)
    looking.create_namespace("db")
    swaps = SWAPS[kind.split()[0]]
    for step in itertools.count(1):
        for after in (step % 2 == 0, step % 2 == 1):
            # Every kind of error where the swap is sent, elsewhere one after the other.
            for error in (next(errors), *ERRORS):
                change.prepare(looking, "db.t")
                faults = Faults(step, after, error)
                said = said_by(lambda: change.run(acting, "db.t"), acting, faults, monkeypatch)
                at = faults.calls[step - 1 : step]
                check(change, looking, said, f"{at}, {after=}: {said!r}")
                if kind in S3_KINDS or not at or at[0] not in swaps:
                    break
            if not at or at[0] not in swaps:
                break
        if len(faults.calls) < step:
            assert step > 5
            break


def said_by(
    run: Callable[[], object], catalog: Catalog, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> BaseException | None:
    with monkeypatch.context() as patched:
        armed(catalog, faults, patched)
        try:
            run()
        except BaseException as error:
            return error
        return None


def check(change: Change, looking: Catalog, said: BaseException | None, at: str) -> None:
    if looking.table_exists("db.t"):
        looking.load_table("db.t")
    done = change.is_done(looking, "db.t")
    if said is None:
        assert done, at
    if isinstance(said, REFUSALS) and not isinstance(said, MissingFileError):
        assert not done, at
    if not looking.table_exists("db.t"):
        made_table(looking, "db.t")
    set_properties(looking, "db.t", later="1")
    assert looking.load_table("db.t").metadata.properties["later"] == "1"
    looking.drop_table("db.t")
    assert looking.list_tables("db") in ([], [("db", "other")]), at
