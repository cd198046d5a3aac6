"""Tables that two writers changed at once: every engine reads the rows of a plain list."""

from __future__ import annotations

from typing import Any

import pytest
from interop_engines import DuckDB
from pyiceberg.table import StaticTable

from ci_share import one_in, only_in_interop
from frazil.spark.lake import Lake
from outcome_commands import Tables, run_both
from outcome_rules import (
    COPIED,
    LAST_DELETED,
    MARKED,
    SAME_FILE,
    SERIALIZABLE,
    SNAPSHOT,
    STANDS,
    Pair,
    outcome,
    rows_after,
)

CASES = {
    "marks in a compacted file, by ids": Pair(
        "update", "sort", SAME_FILE, 3, MARKED, None, SERIALIZABLE
    ),
    "marks in a copy": Pair("delete", "update", SAME_FILE, 3, MARKED, COPIED, SNAPSHOT),
    "marks in a compacted file, by order": Pair(
        "merge", "binpack", SAME_FILE, 2, MARKED, None, SERIALIZABLE
    ),
    "a compaction beside marks, by ids": Pair("zorder", "update", SAME_FILE, 3, None, MARKED, None),
    "a copy beside marks": Pair("update", "delete", SAME_FILE, 3, COPIED, MARKED, SERIALIZABLE),
    "delete files beside each other": Pair(
        "update", "delete", SAME_FILE, 2, MARKED, MARKED, SERIALIZABLE
    ),
    "a compaction beside marks, by order": Pair(
        "binpack", "delete", SAME_FILE, 2, None, MARKED, None
    ),
    "equality deletes of other keys, version 2": Pair(
        "update", "changes", SAME_FILE, 2, MARKED, None, SERIALIZABLE
    ),
    "joined vectors": Pair("upsert", "update", SAME_FILE, 3, MARKED, MARKED, SERIALIZABLE),
    "a conversion beside marks": Pair("conversion", "delete", SAME_FILE, 3, None, MARKED, None),
    "equality deletes of other keys, version 3": Pair(
        "update", "arrival", SAME_FILE, 3, COPIED, None, SERIALIZABLE
    ),
    "vectors put together beside marks": Pair(
        "positions", "delete", SAME_FILE, 3, None, MARKED, None
    ),
}


@pytest.fixture(scope="module")
def tables(sql_lake: Lake) -> Tables:
    return Tables(sql_lake, prefix="db.outcomes_")


def read(engine: str, spark: Any, duck: DuckDB, table: Any) -> list[tuple[Any, ...]]:
    """The rows by an engine."""
    match engine:
        case "frazil":
            rows = table.to_df().collect()
        case "java":
            rows = spark.table(f"java_sql.{'.'.join(table.identifier)}").collect()
        case "duckdb":
            path = table.metadata_location.removeprefix("file://")
            rows = duck.run(f"select * from iceberg_scan('{path}')")
        case _:
            found = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
            rows = [row.values() for row in found.to_pylist()]
    return sorted(tuple(row) for row in rows)


IN_INTEROP = (
    "marks in a compacted file, by order",
    "a compaction beside marks, by order",
    "equality deletes of other keys, version 3",
)


@pytest.mark.parametrize(
    "case",
    [only_in_interop(case) if case in IN_INTEROP else case for case in one_in(2, list(CASES))],
)
def test_engines_read_what_two_writers_left(
    spark: Any, sql_lake: Lake, duck: DuckDB, tables: Tables, case: str
) -> None:
    pair = CASES[case]
    assert outcome(pair) == STANDS
    table = tables.fresh(pair)
    name = f"java_sql.{'.'.join(table.identifier)}"
    _, error = run_both(sql_lake, table, pair)
    assert error is None
    table.refresh()
    expected = rows_after(pair, STANDS)
    # 2 is the content of equality deletes, which PyIceberg refuses.
    by_key = 2 in table.inspect.delete_files()["content"].to_list()
    spark.sql(f"refresh table {name}")
    for engine in ("frazil", "java", "duckdb", *(() if by_key else ("pyiceberg",))):
        assert read(engine, spark, duck, table) == expected, engine
    if pair.version == 3:
        ours = table.scan(columns=["id", "_row_id"]).to_df().collect()
        theirs = spark.table(name).select("id", "_row_id").collect()
        assert sorted(ours) == sorted(theirs)
    # And Java goes on with the deletes that are there.
    spark.sql(f"delete from {name} where id in ({', '.join(map(str, LAST_DELETED))})")
    left = [row for row in expected if row[0] not in LAST_DELETED]
    for engine in ("frazil", "java", "duckdb"):
        assert read(engine, spark, duck, table.refresh()) == left, engine
