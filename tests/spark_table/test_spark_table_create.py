"""Tables are made of anything that names columns, alone or with their first rows."""

import datetime as dt
import json
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import types as S
from table_rows import SIMPLE, frame, rows_of

import frazil
from ci_share import one_of_each, only_in_soak
from frazil import types as I
from frazil.errors import (
    EvolutionError,
    NoSuchNamespaceError,
    NoSuchTableError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    UnsupportedError,
    UnsupportedVersionError,
    ValidationError,
)
from frazil.format.schema import Schema
from frazil.spark.abilities import GeographyType, GeometryType

DDL = "id bigint not null comment 'the key', tags array<string>, ts timestamp_ntz"
STRUCT = S.StructType(
    [
        S.StructField("id", S.LongType(), False, {"comment": "the key"}),
        S.StructField("tags", S.ArrayType(S.StringType())),
        S.StructField("ts", S.TimestampNTZType()),
    ]
)
SCHEMA = frazil.Schema(
    (
        frazil.NestedField(7, "id", I.LongType(), True, "the key"),
        frazil.NestedField(8, "tags", I.ListType(9, I.StringType(), False)),
        frazil.NestedField(10, "ts", I.TimestampType()),
    )
)
SOURCES = {
    "ddl": lambda spark: DDL,
    "struct": lambda spark: STRUCT,
    "schema": lambda spark: SCHEMA,
    "dataframe": lambda spark: spark.createDataFrame([], STRUCT),
}
# Ids as Java hands them out: top-level columns first, then what is inside of them.
COLUMNS = [(1, "id", "long"), (2, "tags", "list<string>"), (3, "ts", "timestamp")]


@pytest.mark.parametrize(("source", "version"), one_of_each(SOURCES, [1, 2, 3]))
def test_a_table_of_anything_that_names_columns(lake, spark, source, version):
    table = lake.create_table("db.t", SOURCES[source](spark), format_version=version)
    theirs = StaticTable.from_metadata(table.metadata_location)
    assert theirs.metadata.format_version == version
    fields = theirs.schema().fields
    assert [(f.field_id, f.name, str(f.field_type)) for f in fields] == COLUMNS
    assert fields[1].field_type.element_id == 4
    # A DataFrame's nullability says how a query was written, not what the table should demand.
    assert fields[0].required is (source != "dataframe")
    assert fields[0].doc == "the key"
    assert table.current_snapshot is None
    assert rows_of(table) == []


def test_everything_that_can_be_given(lake, tmp_path):
    table = lake.create_table(
        ("db", "t"),
        "id bigint, city string, ts timestamp_ntz",
        partition_by=["month(ts)", "bucket(4, id)", "city"],
        sort_by=["ts desc nulls last"],
        properties={"owner": "me"},
        location=str(tmp_path / "elsewhere"),
        format_version=1,
    )
    text = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    assert text["format-version"] == 1
    assert text["location"] == f"file://{tmp_path}/elsewhere"
    assert [(f["name"], f["transform"]) for f in text["partition-specs"][0]["fields"]] == [
        ("ts_month", "month"), ("id_bucket", "bucket[4]"), ("city", "identity"),
    ]  # fmt: skip
    assert text["sort-orders"][-1]["fields"][0]["direction"] == "desc"
    assert text["properties"]["owner"] == "me"


REFUSED = {
    "no ddl": ("nonsense", {}, ValidationError, "is no schema"),
    "no schema": (7, {}, ValidationError, "a schema is DDL text"),
    "one type": ("bigint", {}, ValidationError, "not a schema"),
    "interval": ("i interval day", {}, UnsupportedError, "interval"),
    "version": (SIMPLE, {"format_version": 4}, UnsupportedVersionError, "4"),
    "column": (SIMPLE, {"partition_by": ["nope"]}, ValidationError, "nope"),
    "transform": (SIMPLE, {"partition_by": ["month(id)"]}, ValidationError, "month"),
    "order": (SIMPLE, {"sort_by": ["nope"]}, ValidationError, "nope"),
    "reserved": (SIMPLE, {"properties": {"uuid": "x"}}, ValidationError, "uuid"),
    "twice": ("a int, A int", {"partition_by": ["a", "a"]}, ValidationError, "a"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_table(lake, files, case):
    schema, options, error, says = REFUSED[case]
    with pytest.raises(error, match=says):
        lake.create_table("db.t", schema, **options)
    assert not lake.table_exists("db.t")
    assert not files(".json")


def test_names(lake):
    lake.create_table("db.t", SIMPLE)
    with pytest.raises(TableAlreadyExistsError):
        lake.create_table("db.t", SIMPLE)
    with pytest.raises(NoSuchNamespaceError):
        lake.create_table("nowhere.t", SIMPLE)
    with pytest.raises(NoSuchTableError):
        lake.load_table("db.nope")
    assert lake.create_table_if_not_exists("db.t", "other int").schema.fields[0].name == "id"
    assert lake.list_tables("db") == [("db", "t")]
    lake.rename_table("db.t", "db.u")
    assert [lake.table_exists(name) for name in ("db.t", "db.u")] == [False, True]
    registered = lake.register_table("db.v", lake.load_table("db.u").metadata_location)
    assert registered.schema.fields[0].name == "id"
    lake.drop_table("db.v")
    lake.purge_table("db.u")
    lake.drop_table_if_exists("db.u")
    lake.drop_table_if_exists("nowhere.u")
    assert lake.list_tables("db") == []


def test_create_as_select_is_one_commit(lake, spark):
    rows = [(i, f"c{i % 3}", i / 2) for i in range(10)]
    table = lake.create_table_as_select(
        "db.t", frame(spark, rows), partition_by=["city"], snapshot_properties={"job": "load"}
    )
    assert rows_of(table) == rows
    assert [s.operation for s in table.metadata.snapshots] == ["append"]
    assert table.current_snapshot.summary["job"] == "load"
    assert table.current_snapshot.summary["changed-partition-count"] == "3"
    assert table.metadata_location.rpartition("/")[2].startswith("00000-")
    assert rows_of(lake.load_table("db.t")) == rows


def boom(spark):
    """Rows that fail when they are made."""
    return spark.sql("select id, if(id = 7, raise_error('boom'), 'x') city from range(10)")


@pytest.mark.parametrize("name", ["db.t", "nowhere.t"])
def test_a_failed_create_as_select_leaves_nothing(lake, spark, files, name):
    with pytest.raises(Exception, match=r"boom|nowhere"):
        lake.create_table_as_select(name, boom(spark))
    assert not lake.table_exists("db.t")
    assert not files() | files(".avro") | files(".json")


@pytest.mark.check
@pytest.mark.parametrize("version", [1, only_in_soak(2), 3])
def test_replace_keeps_history_and_ids_by_name(lake, spark, version):
    table = lake.create_table(
        "db.t", "id bigint, city string, x double", partition_by=["city"], format_version=version
    )
    old = [(1, "a", 0.5), (2, "b", 1.0)]
    table.append(frame(spark, old))
    table.create_tag("before")
    first = table.current_snapshot.snapshot_id
    new = [(dt.date(2024, 1, 2), 9), (dt.date(2024, 2, 2), 8)]
    df = frame(spark, new, "day date, id bigint")
    replaced = lake.replace_table_as_select(
        "db.t", df, partition_by=["month(day)"], properties={"k": "v"}
    )
    assert rows_of(replaced) == new
    assert {f.name: f.field_id for f in replaced.schema.fields} == {"day": 4, "id": 1}
    assert replaced.uuid == table.uuid
    assert replaced.format_version == version
    assert replaced.properties["k"] == "v"
    assert [f.name for f in replaced.spec.fields if not f.is_void] == ["day_month"]
    assert rows_of(replaced.scan(snapshot_id=first)) == old
    assert rows_of(replaced.scan(ref="before")) == old
    assert len(replaced.metadata.snapshots) == 2
    assert replaced.current_snapshot.parent_snapshot_id is None
    theirs = StaticTable.from_metadata(replaced.metadata_location).scan().to_arrow().to_pylist()
    assert sorted((r["day"], r["id"]) for r in theirs) == new


def test_replace_by_a_query_of_the_table_itself(lake, spark):
    table = lake.create_table_as_select("db.t", frame(spark, [(1, "a", 0.5), (2, "b", 1.0)]))
    lake.replace_table_as_select("db.t", table.to_df().selectExpr("id + 10 as id", "upper(city) c"))
    assert rows_of(lake.load_table("db.t")) == [(11, "A"), (12, "B")]


def test_a_failed_replace_changes_nothing(lake, spark, files):
    table = lake.create_table_as_select("db.t", frame(spark, [(1, "a", 0.5)]))
    before = files(), files(".avro"), table.metadata_location
    with pytest.raises(Exception, match="boom"):
        lake.replace_table_as_select("db.t", boom(spark))
    with pytest.raises(ValidationError, match="nope"):
        lake.replace_table_as_select("db.t", frame(spark, []), partition_by=["nope"])
    with pytest.raises(NoSuchTableError):
        lake.replace_table_as_select("db.other", frame(spark, []))
    again = lake.load_table("db.t")
    assert (files(), files(".avro"), again.metadata_location) == before


def test_create_or_replace(lake, spark):
    for rows in ([(1, "a", 0.5)], [(2, "b", 1.0)]):
        lake.create_or_replace_table_as_select("db.t", frame(spark, rows))
    table = lake.load_table("db.t")
    assert rows_of(table) == [(2, "b", 1.0)]
    assert len(table.metadata.snapshots) == 2
    with pytest.raises(ValidationError, match="location"):
        lake.create_or_replace_table_as_select("db.t", frame(spark, []), location="/x")


def test_a_select_of_no_rows(lake, spark):
    table = lake.create_table_as_select("db.t", frame(spark, []))
    assert rows_of(table) == []
    table.append(frame(spark, [(1, "a", 0.5)]))
    assert rows_of(table) == [(1, "a", 0.5)]


@pytest.mark.check
def test_a_schema_that_a_query_cannot_have(lake, spark):
    """uuid, fixed and time have no Spark type; the rows come as text, bytes and µs."""
    schema = frazil.Schema(
        (
            frazil.NestedField(1, "u", I.UUIDType(), True),
            frazil.NestedField(2, "f", I.FixedType(2)),
            frazil.NestedField(3, "t", I.TimeType()),
        )
    )
    table = lake.create_table("db.t", schema)
    uuid = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
    table.append(frame(spark, [(uuid, bytearray(b"ab"), 1)], "u string, f binary, t bigint"))
    with pytest.raises(SchemaMismatchError, match="exactly 2 bytes"):
        table.append(frame(spark, [(uuid, bytearray(b"abc"), 1)], "u string, f binary, t bigint"))
    assert rows_of(table) == [(uuid, b"ab", 1)]


def test_connect_and_open(lake, spark, tmp_path):
    with pytest.raises(frazil.errors.ConfigurationError, match="Spark session"):
        frazil.connect("local[2]", warehouse="/tmp/x")
    with pytest.raises(frazil.errors.ConfigurationError, match=r"frazil\.local_session\(\) starts"):
        frazil.connect(warehouse=str(tmp_path / "x"))
    assert not (tmp_path / "x").exists()
    table = lake.create_table_as_select("db.t", frame(spark, [(1, "a", 0.5)]))
    for place in (table.location, table.metadata_location, Path(table.location[7:])):
        opened = frazil.open_table(place, spark=spark)
        assert rows_of(opened) == [(1, "a", 0.5)]
        with pytest.raises(UnsupportedError, match="without a catalog"):
            opened.append(frame(spark, []))


def test_a_name_in_backticks_holds_dots(lake, spark):
    table = lake.create_table_as_select("db.`a.b`", spark.range(2))
    assert lake.list_tables("db") == [("db", "a.b")]
    assert lake.load_table(("db", "a.b")).uuid == table.uuid
    with pytest.raises(TableAlreadyExistsError, match=r"db\.`a\.b`"):
        lake.create_table_as_select("db.`a.b`", spark.range(2))
    with pytest.raises(NoSuchNamespaceError, match="none"):
        lake.create_table_as_select("none.`t.u`", spark.range(2))


# Types of columns that are added, as text: what a new table takes, an old one takes.


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


# Geometries and geographies in Spark's own types.


needs_types = pytest.mark.skipif(
    not hasattr(S, "GeometryType"), reason="this Spark has no geometries: 4.1 has"
)

# A little-endian point: x = 1, y = 2.
POINT = "0101000000000000000000f03f0000000000000040"
GEOMETRY, GEOGRAPHY = GeometryType(4326), GeographyType(4326)
PLACES = S.StructType(
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
    table = lake.create_table("db.t", PLACES, format_version=3)
    table.append(spark.sql(f"select {ROW}"))
    rows = table.to_df()
    assert types_of(rows.schema) == types_of(PLACES)
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
    table = lake.create_table("db.t", PLACES, format_version=3)
    shown = types_of(table.to_df().schema)
    assert (shown == types_of(PLACES)) is has_them
    assert has_them is not spark.version.startswith("4.1")
