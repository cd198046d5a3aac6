"""Geometries and geographies in Spark's own types."""

import pytest
from pyspark.sql import types as S

from frazil.format.schema import Schema
from frazil.spark.abilities import GeographyType, GeometryType

needs_types = pytest.mark.skipif(
    not hasattr(S, "GeometryType"), reason="this Spark has no geometries: 4.1 has"
)

# A little-endian point: x = 1, y = 2.
POINT = "0101000000000000000000f03f0000000000000040"
GEOMETRY, GEOGRAPHY = GeometryType(4326), GeographyType(4326)
COLUMNS = S.StructType(
    [
        S.StructField("g", GEOMETRY),
        S.StructField("y", GEOGRAPHY),
        S.StructField("s", S.StructType([S.StructField("g", GEOMETRY)])),
        S.StructField("l", S.ArrayType(GEOMETRY)),
    ]
)
ROW = (
    f"st_setsrid(st_geomfromwkb(X'{POINT}'), 4326) as g, st_geogfromwkb(X'{POINT}') as y, "
    f"named_struct('g', st_setsrid(st_geomfromwkb(X'{POINT}'), 4326)) as s, "
    f"array(st_setsrid(st_geomfromwkb(X'{POINT}'), 4326), null) as l"
)
SHOWN = (
    "lower(hex(st_asbinary(g)))", "st_srid(g)", "lower(hex(st_asbinary(y)))", "st_srid(y)",
    "lower(hex(st_asbinary(s.g)))", "st_srid(s.g)", "st_srid(l[0])", "l[1] is null",
)  # fmt: skip
EXPECTED = (POINT, 4326, POINT, 4326, POINT, 4326, 4326, True)


def types_of(schema):
    return [(field.name, field.dataType.simpleString()) for field in schema]


@needs_types
def test_what_was_written_is_read_and_can_be_written_again(lake, spark, session):
    session(spark__sql__geospatial__enabled="true")
    table = lake.create_table("db.t", COLUMNS, format_version=3)
    table.append(spark.sql(f"select {ROW}"))
    rows = table.to_df()
    assert types_of(rows.schema) == types_of(COLUMNS)
    assert tuple(rows.selectExpr(*SHOWN).first()) == EXPECTED
    copy = lake.create_table_as_select("db.copy", rows, format_version=3)
    assert [str(f.field_type) for f in copy.schema.fields][:2] == ["geometry", "geography"]
    assert tuple(copy.to_df().selectExpr(*SHOWN).first()) == EXPECTED


@needs_types
def test_a_reference_system_is_named_in_any_case(lake, spark, session):
    session(spark__sql__geospatial__enabled="true")
    fields = [
        {"id": 1, "name": "g", "required": False, "type": "geometry(ogc:crs84)"},
        {"id": 2, "name": "y", "required": False, "type": "geography(Ogc:Crs84, spherical)"},
        {"id": 3, "name": "other", "required": False, "type": "geometry(srid:3857)"},
    ]
    schema = Schema.from_json({"type": "struct", "schema-id": 0, "fields": fields})
    table = lake.create_table("db.t", schema, format_version=3)
    table.append(spark.sql(f"select {ROW}, X'{POINT}' as other").drop("s", "l"))
    rows = table.to_df()
    assert types_of(rows.schema) == [
        ("g", GEOMETRY.simpleString()), ("y", GEOGRAPHY.simpleString()), ("other", "binary"),
    ]  # fmt: skip
    (row,) = rows.selectExpr(*SHOWN[:4], "lower(hex(other))").collect()
    assert tuple(row) == (*EXPECTED[:4], POINT)


@needs_types
def test_spark_says_whether_it_has_these_types_where_nobody_set_it(lake, spark):
    """Spark 4.3 has them unless they are switched off, Spark 4.1 if they are switched on."""
    has_them = spark.conf.get("spark.sql.geospatial.enabled") == "true"
    table = lake.create_table("db.t", COLUMNS, format_version=3)
    shown = types_of(table.to_df().schema)
    assert (shown == types_of(COLUMNS)) is has_them
    assert has_them is not spark.version.startswith("4.1")
