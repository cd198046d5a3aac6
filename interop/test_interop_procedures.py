"""CALL beside the Java runtime: the same parameters, the same columns, the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from frazil.spark.lake import Lake
from frazil.spark.procedures.call import PROCEDURES
from frazil.spark.table import Table

Ids: TypeAlias = list[int]


def java_parameters(spark: Any, name: str) -> list[tuple[str, str, bool]]:
    """Names, types, and whether they are required, of a procedure of the Java runtime."""
    jvm = spark.sparkContext._jvm
    namespace = spark.sparkContext._gateway.new_array(jvm.java.lang.String, 1)
    namespace[0] = "system"
    catalog = spark._jsparkSession.sessionState().catalogManager().catalog("java_sql")
    identifier = jvm.org.apache.spark.sql.connector.catalog.Identifier.of(namespace, name)
    bound = catalog.loadProcedure(identifier).bind(jvm.org.apache.spark.sql.types.StructType())
    return [
        (each.name(), each.dataType().simpleString(), each.defaultValue() is None)
        for each in bound.parameters()
    ]


@pytest.mark.parametrize("name", PROCEDURES)
def test_parameters_are_those_of_java(spark: Any, sql_lake: Lake, name: str) -> None:
    parameters = PROCEDURES[name].signature.parameters
    ours = [(each.name, str(each.kind), each.is_required) for each in parameters]
    assert ours == java_parameters(spark, name)


def appended(spark: Any, lake: Lake, name: str) -> Table:
    """Five appends, of which the last is staged, with deletes and a tag between."""
    table = lake.create_table(
        f"db.{name}",
        "id bigint, city string",
        format_version=2,
        properties={
            "write.delete.mode": "merge-on-read",
            "write.delete.granularity": "partition",
            "write.wap.enabled": "true",
        },
    )
    for start in range(0, 40, 10):
        append(spark, table, start)
    table.create_tag("v1", snapshot_id=table.metadata.snapshots[1].snapshot_id)
    for key in (12, 25):
        table.delete(f"id = {key}")
    table.create_branch("ahead")
    spark.conf.set("spark.wap.id", "staged")
    try:
        append(spark, table, 40)
    finally:
        spark.conf.unset("spark.wap.id")
    return table


def append(spark: Any, table: Table, start: int) -> None:
    """Append ten rows."""
    rows = spark.range(start, start + 10, 1, 1)
    table.append(rows.selectExpr("id", "concat('c', id % 3) as city"))


def compared(row: dict[str, Any], table: Table) -> dict[str, Any]:
    """A row of a result, with the snapshots of the table and their times by number.

    Bytes are those of another writer's files. Java does not count delete files that a commit drops
    since they apply to nothing any more.
    """
    snapshots = table.metadata.snapshots
    known = {each.snapshot_id: f"snapshot {n}" for n, each in enumerate(snapshots)}
    known |= {each.timestamp_ms: f"time {n}" for n, each in enumerate(snapshots)}
    return {
        name: known.get(value, value)
        for name, value in row.items()
        if not name.endswith("_bytes_count") and name != "removed_delete_files_count"
    }


def ids_of(table: Table) -> Ids:
    """The snapshots, oldest first."""
    return [each.snapshot_id for each in table.metadata.snapshots]


CASES: dict[str, Callable[[Ids], list[str]]] = {
    "rewrites": lambda ids: [
        "rewrite_data_files(table => '{t}', where => 'id > 1000')",
        "rewrite_position_delete_files('{t}', map('rewrite-all', 'true'))",
        "rewrite_data_files('{t}', options => map('min-input-files', '2'))",
        "rewrite_data_files(table => '{t}', sort_order => 'zorder(id, city)',"
        " options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))",
        "rewrite_manifests('{t}')",
    ],
    "expiry": lambda ids: [
        f"expire_snapshots('{{t}}', snapshot_ids => array({ids[0]}, {ids[2]}))",
        "expire_snapshots('{t}', older_than => TIMESTAMP '2099-01-01', stream_results => true,"
        " max_concurrent_deletes => 2, clean_expired_metadata => true)",
        "ancestors_of('{t}')",
    ],
    "snapshots": lambda ids: [
        "ancestors_of('{t}')",
        f"ancestors_of('{{t}}', {ids[2]})",
        f"rollback_to_snapshot('{{t}}', {ids[3]})",
        "set_current_snapshot('{t}', ref => 'v1')",
        "fast_forward('{t}', 'main', 'ahead')",
        "fast_forward('{t}', 'fresh', 'v1')",
        f"set_current_snapshot(snapshot_id => {ids[0]}, table => '{{t}}')",
        f"cherrypick_snapshot('{{t}}', {ids[1]})",
        "publish_changes('{t}', 'staged')",
        "ancestors_of('{t}')",
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_java(spark: Any, sql_lake: Lake, case: str) -> None:
    tables = [appended(spark, sql_lake, f"called_{case}_by_{who}") for who in ("frazil", "java")]
    if case == "expiry":
        for table in tables:
            table.compact(rewrite_all=True)
            table.remove_branch("ahead")
            table.remove_tag("v1")
    statements = [CASES[case](ids_of(table)) for table in tables]
    for ours, theirs in zip(*statements, strict=True):
        found = []
        for table, run, call in (
            (tables[0], sql_lake.call, ours),
            (tables[1], spark.sql, theirs),
        ):
            result = run(f"CALL java_sql.system.{call.format(t=table.name)}")
            rows = [row.asDict() for row in result.collect()]
            table.refresh()
            found.append((result.schema, [compared(row, table) for row in rows]))
        assert found[0] == found[1], ours
    read = [{row.id for row in table.to_df().select("id").collect()} for table in tables]
    assert read[0] == read[1]


def test_registered_tables_are_those_of_java(spark: Any, sql_lake: Lake) -> None:
    table = appended(spark, sql_lake, "called_source")
    results = []
    for who, run in (("frazil", sql_lake.call), ("java", spark.sql)):
        name = f"db.registered_by_{who}"
        result = run(f"CALL java_sql.system.register_table('{name}', '{table.metadata_location}')")
        results.append((result.schema, [tuple(row) for row in result.collect()]))
        assert sql_lake.load_table(name).count() == 38
    assert results[0] == results[1]
