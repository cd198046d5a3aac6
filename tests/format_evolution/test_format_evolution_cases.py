"""Schema evolution case by case (rules 30-51, 65), PyIceberg as a second opinion."""

from __future__ import annotations

import math
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.table.update.schema import UpdateSchema as PeerUpdate

from ci_share import examples
from frazil.errors import EvolutionError, ValidationError
from frazil.format import types as T
from frazil.format.evolution.schema import SchemaEvolution
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import PartitionField
from frazil.format.partitions.transforms import parse_transform
from frazil.format.schema import Schema

BASE = Schema(
    (
        T.NestedField(1, "id", T.LongType(), required=True),
        T.NestedField(2, "n", T.IntegerType()),
        T.NestedField(
            3,
            "s",
            T.StructType(
                (T.NestedField(4, "x", T.FloatType()), T.NestedField(5, "y", T.DateType()))
            ),
        ),
        T.NestedField(
            6, "arr", T.ListType(7, T.StructType((T.NestedField(8, "x", T.IntegerType()),)))
        ),
        T.NestedField(
            9,
            "m",
            T.MapType(
                10,
                T.StructType((T.NestedField(14, "k", T.IntegerType()),)),
                11,
                T.StructType((T.NestedField(12, "x", T.DecimalType(9, 2)),)),
            ),
        ),
        T.NestedField(13, "day", T.DateType()),
    ),
    schema_id=4,
    identifier_field_ids=(1,),
)


def evolve(version: int = 2, **options: Any) -> SchemaEvolution:
    return SchemaEvolution(BASE, 20, version, **options)


def names(schema: Schema) -> list[str]:
    return [field.name for field in schema.fields]


def test_added_columns_take_ids_that_were_never_used() -> None:
    """Rules 48, 51: from last-column-id, in Java's order, the struct's own fields first."""
    evolution = evolve()
    nested = T.StructType(
        (
            T.NestedField(1, "a", T.ListType(2, T.StringType())),
            T.NestedField(3, "b", T.IntegerType(), doc="inner"),
        )
    )
    evolution.add_column("tip", "decimal(9, 2)", doc="what was paid on top")
    evolution.add_column("s.z", nested).add_column("arr.element.w", T.LongType())
    evolution.add_column("arr.v", T.LongType()).add_column("m.value.w", "string")
    schema = evolution.apply()
    found = {name: schema.find_field(name).field_id for name in schema.column_names}
    assert found["tip"] == 21
    assert (found["s.z"], found["s.z.a"], found["s.z.b"], found["s.z.a.element"]) == (
        22,
        23,
        24,
        25,
    )
    assert (found["arr.element.w"], found["arr.element.v"], found["m.value.w"]) == (26, 27, 28)
    assert evolution.last_column_id == 28
    assert schema.find_field("tip").doc == "what was paid on top"
    assert schema.schema_id == 4
    assert schema.identifier_field_ids == (1,)


def test_moves() -> None:
    evolution = evolve().add_column("z", "int").add_column("s.z", "int")
    evolution.move_first("z").move_after("id", "m").move_before("day", "n")
    evolution.move_first("s.z").move_after("s.x", "s.y")
    schema = evolution.apply()
    assert names(schema) == ["z", "day", "n", "s", "arr", "m", "id"]
    assert [f.name for f in schema.find_type("s").fields] == ["z", "y", "x"]  # type: ignore[attr-defined]


def test_names_before_and_after_changes() -> None:
    swapped = evolve().rename_column("n", "day").rename_column("day", "n").apply()
    assert (swapped.find_field("n").field_id, swapped.find_field("day").field_id) == (13, 2)
    renamed = evolve().rename_column("s", "t").add_column("t.z", "int").rename_column("s.x", "w")
    assert renamed.update_column("t.w", "double", doc="d").apply().find_field(
        "t.w"
    ) == T.NestedField(4, "w", T.DoubleType(), doc="d")


def test_case_insensitive_names() -> None:
    schema = evolve(case_sensitive=False).rename_column("S.X", "Z").apply()
    assert schema.find_field("s.Z").field_id == 4
    with pytest.raises(EvolutionError, match="there is a column 'id'"):
        evolve(case_sensitive=False).add_column("ID", "int")


PROMOTIONS = [
    (T.IntegerType(), T.LongType(), 1),
    (T.FloatType(), T.DoubleType(), 1),
    (T.DecimalType(9, 2), T.DecimalType(11, 2), 1),
    (T.DateType(), T.TimestampType(), 3),
    (T.DateType(), T.TimestampNanoType(), 3),
    (T.UnknownType(), T.StringType(), 3),
    (T.UnknownType(), T.ListType(1, T.LongType()), 3),
]
REFUSED = [
    (T.LongType(), T.IntegerType()),
    (T.DoubleType(), T.FloatType()),
    (T.DecimalType(9, 2), T.DecimalType(11, 3)),
    (T.DecimalType(9, 2), T.DecimalType(8, 2)),
    (T.DateType(), T.TimestamptzType()),
    (T.IntegerType(), T.DoubleType()),
    (T.IntegerType(), T.StringType()),
    (T.StructType((T.NestedField(2, "a", T.IntegerType()),)), T.IntegerType()),
]


@pytest.mark.parametrize(("source", "target", "since"), PROMOTIONS)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_promotions(source: Any, target: Any, since: int, version: int) -> None:
    """Rules 44, 45."""
    evolution = SchemaEvolution(Schema((T.NestedField(1, "c", source),)), 1, version)
    if version < since:
        with pytest.raises(EvolutionError, match=r"column 'c' from .* to .*format version"):
            evolution.update_column("c", target)
    else:
        found = evolution.update_column("c", target).apply().find_type("c")
        assert type(found) is type(target)


@pytest.mark.parametrize(("source", "target"), REFUSED)
def test_refused_promotions(source: Any, target: Any) -> None:
    with pytest.raises(EvolutionError, match="cannot change column 'c' from"):
        SchemaEvolution(Schema((T.NestedField(1, "c", source),)), 2, 3).update_column("c", target)


@pytest.mark.parametrize(
    ("transform", "allowed"),
    [("identity", False), ("bucket[4]", False), ("day", True), ("year", True), ("void", True)],
)
def test_a_promotion_must_keep_partition_values(transform: str, allowed: bool) -> None:
    """Rule 47."""
    field = PartitionField((13,), 1000, parse_transform(transform), "p")
    evolution = evolve(3, partition_fields=[field])
    if allowed:
        evolution.update_column("day", "timestamp")
    else:
        with pytest.raises(EvolutionError, match=r"partition field 'p' is made from it by"):
            evolution.update_column("day", "timestamp")


def test_defaults() -> None:
    """Rules 34-36, 39, 45."""
    evolution = evolve(3).add_column("c", "int", default=7, required=True)
    evolution.add_column("p", T.StructType((T.NestedField(1, "x", T.LongType()),)), default={})
    evolution.update_column("c", default=8).add_column("d", "date", default="1970-01-02")
    schema = evolution.update_column("d", "timestamp").apply()
    c, p, d = (schema.find_field(name) for name in "cpd")
    assert (c.required, c.initial_default, c.write_default) == (True, 7, 8)
    assert (p.initial_default, p.write_default) == ((), ())
    assert (d.initial_default, d.write_default) == (86_400_000_000, 86_400_000_000)
    with pytest.raises(EvolutionError, match="need format version 3"):
        evolve(2).add_column("c", "int", default=7)
    with pytest.raises(EvolutionError, match="cannot be the default"):
        evolve(3).add_column("c", "int", default="x")


@pytest.mark.parametrize(
    ("column_type", "default"),
    [
        ("double", "NaN"),
        ("float", math.inf),
        ("double", -math.inf),
        (T.ListType(1, T.DoubleType()), [1.5, math.nan]),
    ],
)
def test_defaults_that_json_has_no_number_for(column_type: Any, default: Any) -> None:
    # The specification writes floats as JSON numbers; Java refuses to read anything else.
    with pytest.raises(EvolutionError, match="no NaN and no infinity"):
        evolve(3).add_column("c", column_type, default=default)
    with pytest.raises(EvolutionError, match="no NaN and no infinity"):
        evolve(3).add_column("c", column_type).update_column("c", default=default)
    double = T.NestedField(1, "c", T.DoubleType(), initial_default=math.nan)
    with pytest.raises(EvolutionError, match="no NaN and no infinity"):
        evolve(3).add_column("p", T.StructType((double,)))
    with pytest.raises(ValidationError, match="no NaN and no infinity"):
        new_table_metadata(Schema((double,)), location="l", format_version=3)


def test_a_column_with_such_a_default_of_another_engine_can_be_changed() -> None:
    held = T.NestedField(1, "c", T.DoubleType(), initial_default=math.inf, write_default=math.inf)
    schema = SchemaEvolution(Schema((held,)), 1, 3).rename_column("c", "d").apply()
    assert schema.find_field("d").initial_default == math.inf
    schema = SchemaEvolution(schema, 1, 3).update_column("d", default=1.5).apply()
    assert (schema.find_field("d").initial_default, schema.find_field("d").write_default) == (
        math.inf,
        1.5,
    )


def test_nullability() -> None:
    schema = evolve().set_identifier_fields().make_column_optional("id").apply()
    assert schema.find_field("id").optional
    incompatible = evolve().allow_incompatible_changes()
    incompatible.require_column("n").add_column("r", "int", required=True)
    schema = incompatible.require_column("arr.element").require_column("m.value").apply()
    assert schema.find_field("n").required
    assert schema.find_field("r").required
    assert schema.find_field("arr.element").required
    assert schema.find_field("m.value").required
    assert evolve().require_column("id").apply() == BASE  # nothing changes


WRONG = [
    (lambda u: u.add_column("n", "int"), "there is a column 'n' of type int"),
    (lambda u: u.add_column("q.a", "int"), "cannot add 'a' to column 'q': there is no such column"),
    (lambda u: u.add_column("n.a", "int"), "it is no struct"),
    (lambda u: u.add_column("m.key.a", "int"), "the keys of a map cannot change"),
    (lambda u: u.add_column("r", "int", required=True), "without a default"),
    (lambda u: u.add_column("r", "strin"), "'strin' is not a type for column 'r'"),
    (lambda u: u.add_column("r", "timestamp_ns").apply(), "format version 3"),
    (lambda u: u.add_column("r", "int").delete_column("r"), "the same evolution"),
    (lambda u: u.rename_column("n", "r").delete_column("n"), "the same evolution"),
    (lambda u: u.add_column("s.z", "int").delete_column("s"), "the same evolution"),
    (lambda u: u.delete_column("n").rename_column("n", "r"), "the same evolution deletes it"),
    (lambda u: u.delete_column("s").add_column("s.z", "int"), "the same evolution deletes it"),
    (lambda u: u.delete_column("q"), "there is no such column; the table has id, n, s"),
    (lambda u: u.delete_column("id").apply(), "identifier field"),
    (lambda u: u.delete_column("arr.element"), "the element of the list 'arr'"),
    (lambda u: u.delete_column("m.key"), "the key of the map 'm'"),
    (lambda u: u.delete_column("arr.x"), "no field left"),
    (lambda u: u.delete_column("day"), "partition spec or sort order"),
    (lambda u: u.rename_column("n", "id").apply(), "two fields of one struct are named 'id'"),
    (lambda u: u.rename_column("n", ""), "empty name"),
    (lambda u: u.rename_column("m.value", "v"), "the value of the map 'm'"),
    (lambda u: u.update_column("m.key.k", "long"), "the keys of a map cannot change"),
    (lambda u: u.require_column("n"), "from optional to required"),
    (lambda u: u.make_column_optional("id").apply(), "it is optional"),
    (lambda u: u.move_first("q"), "there is no such column"),
    (lambda u: u.move_after("n", "n"), "after itself"),
    (lambda u: u.move_before("s.x", "n"), "in different structs"),
    (lambda u: u.move_first("arr.element"), "the element of the list 'arr'"),
    (lambda u: u.set_identifier_fields("n").apply(), "it is optional"),
    (lambda u: u.set_identifier_fields("q"), "there is no such column"),
]


@pytest.mark.parametrize(("change", "says"), WRONG)
def test_what_is_not_allowed_says_why(change: Any, says: str) -> None:
    with pytest.raises(EvolutionError, match=says):
        change(evolve(2, kept_source_ids=[13]))


def test_union_by_name() -> None:
    other = Schema(
        (
            T.NestedField(1, "new", T.StringType(), required=True, doc="n"),
            T.NestedField(2, "n", T.LongType(), doc="wider"),
            T.NestedField(3, "id", T.IntegerType(), required=True),
            T.NestedField(
                4,
                "s",
                T.StructType(
                    (
                        T.NestedField(5, "z", T.ListType(6, T.IntegerType())),
                        T.NestedField(7, "x", T.FloatType()),
                    )
                ),
            ),
            T.NestedField(
                8,
                "arr",
                T.ListType(
                    9,
                    T.StructType(
                        (T.NestedField(10, "x", T.LongType()), T.NestedField(11, "y", T.LongType()))
                    ),
                ),
            ),
        )
    )
    schema = evolve().union_by_name(other).apply()
    assert names(schema) == [*names(BASE), "new"]
    assert schema.find_field("n") == T.NestedField(2, "n", T.LongType(), doc="wider")
    assert schema.find_type("id") == T.LongType()  # the narrower int fits
    assert schema.find_field("new").optional
    assert str(schema.find_type("s")) == (
        "struct<4: x: optional float, 5: y: optional date, 22: z: optional list<int>>"
        if schema.find_field("new").field_id == 21
        else ""
    )
    assert schema.find_type("arr.element.x") == T.LongType()
    assert schema.find_field("arr.element.y").field_id == 24
    assert evolve().union_by_name(BASE).apply() == BASE
    with pytest.raises(EvolutionError, match="cannot change column 'n' from int to string"):
        evolve().union_by_name(Schema((T.NestedField(1, "n", T.StringType()),)))


PATHS = ["n", "s", "s.x", "s.y", "arr", "arr.element.x", "m.value.x", "day"]
TYPES = ["int", "long", "float", "double", "decimal(9, 2)", "decimal(12, 2)", "date", "string"]
CHANGES = st.one_of(
    st.tuples(
        st.just("add_column"),
        st.sampled_from(["", "s.", "arr.", "m."]),
        st.sampled_from("abcd"),
        st.sampled_from(TYPES),
    ),
    st.tuples(st.just("delete_column"), st.sampled_from(PATHS)),
    st.tuples(st.just("rename_column"), st.sampled_from(PATHS), st.sampled_from("efgh")),
    st.tuples(st.just("update_column"), st.sampled_from(PATHS), st.sampled_from(TYPES)),
    st.tuples(st.just("move_first"), st.sampled_from(PATHS)),
    st.tuples(st.just("move_after"), st.sampled_from(PATHS), st.sampled_from(PATHS)),
    st.tuples(st.just("move_before"), st.sampled_from(PATHS), st.sampled_from(PATHS)),
)


# PyIceberg's builder looks for the partition names of its table: here there are none.
UNPARTITIONED_TABLE = SimpleNamespace(
    _table=None,
    table_metadata=SimpleNamespace(partition_specs=[], schemas=[SimpleNamespace(schema_id=4)]),
)


@settings(max_examples=examples(50), deadline=None)
@given(changes=st.lists(CHANGES, min_size=1, max_size=4))
def test_what_both_allow_is_the_same_schema_as_pyiceberg_makes(changes: list[Any]) -> None:
    ours = evolve()
    peer_schema = PeerSchema.model_validate(BASE.to_json())
    peer = PeerUpdate(UNPARTITIONED_TABLE, schema=peer_schema)  # type: ignore[arg-type]
    peer._last_column_id = count(21)
    try:
        for kind, *arguments in changes:
            if kind == "add_column":
                arguments = [arguments[0] + arguments[1], arguments[2]]
            getattr(ours, kind)(*arguments)
        result = ours.apply()
    except EvolutionError:
        return
    deleted = {change[1] for change in changes if change[0] == "delete_column"}
    if deleted & {change[1] for change in changes if change[0] == "update_column"}:
        # PyIceberg refuses to delete a column after an update to the type that it has.
        return
    for kind, *arguments in changes:
        if kind == "add_column":
            path = tuple((arguments[0] + arguments[1]).split("."))
            peer.add_column(path, _peer_type(arguments[2]))
        elif kind == "update_column":
            peer.update_column(arguments[0], _peer_type(arguments[1]))
        else:
            getattr(peer, kind)(*arguments)
    if any(change[0].startswith("move") and deleted & set(change[1:]) for change in changes):
        # PyIceberg fails with StopIteration where a column that was moved is deleted.
        return
    expected = Schema.from_json(peer._apply().model_dump(by_alias=True, mode="json"))
    assert result.fields == expected.fields


def _peer_type(text: str) -> Any:
    field = {"id": 1, "name": "c", "required": False, "type": text}
    return PeerSchema.model_validate({"type": "struct", "fields": [field]}).fields[0].field_type
