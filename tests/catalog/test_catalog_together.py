"""Several tables in one commit: all or none, whoever is at work beside it and whatever fails."""

from __future__ import annotations

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from catalog_cases import made_table, new_metadata, opened, properties_of, set_properties_retrying
from test_catalog_faults import QUICK_CHECKS, break_commit

from ci_share import one_of_each
from frazil.catalog.pointer.sql import SqlCatalog
from frazil.catalog.protocol import Capability, Catalog, TableCommit
from frazil.errors import (
    CommitFailedError,
    ConflictError,
    FrazilError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)
from frazil.format import changes as C
from frazil.format.new_table import creation_updates
from programs import forked

A, B, NEW = ("db", "a"), ("db", "b"), ("db", "new")


@pytest.fixture
def catalog(sql: SqlCatalog) -> SqlCatalog:
    """The catalog with two tables."""
    for name in ("db.a", "db.b"):
        made_table(sql, name, **QUICK_CHECKS)
    return sql


def change(name: tuple[str, ...], *requirements: C.Requirement, **values: str) -> TableCommit:
    return TableCommit(name, requirements, (C.SetProperties(values),))


def creation(catalog: Catalog, name: tuple[str, ...] = NEW) -> TableCommit:
    metadata = new_metadata(catalog, ".".join(name), **QUICK_CHECKS)
    return TableCommit(name, (C.AssertCreate(),), tuple(creation_updates(metadata)))


def held(catalog: Catalog, key: str = "n") -> tuple[str | None, ...]:
    """A property of both tables, of one moment."""
    load = catalog.loading_as_of_now()
    return tuple(load(name).metadata.properties.get(key) for name in (A, B))


def metadata_files(catalog: Catalog) -> set[str]:
    found = catalog.io.list(str(catalog.properties["warehouse"]))
    return {file.path for file in found if file.path.endswith(".json")}


def test_all_tables_change_or_none(catalog: SqlCatalog) -> None:
    assert catalog.can(Capability.MULTI_TABLE_COMMITS)
    catalog.commit_tables([change(B, n="1"), creation(catalog), change(A, n="1")])
    assert held(catalog) == ("1", "1")
    assert catalog.load_table(NEW).metadata.properties.items() >= QUICK_CHECKS.items()
    assert len(catalog.load_table(A).metadata.metadata_log) == 1
    catalog.commit_tables([change(A, n="2")])
    assert held(catalog) == ("2", "1")


MISSING = ("db", "missing")
REFUSED: dict[str, tuple[Any, type[FrazilError]]] = {
    "a requirement": (
        lambda catalog: change(B, C.AssertTableUUID("00000000-0000-0000-0000-000000000000"), n="1"),
        CommitFailedError,
    ),
    "a read table": (
        lambda catalog: TableCommit(B, (C.AssertRefSnapshotId("main", 7),), ()),
        CommitFailedError,
    ),
    "no such table": (lambda catalog: change(MISSING, n="1"), NoSuchTableError),
    "a name that is taken": (lambda catalog: creation(catalog, B), TableAlreadyExistsError),
    "no such namespace": (
        lambda catalog: TableCommit(("no", "t"), *creation_parts(catalog)), NoSuchNamespaceError,
    ),
    "the same table": (lambda catalog: change(A, m="1"), ValidationError),
}  # fmt: skip


def creation_parts(catalog: Catalog) -> tuple[tuple[C.Requirement, ...], tuple[C.Update, ...]]:
    made = creation(catalog)
    return made.requirements, made.updates


@pytest.mark.parametrize(("why", "first"), one_of_each(REFUSED, [True, False]))
def test_what_is_refused_changes_nothing(catalog: SqlCatalog, why: str, first: bool) -> None:
    make, error = REFUSED[why]
    files = metadata_files(catalog)
    commits = [change(A, n="1"), creation(catalog), make(catalog)]
    with pytest.raises(error):
        catalog.commit_tables(commits if first else commits[::-1])
    assert held(catalog) == (None, None)
    assert not catalog.table_exists(NEW)
    assert metadata_files(catalog) == files


def test_a_stale_base_loses(catalog: SqlCatalog) -> None:
    bases = [catalog.load_table(name) for name in (A, B)]
    set_properties_retrying(catalog, "db.b", other="1")
    files = metadata_files(catalog)
    commits = [
        TableCommit(base.identifier, (), (C.SetProperties({"n": "1"}),), base=base)
        for base in bases
    ]
    with pytest.raises(CommitFailedError):
        catalog.commit_tables(commits)
    assert held(catalog) == (None, None)
    assert metadata_files(catalog) == files
    # By requirements alone nothing contradicts.
    catalog.commit_tables([change(A, n="1"), change(B, n="1")])
    assert held(catalog) == ("1", "1")


@pytest.mark.parametrize("meanwhile", ["swap", "swap of a read table", "create", "drop"])
def test_who_is_first_between_the_look_and_the_swap(
    catalog: SqlCatalog, meanwhile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rival comes after the requirements were checked, before the transaction."""
    rival = opened(catalog.properties)
    real = catalog._database.change

    def late(*args: Any, **options: Any) -> None:
        if meanwhile == "create":
            made_table(rival, "db.new")
        elif meanwhile == "drop":
            rival.drop_table(B)
        else:
            set_properties_retrying(rival, "db.b", rival="1")
        real(*args, **options)

    monkeypatch.setattr(catalog._database, "change", late)
    reads = meanwhile == "swap of a read table"
    other = TableCommit(B, (), ()) if reads else change(B, n="1")
    before = metadata_files(catalog)
    wanted = {"create": TableAlreadyExistsError, "drop": NoSuchTableError}
    with pytest.raises(wanted.get(meanwhile, CommitFailedError)):
        catalog.commit_tables([change(A, n="1"), creation(catalog), other])
    assert catalog.load_table(A).metadata.properties.get("n") is None
    assert catalog.table_exists(NEW) == (meanwhile == "create")
    # The rival's file is all that is new.
    assert len(metadata_files(catalog) - before) == (0 if meanwhile == "drop" else 1)


def test_nothing_to_change_writes_nothing(catalog: SqlCatalog) -> None:
    files = metadata_files(catalog)
    catalog.commit_tables([])
    catalog.commit_tables([TableCommit(A, (), ()), TableCommit(B, (), (C.SetProperties({}),))])
    assert metadata_files(catalog) == files


@pytest.mark.parametrize(("committed", "then"), one_of_each([True, False], [(), A, B]))
def test_a_lost_answer(
    catalog: SqlCatalog, committed: bool, then: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any one table tells what became of all, also where others have changed it since."""
    rival = opened(catalog.properties)
    real = catalog._all_took_place

    def later(moving: Any) -> bool | None:
        if then:
            set_properties_retrying(rival, ".".join(then), rival="1")
        return real(moving)

    monkeypatch.setattr(catalog, "_all_took_place", later)
    break_commit(catalog, committed=committed)
    before = metadata_files(catalog)
    commits = [change(A, n="1"), creation(catalog), change(B, n="1")]
    if committed:
        catalog.commit_tables(commits)
    else:
        with pytest.raises(CommitFailedError) as caught:
            catalog.commit_tables(commits)
        assert "s3cr3t" not in str(caught.value)
        assert len(metadata_files(catalog) - before) == bool(then)
    assert held(rival) == (("1", "1") if committed else (None, None))
    assert rival.table_exists(NEW) == committed


def test_tables_are_loaded_as_of_one_moment(catalog: SqlCatalog) -> None:
    load = catalog.loading_as_of_now()
    first = load(A)
    catalog.commit_tables([change(A, n="1"), change(B, n="1"), creation(catalog)])
    assert (load(A), load(B).metadata.properties.get("n")) == (first, None)
    with pytest.raises(NoSuchTableError):
        load(NEW)
    catalog.rename_table(B, ("db", "c"))
    assert load(B).metadata.properties.get("n") is None


SHORT = ("db", "short")


@pytest.mark.parametrize("end", ["changed", "another table", "purged"])
def test_a_moment_whose_metadata_is_deleted_is_no_later_one(catalog: SqlCatalog, end: str) -> None:
    properties = {
        "write.metadata.previous-versions-max": "1",
        "write.metadata.delete-after-commit.enabled": "true",
    }
    made_table(catalog, "db.short", **properties)
    load = catalog.loading_as_of_now()
    for number in range(3):
        catalog.commit_tables([change(SHORT, n=str(number)), change(A, n=str(number))])
    files = [path for path in metadata_files(catalog) if "/short/" in path]
    assert len(files) == 2
    if end != "changed":
        catalog.purge_table(SHORT)
    if end == "another table":
        made_table(catalog, "db.short")
    with pytest.raises(NoSuchTableError if end == "purged" else ConflictError):
        load(SHORT)
    assert load(A).metadata.properties.get("n") is None
    if end == "changed":
        assert catalog.loading_as_of_now()(SHORT).metadata.properties["n"] == "2"


def test_a_folder_commits_each_table_alone(tmp_path: Path) -> None:
    catalog = opened(properties_of("filesystem", tmp_path))
    assert not catalog.can(Capability.MULTI_TABLE_COMMITS)
    with pytest.raises(UnsupportedError, match="filesystem catalog lake has no commits of several"):
        catalog.commit_tables([change(A, n="1")])


def test_a_database_in_memory(tmp_path: Path) -> None:
    catalog = opened({"type": "sql", "uri": "sqlite://", "warehouse": str(tmp_path / "wh")})
    for name in ("db.a", "db.b"):
        made_table(catalog, name)
    catalog.commit_tables([change(A, n="1"), change(B, n="1")])
    assert held(catalog) == ("1", "1")


# -- rivals --------------------------------------------------------------------------------------


def write_together(properties: dict[str, str], number: int, commits: int) -> None:
    """Commit to both tables in either order, with single commits between."""
    catalog = opened(properties)
    for count in range(commits):
        value = f"{number}-{count}"
        names = random.sample([A, B], 2)
        deadline = time.monotonic() + 120
        while True:
            bases = [catalog.load_table(name) for name in names]
            both = [
                TableCommit(
                    base.identifier,
                    (),
                    (C.SetProperties({"n": value, f"w{number}": value}),),
                    base=base,
                )
                for base in bases
            ]
            try:
                catalog.commit_tables(both)
            except CommitFailedError:
                assert time.monotonic() < deadline
                continue
            break
        set_properties_retrying(catalog, ".".join(names[0]), **{f"single{number}": value})
    catalog.close()


def test_no_reader_sees_one_table_without_the_other(catalog: SqlCatalog) -> None:
    writers, commits = 3, 4
    children = [forked(write_together, catalog.properties, i, commits) for i in range(writers)]
    seen = set()
    with ThreadPoolExecutor(1) as pool:
        ends = pool.submit(lambda: [os.waitpid(child, 0)[1] for child in children])
        while not ends.done():
            one, other = held(catalog)
            assert one == other
            seen.add(one)
    assert ends.result() == [0] * writers
    for name in (A, B):
        found = catalog.load_table(name).metadata.properties
        assert all(found[f"w{i}"] == f"{i}-{commits - 1}" for i in range(writers))
    assert len(seen) > 1


def test_two_that_take_the_same_tables_in_other_orders_do_not_deadlock(catalog: SqlCatalog) -> None:
    catalogs = [opened(catalog.properties) for _ in range(2)]

    def run(number: int) -> int:
        done = 0
        for count in range(200):
            commits = [change(A, **{f"t{number}": str(count)}), TableCommit(B, (), ())]
            if number:
                commits = [change(B, **{f"t{number}": str(count)}), TableCommit(A, (), ())]
            try:
                catalogs[number].commit_tables(commits)
                done += 1
            except CommitFailedError as error:
                reasons.append(str(error))
            if done == 5:
                break
        return done

    reasons: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, range(2))) == [5, 5], reasons
    assert not [reason for reason in reasons if "undid each" in reason]
