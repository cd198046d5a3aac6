"""Name mappings (SPEC rules 54, 58-63)."""

from __future__ import annotations

import json

import pytest

from frazil.errors import InvalidMetadataError
from frazil.format.evolution.schema import SchemaEvolution
from frazil.format.schema import Schema
from frazil.format.schema.name_mapping import (
    FileColumn,
    FileColumnIds,
    MappedField,
    NameMapping,
    evolved_mapping,
    mapping_for,
)
from frazil.format.types import (
    IntegerType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

# The example of the specification's section on column projection.
EXAMPLE = [
    {"field-id": 1, "names": ["id", "record_id"]},
    {"field-id": 2, "names": ["data"]},
    {
        "field-id": 3,
        "names": ["location"],
        "fields": [
            {"field-id": 4, "names": ["latitude", "lat"]},
            {"field-id": 5, "names": ["longitude", "long"]},
        ],
    },
]
SCHEMA = Schema(
    (
        NestedField(1, "id", IntegerType()),
        NestedField(2, "a.b", StringType()),
        NestedField(3, "l", ListType(4, StructType((NestedField(5, "x", IntegerType()),)))),
        NestedField(6, "m", MapType(7, StringType(), 8, IntegerType())),
    )
)


def test_json_round_trip_and_lookups() -> None:
    mapping = NameMapping.from_json(json.dumps(EXAMPLE))
    assert json.loads(mapping.to_json()) == EXAMPLE
    assert NameMapping.from_json(EXAMPLE) == mapping
    assert mapping.names_of(4) == ("latitude", "lat")
    assert mapping.field_id(("location", "lat")) == 4
    assert mapping.field_id(("record_id",)) == 1
    assert mapping.field_id(("lat",)) is None
    # Rule 62: names alone; rule 58: no names at all.
    loose = NameMapping.from_json('[{"names": ["only in files"]}, {"field-id": 2, "names": []}]')
    assert loose.field_id(("only in files",)) is None
    assert loose.names_of(2) == ()


def test_the_mapping_of_a_schema() -> None:
    mapping = mapping_for(SCHEMA)
    assert mapping.field_id(("a.b",)) == 2  # rule 59: a dot is literal
    assert mapping.field_id(("a", "b")) is None
    assert mapping.field_id(("l", "element", "x")) == 5  # rule 60
    assert mapping.field_id(("m", "key")) == 7
    assert mapping.field_id(("m", "value")) == 8


def test_apply_to_the_columns_of_a_file() -> None:
    mapping = NameMapping.from_json(EXAMPLE)
    columns = (
        FileColumn("location", (FileColumn("lat"), FileColumn("alt"))),
        FileColumn("record_id"),
        FileColumn("other", (FileColumn("id"),)),
    )
    assert mapping.apply(columns) == (
        FileColumnIds("location", 3, (FileColumnIds("lat", 4), FileColumnIds("alt", None))),
        FileColumnIds("record_id", 1),
        FileColumnIds("other", None, (FileColumnIds("id", None),)),
    )


def test_evolution_keeps_old_names() -> None:
    evolution = SchemaEvolution(SCHEMA, 8, 2).rename_column("id", "key").delete_column("m")
    evolved = evolution.add_column("l.element.y", "int").add_column("id", "string").apply()
    mapping = evolved_mapping(mapping_for(SCHEMA), SCHEMA, evolved)
    # The new column takes the name that the renamed one had.
    assert mapping.names_of(1) == ("key",)
    assert mapping.field_id(("id",)) == 10
    assert mapping.field_id(("l", "element", "y")) == 9
    assert mapping.names_of(6) == ("m",)
    renamed = SchemaEvolution(SCHEMA, 8, 2).rename_column("l.x", "z").apply()
    assert evolved_mapping(mapping_for(SCHEMA), SCHEMA, renamed).names_of(5) == ("x", "z")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("{}", "not a list"),
        ("[1]", "expected an object"),
        ('[{"field-id": 1}]', "needs a list of names"),
        ('[{"field-id": "1", "names": ["a"]}]', "is no number"),
        ('[{"names": ["a"]}, {"names": ["a"]}]', "two fields named 'a'"),
        (
            '[{"field-id": 1, "names": ["a"]}, {"field-id": 1, "names": ["b"]}]',
            "maps the field id 1",
        ),
        ('[{"names": ["a"], "fields": 1}]', "not a list"),
    ],
)
def test_malformed_mappings(text: str, says: str) -> None:
    with pytest.raises(InvalidMetadataError, match=says):
        NameMapping.from_json(text)


def test_values_are_immutable() -> None:
    with pytest.raises(AttributeError):
        MappedField(("a",)).names = ("b",)  # type: ignore[misc]
