"""Equality deletes by columns that were dropped since (SPEC rules 232, 233)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ci_share import only_in_soak
from frazil.errors import UnsupportedError
from frazil.format.changes import RemoveSchemas, Update
from frazil.format.manifests import Content, DataFile
from frazil.format.metadata import TableMetadata
from frazil.spark.lake import Lake
from frazil.spark.session.facts import temporary_settings
from frazil.table.commit.operation import MetadataOperation


def with_id(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})


def delete_keys(table: Any, ids: Sequence[int], column: pa.Field, keys: Any) -> None:
    """Commit an equality delete file of one top-level column."""
    path = Path(table.location.removeprefix("file://")) / "data" / f"keys-{uuid4()}.parquet"
    pq.write_table(pa.table([pa.array(keys, column.type)], schema=pa.schema([column])), path)
    file = DataFile(
        content=Content.EQUALITY_DELETES,
        file_path=f"file://{path}",
        record_count=len(keys),
        file_size_in_bytes=path.stat().st_size,
        equality_ids=tuple(ids),
    )
    table.files.row_delta(added_deletes=[file])


def rows(table: Any, **options: Any) -> list[Any]:
    found = table.scan(**options).to_df().collect()
    return sorted((row.asDict(recursive=True) for row in found), key=repr)


PLACES = (
    "select 1L id, named_struct('x', 1, 'at', named_struct('city', 'Oslo', 'n', 7)) s "
    "union all select 2L, named_struct('x', 2, 'at', named_struct('city', 'Lima', 'n', 8)) "
    "union all select 3L, named_struct('x', 3, 'at', null) "
    "union all select 4L, null"
)
DDL = "id bigint, s struct<x: int, at: struct<city: string, n: int>>"
# Ids as the table gives them: id 1, s 2, s.x 3, s.at 4, s.at.city 5, s.at.n 6.
CITY = with_id("s", pa.struct([with_id("at", pa.struct([with_id("city", pa.string(), 5)]), 4)]), 2)
X = with_id("s", pa.struct([with_id("x", pa.int32(), 3)]), 2)


def key(city: str | None) -> Any:
    return {"at": {"city": city}}


@pytest.mark.check
@pytest.mark.parametrize(
    "dropped", [["s.at.city"], only_in_soak(["s.at"]), ["s.at.city", "s.at"], only_in_soak(["s"])]
)
def test_a_field_dropped_from_a_struct(lake: Lake, spark: Any, dropped: list[str]) -> None:
    table = lake.create_table("db.t", DDL)
    assert [table.schema.find_field(name).field_id for name in ("s.x", "s.at", "s.at.city")] == [
        3, 4, 5,
    ]  # fmt: skip
    table.append(spark.sql(PLACES))
    # A NULL key takes the rows whose struct is NULL (rule 231).
    delete_keys(table, [5], CITY, [key("Oslo"), key(None)])
    before = table.current_snapshot.snapshot_id
    for name in dropped:
        with table.update_schema() as update:
            update.delete_column(name)
    left = {"id": 2}
    if dropped != ["s"]:
        left["s"] = {"x": 2}
        if dropped == ["s.at.city"]:
            left["s"]["at"] = {"n": 8}
    assert rows(table) == [left]
    assert rows(table, columns=["id"]) == [{"id": 2}]
    assert rows(table, snapshot_id=before) == [
        {"id": 2, "s": {"x": 2, "at": {"city": "Lima", "n": 8}}}
    ]
    found = table.changes(table.metadata.snapshots[0].snapshot_id)
    assert sorted(row["id"] for row in found.where("_change_type = 'DELETE'").collect()) == [
        1, 3, 4,
    ]  # fmt: skip


@pytest.mark.check
def test_a_name_that_was_given_again(lake: Lake, spark: Any) -> None:
    table = lake.create_table("db.t", DDL)
    table.append(spark.sql(PLACES))
    delete_keys(table, [3], X, [{"x": 2}])
    delete_keys(table, [5], CITY, [key("Oslo")])
    with table.update_schema() as update:
        update.delete_column("s.x")
        update.delete_column("s.at.city")
    with table.update_schema() as update:
        update.add_column("s.x", "string")
    table.append(spark.sql("select 5L id, named_struct('at', named_struct('n', 9), 'x', 'new') s"))
    assert [(row["id"], row["s"]) for row in rows(table)] == [
        (3, {"at": None, "x": None}),
        (4, None),
        (5, {"at": {"n": 9}, "x": "new"}),
    ]
    assert [row["id"] for row in rows(table, where="s.x = 'new'")] == [5]


@pytest.mark.check
def test_the_default_of_a_dropped_column_is_compared(lake: Lake, spark: Any) -> None:
    table = lake.create_table("db.t", DDL, format_version=3)
    table.append(spark.sql(PLACES))
    with table.update_schema() as update:
        update.add_column("kind", "int", default=7)
        update.add_column("s.level", "int", default=3)
    table.append(
        spark.sql(
            "select 5L id, named_struct('x', 5, 'at', null, 'level', 4) s, 8 kind "
            "union all select 6L, null, 7"
        )
    )
    level = table.schema.find_field("s.level").field_id
    kind = table.schema.find_field("kind").field_id
    delete_keys(
        table, [level], with_id("s", pa.struct([with_id("level", pa.int32(), level)]), 2),
        [{"level": 3}],
    )  # fmt: skip
    assert [row["id"] for row in rows(table)] == [4, 5, 6]
    with table.update_schema() as update:
        update.delete_column("s.level")
    assert [row["id"] for row in rows(table)] == [4, 5, 6]
    delete_keys(table, [kind], with_id("kind", pa.int32(), kind), [7])
    assert [row["id"] for row in rows(table)] == [5]
    with table.update_schema() as update:
        update.delete_column("kind")
    assert [row["id"] for row in rows(table)] == [5]


def test_a_key_in_a_list_is_refused(lake: Lake, spark: Any) -> None:
    table = lake.create_table("db.t", "id bigint, l array<struct<x: int>>")
    table.append(spark.sql("select 1L id, array(named_struct('x', 1)) l"))
    inner = table.schema.find_field("l.element.x").field_id
    delete_keys(table, [inner], with_id("x", pa.int32(), inner), [1])
    with pytest.raises(UnsupportedError, match=r"'l.element.x', which is in a list"):
        rows(table)


def forget_schemas(table: Any) -> None:
    """Remove all schemas but the current one, as other engines do."""

    def updates(base: TableMetadata) -> list[Update]:
        return [RemoveSchemas(tuple(base.schemas_by_id.keys() - {base.current_schema_id}))]

    table.port.run(MetadataOperation(updates))
    assert len(table.refresh().metadata.schemas) == 1


FORGOTTEN = {
    # A column's type, the types of its values in two delete files, and how they are compared.
    "bigint": ("bigint", [pa.int64()], "1"),
    "promoted": ("int", [pa.int32(), pa.int64()], "1"),
    "string": ("string", [pa.string()], "'gone'"),
    "decimal": ("decimal(9, 2)", [pa.decimal128(9, 2)], "1.5"),
    "timestamp": ("timestamp", [pa.timestamp("us", "UTC")], "timestamp'2024-01-01 00:00:00'"),
    "date": ("date", [pa.date32()], "date'2024-01-01'"),
    "double": ("double", [pa.float64()], "1.5"),
    "binary": ("binary", [pa.binary()], "X'00FF'"),
}


@pytest.mark.check
@pytest.mark.parametrize(
    "case", [c if c in ("promoted", "timestamp") else only_in_soak(c) for c in FORGOTTEN]
)
def test_a_key_of_no_schema_has_the_type_of_its_file(lake: Lake, spark: Any, case: str) -> None:
    kind, stored, value = FORGOTTEN[case]
    table = lake.create_table("db.t", f"data string, k {kind}")
    table.append(spark.sql(f"select 'gone' data, cast({value} as {kind}) k union all "
                           f"select 'keep', null").coalesce(1))  # fmt: skip
    [[key]] = spark.sql(f"select cast({value} as {kind})").collect()
    for one in stored:
        if one == pa.int64() and kind == "int":
            with table.update_schema() as update:
                update.update_column("k", "bigint")
        zoned = key.replace(tzinfo=UTC) if isinstance(key, datetime) else key
        delete_keys(table, [2], with_id("k", one, 2), [zoned])
    with table.update_schema() as update:
        update.delete_column("k")
    table.append(spark.sql("select 'new' data"))
    forget_schemas(table)
    for reading in ("join", "resolve"):
        with temporary_settings(spark, {"frazil.read.equality-deletes": reading}):
            assert rows(lake.load_table("db.t")) == [{"data": "keep"}, {"data": "new"}]
    if case == "promoted":
        table.convert_equality_deletes()
        table.compact(rewrite_all=True)
        assert rows(table.refresh()) == [{"data": "keep"}, {"data": "new"}]


def test_a_nested_key_of_no_schema(lake: Lake, spark: Any) -> None:
    table = lake.create_table("db.t", DDL)
    table.append(spark.sql(PLACES))
    delete_keys(table, [5], CITY, [key("Oslo")])
    for name in ("s.at.city", "s.at"):
        with table.update_schema() as update:
            update.delete_column(name)
    forget_schemas(table)
    assert [row["id"] for row in rows(table)] == [2, 3, 4]
    with table.update_schema() as update:
        update.delete_column("s")
    forget_schemas(table)
    assert [row["id"] for row in rows(table)] == [2, 3, 4]


def test_a_default_that_is_forgotten_is_not_guessed(lake: Lake, spark: Any) -> None:
    """Rows from before the column had its default value there, which its schema told."""
    table = lake.create_table("db.t", "id bigint", format_version=3)
    table.append(spark.range(2))
    with table.update_schema() as update:
        update.add_column("kind", "int", default=7)
    table.append(spark.sql("select 2L id, 8 kind"))
    delete_keys(table, [2], with_id("kind", pa.int32(), 2), [8])
    with table.update_schema() as update:
        update.delete_column("kind")
    assert [row["id"] for row in rows(table)] == [0, 1]
    forget_schemas(table)
    with pytest.raises(UnsupportedError, match=r"by default cannot be told"):
        rows(lake.load_table("db.t"))
