"""The table of types: one row a type, and in each what the specifications say."""

from __future__ import annotations

import pytest

from frazil.format import types as I
from frazil.format.types import model
from frazil.format.types.forms import FORMS, TypeForm, form_of
from frazil.format.types.inside import fields_inside

_PRIMITIVES = {
    each
    for each in vars(model).values()
    if isinstance(each, type) and issubclass(each, I.PrimitiveType) and each.type_name
}


def test_every_type_that_holds_one_value_has_one_row() -> None:
    kinds = [form.kind for form in FORMS]
    assert len(kinds) == len(set(kinds))
    assert set(kinds) == _PRIMITIVES | {I.VariantType}


@pytest.mark.parametrize(
    "kind",
    [
        I.StructType((I.NestedField(1, "a", I.LongType()),)),
        I.ListType(1, I.LongType()),
        I.MapType(1, I.StringType(), 2, I.LongType()),
    ],
    ids=str,
)
def test_of_a_nested_type_nothing_is_true(kind: I.IcebergType) -> None:
    form = form_of(kind)
    assert fields_inside(kind)
    assert (form.meaning, form.carrier, form.transforms) == ("nested", "none", ())
    assert not form.is_ordered
    assert not form.in_spark


# Iceberg's specification, appendix A: "Avro".
_AVRO = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "decimal(9, 2)": None,
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "timestamp_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    "timestamptz_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
    "string": "string",
    "uuid": {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
    "fixed[3]": None,
    "binary": "bytes",
    "unknown": "null",
    "geometry": "bytes",
    "geography": "bytes",
}


@pytest.mark.parametrize("name", _AVRO)
def test_avro_as_in_appendix_a(name: str) -> None:
    assert form_of(I.type_named(name)).avro == _AVRO[name]


def _logical(kind: str, **entries: str | bool) -> dict[str, str | bool]:
    return {"Type": kind, **entries}


_MICROS = {"timeUnit": "microseconds"}
_NANOS = {"timeUnit": "nanoseconds"}

# Appendix A, "Parquet": physical type, length, and logical type.
_PARQUET = {
    "boolean": ("BOOLEAN", 0, {}),
    "int": ("INT32", 0, {}),
    "long": ("INT64", 0, {}),
    "float": ("FLOAT", 0, {}),
    "double": ("DOUBLE", 0, {}),
    "decimal(9, 2)": ("", 0, {}),
    "date": ("INT32", 0, _logical("Date")),
    "time": ("INT64", 0, _logical("Time", isAdjustedToUTC=False, **_MICROS)),
    "timestamp": ("INT64", 0, _logical("Timestamp", isAdjustedToUTC=False, **_MICROS)),
    "timestamptz": ("INT64", 0, _logical("Timestamp", isAdjustedToUTC=True, **_MICROS)),
    "timestamp_ns": ("INT64", 0, _logical("Timestamp", isAdjustedToUTC=False, **_NANOS)),
    "timestamptz_ns": ("INT64", 0, _logical("Timestamp", isAdjustedToUTC=True, **_NANOS)),
    "string": ("BYTE_ARRAY", 0, _logical("String")),
    "uuid": ("FIXED_LEN_BYTE_ARRAY", 16, _logical("UUID")),
    "fixed[3]": ("FIXED_LEN_BYTE_ARRAY", 0, {}),
    "binary": ("BYTE_ARRAY", 0, {}),
    "unknown": ("", 0, {}),
    "geometry": ("BYTE_ARRAY", 0, _logical("Geometry")),
    "geography": ("BYTE_ARRAY", 0, _logical("Geography")),
}


@pytest.mark.parametrize("name", _PARQUET)
def test_parquet_as_in_appendix_a(name: str) -> None:
    form = form_of(I.type_named(name))
    assert (form.parquet, form.length, dict(form.logical)) == _PARQUET[name]


# The table of transforms: "Source types". Identity takes all but geometry, geography and variant.
_IDENTITY, _BUCKET, _TRUNCATE = "identity", "bucket", "truncate"
_DATES = {"year", "month", "day"}
_TRANSFORMS = {
    "boolean": {_IDENTITY},
    "int": {_IDENTITY, _BUCKET, _TRUNCATE},
    "long": {_IDENTITY, _BUCKET, _TRUNCATE},
    "float": {_IDENTITY},
    "double": {_IDENTITY},
    "decimal(9, 2)": {_IDENTITY, _BUCKET, _TRUNCATE},
    "date": {_IDENTITY, _BUCKET, *_DATES},
    "time": {_IDENTITY, _BUCKET},
    "timestamp": {_IDENTITY, _BUCKET, *_DATES, "hour"},
    "timestamptz": {_IDENTITY, _BUCKET, *_DATES, "hour"},
    "timestamp_ns": {_IDENTITY, _BUCKET, *_DATES, "hour"},
    "timestamptz_ns": {_IDENTITY, _BUCKET, *_DATES, "hour"},
    "string": {_IDENTITY, _BUCKET, _TRUNCATE},
    "uuid": {_IDENTITY, _BUCKET},
    "fixed[3]": {_IDENTITY, _BUCKET},
    "binary": {_IDENTITY, _BUCKET, _TRUNCATE},
    "unknown": {_IDENTITY},
    "variant": set[str](),
    "geometry": set[str](),
    "geography": set[str](),
}


@pytest.mark.parametrize("name", _TRANSFORMS)
def test_transforms_as_in_the_table_of_source_types(name: str) -> None:
    assert set(form_of(I.type_named(name)).transforms) == _TRANSFORMS[name]


# Appendix D, "Binary single-value serialization": the layout of a value's bytes.
_CARRIERS = {
    "boolean": ("boolean", 0, False),
    "int": ("int", 0, False),
    "long": ("long", 0, False),
    "float": ("float", 0, False),
    "double": ("double", 0, False),
    "decimal(9, 2)": ("decimal", 0, False),
    "date": ("int", 86_400_000_000_000, False),
    "time": ("long", 1_000, False),
    "timestamp": ("long", 1_000, False),
    "timestamptz": ("long", 1_000, True),
    "timestamp_ns": ("long", 1, False),
    "timestamptz_ns": ("long", 1, True),
    "string": ("string", 0, False),
    "uuid": ("uuid", 0, False),
    "fixed[3]": ("fixed", 0, False),
    "binary": ("binary", 0, False),
    "geometry": ("wkb", 0, False),
    "geography": ("wkb", 0, False),
    "unknown": ("none", 0, False),
    "variant": ("none", 0, False),
}


@pytest.mark.parametrize("name", _CARRIERS)
def test_values_are_stored_as_in_appendix_d(name: str) -> None:
    form = form_of(I.type_named(name))
    assert (form.carrier, form.unit, form.zoned) == _CARRIERS[name]


def test_what_came_with_version_3() -> None:
    assert {form.kind for form in FORMS if form.since == 3} == {
        I.UnknownType,
        I.VariantType,
        I.GeometryType,
        I.GeographyType,
        I.TimestampNanoType,
        I.TimestamptzNanoType,
    }


def test_promotions_as_in_the_section_on_schema_evolution() -> None:
    promoted = {str(form.kind()): form.promoted_from for form in FORMS if form.promoted_from}
    assert promoted == {
        "long": "int",
        "double": "float",
        "timestamp": "date",
        "timestamp_ns": "date",
    }


# Java's HiveSchemaUtil, and its IcebergToGlueConverter, which names others by themselves.
_METASTORES = {
    "boolean": ("boolean", ""),
    "int": ("int", ""),
    "long": ("bigint", "bigint"),
    "float": ("float", ""),
    "double": ("double", ""),
    "date": ("date", ""),
    "time": ("string", "string"),
    "timestamp": ("timestamp", "timestamp"),
    "timestamptz": ("timestamp with local time zone", "timestamp"),
    "string": ("string", "string"),
    "uuid": ("string", "string"),
    "fixed[3]": ("binary", "binary"),
    "binary": ("binary", "binary"),
}


@pytest.mark.parametrize("name", _METASTORES)
def test_names_in_metastores(name: str) -> None:
    form = form_of(I.type_named(name))
    assert (form.hive, form.glue) == _METASTORES[name]


# Spark's manual, "Data Types": the names in SQL of each type of its own.
_SPARK = {
    "boolean": {"boolean"},
    "int": {"byte", "tinyint", "short", "smallint", "int", "integer"},
    "long": {"long", "bigint"},
    "float": {"float", "real"},
    "double": {"double"},
    "decimal(9, 2)": {"decimal", "dec", "numeric"},
    "date": {"date"},
    "timestamp": {"timestamp_ntz"},
    "timestamptz": {"timestamp", "timestamp_ltz"},
    "string": {"string"},
    "binary": {"binary"},
    "variant": {"variant"},
    "unknown": {"void"},
}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.kind.__name__)
def test_names_in_sql(form: TypeForm) -> None:
    known = {type(I.type_named(name)): words for name, words in _SPARK.items()}
    assert form.in_spark == (form.kind in known)
    if form.in_spark:
        assert set(form.sql) == known[form.kind]
