"""Files written for a schema or spec that another commit changes meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from table_cases import SCHEMA, data_file, make_table, names

from frazil.catalog.protocol import Catalog
from frazil.errors import ConflictError
from frazil.format.schema import Schema
from frazil.format.types import DoubleType, IntegerType, LongType, NestedField, StringType
from frazil.table.commit.definition import Definition
from frazil.table.handle import TableHandle

A, B = data_file("a"), data_file("b")
Change = Callable[[TableHandle], None]


def rename(table: TableHandle) -> None:
    with table.update_schema() as u:
        u.rename_column("note", "remark")


def add(table: TableHandle) -> None:
    with table.update_schema() as u:
        u.add_column("hour", "int")


def drop(table: TableHandle) -> None:
    with table.update_schema() as u:
        u.delete_column("note")


def drop_and_add(table: TableHandle) -> None:
    drop(table)
    with table.update_schema() as u:
        u.add_column("note", "string")


def promote(table: TableHandle) -> None:
    with table.update_schema() as u:
        u.update_column("n", "long")


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
    "renamed": (rename, True),
    "added": (add, True),
    "dropped": (drop, True),
    "promoted": (promote, True),
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
    table = make_table(files_catalog, schema=schema)
    table.files.append([A])
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
