"""What a command of a transaction read and did not change counts where that is committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from table_cases import data_file, make_table, names, open_catalog

from frazil.catalog.protocol import Catalog
from frazil.errors import ConflictError
from frazil.table.commit.together import ChangedTable, commit_together
from frazil.table.conflicts.validation import Isolation, Validation
from frazil.table.handle import TableHandle
from frazil.table.snapshots.producer import SnapshotOptions
from frazil.table.snapshots.read_rows import ReadRows
from frazil.table.transaction import Transaction, TransactionPort

MON, MON_2, TUE = data_file("mon"), data_file("mon2"), data_file("tue", "tue")


@pytest.fixture(params=["sql", "requirements"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """A catalog that swaps pointers, and one that checks requirements alone."""
    made = open_catalog(request.param, tmp_path)
    for name in ("db.one", "db.two"):
        make_table(made, name=name).files.append([MON])
    yield made
    made.close()


def loaded(catalog: Catalog, name: str = "db.one") -> TableHandle:
    return TableHandle(catalog, catalog.load_table(name))


def port_of(catalog: Catalog, name: str = "db.one") -> TransactionPort:
    handle = loaded(catalog, name)
    return TransactionPort(handle.port, handle.port.loaded)


def look(
    port: TransactionPort, *, isolation: Isolation = "serializable", branch: str = "main"
) -> None:
    """Look for rows of Tuesday, and for Monday's, whose file decides what is done."""
    head = port.metadata.refs[branch].snapshot_id
    validation = Validation(
        head, isolation, conflict_filter="day = 'tue'", read_files=(MON,), operation="delete"
    )
    port.check_at_commit(ReadRows(port.io, validation, SnapshotOptions(branch=branch)))


def commit(catalog: Catalog, *ports: TransactionPort) -> None:
    parts: list[ChangedTable] = [port.close({}) for port in ports]
    commit_together(catalog, parts, sleep=lambda _: None)


def rewrite(table: TableHandle) -> None:
    table.files.rewrite(
        removed=[MON], added=[data_file("rewritten")],
        from_snapshot=table.metadata.current_snapshot_id,
    )  # fmt: skip


RIVALS: dict[str, tuple[Callable[[TableHandle], Any], bool]] = {
    "rows that it looked for": (lambda t: t.files.append([TUE]), True),
    "they replace others": (lambda t: t.files.overwrite([TUE], removed=[MON]), True),
    "the rows that decided go": (lambda t: t.files.delete(removed=[MON]), True),
    "a rollback": (lambda t: (t.files.append([MON_2]), t.create_branch("x"), t.rollback_to_snapshot(
        t.metadata.snapshots[0].snapshot_id), t.files.append([TUE])), True),
    "rows elsewhere": (lambda t: t.files.append([MON_2]), False),
    "rewritten files": (rewrite, False),
    "properties": (lambda t: t.set_properties(x="1"), False),
    "another branch": (lambda t: (t.create_branch("b"), t.files.append([TUE], branch="b")), False),
    "none": (lambda t: None, False),
}  # fmt: skip


@pytest.mark.parametrize("rival", RIVALS)
def test_a_table_that_a_command_only_read(catalog: Catalog, rival: str) -> None:
    act, conflicts = RIVALS[rival]
    one, two = port_of(catalog), port_of(catalog, "db.two")
    look(one)
    Transaction(two).files.append([MON_2])
    act(loaded(catalog))
    if conflicts:
        with pytest.raises(ConflictError, match="delete"):
            commit(catalog, one, two)
    else:
        commit(catalog, one, two)
    assert names(loaded(catalog, "db.two")) == (["mon"] if conflicts else ["mon", "mon2"])


@pytest.mark.parametrize("rival", RIVALS)
def test_steps_of_one_table(catalog: Catalog, rival: str) -> None:
    act, conflicts = RIVALS[rival]
    table = loaded(catalog)
    tx = table.transaction()
    tx.files.append([data_file("own", "tue")])
    look(tx.port)
    tx.files.append([data_file("more")])
    act(loaded(catalog))
    if conflicts:
        with pytest.raises(ConflictError):
            tx.commit()
    else:
        tx.commit()
        assert {"own", "more"} <= set(names(table))


@pytest.mark.parametrize("level", ["serializable", "snapshot"])
def test_levels(catalog: Catalog, level: Isolation) -> None:
    one, two = port_of(catalog), port_of(catalog, "db.two")
    look(one, isolation=level)
    Transaction(two).files.append([MON_2])
    loaded(catalog).files.append([TUE])
    if level == "serializable":
        with pytest.raises(ConflictError):
            commit(catalog, one, two)
    else:
        commit(catalog, one, two)


def test_who_only_looks_conflicts_with_nobody(catalog: Catalog) -> None:
    one = port_of(catalog)
    look(one)
    table = loaded(catalog, "db.two")
    tx = table.transaction()
    look(tx.port)
    for name in ("db.one", "db.two"):
        loaded(catalog, name).files.append([TUE])
    before = [catalog.load_table(name).metadata_location for name in ("db.one", "db.two")]
    commit(catalog, one)
    tx.commit()
    assert before == [catalog.load_table(name).metadata_location for name in ("db.one", "db.two")]


@pytest.mark.parametrize("changes", ["another table", "properties", "another branch"])
def test_who_comes_between_the_check_and_the_swap(
    catalog: Catalog, changes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit itself asks that the branch is where it was looked at."""
    loaded(catalog).create_branch("b")
    one, two = port_of(catalog), port_of(catalog, "db.two")
    look(one)
    match changes:
        case "another table":
            Transaction(two).files.append([MON_2])
        case "properties":
            Transaction(one).set_properties(x="1")
        case _:
            Transaction(one).files.append([MON_2], branch="b")
    real = catalog.commit_tables

    def late(commits: Any) -> None:
        monkeypatch.setattr(catalog, "commit_tables", real)
        loaded(catalog).files.append([TUE])
        real(commits)

    monkeypatch.setattr(catalog, "commit_tables", late)
    with pytest.raises(ConflictError, match="delete"):
        commit(catalog, one, two)
    assert names(loaded(catalog)) == ["mon", "tue"]
    assert names(loaded(catalog, "db.two")) == ["mon"]


def test_a_look_of_a_block_that_failed_does_not_count(catalog: Catalog) -> None:
    one, two = port_of(catalog), port_of(catalog, "db.two")

    def fail() -> None:
        with one.all_or_nothing():
            look(one)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    Transaction(two).files.append([MON_2])
    loaded(catalog).files.append([TUE])
    commit(catalog, one, two)
