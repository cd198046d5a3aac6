"""UUIDs beside the Java runtime, which takes both halves of their bounds for signed numbers.

That is apache/iceberg issue 14216. Bounds are in the order of bytes, as Parquet's statistics are.
"""

from __future__ import annotations

from typing import Any

import pytest

import frazil
from frazil.format import types as T
from frazil.spark.lake import Lake
from frazil.spark.table import Table

DIGITS = (0, 5, 7, 8, 12, 15)


def _uuid(digit: int) -> str:
    """UUIDs in the order of their first digit."""
    return f"{digit:x}79c3e09-677c-4bbd-a479-3f349cb785e7"


def _rows(spark: Any, *pairs: tuple[int, int]) -> Any:
    return spark.createDataFrame([(_uuid(n), x) for n, x in pairs], "k string, x int").coalesce(1)


def _table(lake: Lake, name: str, by: tuple[str, ...] = ()) -> Table:
    fields = (T.NestedField(1, "k", T.UUIDType(), True), T.NestedField(2, "x", T.IntegerType()))
    table = lake.create_table(
        f"db.{name}", frazil.Schema(fields), partition_by=by, format_version=2
    )
    table.append(_rows(lake.spark, *((n, n) for n in DIGITS)))
    return table


def _by_java(spark: Any, name: str, where: str = "true") -> list[int]:
    spark.sql(f"refresh table java_sql.db.{name}")
    return sorted(
        row.x for row in spark.sql(f"select x from java_sql.db.{name} where {where}").collect()
    )


@pytest.mark.parametrize(
    "by",
    [
        pytest.param((), id="plain", marks=pytest.mark.interop),
        pytest.param(("bucket(2, k)",), id="bucket"),
        pytest.param(("k",), id="identity", marks=pytest.mark.interop),
    ],
)
def test_java_applies_equality_deletes_by_a_uuid(spark: Any, sql_lake: Lake, by: Any) -> None:
    name = f"uuid_deletes_{len(by)}_{'identity' if by == ('k',) else 'other'}"
    table = _table(sql_lake, name, by)
    changes = _rows(spark, (0, 100), (8, 108), (15, 115))
    table.apply_changes(changes, keys=["k"], mode="equality-deletes")
    changes = _rows(spark, (5, 205), (12, 212))
    table.apply_changes(changes, keys=["k"], mode="equality-deletes")
    assert _by_java(spark, name) == [7, 100, 108, 115, 205, 212]


@pytest.mark.xfail(strict=True, reason="apache/iceberg issue 14216: Java compares signed halves")
@pytest.mark.parametrize("by", [(), ("k",)], ids=["statistics of files", "partition summaries"])
def test_java_finds_rows_by_a_uuid(spark: Any, sql_lake: Lake, by: Any) -> None:
    """Once it does, the page of types has a warning less to give."""
    name = f"uuid_filter_{len(by)}"
    _table(sql_lake, name, by)
    assert [_by_java(spark, name, f"k = '{_uuid(n)}'") for n in DIGITS] == [[n] for n in DIGITS]


def test_java_finds_rows_by_the_text_of_a_uuid(spark: Any, sql_lake: Lake) -> None:
    """It does not push that down: what the page of types advises."""
    _table(sql_lake, "uuid_text", ("k",))
    for n in DIGITS:
        assert _by_java(spark, "uuid_text", f"concat(k, '') = '{_uuid(n)}'") == [n]


@pytest.mark.xfail(strict=True, reason="apache/iceberg issue 14216: Java compares signed halves")
def test_java_finds_rows_of_its_own_files_by_a_uuid(spark: Any, sql_lake: Lake) -> None:
    table = _table(sql_lake, "uuid_own")
    table.delete("true")
    _rows(spark, *((n, n) for n in DIGITS)).writeTo("java_sql.db.uuid_own").append()
    found = [_by_java(spark, "uuid_own", f"k = '{_uuid(n)}'") for n in DIGITS]
    assert found == [[n] for n in DIGITS]
