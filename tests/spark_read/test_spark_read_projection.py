"""Which columns a scan yields, and under which names filters may be pushed."""

from __future__ import annotations

import pytest

from frazil.errors import ValidationError
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField, StringType, StructType
from frazil.spark.files.projection import FILE, project
from frazil.spark.files.scan_names import names_of_schemas, scan_names

POINT = StructType((NestedField(3, "x", LongType()), NestedField(4, "y", LongType())))
SCHEMA = Schema(
    (
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "point", POINT),
        NestedField(5, "Name", StringType()),
    )
)


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (None, ["id", "point", "Name"]),
        (["Name", "id"], ["Name", "id"]),
        (["name", "_file", "ID"], ["Name", FILE, "id"]),
        ([], []),
    ],
)
def test_columns_come_in_the_order_asked_for(columns: list[str] | None, names: list[str]) -> None:
    assert list(project(SCHEMA, columns, case_sensitive=False).names) == names


def test_fields_of_a_struct_are_cut_out_at_the_place_of_the_first() -> None:
    fields = project(SCHEMA, ["point.y", "id", "point.x"]).fields
    assert [f.name for f in fields] == ["point", "id"]
    assert fields[0].field_type == POINT
    only_y = project(SCHEMA, ["point.y"]).fields[0].field_type
    assert only_y == StructType((NestedField(4, "y", LongType()),))


@pytest.mark.parametrize("columns", [["nope"], ["id", "id"], ["name"]])
def test_unknown_and_repeated_columns_are_refused(columns: list[str]) -> None:
    with pytest.raises(ValidationError):
        project(SCHEMA, columns)


def test_a_metadata_name_of_a_table_column_is_the_table_column() -> None:
    schema = Schema((NestedField(1, "_pos", StringType()),))
    assert project(schema, ["_pos"]).fields == schema.fields


def test_swapped_names_are_never_pushed() -> None:
    before = Schema((NestedField(1, "a", LongType()), NestedField(2, "b", LongType())))
    after = Schema(
        (
            NestedField(1, "b", LongType()),
            NestedField(2, "a", LongType()),
            NestedField(3, "c", LongType()),
        )
    )
    names = scan_names(after.fields, names_of_schemas([before, after]))
    assert names[3] == "c"
    assert {names[1], names[2]}.isdisjoint({"a", "b"})


def test_a_renamed_column_keeps_its_new_name_and_an_unknown_history_none() -> None:
    before = Schema((NestedField(1, "a", LongType()),))
    after = Schema((NestedField(1, "b", LongType()),))
    assert scan_names(after.fields, names_of_schemas([before, after])) == {1: "b"}
    assert scan_names(after.fields, None)[1] != "b"


def test_a_struct_with_an_ambiguous_field_is_scanned_under_another_name() -> None:
    history = {"s": frozenset({1}), "s.x": frozenset({2, 9})}
    field = NestedField(1, "s", StructType((NestedField(9, "x", LongType()),)))
    assert scan_names((field,), history)[1] != "s"
