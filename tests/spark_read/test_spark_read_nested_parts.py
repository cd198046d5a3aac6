"""Queries that take parts of nested columns, which Spark then finds by name (SPEC rule 52)."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame

from frazil.spark.lake import Lake

DDL = """id bigint, s struct<x: int, y: int, at: struct<u: int, v: int>>,
    l array<struct<a: int, b: int>>, m map<string, struct<a: int, b: int>>"""


def row(number: int, table: Any) -> str:
    """One row; every value tells its row and, by its last digit, its place."""
    s, at, items, pairs = (
        [field.name for field in table.schema.find_field(name).field_type.fields]
        for name in ("s", "s.at", "l.element", "m.value")
    )
    return (
        f"select {number}L id, named_struct('{s[0]}', {number}1, '{s[1]}', {number}2, 'at', "
        f"named_struct('{at[0]}', {number}3, '{at[1]}', {number}4)) s, "
        f"array(named_struct('{items[0]}', {number}5, '{items[1]}', {number}6)) l, "
        f"map('k', named_struct('{pairs[0]}', {number}7, '{pairs[1]}', {number}8)) m"
    )


def values(df: DataFrame, *expressions: str) -> list[list[Any]]:
    """The values of each expression alone, and then of all together, sorted."""
    alone = [df.selectExpr(f"{n} as n", f"{e} as v") for n, e in enumerate(expressions)]
    found = reduce(DataFrame.unionAll, alone).collect()
    together = df.selectExpr(*(f"{e} as v{n}" for n, e in enumerate(expressions))).collect()
    columns = [sorted(r["v"] for r in found if r["n"] == n) for n in range(len(expressions))]
    assert [sorted(r[f"v{n}"] for r in together) for n in range(len(expressions))] == columns
    return columns


PARTS = ("s.{0}", "s.at.{1}", "l.{2}[0]", "m['k'].{3}")


@pytest.mark.check
@pytest.mark.parametrize("checked", [64, 1], ids=["every footer", "a sample"])
def test_parts_of_renamed_columns(
    lake: Lake, spark: Any, monkeypatch: pytest.MonkeyPatch, checked: int
) -> None:
    monkeypatch.setattr("frazil.spark.files.file_layouts.CHECKED_FILES", checked)
    table = lake.create_table("db.t", DDL)
    table.append(spark.sql(row(1, table)))
    before = [part.format("x", "u", "a", "a") for part in PARTS]
    assert values(table.to_df(), *before) == [[11], [13], [15], [17]]
    with table.update_schema() as update:
        update.rename_column("s.x", "z")
        update.rename_column("s.at.u", "w")
        update.rename_column("l.element.a", "c")
        update.rename_column("m.value.a", "c")
    table.append(spark.sql(row(2, table)))
    inner = [part.format("z", "w", "c", "c") for part in PARTS]
    assert values(table.to_df(), *inner) == [[11, 21], [13, 23], [15, 25], [17, 27]]
    for old, new in (("s.at", "place"), ("s", "t"), ("l", "items"), ("m", "pairs")):
        with table.update_schema() as update:
            update.rename_column(old, new)
    outer = ["t.z", "t.place.w", "items.c[0]", "pairs['k'].c"]
    found = table.to_df()
    assert values(found, *outer) == [[11, 21], [13, 23], [15, 25], [17, 27]]
    assert [r[0] for r in found.where("t.place.w = 13 and t.y = 12").select("id").collect()] == [1]
    assert found.where("t.z is null").count() == 0
    assert values(table.scan(columns=["t.z", "items"]).to_df(), "t.z", "items.b[0]") == [
        [11, 21], [16, 26],
    ]  # fmt: skip


def test_parts_under_names_that_were_others(lake: Lake, spark: Any) -> None:
    table = lake.create_table("db.t", DDL)
    table.append(spark.sql(row(1, table)))
    for old, new in (("x", "tmp"), ("y", "x"), ("tmp", "y")):
        with table.update_schema() as update:
            update.rename_column(f"s.{old}", new)
    with table.update_schema() as update:
        update.delete_column("l.element.a")
    with table.update_schema() as update:
        update.add_column("l.element.a", "int")
    found = table.to_df()
    assert values(found, "s.x", "s.y", "coalesce(l.a[0], 0)", "l.b[0]") == [[12], [11], [0], [16]]
    assert found.where("s.x = 12").count() == 1
    assert values(table.scan(columns=["s.x", "_pos"]).to_df(), "s.x", "_pos") == [[12], [0]]


def test_parts_alone_are_read_where_every_file_has_the_names(lake: Lake, spark: Any) -> None:
    """Reading less is what Spark cuts a schema down for."""
    table = lake.create_table("db.t", DDL)
    table.append(spark.sql(row(1, table)))
    files = table.scan().to_df().select("s.at.u")
    plan = files._jdf.queryExecution().executedPlan().toString()
    assert "ReadSchema: struct<s:struct<at:struct<u:int>>>" in plan
