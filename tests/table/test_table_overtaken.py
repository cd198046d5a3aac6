"""What fitted the table until another commit was first is a conflict, whatever it does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from table_cases import avro_files, avro_files_in_use, data_file, make_table, position_deletes

from frazil.catalog.protocol import Catalog
from frazil.errors import ConflictError
from frazil.table.commit.definition import Definition
from frazil.table.handle import TableHandle
from frazil.table.operations import TableOperations

Step = Callable[[TableOperations], None]
A, B = data_file("a"), data_file("b")
DELETES = position_deletes("p", about="a")


def append_to(branch: str) -> Step:
    """One file more on a branch."""
    return lambda table: table.files.fast_append([data_file("more")], branch=branch)


def stage(table: TableOperations) -> None:
    """An overwrite beside main, on its head."""
    table.files.overwrite([data_file("o")], removed=[B], wap_id="w")


def upgrade(version: int) -> Step:
    """A newer format version."""
    return lambda table: table.upgrade(version)


def row_delta(table: TableOperations) -> None:
    """A position delete file."""
    table.upgrade(2)
    table.files.row_delta(added_deletes=[DELETES])


def publish(table: TableOperations) -> None:
    """What is staged becomes the head."""
    table.publish_changes("w")


CASES: dict[str, tuple[Step, Step, Step]] = {
    # name: before, what the other one commits, what does not fit after it
    "position deletes": (upgrade(2), upgrade(3), row_delta),
    "a file of rows that match in part": (
        lambda table: table.files.fast_append([data_file("w", "wed", ids=(0, 4))]),
        lambda table: table.files.fast_append([data_file("x", "wed", ids=(0, 9))]),
        lambda table: table.files.delete(where="id < 5 and day = 'wed'"),
    ),
    "an append to a branch": (
        lambda table: table.create_branch("b"),
        lambda table: table.remove_branch("b"),
        append_to("b"),
    ),
    "the publication of an overwrite": (stage, append_to("main"), publish),
}


def table_of(catalog: Catalog, before: Step) -> TableHandle:
    """A table of three snapshots."""
    table = make_table(catalog, version=1)
    table.files.fast_append([A])
    table.files.fast_append([B])
    table.files.fast_append([data_file("c", "tue")])
    before(table)
    return table


def let_another_be_first(catalog: Catalog, rival: Callable[[], None]) -> None:
    """Let it commit right before the next swap."""
    real = catalog.commit_table

    def commit_table(*arguments: Any, **base: Any) -> Any:
        del catalog.commit_table  # type: ignore[attr-defined]
        rival()
        return real(*arguments, **base)

    catalog.commit_table = commit_table  # type: ignore[method-assign]


@pytest.mark.parametrize("is_transaction", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_what_fits_no_more_is_a_conflict(
    files_catalog: Catalog, case: str, is_transaction: bool
) -> None:
    before, theirs, ours = CASES[case]

    def in_transaction(table: TableHandle) -> None:
        with table.transaction() as tx:
            tx.set_properties(note="x")
            ours(tx)

    table = table_of(files_catalog, before)
    other = TableHandle(files_catalog, files_catalog.load_table("db.t"))
    let_another_be_first(files_catalog, lambda: theirs(other))
    with pytest.raises(ConflictError):
        (in_transaction if is_transaction else ours)(table)
    assert table.refresh().metadata == other.metadata
    assert avro_files(table) == avro_files_in_use(table)


@pytest.mark.parametrize("case", CASES)
def test_it_fits_where_nobody_was_first(files_catalog: Catalog, case: str) -> None:
    before, _, ours = CASES[case]
    table = table_of(files_catalog, before)
    was = table.metadata
    ours(table)
    assert table.metadata != was


def test_position_deletes_that_were_written_before_an_upgrade(files_catalog: Catalog) -> None:
    """The first try sees the new version already."""
    table = table_of(files_catalog, upgrade(2))
    written_for = Definition.of(table.metadata)
    table.upgrade(3)
    with pytest.raises(ConflictError, match="position delete file for format version 2"):
        table.files.row_delta(added_deletes=[DELETES], definition=written_for)
