"""A column changes its type while equality deletes compare it."""

import warnings
from dataclasses import replace

import pytest
from table_cases import data_file, equality_deletes, make_table

from frazil.format.schema import Schema
from frazil.format.types import IntegerType, NestedField, StringType

KEYED = Schema(
    (
        NestedField(1, "id", IntegerType(), False),
        NestedField(2, "day", StringType(), False),
        NestedField(3, "n", IntegerType(), False),
    )
)


@pytest.mark.parametrize(("column", "is_told"), [("id", True), ("n", False)])
def test_a_warning_counts_the_deletes_by_a_promoted_column(files_catalog, column, is_told):
    table = make_table(files_catalog, schema=KEYED)
    table.files.append([data_file("a")])
    deletes = [replace(equality_deletes(name), equality_ids=(1,)) for name in ("e", "f")]
    table.files.row_delta(added_deletes=deletes)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with table.update_schema() as change:
            change.update_column(column, "long")
    texts = [str(each.message) for each in told]
    assert [text.startswith("2 live equality delete files delete by 'id'") for text in texts] == (
        [True] if is_told else []
    )
    assert all("convert_equality_deletes" in text for text in texts)
    assert str(table.schema.find_type(column)) == "long"
