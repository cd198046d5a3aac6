"""Changes of several tables as one commit: retries, conflicts, lost answers, and who is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from table_cases import SCHEMA, avro_files, avro_files_in_use, data_file, make_table, names
from table_cases import open_catalog as opened

from ci_share import pairwise
from frazil.catalog.protocol import Catalog
from frazil.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    ConflictError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
    ValidationError,
)
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import spec_for
from frazil.table.commit.together import ChangedTable, TablePart, commit_together
from frazil.table.conflicts.validation import Isolation, Validation
from frazil.table.handle import TableHandle
from frazil.table.snapshots.producer import SnapshotOptions
from frazil.table.snapshots.read_rows import ReadRows
from frazil.table.transaction import CreationPort, Transaction, TransactionPort

A, B, C = data_file("a"), data_file("b"), data_file("c", "tue")


@pytest.fixture(params=["sql", "requirements"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """A catalog that swaps pointers, and one that checks requirements alone."""
    made = opened(request.param, tmp_path)
    for name in ("db.one", "db.two"):
        make_table(made, name=name).files.append([A])
    yield made
    made.close()


def loaded(catalog: Catalog, name: str = "db.one") -> TableHandle:
    return TableHandle(catalog, catalog.load_table(name))


class Together:
    """The ports of a transaction."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.joined: dict[str, TransactionPort] = {}
        self.made: list[CreationPort] = []
        self.read: dict[str, dict[str, int | None]] = {}

    def table(self, name: str) -> Transaction:
        if name not in self.joined:
            handle = loaded(self.catalog, name)
            self.joined[name] = TransactionPort(handle.port, handle.port.loaded_table)
        return Transaction(self.joined[name])

    def new(self, name: str) -> Transaction:
        metadata = new_table_metadata(
            SCHEMA, spec_for(SCHEMA, ["day"]), location=self.catalog.default_table_location(name)
        )
        self.made.append(CreationPort(self.catalog, self.catalog.stage_table(name, metadata)))
        return Transaction(self.made[-1])

    def reads(self, name: str, ref: str = "main") -> None:
        head = self.table(name).metadata.current_snapshot_id
        self.read.setdefault(name, {})[ref] = head

    def commit(self) -> None:
        parts: list[TablePart] = [
            port.close(self.read.get(name, {})) for name, port in self.joined.items()
        ]
        parts += [port.close() for port in self.made]
        commit_together(self.catalog, parts, sleep=lambda _: None)


def both(catalog: Catalog) -> tuple[list[str], list[str]]:
    return names(loaded(catalog, "db.one")), names(loaded(catalog, "db.two"))


def no_leftovers(catalog: Catalog) -> None:
    for name in ("db.one", "db.two"):
        table = loaded(catalog, name)
        assert avro_files(table) == avro_files_in_use(table)


def test_tables_that_change_and_one_that_is_made(catalog: Catalog) -> None:
    tx = Together(catalog)
    tx.table("db.one").files.append([B])
    tx.table("db.two").files.delete(removed=[A])
    with tx.table("db.two").update_schema() as change:
        change.add_column("more", "int")
    new = tx.new("db.new")
    new.files.append([C])
    with new.update_schema() as change:
        change.add_column("more", "int")
    new.create_tag("first")
    tx.commit()
    assert both(catalog) == (["a", "b"], [])
    made = loaded(catalog, "db.new")
    assert (names(made), sorted(made.metadata.refs)) == (["c"], ["first", "main"])
    assert made.schema.find_field("more").field_id == 4
    no_leftovers(catalog)


Rival = Callable[[Catalog], object]
RIVALS: Mapping[str, tuple[Rival, type[Exception] | None]] = {
    "an append to the first": (lambda c: loaded(c, "db.one").files.append([C]), None),
    "an append to the second": (lambda c: loaded(c, "db.two").files.append([C]), None),
    "properties": (lambda c: loaded(c, "db.two").set_properties(x="1"), None),
    "the file that goes": (
        lambda c: loaded(c, "db.two").files.delete(removed=[A]), ConflictError,
    ),
    "a schema": (lambda c: _add_column(loaded(c, "db.two")), None),
    "a drop": (lambda c: c.drop_table("db.two"), NoSuchTableError),
    "another table of the name": (
        lambda c: (c.drop_table("db.two"), make_table(c, name="db.two")), ValidationError,
    ),
}  # fmt: skip


def _add_column(table: TableHandle) -> None:
    with table.update_schema() as change:
        change.add_column("more", "int")


@pytest.mark.parametrize("rival", RIVALS)
def test_what_another_commits_meanwhile(catalog: Catalog, rival: str) -> None:
    act, error = RIVALS[rival]
    tx = Together(catalog)
    tx.table("db.one").files.append([B])
    tx.table("db.two").files.overwrite(
        [B],
        removed=[A],
        validation=Validation(tx.table("db.two").metadata.current_snapshot_id, "snapshot"),
    )
    act(catalog)
    if error is None:
        tx.commit()
        one, two = both(catalog)
        assert set(one) >= {"a", "b"}
        assert "b" in two
        assert "a" not in two
        assert len(one) + len(two) == (4 if rival.startswith("an append") else 3)
    else:
        with pytest.raises(error):
            tx.commit()
        assert names(loaded(catalog, "db.one")) == ["a"]
    table = loaded(catalog, "db.one")
    assert avro_files(table) == avro_files_in_use(table)


@pytest.mark.parametrize("change", ["rows", "rewritten", "rolled back", "another branch", "none"])
def test_rows_that_were_only_read(catalog: Catalog, change: str) -> None:
    tx = Together(catalog)
    tx.table("db.one").files.append([B])
    tx.reads("db.two")
    rival = loaded(catalog, "db.two")
    if change == "rows":
        rival.files.append([C])
    elif change == "rewritten":
        later = data_file("later")
        for gone, new in ((A, B), (B, later)):
            head = rival.metadata.current_snapshot_id
            rival.files.rewrite(removed=[gone], added=[new], from_snapshot=head)
    elif change == "rolled back":
        first = rival.metadata.current_snapshot_id
        rival.files.append([C])
        rival.rollback_to_snapshot(first)
    elif change == "another branch":
        rival.create_branch("other")
        rival.files.append([C], branch="other")
    if change != "rows":
        tx.commit()
        assert names(loaded(catalog, "db.one")) == ["a", "b"]
        return
    with pytest.raises(ConflictError, match="run the transaction again"):
        tx.commit()
    assert names(loaded(catalog, "db.one")) == ["a"]
    no_leftovers(catalog)


def test_nothing_to_change_is_no_commit(catalog: Catalog) -> None:
    tx = Together(catalog)
    tx.reads("db.one")
    tx.table("db.two").remove_properties("none")
    loaded(catalog, "db.one").files.append([B])
    before = catalog.load_table("db.two")
    tx.commit()
    assert catalog.load_table("db.two") == before


def test_a_name_that_is_taken(catalog: Catalog) -> None:
    tx = Together(catalog)
    tx.table("db.one").files.append([B])
    tx.new("db.new").files.append([C])
    make_table(catalog, name="db.new")
    with pytest.raises(TableAlreadyExistsError):
        tx.commit()
    assert both(catalog) == (["a"], ["a"])
    no_leftovers(catalog)
    assert avro_files(loaded(catalog, "db.new")) == set()


LOST: Mapping[str, Exception] = {
    "unknown": CommitStateUnknownError("no answer came"),
    "store": StorageError("the store failed"),
}


@pytest.mark.parametrize(
    ("error", "took_place", "then"), pairwise(LOST, [True, False], [None, "db.one", "db.two"])
)
def test_a_lost_answer(
    catalog: Catalog,
    error: str,
    took_place: bool,
    then: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = catalog.commit_tables

    def lost(commits: Any) -> None:
        if took_place:
            real(commits)
        if then is not None:
            loaded(catalog, then).files.append([C])
        raise LOST[error]

    tx = Together(catalog)
    tx.table("db.one").set_properties(**{"commit.status-check.min-wait-ms": "1"})
    tx.table("db.two").files.append([B])
    monkeypatch.setattr(catalog, "commit_tables", lost)
    if took_place:
        tx.commit()
        no_leftovers(catalog)
    else:
        files = avro_files(loaded(catalog, "db.two"))
        with pytest.raises(type(LOST[error])):
            tx.commit()
        assert avro_files(loaded(catalog, "db.two")) >= files
    one, two = both(catalog)
    assert ("b" in two) == took_place
    assert ("c" in one, "c" in two) == (then == "db.one", then == "db.two")


@pytest.mark.parametrize("error", [ConflictError("late"), TableAlreadyExistsError("late")])
def test_a_refusal_after_the_swap_is_none(
    catalog: Catalog, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = catalog.commit_tables

    def late(commits: Any) -> None:
        real(commits)
        raise error

    tx = Together(catalog)
    tx.table("db.one").files.append([B])
    tx.table("db.two").files.append([B])
    monkeypatch.setattr(catalog, "commit_tables", late)
    tx.commit()
    assert both(catalog) == (["a", "b"], ["a", "b"])


@pytest.mark.parametrize("retries", ["0", "2"])
def test_tries_are_those_of_the_first_table(
    catalog: Catalog, retries: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded(catalog, "db.one").set_properties({"commit.retry.num-retries": retries})
    tries: list[object] = []

    def refused(commits: Any) -> None:
        tries.append(commits)
        raise CommitFailedError("another writer was first")

    tx = Together(catalog)
    tx.table("db.one").files.append([B])
    tx.table("db.two").files.append([B])
    monkeypatch.setattr(catalog, "commit_tables", refused)
    with pytest.raises(CommitFailedError, match="num-retries"):
        tx.commit()
    assert len(tries) == int(retries) + 1
    no_leftovers(catalog)


# What a command of a transaction read and did not change counts where that is committed.


def port_of(catalog: Catalog, name: str = "db.one") -> TransactionPort:
    handle = loaded(catalog, name)
    return TransactionPort(handle.port, handle.port.loaded_table)


def look(
    port: TransactionPort, *, isolation: Isolation = "serializable", branch: str = "main"
) -> None:
    """Look for rows of Tuesday, and for Monday's, whose file decides what is done."""
    head = port.metadata.refs[branch].snapshot_id
    validation = Validation(
        head, isolation, conflict_filter="day = 'tue'", read_files=(A,), operation="delete"
    )
    port.check_at_commit(ReadRows(port.io, validation, SnapshotOptions(branch=branch)))


def commit(catalog: Catalog, *ports: TransactionPort) -> None:
    parts: list[ChangedTable] = [port.close({}) for port in ports]
    commit_together(catalog, parts, sleep=lambda _: None)


def rewrite(table: TableHandle) -> None:
    table.files.rewrite(
        removed=[A], added=[data_file("rewritten")],
        from_snapshot=table.metadata.current_snapshot_id,
    )  # fmt: skip


READ_RIVALS: dict[str, tuple[Callable[[TableHandle], Any], bool]] = {
    "rows that it looked for": (lambda t: t.files.append([C]), True),
    "they replace others": (lambda t: t.files.overwrite([C], removed=[A]), True),
    "the rows that decided go": (lambda t: t.files.delete(removed=[A]), True),
    "a rollback": (lambda t: (t.files.append([B]), t.create_branch("x"), t.rollback_to_snapshot(
        t.metadata.snapshots[0].snapshot_id), t.files.append([C])), True),
    "rows elsewhere": (lambda t: t.files.append([B]), False),
    "rewritten files": (rewrite, False),
    "properties": (lambda t: t.set_properties(x="1"), False),
    "another branch": (lambda t: (t.create_branch("b"), t.files.append([C], branch="b")), False),
    "none": (lambda t: None, False),
}  # fmt: skip


@pytest.mark.parametrize("rival", READ_RIVALS)
def test_a_table_that_a_command_only_read(catalog: Catalog, rival: str) -> None:
    act, conflicts = READ_RIVALS[rival]
    one, two = port_of(catalog), port_of(catalog, "db.two")
    look(one)
    Transaction(two).files.append([B])
    act(loaded(catalog))
    if conflicts:
        with pytest.raises(ConflictError, match="delete"):
            commit(catalog, one, two)
    else:
        commit(catalog, one, two)
    assert names(loaded(catalog, "db.two")) == (["a"] if conflicts else ["a", "b"])


@pytest.mark.parametrize("rival", READ_RIVALS)
def test_steps_of_one_table(catalog: Catalog, rival: str) -> None:
    act, conflicts = READ_RIVALS[rival]
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
    Transaction(two).files.append([B])
    loaded(catalog).files.append([C])
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
        loaded(catalog, name).files.append([C])
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
            Transaction(two).files.append([B])
        case "properties":
            Transaction(one).set_properties(x="1")
        case _:
            Transaction(one).files.append([B], branch="b")
    real = catalog.commit_tables

    def late(commits: Any) -> None:
        monkeypatch.setattr(catalog, "commit_tables", real)
        loaded(catalog).files.append([C])
        real(commits)

    monkeypatch.setattr(catalog, "commit_tables", late)
    with pytest.raises(ConflictError, match="delete"):
        commit(catalog, one, two)
    assert names(loaded(catalog)) == ["a", "c"]
    assert names(loaded(catalog, "db.two")) == ["a"]


def test_a_look_of_a_block_that_failed_does_not_count(catalog: Catalog) -> None:
    one, two = port_of(catalog), port_of(catalog, "db.two")

    def fail() -> None:
        with one.all_or_nothing():
            look(one)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    Transaction(two).files.append([B])
    loaded(catalog).files.append([C])
    commit(catalog, one, two)
