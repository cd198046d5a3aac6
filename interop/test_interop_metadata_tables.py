"""The metadata tables of the Java runtime's tables: the same schemas and the same rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from ci_share import only_in_interop, only_in_soak
from frazil.spark.lake import Lake
from frazil.spark.session import costs

TABLES = (
    "history", "metadata_log_entries", "snapshots", "refs", "manifests", "all_manifests",
    "entries", "all_entries", "files", "data_files", "delete_files", "all_files",
    "all_data_files", "all_delete_files", "partitions", "position_deletes",
)  # fmt: skip
MERGE_ON_READ = (
    "'write.delete.mode'='merge-on-read','write.update.mode'='merge-on-read',"
    "'write.merge.mode'='merge-on-read'"
)
COLUMNS = (
    "id bigint not null, city string comment 'where', x double, d decimal(9,2), "
    "ts timestamp_ntz, z timestamp, s struct<a:int,b:string>, l array<int>, m map<string,int>, "
    "y binary"
)
ROWS = """select cast(id as bigint) id,
    case when id % 3 = 0 then null when id % 3 = 1 then 'a' else 'b' end city,
    case when id % 5 = 0 then double('NaN') else id * 0.5 end x, cast(id as decimal(9,2)) d,
    timestamp_ntz'2024-01-02 03:04:05.678901' ts, timestamp'2024-01-02 03:04:05Z' z,
    named_struct('a', cast(id as int), 'b', 't') s, array(1, 2) l, map('k', 1) m, X'00ff' y"""
ONLY_JAVA_MARKS = "__metadata_col"
"""Marks columns that a query hides; here they are columns like the others."""


def plain_table(spark: Any, name: str, version: int, partitioned_by: str) -> None:
    """Two appends and two deletes: of rows where the version can, of files else."""
    mode = f", {MERGE_ON_READ}" if version > 1 else ""
    spark.sql(
        f"create table {name} ({COLUMNS}) using iceberg {partitioned_by} "
        f"tblproperties('format-version'='{version}'{mode})"
    )
    for start in (0, 20):
        spark.sql(f"{ROWS} from range({start}, {start + 20})").coalesce(1).writeTo(name).append()
    spark.sql(f"delete from {name} where id in (3, 4, 25)")
    spark.sql(f"delete from {name} where id in (0, 5)")
    spark.sql(f"delete from {name} where city is null")


def evolved_table(spark: Any, name: str, version: int) -> None:
    """A partition field removed and another added, a column promoted, one added and dropped."""
    mode = f", {MERGE_ON_READ}" if version > 1 else ""
    for statement in (
        f"create table {name} (id bigint, city string, x float) using iceberg partitioned by (city)"
        f" tblproperties('format-version'='{version}'{mode})",
        f"insert into {name} values (1,'a',0.5),(2,'b',1.5),(3,null,2.5)",
        f"delete from {name} where id=1",
        f"alter table {name} drop partition field city",
        f"alter table {name} add partition field bucket(4,id)",
        f"alter table {name} alter column x type double",
        f"alter table {name} add column note string",
        f"insert into {name} values (4,'a',0.5,'n'),(5,'b',1.5,null),(6,null,2.5,'q')",
        f"delete from {name} where id=5",
        f"alter table {name} drop column note",
        f"alter table {name} create tag t1",
        f"alter table {name} create branch b1 retain 7 days with snapshot retention 2 snapshots",
    ):
        spark.sql(statement)


IN_CI = {(2, "evolved"), (3, "partitioned"), (3, "empty")}
IN_INTEROP = {(1, "evolved"), (2, "unpartitioned")}
KINDS = [
    (version, kind)
    if (version, kind) in IN_CI
    else (only_in_interop if (version, kind) in IN_INTEROP else only_in_soak)((version, kind))
    for version in (1, 2, 3)
    for kind in ("unpartitioned", "partitioned", "evolved", "empty")
]


@pytest.fixture(scope="module", params=KINDS, ids=str)
def table(request: pytest.FixtureRequest, spark: Any, sql_lake: Lake) -> str:
    """The name of a table that the Java runtime made and changed."""
    version, kind = request.param
    name = f"meta_{kind}{version}"
    if kind == "evolved":
        evolved_table(spark, f"java_sql.db.{name}", version)
    elif kind == "empty":
        spark.sql(
            f"create table java_sql.db.{name} ({COLUMNS}) using iceberg partitioned by (city) "
            f"tblproperties('format-version'='{version}')"
        )
    else:
        spec = "partitioned by (city, days(ts))" if kind == "partitioned" else ""
        plain_table(spark, f"java_sql.db.{name}", version, spec)
    return name


@pytest.fixture(scope="module")
def of_java(spark: Any, table: str) -> Callable[[str], tuple[Any, list[str]]]:
    """The schema and the rows that the Java runtime gives for a metadata table of the table."""

    @cache
    def asked(name: str) -> tuple[Any, list[str]]:
        theirs = spark.table(f"java_sql.db.{table}.{name}")
        return schema_of(theirs, name), rows_of(theirs)

    return asked


def test_schemas_and_rows_are_those_of_java(sql_lake: Lake, table: str, of_java: Any) -> None:
    ours = sql_lake.load_table(f"db.{table}")
    for name in TABLES:
        found = getattr(ours.inspect.dataframes, name)()
        assert (schema_of(found, name), rows_of(found)) == of_java(name), name


@pytest.mark.interop
def test_rows_that_executors_decode_are_those_of_java(
    sql_lake: Lake, table: str, of_java: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for constant in ("DECODED_BYTES", "DECODED_MANIFESTS", "LISTED_SNAPSHOTS"):
        monkeypatch.setattr(costs, constant, 0)
    ours = sql_lake.load_table(f"db.{table}")
    for name in ("all_manifests", "all_entries", "files", "partitions", "position_deletes"):
        found = getattr(ours.inspect.dataframes, name)()
        assert (schema_of(found, name), rows_of(found)) == of_java(name), name


def schema_of(df: Any, name: str) -> Any:
    """Names, types, nullability and comments; without what only Java says (see the limits)."""
    schema = json.loads(df.schema.json())
    for field in schema["fields"]:
        field["metadata"].pop(ONLY_JAVA_MARKS, None)
        if name == "all_manifests" and field["name"] == "partition_summaries":
            # Java says that it is never NULL, but lists of version 1 may lack it.
            summary = field["type"]["elementType"]["fields"][1]
            assert summary["name"] == "contains_nan"
            summary["nullable"] = True
    return schema


def rows_of(df: Any) -> list[str]:
    """Rows as text in an order of their own."""
    return sorted(repr(_plain(row.asDict(recursive=True))) for row in df.collect())


def _plain(value: Any) -> Any:
    match value:
        case dict():
            # A map's entries have no order.
            return sorted(((key, _plain(item)) for key, item in value.items()), key=repr)
        case list():
            return [_plain(item) for item in value]
        case bytearray():
            return bytes(value).hex()
        case _:
            return value
