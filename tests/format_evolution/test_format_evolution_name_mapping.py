"""Name mappings (SPEC rules 54, 58-63)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_share import examples
from frazil.errors import EvolutionError, InvalidMetadataError
from frazil.format import types as T
from frazil.format.evolution.schema import SchemaEvolution
from frazil.format.schema import Schema
from frazil.format.schema.name_mapping import (
    FileNames,
    NameMapping,
    evolved_mapping,
    mapping_for,
    with_names,
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
        T.NestedField(1, "id", T.IntegerType()),
        T.NestedField(2, "a.b", T.StringType()),
        T.NestedField(
            3, "l", T.ListType(4, T.StructType((T.NestedField(5, "x", T.IntegerType()),)))
        ),
        T.NestedField(6, "m", T.MapType(7, T.StringType(), 8, T.IntegerType())),
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
    assert mapping.field_id(("location", "alt")) is None
    assert mapping.field_id(("other", "id")) is None
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


def changed(*updates: str, mapping: NameMapping | None = None) -> NameMapping:
    """The mapping of SCHEMA after updates of it, each in the words of EVOLVED."""
    schema, last = SCHEMA, SCHEMA.highest_field_id
    mapping = mapping_for(schema) if mapping is None else mapping
    for update in updates:
        evolution = SchemaEvolution(schema, last, 2)
        for step in update.split(", "):
            match step.split():
                case ["rename", name, new]:
                    evolution.rename_column(name, new)
                case ["delete", name]:
                    evolution.delete_column(name)
                case ["add", name]:
                    evolution.add_column(name, "string")
                case _:
                    evolution.union_by_name(OTHER)
        evolved, last = evolution.apply(), evolution.last_column_id
        mapping, schema = evolved_mapping(mapping, schema, evolved), evolved
    return mapping


OTHER = Schema(
    (
        T.NestedField(1, "id", T.IntegerType()),
        T.NestedField(2, "new", T.StringType()),
        T.NestedField(
            3, "l", T.ListType(4, T.StructType((T.NestedField(5, "y", T.IntegerType()),)))
        ),
    )
)
EVOLVED = {
    # What a file's column is after updates of the schema, and the names that new columns get.
    "a new name": (["rename id key"], {"id": 1, "key": 1}, {1: ("id", "key")}),
    "a renamed one's name": (["rename id key", "add id"], {"id": 1, "key": 1}, {9: ()}),
    "a deleted one's name": (["delete id", "add id"], {"id": 1}, {9: ()}),
    "the same at once": (["delete id, add id"], {"id": 1}, {1: ("id",), 9: ()}),
    "a swap": (["rename id a.b, rename a.b id"], {"id": 1, "a.b": 2}, {1: ("id",), 2: ("a.b",)}),
    "there and back": (["rename id key", "rename key id", "add key"], {"id": 1, "key": 1}, {9: ()}),
    "a chain": (
        ["rename id b", "rename b c", "rename a.b b"], {"id": 1, "b": 1, "c": 1}, {2: ("a.b",)},
    ),
    "a new column that is renamed": (
        ["delete id", "add key", "rename key id"], {"id": 1, "key": 9}, {9: ("key",)},
    ),
    "a field in a list": (
        ["add l.y", "delete l.x", "add l.x"], {"l.element.x": 5, "l.element.y": 9}, {10: ()},
    ),
    "a whole column of structs": (["delete l", "add l"], {"l": 3, "l.element.x": 5}, {9: ()}),
    "a union": (
        ["rename l.x y, rename a.b new", "union"],
        {"id": 1, "new": 2, "a.b": 2, "l.element.y": 5}, {5: ("x", "y")},
    ),
    "a union after a deletion": (
        ["delete id", "union"], {"id": 1, "new": 10, "l.element.y": 11}, {9: (), 10: ("new",)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", EVOLVED)
def test_a_name_in_files_means_one_field_for_ever(case: str) -> None:
    """Files without field ids keep their rows, whatever happens to the schema."""
    updates, columns, names = EVOLVED[case]
    mapping = changed(*updates)
    for path, field_id in columns.items():
        parts = (path,) if path == "a.b" else tuple(path.split("."))
        assert mapping.field_id(parts) == field_id, path
    assert {field_id: mapping.names_of(field_id) for field_id in names} == names
    assert NameMapping.from_json(mapping.to_json()) == mapping


def test_a_column_of_files_alone_stays_one() -> None:
    """A later column of that name does not show what the table passed over."""
    names = FileNames(frozenset({(1, "ID")}), frozenset({(None, "extra"), (5, "z"), (4, "extra")}))
    mapping = with_names(mapping_for(SCHEMA), names, last_column_id=20)
    assert mapping.names_of(1) == ("id", "ID")
    paths = (("extra",), ("l", "element", "extra"), ("l", "element", "x", "z"))
    ids = [mapping.field_id(path) for path in paths]
    assert sorted(map(str, ids)) == ["21", "22", "23"]
    assert with_names(mapping, names, last_column_id=23) == mapping
    after = changed("add extra, add l.extra", mapping=mapping)
    assert (after.names_of(9), after.names_of(10)) == ((), ())
    assert [after.field_id(path) for path in paths] == ids
    # Rule 62, as others may write it.
    loose = NameMapping.from_json('[{"names": ["extra"]}]')
    assert changed("add extra", mapping=loose).field_id(("extra",)) is None


NAMES = ["id", "a.b", "l", "m", "p", "q"]


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("rename"), st.integers(0, 9), st.sampled_from(NAMES)),
            st.tuples(st.just("delete"), st.integers(0, 9), st.none()),
            st.tuples(st.just("add"), st.booleans(), st.sampled_from(NAMES)),
        ),
        max_size=12,
    )
)
def test_no_change_moves_a_name(steps: list[tuple[str, int, str | None]]) -> None:
    schema, last, mapping = SCHEMA, 8, mapping_for(SCHEMA)
    known = {(name,): mapping.field_id((name,)) for name in NAMES}
    for action, which, name in steps:
        evolution = SchemaEvolution(schema, last, 2)
        columns = [field.name for field in schema.fields] or ["gone"]
        try:
            if action == "add":
                evolution.add_column((name,) if which else ("l", str(name)), "int")
            elif action == "rename":
                evolution.rename_column((columns[which % len(columns)],), str(name))
            else:
                evolution.delete_column((columns[which % len(columns)],))
            evolved = evolution.apply()
        except EvolutionError:
            continue
        mapping = evolved_mapping(mapping, schema, evolved)
        schema, last = evolved, evolution.last_column_id
        now = {path: mapping.field_id(path) for path in known}
        assert {path: i for path, i in now.items() if known[path] is not None} == {
            path: i for path, i in known.items() if i is not None
        }
        known = now


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
