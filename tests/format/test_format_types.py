"""Types, schemas and defaults (rules 14-42, 64-67, 197-198)."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import InvalidMetadataError, ValidationError
from frazil.format import types as T
from frazil.format.schema import Schema
from frazil.format.schema.ids import assign_fresh_ids, assign_fresh_type_ids
from frazil.format.schema.types_json import parse_type, type_to_json

JSON_FORMS = [
    ("boolean", T.BooleanType()),
    ("int", T.IntegerType()),
    ("long", T.LongType()),
    ("float", T.FloatType()),
    ("double", T.DoubleType()),
    ("decimal(9,2)", T.DecimalType(9, 2)),
    ("decimal( 38 , 0 )", T.DecimalType(38, 0)),
    ("date", T.DateType()),
    ("time", T.TimeType()),
    ("timestamp", T.TimestampType()),
    ("timestamptz", T.TimestamptzType()),
    ("timestamp_ns", T.TimestampNanoType()),
    ("timestamptz_ns", T.TimestamptzNanoType()),
    ("string", T.StringType()),
    ("uuid", T.UUIDType()),
    ("fixed[16]", T.FixedType(16)),
    ("fixed[ 16 ]", T.FixedType(16)),
    ("binary", T.BinaryType()),
    ("unknown", T.UnknownType()),
    ("variant", T.VariantType()),
    ("geometry", T.GeometryType()),
    ("geometry(srid:4326)", T.GeometryType("srid:4326")),
    ("geometry( srid:4326 )", T.GeometryType("srid:4326")),
    ("geometry(OGC:CRS84)", T.GeometryType()),
    ("geometry(projjson:my.crs)", T.GeometryType("projjson:my.crs")),
    ("geography", T.GeographyType()),
    ("geography(srid:4326, spherical)", T.GeographyType("srid:4326")),
    ("geography(srid:4326,karney)", T.GeographyType("srid:4326", "karney")),
    ("geography( OGC:CRS84 , vincenty )", T.GeographyType(algorithm="vincenty")),
    ("LONG", T.LongType()),
]


@pytest.mark.parametrize(("text", "expected"), JSON_FORMS)
def test_primitive_json(text: str, expected: T.IcebergType) -> None:
    """Rule 197."""
    assert parse_type(text) == expected
    assert parse_type(str(expected)) == expected
    assert type_to_json(expected) == str(expected)
    assert hash(parse_type(text)) == hash(expected)


@pytest.mark.parametrize(
    ("value_type", "text"),
    [
        (T.DecimalType(9, 2), "decimal(9, 2)"),
        (T.FixedType(16), "fixed[16]"),
        (T.GeometryType(), "geometry"),
        (T.GeographyType(), "geography"),
        (T.GeometryType("srid:4326"), "geometry(srid:4326)"),
        (T.GeographyType("srid:4326", "andoyer"), "geography(srid:4326, andoyer)"),
    ],
)
def test_str_is_the_json_form(value_type: T.IcebergType, text: str) -> None:
    assert str(value_type) == text


@pytest.mark.parametrize(
    "wrong",
    [
        "integer",
        "decimal(39,0)",
        "decimal(0,0)",
        "decimal(4,5)",
        "decimal(4)",
        "fixed[-1]",
        "fixed",
        "geography(srid:1, flat)",
        'geometry({"a"})',
        "",
        None,
        7,
        {},
        {"type": "set"},
        {"type": "list", "element": "int", "element-required": True},
        {"type": "list", "element-id": "1", "element": "int", "element-required": True},
        {"type": "map", "key-id": 1, "key": "int", "value-id": 2, "value": "int"},
        {"type": "struct"},
        {"type": "struct", "fields": {}},
        {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "int"}]},
        {"type": "struct", "fields": [{"id": 1, "name": 2, "type": "int", "required": True}]},
        {
            "type": "struct",
            "fields": [
                {
                    "id": 1,
                    "name": "a",
                    "type": "int",
                    "required": True,
                    "initial-default": "34",
                }
            ],
        },
    ],
)
def test_malformed_types(wrong: Any) -> None:
    with pytest.raises(InvalidMetadataError):
        parse_type(wrong)


def test_users_names() -> None:
    assert T.as_type("bigint") == T.LongType()
    assert T.as_type("Timestamp_NTZ") == T.TimestampType()
    assert T.as_type(T.DateType()) == T.DateType()
    assert T.as_type("decimal(10,2)") == T.DecimalType(10, 2)
    for wrong in ("array<int>", 5):
        with pytest.raises(ValidationError):
            T.as_type(wrong)  # type: ignore[arg-type]


POINT = {
    "type": "struct",
    "fields": [
        {"id": 2, "name": "x", "type": "int", "required": True, "initial-default": 0,
         "write-default": 0},
        {"id": 3, "name": "y", "type": "int", "required": False, "initial-default": 0,
         "write-default": 5},
    ],
}  # fmt: skip


def field_json(**more: Any) -> dict[str, Any]:
    return {"id": 1, "name": "point", "type": POINT, "required": False, **more}


def test_struct_default_empty() -> None:
    """Rules 39-41: an empty default is a struct of its fields' own defaults, null is null."""
    schema = Schema.from_json({"fields": [field_json(**{"initial-default": {},
                                                        "write-default": {}})]})  # fmt: skip
    assert schema.fields[0].initial_default == ()
    assert schema.fields[0].write_default == ()
    json_value = schema.to_json()["fields"][0]
    assert json_value["initial-default"] == {}
    assert json_value["write-default"] == {}
    schema.check_types_for(3)
    without = Schema.from_json({"fields": [field_json()]})
    assert without.fields[0].initial_default is None
    assert without.fields[0].write_default is None


DEFAULTS = [
    ("boolean", True, True),
    ("int", 34, 34),
    ("long", 2**40, 2**40),
    ("double", 1.5, 1.5),
    ("float", 1, 1.0),
    ("decimal(9,2)", "14.20", Decimal("14.20")),
    ("decimal(9,2)", "14.2", Decimal("14.20")),
    ("decimal(23,0)", "2E+20", Decimal(2 * 10**20)),
    ("date", "2017-11-16", 17486),
    ("date", "1969-12-31", -1),
    ("time", "22:31:08.123456", 81068123456),
    ("time", "22:31:08", 81068000000),
    ("time", "22:31:08.1", 81068100000),
    ("timestamp", "2017-11-16T22:31:08.123456", 1510871468123456),
    ("timestamp", "2017-11-16T22:31:08", 1510871468000000),
    ("timestamp", "2017-11-16T22:31:08.123", 1510871468123000),
    ("timestamp", "2017-11-16T22:31:08.123456000", 1510871468123456),
    ("timestamptz", "2017-11-16T22:31:08.123456+00:00", 1510871468123456),
    ("timestamptz", "2017-11-16T14:31:08.123456-08:00", 1510871468123456),
    ("timestamptz", "2017-11-16T22:31:08Z", 1510871468000000),
    ("timestamp_ns", "2017-11-16T22:31:08.123456789", 1510871468123456789),
    ("timestamptz_ns", "2017-11-16T22:31:08.123456789+00:00", 1510871468123456789),
    ("string", "iceberg", "iceberg"),
    ("fixed[4]", "00010aff", b"\x00\x01\x0a\xff"),
    ("binary", "", b""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "json_value", "expected"), DEFAULTS)
def test_defaults_are_internal_values(text: str, json_value: Any, expected: Any) -> None:
    """Rule 276."""
    schema = Schema.from_json(
        {
            "fields": [
                {"id": 1, "name": "a", "required": True, "type": text,
                 "initial-default": json_value, "write-default": json_value}
            ]
        }
    )  # fmt: skip
    assert schema.fields[0].initial_default == expected
    assert type(schema.fields[0].write_default) is type(expected)
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


@pytest.mark.parametrize(
    ("field", "version", "message"),
    [
        (T.NestedField(1, "a", T.UnknownType()), 2, "format version 3"),
        (T.NestedField(1, "a", T.VariantType()), 1, "format version 3"),
        (T.NestedField(1, "a", T.GeometryType()), 2, "format version 3"),
        (T.NestedField(1, "a", T.GeographyType()), 2, "format version 3"),
        (T.NestedField(1, "a", T.TimestampNanoType()), 2, "format version 3"),
        (T.NestedField(1, "a", T.ListType(2, T.TimestamptzNanoType())), 2, "'a.element'"),
        (T.NestedField(1, "a", T.UnknownType(), required=True), 3, "optional"),
        (T.NestedField(1, "a", T.UnknownType(), write_default=1), 3, "must be null"),
        (T.NestedField(1, "a", T.VariantType(), initial_default=1), 3, "must be null"),
        (T.NestedField(1, "a", T.GeometryType(), initial_default=b""), 3, "must be null"),
        (T.NestedField(1, "a", T.GeographyType(), write_default=b""), 3, "must be null"),
        (
            T.NestedField(
                1, "a", T.StructType((T.NestedField(2, "b", T.LongType()),)), True, None, (1,)
            ),
            3,
            "null or empty",
        ),
        (T.NestedField(1, "a", T.LongType(), initial_default=1), 2, "initial default"),
        (T.NestedField(2147483448, "a", T.LongType()), 2, "out of range"),
        (T.NestedField(2147483447, "a", T.LongType()), 1, None),
        (T.NestedField(1, "a", T.VariantType()), 3, None),
        (T.NestedField(1, "a", T.UnknownType()), 3, None),
        (T.NestedField(1, "a", T.LongType(), initial_default=1), 3, None),
    ],
)
def test_check_types_for(field: T.NestedField, version: int, message: str | None) -> None:
    """Rules 17, 29, 38, 39, 66."""
    schema = Schema((field,))
    if message is None:
        schema.check_types_for(version)
    else:
        with pytest.raises(ValidationError, match=message):
            schema.check_types_for(version)


def in_struct(required: bool) -> Schema:
    inner = T.StructType((T.NestedField(2, "b", T.LongType(), required=True),))
    return Schema((T.NestedField(1, "a", inner, required=required),), 0, (2,))


def test_identifier_fields() -> None:
    """Rules 64, 65."""
    schema = in_struct(required=True)
    assert schema.identifier_field_names() == ("a.b",)
    assert Schema.from_json(schema.to_json()) == schema
    with pytest.raises(ValidationError, match="optional struct 'a'"):
        in_struct(required=False)


@pytest.mark.parametrize(
    ("field_type", "required", "field_id", "message"),
    [
        (T.LongType(), False, 1, "optional"),
        (T.DoubleType(), True, 1, "floating"),
        (T.FloatType(), True, 1, "floating"),
        (T.StructType(()), True, 1, "not a primitive"),
        (T.VariantType(), True, 1, "not a primitive"),
        (T.ListType(2, T.LongType(), True), True, 2, "in a list or a map"),
        (T.MapType(2, T.LongType(), 3, T.LongType(), True), True, 3, "in a list or a map"),
        (T.LongType(), True, 9, "no column of id 9"),
    ],
)
def test_not_identifiers(
    field_type: T.IcebergType, required: bool, field_id: int, message: str
) -> None:
    """Rule 65."""
    with pytest.raises(ValidationError, match=message):
        Schema((T.NestedField(1, "a", field_type, required=required),), 0, (field_id,))


def test_lookup_errors_and_ambiguity() -> None:
    schema = Schema((T.NestedField(1, "a", T.LongType()), T.NestedField(2, "A", T.LongType())))
    assert schema.find_field("A").field_id == 2
    with pytest.raises(ValidationError, match="ambiguous"):
        schema.find_field("a", case_sensitive=False)
    with pytest.raises(ValidationError, match="no column 'b'"):
        schema.find_field("b")
    with pytest.raises(ValidationError, match="id 7"):
        schema.find_field(7)
    dotted = Schema(
        (
            T.NestedField(1, "a.b", T.LongType()),
            T.NestedField(2, "a", T.StructType((T.NestedField(3, "b", T.LongType()),))),
        )
    )
    with pytest.raises(ValidationError, match="ambiguous"):
        dotted.find_field("a.b")
    assert dotted.name_path(1) == ("a.b",)
    assert dotted.name_path(3) == ("a", "b")


@pytest.mark.parametrize(
    "fields",
    [
        (T.NestedField(1, "a", T.LongType()), T.NestedField(1, "b", T.LongType())),
        (T.NestedField(1, "a", T.LongType()), T.NestedField(2, "a", T.LongType())),
        (T.NestedField(1, "a", T.ListType(1, T.LongType())),),
    ],
)
def test_ids_and_names_are_unique(fields: tuple[T.NestedField, ...]) -> None:
    """Rule 14."""
    with pytest.raises(ValidationError):
        Schema(fields)
    with pytest.raises(InvalidMetadataError):
        Schema.from_json(
            {
                "fields": [
                    {"id": field.field_id, "name": field.name, "required": False,
                     "type": type_to_json(field.field_type)}
                    for field in fields
                ]
            }
        )  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {"fields": 1},
        {"type": "list", "fields": []},
        {"fields": [], "schema-id": "1"},
        {"fields": [], "identifier-field-ids": [1]},
        {"fields": [], "identifier-field-ids": "1"},
    ],
)
def test_malformed_schemas(wrong: Any) -> None:
    with pytest.raises(InvalidMetadataError):
        Schema.from_json(wrong)


def primitive_types() -> st.SearchStrategy[T.IcebergType]:
    plain = [expected for _, expected in JSON_FORMS]
    decimals = st.integers(1, 38).flatmap(
        lambda precision: st.builds(T.DecimalType, st.just(precision), st.integers(0, precision))
    )
    return st.one_of(st.sampled_from(plain), decimals, st.builds(T.FixedType, st.integers(0, 99)))


def nested_types(inner: st.SearchStrategy[T.IcebergType]) -> st.SearchStrategy[T.IcebergType]:
    names = st.lists(
        st.text(
            st.characters(exclude_characters=".", exclude_categories=["Cs"]), min_size=1, max_size=4
        ),
        min_size=1,
        max_size=4,
        unique=True,
    )
    structs = names.flatmap(
        lambda chosen: st.tuples(
            *(
                st.builds(T.NestedField, st.just(0), st.just(name), inner, st.booleans())
                for name in chosen
            )
        ).map(T.StructType)
    )
    return st.one_of(
        structs,
        st.builds(T.ListType, st.just(0), inner, st.booleans()),
        st.builds(T.MapType, st.just(0), inner, st.just(0), inner, st.booleans()),
    )


TYPES = st.recursive(primitive_types(), nested_types, max_leaves=12)


@given(TYPES)
def test_types_and_schemas_round_trip(value_type: T.IcebergType) -> None:
    fresh = assign_fresh_type_ids(value_type, after=1)
    assert parse_type(json.loads(json.dumps(type_to_json(fresh)))) == fresh
    schema = Schema((T.NestedField(1, "column", fresh),))
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema
    assert schema.field_ids == frozenset(range(1, schema.highest_field_id + 1))
    assert schema.select(["column"]) == schema
    assert assign_fresh_ids(schema, after=100, base=schema) == schema
    for field_id, parent in schema.parent_ids.items():
        assert schema.name_path(field_id)[:-1] == schema.name_path(parent)
        assert field_id in schema.select([field_id]).field_ids


def test_fresh_ids_keep_defaults_docs_and_identifiers() -> None:
    schema = Schema(
        (
            T.NestedField(7, "a", T.LongType(), True, "doc", 1, 2),
            T.NestedField(9, "b", T.ListType(3, T.StringType())),
        ),
        4,
        (7,),
    )
    fresh = assign_fresh_ids(schema, after=10)
    assert fresh.fields[0] == T.NestedField(11, "a", T.LongType(), True, "doc", 1, 2)
    assert fresh.fields[1] == T.NestedField(12, "b", T.ListType(13, T.StringType()))
    assert (fresh.schema_id, fresh.identifier_field_ids) == (4, (11,))


def test_real_defaults(fixtures_dir: Path) -> None:
    """Rule 30, with a table whose writer put defaults of every type into version 2."""
    folder = next(fixtures_dir.glob("duckdb/add_columns_with_defaults/**/metadata"))
    metadata = json.loads(sorted(folder.glob("*.metadata.json"))[-1].read_text())
    schema = Schema.from_json(metadata["schemas"][-1])
    defaults = {field.name: field.initial_default for field in schema.fields}
    written = {field["name"]: field.get("initial-default")
               for field in metadata["schemas"][-1]["fields"]}  # fmt: skip
    assert {name for name, value in defaults.items() if value is not None} == {
        name for name, value in written.items() if value is not None
    }
    assert defaults["col_boolean"] is written["col_boolean"]
    assert not any(isinstance(value, float) and math.isnan(value) for value in defaults.values())
