"""What fitted the table until another commit was first is a conflict, whatever it does not fit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from table_cases import (
    SCHEMA,
    avro_files,
    avro_files_in_use,
    data_file,
    make_table,
    names,
    position_deletes,
)

from frazil.catalog.protocol import Catalog
from frazil.errors import ConflictError
from frazil.format.schema import Schema
from frazil.format.types import DoubleType, IntegerType, LongType, NestedField, StringType
from frazil.table.commit.definition import Definition
from frazil.table.handle import TableHandle
from frazil.table.operations import TableOperations
from rival_commits import before_the_commit

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
    before_the_commit(table, lambda: theirs(other))
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


# Files written for a schema or spec that another commit changes meanwhile.


Change = Callable[[TableHandle], None]


def by(method: str, *arguments: str) -> Change:
    """An evolution of the schema in one step."""

    def change(table: TableHandle) -> None:
        with table.update_schema() as u:
            getattr(u, method)(*arguments)

    return change


def drop_and_add(table: TableHandle) -> None:
    by("delete_column", "note")(table)
    by("add_column", "note", "string")(table)


def require(table: TableHandle) -> None:
    with table.update_schema() as u:
        u.allow_incompatible_changes()
        u.require_column("note")


def replaced(*fields: NestedField) -> Change:
    def replace(table: TableHandle) -> None:
        with table.replace_transaction(Schema(fields), partition_by=["day"]):
            pass

    return replace


DAY = NestedField(2, "day", StringType(), False)
# What another commit does, and whether files written before it still fit.
CHANGES: dict[str, tuple[Change, bool]] = {
    "renamed": (by("rename_column", "note", "remark"), True),
    "added": (by("add_column", "hour", "int"), True),
    "dropped": (by("delete_column", "note"), True),
    "promoted": (by("update_column", "n", "long"), True),
    "dropped and added again": (drop_and_add, False),
    "required": (require, False),
    "replaced, same columns": (
        replaced(*SCHEMA.fields, NestedField(4, "n", IntegerType(), False)), True,
    ),
    "replaced, another type": (replaced(NestedField(1, "id", StringType(), False), DAY), False),
    "replaced, a promoted type": (
        replaced(
            *SCHEMA.fields, NestedField(4, "n", LongType(), False),
        ), True,
    ),
    "replaced, a column less": (replaced(DAY), False),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_files_written_for_an_earlier_schema(files_catalog: Catalog, change: str) -> None:
    theirs, fits = CHANGES[change]
    schema = Schema((*SCHEMA.fields, NestedField(4, "n", IntegerType(), False)))
    table = make_table(files_catalog, schema=schema, files=[A])
    written_for = Definition.of(table.metadata)
    theirs(TableHandle(files_catalog, files_catalog.load_table("db.t")))
    if fits:
        table.files.append([B], definition=written_for)
        assert "b" in names(table)
        return
    with pytest.raises(ConflictError, match="write them again"):
        table.files.append([B], definition=written_for)


def test_a_replaced_column_of_another_type_is_another_column(files_catalog: Catalog) -> None:
    """As `SCHEMA` has it, id was field 1 and a long; a double is no promotion of that."""
    table = make_table(files_catalog)
    before = {field.name: field.field_id for field in table.schema.fields}
    replaced(NestedField(1, "id", DoubleType(), False), DAY)(table)
    after = {field.name: field.field_id for field in table.schema.fields}
    assert after["day"] == before["day"]
    assert after["id"] > max(before.values())


def evolve(table: TableHandle) -> None:
    with table.update_spec() as u:
        u.add_field("bucket(4, id)")


def test_a_spec_that_files_are_written_for_is_not_lost(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    written_for = Definition.of(table.metadata)
    evolve(table)
    table.maintenance.remove_unused_specs_and_schemas()
    with pytest.raises(ConflictError, match="partition spec 0"):
        table.files.append([A], definition=written_for)
