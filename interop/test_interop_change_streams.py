"""Tables that changes were applied to: other engines read the same rows, and change them too."""

from __future__ import annotations

import random
from datetime import date
from typing import Any

import pytest
from interop_engines import DuckDB
from pyiceberg.table import StaticTable

from ci_share import only_in_interop, only_in_soak
from frazil.changes import ARRIVAL
from frazil.spark.lake import Lake
from frazil.spark.table import Table

DDL = "id bigint, name string, day date, part string"
CASES = {
    "unpartitioned": ([], "id", 2),
    "partitioned by the key": (["bucket(3, id)"], "id", 2),
    "global deletes": (["part"], "id", 2),
    "two keys": (["day"], ["id", "day"], 3),
    "text keys": (["truncate(2, name)"], "name", 3),
}


def _batch(r: random.Random, rows: dict[Any, Any], keys: Any, sequence: int) -> list[Any]:
    """Changes of one batch; the rows are changed alike."""
    made = []
    for step in range(30):
        number, day = r.randrange(15), date(2024, 1, 1 + r.randrange(2))
        row = (number, f"n{r.randrange(8)}", day, r.choice(["x", "y", None]))
        key = {"id": row[0], "name": row[1]}.get(str(keys), (row[0], row[2]))
        gone = r.random() < 0.3
        if gone:
            rows.pop(key, None)
        else:
            rows[key] = row
        made.append((*row, "d" if gone else "u", sequence + step))
    r.shuffle(made)
    return made


def _apply(table: Table, changes: list[Any], keys: Any, mode: Any = "equality-deletes") -> None:
    df = table.spark.createDataFrame(changes, f"{DDL}, op string, seq int")
    table.apply_changes(df, keys=keys, op="op", order_by="seq", mode=mode)


def _sorted(rows: Any) -> list[Any]:
    return sorted((tuple(row) for row in rows), key=repr)


def _agree(spark: Any, duck: DuckDB, table: Table, short: str, rows: dict[Any, Any]) -> None:
    """Frazil, Java and DuckDB read these rows."""
    expected = _sorted(rows.values())
    assert _sorted(table.scan().to_df().collect()) == expected
    spark.sql(f"refresh table java_sql.{short}")
    assert _sorted(spark.table(f"java_sql.{short}").collect()) == expected
    location = table.metadata_location.removeprefix("file://")
    assert _sorted(duck.run(f"select * from iceberg_scan('{location}')")) == expected


def _read_by_pyiceberg(table: Table) -> list[Any]:
    found = StaticTable.from_metadata(table.metadata_location).scan().to_arrow().to_pylist()
    return _sorted(row.values() for row in found)


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["equality-deletes", "merge"])
@pytest.mark.parametrize("case", CASES)
def test_engines_agree_at_every_tenth_snapshot(
    spark: Any, sql_lake: Lake, duck: DuckDB, case: str, mode: str
) -> None:
    """PyIceberg too, of merges: it refuses equality deletes."""
    partition_by, keys, version = CASES[case]
    short = f"db.long_{case.replace(' ', '_')}_{mode[:5]}"
    table = sql_lake.create_table(short, DDL, partition_by=partition_by, format_version=version)
    r, rows = random.Random(case), {}
    for number in range(30):
        _apply(table, _batch(r, rows, keys, number * 100), keys, mode)
        assert _sorted(table.scan().to_df().collect()) == _sorted(rows.values())
        if number % 10 == 9:
            _agree(spark, duck, table, short, rows)
            if mode == "merge" and version == 2:
                assert _read_by_pyiceberg(table) == _sorted(rows.values())


@pytest.mark.parametrize(
    "case",
    [
        only_in_soak("unpartitioned"),
        only_in_soak("partitioned by the key"),
        "global deletes",
        only_in_soak("two keys"),
        only_in_soak("text keys"),
    ],
)
def test_other_engines_read_what_changes_came_to(
    spark: Any, sql_lake: Lake, duck: DuckDB, case: str
) -> None:
    """After each batch, and after Java's own delete and compaction in between."""
    partition_by, keys, version = CASES[case]
    short = f"db.changes_{case.replace(' ', '_')}"
    name = f"java_sql.{short}"
    table = sql_lake.create_table(short, DDL, partition_by=partition_by, format_version=version)
    r, rows = random.Random(case), {}
    for number in range(4):
        _apply(table, _batch(r, rows, keys, number * 100), keys)
        _agree(spark, duck, table, short, rows)
        if number == 1:
            spark.sql(f"delete from {name} where id = 3")
            rows = {key: row for key, row in rows.items() if row[0] != 3}
        if number == 2:
            spark.sql(
                f"call java_sql.system.rewrite_data_files(table => '{short}', "
                "options => map('rewrite-all', 'true'))"
            )
        table.refresh()
    kinds = table.inspect.all_delete_files()["content"].to_list()
    assert 2 in kinds


@pytest.mark.parametrize(("version", "partition_by"), [only_in_interop(2, ["part"]), (3, [])])
def test_other_engines_read_changes_of_which_later_ones_supersede_rows_of_the_same_commit(
    spark: Any, sql_lake: Lake, duck: DuckDB, version: int, partition_by: list[str]
) -> None:
    """PyIceberg too, of the first commit of version 2: it has no equality deletes."""
    short = f"db.arriving_{version}"
    table = sql_lake.create_table(short, DDL, partition_by=partition_by, format_version=version)
    r, rows = random.Random(version), {}
    for number in range(2):
        changes = sorted(_batch(r, rows, "id", number * 100), key=lambda change: change[-1])
        df = table.spark.createDataFrame(changes, f"{DDL}, op string, seq int").coalesce(1)
        told = table.apply_changes(
            df.drop("seq"), keys="id", op="op", order_by=ARRIVAL, mode="equality-deletes"
        )
        assert told.mode == "equality-deletes"
        assert int(table.current_snapshot.summary["added-position-deletes"]) > 0
        _agree(spark, duck, table, short, rows)
        if number == 0 and version == 2:
            assert _read_by_pyiceberg(table) == _sorted(rows.values())


def test_pyiceberg_reads_what_merges_came_to(sql_lake: Lake) -> None:
    """It reads positions, and refuses equality deletes."""
    table = sql_lake.create_table("db.changes_merged", DDL, partition_by=["part"], format_version=2)
    r, rows = random.Random(1), {}
    for number in range(3):
        _apply(table, _batch(r, rows, "id", number * 100), "id", "merge")
        assert _read_by_pyiceberg(table) == _sorted(rows.values())
