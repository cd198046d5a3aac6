"""Nested columns, schemas and specs that change, written by Frazil, Java and PyIceberg."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from interop_engines import DuckDB, pyiceberg_catalog
from interop_rows import all_rows
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import BucketTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import DecimalType, DoubleType, IntegerType, LongType, StringType

from ci_share import only_in_soak
from frazil.spark.lake import Lake

FIRST = (
    "id int, a int, f float, d decimal(9,2), s struct<x:int,y:string>, l array<struct<p:int>>, "
    "m map<string,struct<q:int>>, tags array<string>, gone string"
)
FIRST_ROWS = (
    "(1, 7, 1.5f, 14.20BD, named_struct('x', 1, 'y', 'one'), array(named_struct('p', 1)), "
    "map('k', named_struct('q', 1)), array('t', null), 'old')",
    "(2, null, null, null, null, null, null, null, null)",
    "(3, -7, -0.0f, -0.01BD, named_struct('x', null, 'y', null), array(), map(), array(), '')",
)
FIRST_EXPECTED = (
    'added: NULL, id: 1, b: 7, f: 1.5, d: 14.20, s: {x: 1, why: "one", z: NULL}, '
    'l: [{p: 1, w: NULL}], m: map("k" -> {q: 1, r: NULL}), tags: ["t", NULL], gone: NULL',
    "added: NULL, id: 2, b: NULL, f: NULL, d: NULL, s: NULL, l: NULL, m: NULL, tags: NULL, "
    "gone: NULL",
    "added: NULL, id: 3, b: -7, f: -0.0, d: -0.01, s: {x: NULL, why: NULL, z: NULL}, l: [], "
    "m: [], tags: [], gone: NULL",
)
THEN = (
    "added string, id int, b bigint, f double, d decimal(12,2), "
    "s struct<x:int,why:string,z:double>, l array<struct<p:int,w:string>>, "
    "m map<string,struct<q:int,r:bigint>>, tags array<string>, gone int"
)
THEN_ROWS = (
    "('new', 4, 5000000000, 0.1D, 1234567890.12BD, named_struct('x', 4, 'why', 'four', 'z', 0.5D), "
    "array(named_struct('p', 4, 'w', 'w'), null), map('a', named_struct('q', 4, 'r', 4L), 'b', "
    "null), array('ü'), 42)",
    "(null, 5, 7, null, 14.20BD, null, null, null, null, null)",
)
THEN_EXPECTED = (
    'added: "new", id: 4, b: 5000000000, f: 0.1, d: 1234567890.12, '
    's: {x: 4, why: "four", z: 0.5}, l: [{p: 4, w: "w"}, NULL], '
    'm: map("a" -> {q: 4, r: 4}, "b" -> NULL), tags: ["ü"], gone: 42',
    "added: NULL, id: 5, b: 7, f: NULL, d: 14.20, s: NULL, l: NULL, m: NULL, tags: NULL, "
    "gone: NULL",
)
EXPECTED = sorted("{" + text + "}" for text in (*FIRST_EXPECTED, *THEN_EXPECTED))
FILTERS = {
    "b = 7": (1, 5),
    "b < 0": (3,),
    "d = 14.20": (1, 5),
    "d >= 1000000": (4,),
    "gone = 42": (4,),
    "gone is null": (1, 2, 3, 5),
    "added is null": (1, 2, 3, 5),
    "f < 1": (3, 4),
}
READERS = ("frazil", "java", "pyiceberg", "duckdb")
WRITTEN = [
    *((writer, version) for version in (1, 2, 3) for writer in ("frazil", "java")),
    # It writes no v3.
    ("pyiceberg", 1),
    ("pyiceberg", 2),
]
IN_CI = {("frazil", 1), ("frazil", 3), ("java", 2), ("java", 3), ("pyiceberg", 2)}
READS = [
    (writer, version, reader)
    if (writer, version) in IN_CI
    else only_in_soak(writer, version, reader)
    for writer, version in WRITTEN
    for reader in (READERS if writer != "pyiceberg" else ("frazil", "java"))
]


@dataclass(frozen=True, slots=True)
class Evolved:
    """A table whose schema and spec have changed twice between appends."""

    table: Any
    name: str


MakeEvolved: TypeAlias = Callable[[str, int], Evolved]


@pytest.fixture(scope="module")
def evolved(spark: Any, sql_lake: Lake, warehouse: Path) -> MakeEvolved:
    """Gives the one table of a writer and a format version."""
    make = {
        "frazil": partial(_by_frazil, spark, sql_lake),
        "java": partial(_by_java, spark),
        "pyiceberg": partial(_by_pyiceberg, spark, pyiceberg_catalog(warehouse)),
    }

    @cache
    def made(writer: str, version: int) -> Evolved:
        short = f"evolved_{writer}{version}"
        make[writer](short, version)
        return Evolved(sql_lake.load_table(f"db.{short}"), f"java_sql.db.{short}")

    return made


def _rows(spark: Any, schema: str, rows: tuple[str, ...]) -> Any:
    names = ", ".join(part.split()[0] for part in _columns(schema))
    df = spark.sql(f"select * from values {', '.join(rows)} as t({names})").coalesce(1)
    return df.to(spark.createDataFrame([], schema).schema)


def _arrow(spark: Any, schema: str, rows: tuple[str, ...]) -> pa.Table:
    """The same, with every column nullable."""
    nullable = spark.createDataFrame([], schema).toArrow().schema
    return pa.Table.from_pylist(_rows(spark, schema, rows).toArrow().to_pylist(), nullable)


def _columns(schema: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, char in enumerate(schema):
        depth += (char in "<(") - (char in ">)")
        if char == "," and not depth:
            parts.append(schema[start:index].strip())
            start = index + 1
    return [*parts, schema[start:].strip()]


def _by_frazil(spark: Any, lake: Lake, name: str, version: int) -> None:
    table = lake.create_table(
        f"db.{name}", FIRST, partition_by=["truncate(10, a)"], format_version=version
    )
    table.append(_rows(spark, FIRST, FIRST_ROWS))
    with table.update_spec() as change:
        change.remove_field("truncate(10, a)")
    with table.update_schema() as schema:
        schema.rename_column("a", "b")
        schema.update_column("b", "long")
        schema.update_column("f", "double")
        schema.update_column("d", "decimal(12, 2)")
        schema.add_column("added", "string")
        schema.move_first("added")
        schema.delete_column("gone")
        schema.rename_column("s.y", "why")
        schema.add_column("s.z", "double")
        schema.add_column("l.element.w", "string")
        schema.add_column("m.value.r", "long")
    with table.update_schema() as schema:
        schema.add_column("gone", "int")
    with table.update_spec() as change:
        change.add_field("bucket(4, b)")
        change.add_field("gone", name="gone_part")
    table.append(_rows(spark, THEN, THEN_ROWS))


def _by_java(spark: Any, name: str, version: int) -> None:
    full = f"java_sql.db.{name}"
    spark.sql(
        f"create table {full} ({FIRST}) using iceberg partitioned by (truncate(10, a)) "
        f"tblproperties ('format-version' = '{version}')"
    )
    _rows(spark, FIRST, FIRST_ROWS).writeTo(full).append()
    for statement in (
        "drop partition field truncate(10, a)",
        "rename column a to b",
        "alter column b type bigint",
        "alter column f type double",
        "alter column d type decimal(12, 2)",
        "add column added string first",
        "drop column gone",
        "rename column s.y to why",
        "add column s.z double",
        "add column l.element.w string",
        "add column m.value.r bigint",
        "add column gone int",
        "add partition field bucket(4, b)",
        "add partition field gone as gone_part",
    ):
        spark.sql(f"alter table {full} {statement}")
    _rows(spark, THEN, THEN_ROWS).writeTo(full).append()


def _by_pyiceberg(spark: Any, catalog: SqlCatalog, name: str, version: int) -> None:
    first = _arrow(spark, FIRST, FIRST_ROWS)
    table = catalog.create_table(
        f"db.{name}", first.schema, properties={"format-version": str(version)}
    )
    with table.update_spec() as spec:
        spec.add_field("a", TruncateTransform(10), "a_trunc")
    table.append(first)
    with table.update_schema() as schema:
        schema.update_column("a", LongType())
        schema.rename_column("a", "b")
        schema.update_column("f", DoubleType())
        schema.update_column("d", DecimalType(12, 2))
        schema.add_column("added", StringType())
        schema.move_first("added")
        schema.delete_column("gone")
        schema.rename_column(("s", "y"), "why")
        schema.add_column(("s", "z"), DoubleType())
        schema.add_column(("l", "w"), StringType())
        schema.add_column(("m", "r"), LongType())
    with table.update_schema() as schema:
        schema.add_column("gone", IntegerType())
    with table.update_spec() as spec:
        # In v1 a removed field stays as void, and PyIceberg appends by one field of a column alone.
        if version > 1:
            spec.remove_field("a_trunc")
            spec.add_field("b", BucketTransform(4), "b_bucket")
        spec.add_field("gone", IdentityTransform(), "gone_part")
    table.append(_arrow(spark, THEN, THEN_ROWS))


def _as_read(engines: tuple[str, str], rows: list[str]) -> list[str]:
    """The rows where these engines write and read: `NULL_COLLECTIONS` has PyIceberg's way."""
    if "pyiceberg" not in engines:
        return rows
    return sorted(row.replace("l: NULL, m: NULL", "l: [], m: []") for row in rows)


def test_null_collections_in_the_files_of_pyiceberg(
    evolved: MakeEvolved,
) -> None:
    """They are empty in its files, where the rows have none."""
    paths = [
        row.file_path
        for row in evolved("pyiceberg", 2).table.inspect.dataframes.data_files().collect()
    ]
    tables = [pq.read_table(path.removeprefix("file://")) for path in paths]
    rows = [row for table in tables for row in table.to_pylist()]
    without = [row for row in rows if row["id"] in (2, 5)]
    assert [(row["l"], row["m"], row["tags"]) for row in without] == [([], [], None)] * 2


@pytest.mark.parametrize(("writer", "version", "reader"), READS)
def test_rows(
    evolved: MakeEvolved,
    spark: Any,
    duck: DuckDB,
    writer: str,
    version: int,
    reader: str,
) -> None:
    it = evolved(writer, version)
    assert all_rows(reader, spark, duck, it.table, it.name) == _as_read((writer, reader), EXPECTED)


@pytest.mark.interop
@pytest.mark.parametrize(("writer", "version", "reader"), READS)
def test_filters(
    evolved: MakeEvolved,
    spark: Any,
    duck: DuckDB,
    writer: str,
    version: int,
    reader: str,
) -> None:
    it = evolved(writer, version)
    for where, ids in FILTERS.items():
        rows = all_rows(reader, spark, duck, it.table, it.name, where)
        expected = [row for row in EXPECTED if any(f" id: {n}," in row for n in ids)]
        assert rows == _as_read((writer, reader), expected), where
