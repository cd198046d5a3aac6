"""Maintenance beside the Java runtime: the same tables and counts; every engine reads the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from interop_engines import DuckDB
from pyiceberg.table import StaticTable

from ci_share import one_of_each, only_in_interop, only_in_soak
from frazil.format.manifests import Content, DataFile
from frazil.spark.lake import Lake
from frazil.spark.table import Table

ROW = ("id", "cast(id % 3 as int) as part", "concat('name-', id) as name")
DDL = "id bigint, part int, name string"
OPTIONS = [
    {},
    {"min-input-files": "2"},
    {"rewrite-all": "true"},
    {"rewrite-all": "true", "max-file-group-input-files": "2"},
    {"min-input-files": "2", "max-files-to-rewrite": "4"},
]


def small_files(
    spark: Any, lake: Lake, name: str, *, version: int, by: tuple[str, ...], **properties: str
) -> Table:
    """Six appends of 30 rows each."""
    table = lake.create_table(
        f"db.{name}",
        DDL,
        format_version=version,
        partition_by=by,
        properties={"write.delete.mode": "merge-on-read", **properties},
    )
    for start in range(0, 180, 30):
        table.append(spark.range(start, start + 30, 1, 1).selectExpr(*ROW))
    return table


def call(spark: Any, procedure: str, name: str, options: dict[str, str]) -> dict[str, Any]:
    """The one row that a procedure of the Java runtime gives."""
    pairs = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
    text = f", options => map({pairs})" if options else ""
    [row] = spark.sql(f"call java_sql.system.{procedure}(table => 'db.{name}'{text})").collect()
    return row.asDict()


def bytes_of(table: Table, snapshot_ids: tuple[int, ...]) -> int:
    """The bytes of the data files that snapshots removed, as their summaries say."""
    summaries = [table.metadata.snapshot_by_id(each).summary or {} for each in snapshot_ids]
    return sum(int(summary["removed-files-size"]) for summary in summaries)


def ids(spark: Any, duck: DuckDB, table: Table, name: str) -> list[set[int]]:
    """The ids that Frazil, Java, DuckDB and PyIceberg read."""
    table.refresh()
    spark.sql(f"refresh table java_sql.db.{name}")
    path = table.metadata_location.removeprefix("file://")
    found = [
        {row.id for row in table.to_df().select("id").collect()},
        {row.id for row in spark.table(f"java_sql.db.{name}").select("id").collect()},
        set(duck.query(f"select id from iceberg_scan('{path}')")["id"].to_pylist()),
    ]
    if table.format_version < 3:
        read = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
        found.append(set(read["id"].to_pylist()))
    return found


# The first one guards main.
IN_TURN = [
    case if place == 0 or case.marks else only_in_interop(*case.values)
    for place, case in enumerate(one_of_each(OPTIONS, [(2, ("part",)), (3, ())]))
]


@pytest.mark.parametrize(("options", "kind"), IN_TURN)
def test_data_files_are_rewritten_as_by_java(
    spark: Any,
    sql_lake: Lake,
    duck: DuckDB,
    options: dict[str, str],
    kind: tuple[int, tuple[str, ...]],
) -> None:
    version, by = kind
    number = OPTIONS.index(options)
    names = [f"compacted_{who}_{version}_{number}" for who in ("frazil", "java")]
    ours, _ = (small_files(spark, sql_lake, n, version=version, by=by) for n in names)
    result = ours.compact(options=options)
    java = call(spark, "rewrite_data_files", names[1], options)
    assert {key: getattr(result, key) for key in java} == {
        **java,
        "rewritten_bytes_count": bytes_of(ours, result.snapshot_ids),
    }
    if number != 4:
        # Which four of the files are taken is not the same.
        assert result.rewritten_bytes_count == java["rewritten_bytes_count"]
    for found in ids(spark, duck, ours, names[0]):
        assert found == set(range(180))


@pytest.mark.parametrize("version", [only_in_soak(2), 3])
def test_java_and_duckdb_find_nan_and_both_zeros_in_copied_files(
    spark: Any, sql_lake: Lake, duck: DuckDB, version: int
) -> None:
    """For Spark NaN is the largest double, and so it is for DuckDB."""
    name, ddl, nan = f"copied_nan_{version}", "id bigint, d double, n double", float("nan")
    values = [0.0, -0.0, nan, 7.5, None, 1.0, float("inf"), -2.0]
    rows = spark.createDataFrame([(n, d, nan) for n, d in enumerate(values)], ddl)
    table = sql_lake.create_table(f"db.{name}", ddl, format_version=version)
    for part in range(2):
        table.append(rows.where(f"id % 2 = {part}").coalesce(1))
    assert table.compact(rewrite_all=True).added_data_files_count == 1
    spark.sql(f"refresh table java_sql.db.{name}")
    path = table.refresh().metadata_location.removeprefix("file://")
    for text in ("{} > 5", "{} = double('NaN')", "{} <= 1", "{} != 1", "isnan({})", "{} = 0"):
        for column in "dn":
            where = text.format(column)
            found = [
                {row.id for row in read.where(where).collect()}
                for read in (rows, table.scan(where).to_df(), spark.table(f"java_sql.db.{name}"))
            ]
            of_duck = where.replace("double('NaN')", "'NaN'::double")
            scanned = duck.query(f"select id from iceberg_scan('{path}') where {of_duck}")
            assert [*found, set(scanned["id"].to_pylist())] == [found[0]] * 4, where


@pytest.mark.parametrize(
    ("strategy", "version"),
    [
        ("zorder", 3),
        only_in_interop("sort", 2),
        only_in_interop("hilbert", 2),
        *(only_in_soak(*each) for each in (("sort", 3), ("zorder", 2), ("hilbert", 3))),
    ],
)
def test_other_engines_read_compacted_tables_with_deletes(
    spark: Any, sql_lake: Lake, duck: DuckDB, tmp_path: Path, version: int, strategy: str
) -> None:
    """Files whose row groups several tasks wrote, and that were joined."""
    name = f"compacted_{strategy}_{version}"
    by_row_groups = {"write.parquet.row-group-size-bytes": "3000"}
    table = small_files(spark, sql_lake, name, version=version, by=("part",), **by_row_groups)
    table.delete("id % 10 = 3")
    commit_equality_delete(table, tmp_path, [20, 21, 22])
    arguments: Any = {"sort_order": "name desc"}
    if strategy != "sort":
        arguments = {"columns": ["id", "name"]}
    table.compact(strategy=strategy, rewrite_all=True, remove_dangling_deletes=True, **arguments)
    expected = {n for n in range(180) if n % 10 != 3} - {20, 21, 22}
    for found in ids(spark, duck, table, name):
        assert found == expected
    assert len(table.inspect.delete_files()) == 0
    assert all(len(each) > 1 for each in table.inspect.data_files()["split_offsets"])


def commit_equality_delete(table: Table, folder: Path, keys: list[int]) -> None:
    """Delete ids in every partition."""
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    rows = pa.table([pa.array(keys, pa.int64())], schema=pa.schema([field]))
    partitions = [(part,) for part in range(3)] if table.spec.fields else [()]
    deletes = []
    for number, partition in enumerate(partitions):
        path = folder / f"keys-{number}.parquet"
        pq.write_table(rows, path)
        deletes.append(
            DataFile(
                content=Content.EQUALITY_DELETES,
                file_path=f"file://{path}",
                record_count=len(keys),
                file_size_in_bytes=path.stat().st_size,
                equality_ids=(1,),
                spec_id=table.spec.spec_id,
                partition=partition,
            )
        )
    table.files.row_delta(added_deletes=deletes)


@pytest.mark.parametrize("version", [only_in_interop(2), 3])
def test_java_reads_converted_deletes_and_compacts_them(
    spark: Any, sql_lake: Lake, duck: DuckDB, tmp_path: Path, version: int
) -> None:
    name = f"converted_{version}"
    table = small_files(spark, sql_lake, name, version=version, by=())
    commit_equality_delete(table, tmp_path, [5, 40, 41, 179, 1000])
    assert table.convert_equality_deletes().deleted_rows_count == 4
    expected = set(range(180)) - {5, 40, 41, 179}
    for found in ids(spark, duck, table, name):
        assert found == expected
    java = call(spark, "rewrite_data_files", name, {"rewrite-all": "true"})
    assert java["rewritten_data_files_count"] == 6
    for found in ids(spark, duck, table, name):
        assert found == expected


@pytest.mark.interop
def test_position_deletes_are_rewritten_as_by_java(
    spark: Any, sql_lake: Lake, duck: DuckDB
) -> None:
    names = ["deletes_by_frazil", "deletes_by_java"]
    tables = []
    for name in names:
        table = small_files(
            spark,
            sql_lake,
            name,
            version=2,
            by=("part",),
            **{"write.delete.granularity": "partition"},
        )
        for number in range(0, 60, 3):
            table.delete(f"id = {number}")
        table.delete("id in (1, 31, 61)")
        tables.append(table)
    java = call(spark, "rewrite_position_delete_files", names[1], {})
    result = tables[0].maintenance.rewrite_position_deletes()
    counts = ("rewritten_delete_files_count", "added_delete_files_count")
    assert {key: getattr(result, key) for key in counts} == {key: java[key] for key in counts}
    for found in ids(spark, duck, tables[0], names[0]):
        assert found == set(range(180)) - {*range(0, 60, 3), 1, 31, 61}


@pytest.mark.parametrize("version", [2, only_in_soak(3)])
def test_manifests_are_rewritten_as_by_java(
    spark: Any, sql_lake: Lake, duck: DuckDB, version: int
) -> None:
    names = [f"manifests_{who}_{version}" for who in ("frazil", "java")]
    tables = [
        small_files(
            spark,
            sql_lake,
            name,
            version=version,
            by=("part",),
            **{"commit.manifest-merge.enabled": "false"},
        )
        for name in names
    ]
    for table in tables:
        table.delete("id = 4")
        table.delete("id = 5")
    java = call(spark, "rewrite_manifests", names[1], {})
    result = tables[0].maintenance.rewrite_manifests()
    assert {key: getattr(result, key) for key in java} == java
    for found in ids(spark, duck, tables[0], names[0]):
        assert found == set(range(180)) - {4, 5}
