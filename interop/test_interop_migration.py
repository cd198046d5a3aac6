"""Files and tables that came in, beside the Java runtime: the same counts, the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from interop_engines import DuckDB
from pyiceberg.table import StaticTable

from ci_share import only_in_interop, only_in_soak
from frazil.spark.lake import Lake
from frazil.spark.table import Table

COLUMNS = (
    "id bigint, at timestamp, point struct<x: int, y: array<double>>, k string, n int, day date"
)
KEYS = ("k", "n", "day")
ROWS = """
    (1, TIMESTAMP '2024-01-01 10:00:00.123456', named_struct('x', 1, 'y', array(1.5D)),
        'hr', 1, DATE '2024-01-31'),
    (2, NULL, NULL, 'x:y / 50%', -2, DATE '1969-12-31'),
    (3, TIMESTAMP '1969-12-31 23:59:59.5', named_struct('x', NULL, 'y', array()), NULL, NULL, NULL),
    (4, TIMESTAMP '2024-02-01 00:00:00', NULL, 'hr', 7, DATE '2024-01-31')
"""


@pytest.fixture(scope="module")
def source(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder as Spark wrote it, with a file of INT96 timestamps, and a table over it."""
    folder = tmp_path_factory.mktemp("source") / "people"
    spark.sql(
        f"CREATE TABLE old_people ({COLUMNS}) USING parquet PARTITIONED BY ({', '.join(KEYS)}) "
        f"LOCATION '{folder}'"
    )
    rows = spark.sql(f"SELECT * FROM VALUES {ROWS} AS t(id, at, point, k, n, day)")
    rows.repartition(1).write.insertInto("old_people")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    rows.where("id = 1").selectExpr("5L", "at", "point", *KEYS).write.insertInto("old_people")
    spark.conf.unset("spark.sql.parquet.outputTimestampType")
    yield folder
    spark.sql("DROP TABLE IF EXISTS old_people")


def read(df: Any) -> list[str]:
    """All rows as text, whatever their order."""
    columns = ["id", "cast(at as string)", "point", *KEYS]
    return sorted(map(str, df.selectExpr(*columns).collect()))


def keys_by_others(duck: DuckDB, table: Table) -> list[list[tuple[Any, ...]]]:
    """Ids and partition columns as PyIceberg and DuckDB read them."""
    place = table.refresh().metadata_location
    columns = ("id", *KEYS)
    # Of tables of version 3 PyIceberg reads no timestamps in 96 bits.
    arrow = StaticTable.from_metadata(place).scan(selected_fields=columns).to_arrow()
    scan = f"iceberg_scan('{place.removeprefix('file://')}')"
    found = [arrow, duck.query(f"select {', '.join(columns)} from {scan}")]
    return [sorted(zip(*(t[c].to_pylist() for c in columns), strict=True)) for t in found]


def test_files_that_java_added_where_writers_put_theirs(
    spark: Any, sql_lake: Lake, tmp_path: Path
) -> None:
    """Their footers are read, whatever their names and places say: they have no ids."""
    table = sql_lake.create_table("db.inside", "id bigint, s string", location=f"file://{tmp_path}")
    folder = tmp_path / "data" / "old"
    folder.mkdir(parents=True)
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["a", "b"]})
    pq.write_table(rows, folder / "00000-3-8f0c0d5e-4a55-4d0c-9a50-5b1a5f3c7c11-0-00001.parquet")
    spark.sql(f"CALL java_sql.system.add_files('db.inside', 'parquet.`{folder}`')").collect()
    table.refresh()
    assert sorted(map(tuple, table.to_df().collect())) == [(1, "a"), (2, "b")]
    table.remove_properties("schema.name-mapping.default")
    assert sorted(map(tuple, table.to_df().collect())) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("version", [only_in_interop(1), only_in_soak(2), 3])
def test_added_files_are_those_of_java(
    spark: Any, sql_lake: Lake, duck: DuckDB, source: Path, version: int
) -> None:
    expected = read(spark.table("old_people"))
    files = []
    for who, run in (("frazil", sql_lake.call), ("java", spark.sql)):
        table = sql_lake.create_table(
            f"db.added_{version}_by_{who}", COLUMNS, partition_by=KEYS, format_version=version
        )
        first = run(
            f"CALL java_sql.system.add_files('{table.name}', 'parquet.`{source}`', map('k', 'hr'))"
        )
        assert first.schema.fieldNames() == ["added_files_count", "changed_partition_count"]
        counts = [first.first()[0]]
        counts.append(
            run(
                f"CALL java_sql.system.add_files('{table.name}', 'old_people',"
                " check_duplicate_files => false)"
            ).first()[0]
        )
        assert counts == [3, 5]
        table.refresh()
        table.rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id)
        table.delete("true")
        run(f"CALL java_sql.system.add_files('{table.name}', 'parquet.`{source}`')").collect()
        table.refresh()
        assert read(spark.table(f"java_sql.{table.name}")) == expected
        assert read(table.to_df()) == expected
        where = "k = 'hr' and n < 5 and at < '2030-01-01'"
        theirs = spark.sql(f"SELECT id FROM java_sql.{table.name} WHERE {where}")
        assert sorted(row.id for row in theirs.collect()) == [1, 5]
        entries = table.inspect.files().to_dicts()
        kept = ("file_path", "partition", "record_count", "file_size_in_bytes", "lower_bounds")
        found = [{name: each[name] for name in kept} for each in entries]
        for each in found:
            each["file_path"] = each["file_path"].replace("file:///", "file:/")
        for each, entry in zip(found, entries, strict=True):
            # Java counts nothing of timestamps in 96 bits.
            counts = {count["key"]: count["value"] for count in entry["null_value_counts"]}
            each["nulls"] = {key: count for key, count in counts.items() if key != 2}
        files.append(sorted(found, key=lambda each: each["file_path"]))
    assert files[0] == files[1]
    table = sql_lake.load_table(f"db.added_{version}_by_frazil")
    by_spark = sorted(tuple(r) for r in table.to_df().select("id", *KEYS).collect())
    assert keys_by_others(duck, table) == [by_spark, by_spark]


def test_java_changes_a_table_whose_files_came_in(spark: Any, sql_lake: Lake, source: Path) -> None:
    modes = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}
    table = sql_lake.create_table(
        "db.changed_by_java", COLUMNS, partition_by=KEYS, properties=modes, format_version=2
    )
    table.maintenance.add_files("old_people")
    spark.sql(f"DELETE FROM java_sql.{table.name} WHERE id = 1")
    table.refresh().update({"n": "n + 1"}, where="id = 4")
    spark.sql(f"CALL java_sql.system.rewrite_data_files('{table.name}',"
              " options => map('rewrite-all', 'true'))")  # fmt: skip
    table.refresh()
    ids = [(2, -2), (3, None), (4, 8), (5, 1)]
    for df in (table.to_df(), spark.table(f"java_sql.{table.name}")):
        assert sorted(tuple(row) for row in df.select("id", "n").collect()) == ids


def test_names_in_another_case_are_read_by_all(
    spark: Any, sql_lake: Lake, duck: DuckDB, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"ID": [1, 2], "Name": ["a", None]}), tmp_path / "a.parquet")
    table = sql_lake.create_table("db.cased", "id bigint, name string")
    table.maintenance.add_files(str(tmp_path), format="parquet")
    expected = [(1, "a"), (2, None)]
    assert sorted(tuple(row) for row in table.to_df().collect()) == expected
    assert sorted(tuple(r) for r in spark.table("java_sql.db.cased").collect()) == expected
    arrow = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
    assert sorted(zip(*arrow.to_pydict().values(), strict=True)) == expected


def test_reused_names_are_read_by_all(
    spark: Any, sql_lake: Lake, duck: DuckDB, tmp_path: Path
) -> None:
    """A mapping with fields of no name (rule 58), and with columns that the table never had."""
    path = tmp_path / "a.parquet"
    n = pa.array([10, 20], pa.int32())
    pq.write_table(pa.table({"id": [1, 2], "n": n, "extra": ["x", "y"]}), path)
    table = sql_lake.create_table("db.reused", "id bigint, n int")
    table.maintenance.add_files(str(tmp_path), format="parquet")
    with table.update_schema() as change:
        change.rename_column("n", "was_n")
    with table.update_schema() as change:
        change.add_column("n", "int")
        change.add_column("extra", "string")
    expected = [(1, 10, None, None), (2, 20, None, None)]
    assert sorted(map(tuple, table.to_df().collect())) == expected
    assert sorted(map(tuple, spark.table("java_sql.db.reused").collect())) == expected
    arrow = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
    assert sorted(zip(*arrow.to_pydict().values(), strict=True)) == expected
    found = duck.query(f"from iceberg_scan('{table.metadata_location.removeprefix('file://')}')")
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == expected


def test_snapshots_are_those_of_java_and_migrated_tables_are_read(
    spark: Any, sql_lake: Lake, duck: DuckDB, source: Path
) -> None:
    expected = read(spark.table("old_people"))
    results = []
    for who, run in (("frazil", sql_lake.call), ("java", spark.sql)):
        name = f"db.snapshot_by_{who}"
        result = run(
            f"CALL java_sql.system.snapshot('spark_catalog.default.old_people', 'java_sql.{name}',"
            " properties => map('format-version', '2'))"
        )
        results.append((result.schema, result.collect()))
        table = sql_lake.load_table(name)
        assert read(spark.table(f"java_sql.{name}")) == read(table.to_df()) == expected
        marks = {"snapshot": "true", "gc.enabled": "false"}
        assert marks.items() <= table.properties.items()
    assert results[0] == results[1]
    sql_lake.create_namespace_if_not_exists("default")
    [[count]] = sql_lake.call("CALL system.migrate('old_people')").collect()
    assert count == 5
    table = sql_lake.load_table("default.old_people")
    assert read(spark.table("java_sql.default.old_people")) == read(table.to_df()) == expected
    by_spark = sorted(tuple(r) for r in table.to_df().select("id", *KEYS).collect())
    assert keys_by_others(duck, table) == [by_spark, by_spark]
    spark.sql("DROP TABLE IF EXISTS old_people_BACKUP_")
