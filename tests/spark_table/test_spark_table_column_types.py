"""Types of columns that are added, as text: what a new table takes, an old one takes."""

import pytest

from frazil.errors import EvolutionError
from frazil.format import types as I

TEXTS = [
    "struct<a: int, b: array<string>>",
    "array<struct<x: double not null, y: map<string, timestamp>>>",
    "map<bigint, decimal(9, 2)>",
    "STRUCT<`a.b`: date comment 'day', n: struct<z: binary>>",
    "smallint",
    "varchar(5)",
    "decimal(7)",
    "bigint",
]


def without_ids(kind):
    """A type as text, in which every id is the same."""
    match kind:
        case I.StructType(fields=fields):
            inner = [(f.name, without_ids(f.field_type), f.required, f.doc) for f in fields]
            return ("struct", *inner)
        case I.ListType():
            return ("list", without_ids(kind.element_type), kind.element_required)
        case I.MapType():
            value = without_ids(kind.value_type)
            return ("map", without_ids(kind.key_type), value, kind.value_required)
        case _:
            return str(kind)


def test_a_text_is_the_type_that_a_new_table_has_of_it(lake):
    columns = [f"c{i} {text}" for i, text in enumerate(TEXTS)]
    expected = lake.create_table("db.new", ", ".join(columns)).schema
    table = lake.create_table("db.t", "id bigint, s struct<a: int>")
    with table.update_schema() as change:
        for i, text in enumerate(TEXTS):
            change.add_column(f"c{i}", text)
        change.add_column("s.inner", TEXTS[0])
    found = table.schema
    for i in range(len(TEXTS)):
        kinds = [schema.find_type(f"c{i}") for schema in (found, expected)]
        assert without_ids(kinds[0]) == without_ids(kinds[1]), TEXTS[i]
    assert without_ids(found.find_type("s.inner")) == without_ids(expected.find_type("c0"))
    ids = [field.field_id for field in found.fields_by_id.values()]
    assert len(set(ids)) == len(ids)
    assert table.metadata.last_column_id == max(ids)
    table.append(lake.spark.sql("select 1L id, named_struct('a', 2, 'b', array('x')) c0"))
    [row] = table.to_df().collect()
    assert (row.id, row.c0.a, row.c0.b, row.c7) == (1, 2, ["x"], None)
    with table.transaction() as tx, tx.update_schema() as change:
        change.add_column("later", "array<int>")
    assert isinstance(table.schema.find_type("later"), I.ListType)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("struct<a int", "the type 'struct<a int' has the end"),
        ("array<flaot>", "'flaot' after 'array<'"),
        ("flaot", "'flaot' is not a type of Iceberg"),
        ("map<string, int> extra", "'extra'"),
        ("array<interval day>", "interval"),
    ],
)
def test_a_text_that_is_no_type(lake, text, says):
    table = lake.create_table("db.t", "id bigint")
    with pytest.raises(EvolutionError) as caught, table.update_schema() as change:
        change.add_column("c", text)
    assert says in str(caught.value)
    assert table.refresh().schema.column_names == ("id",)
