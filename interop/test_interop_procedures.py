"""CALL beside the Java runtime: the same parameters, the same columns, the same results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from frazil.spark.lake import Lake
from frazil.spark.procedures.call import PROCEDURES
from frazil.spark.procedures.of_frazil import OF_FRAZIL
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


OWN = [procedure.signature.name for procedure in OF_FRAZIL]


@pytest.mark.parametrize("name", [name for name in PROCEDURES if name not in OWN])
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


# Java leaves a single manifest as it is, though it lists removed files, whose bounds stay then.
LEFT_BY_JAVA = {"rewrite_manifests('{t}')": 1}


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
        if ours in LEFT_BY_JAVA:
            [row] = found[1][1]
            row["rewritten_manifests_count"] += LEFT_BY_JAVA[ours]
        assert found[0] == found[1], ours
    read = [{row.id for row in table.to_df().select("id").collect()} for table in tables]
    assert read[0] == read[1]


def test_columns_of_procedures_are_those_of_java(
    spark: Any, sql_lake: Lake, tmp_path: Path
) -> None:
    table = appended(spark, sql_lake, "called_maintenance")
    parted = sql_lake.create_table("db.called_parted", "id bigint", partition_by="id")
    parted.append(spark.range(3))
    for number, call in enumerate(
        [
            f"rewrite_table_path('{table.name}', '{table.location}', 's3://new/t')",
            f"remove_orphan_files(table => '{table.name}', dry_run => true)",
            f"compute_table_stats('{table.name}', columns => array('id'))",
            f"compute_partition_stats('{parted.name}')",
        ]
    ):
        ours, theirs = (run(f"CALL java_sql.system.{call}") for run in (sql_lake.call, spark.sql))
        assert ours.schema == theirs.schema, number
        counts = [
            [v for row in result.collect() for v in row if not isinstance(v, str)]
            for result in (ours, theirs)
        ]
        assert counts[0] == counts[1], call


@pytest.mark.interop
def test_changelog_views_are_those_of_java(spark: Any, sql_lake: Lake) -> None:
    table = sql_lake.create_table("db.called_changes", "id bigint, name string", format_version=2)
    table.append(spark.createDataFrame([(1, "a"), (2, "b"), (3, "c")], "id bigint, name string"))
    start = table.metadata.current_snapshot_id
    middle = table.metadata.current_snapshot
    table.update({"name": "'B'"}, where="id = 2")
    table.delete("id = 3")
    table.append(spark.createDataFrame([(4, "d")], "id bigint, name string"))
    assert middle is not None
    for number, more in enumerate(
        [
            "",
            f", options => map('start-snapshot-id', '{start}')",
            f", options => map('start-timestamp', '{middle.timestamp_ms}')",
            f", options => map('end-snapshot-id', '{start}')",
            f", identifier_columns => array('id'), options => map('start-snapshot-id', '{start}')",
            ", net_changes => true",
        ]
    ):
        views = []
        for who, run in (("frazil", sql_lake.call), ("java", spark.sql)):
            name = f"changes_{number}_by_{who}"
            result = run(
                "CALL java_sql.system.create_changelog_view("
                f"table => 'db.called_changes', changelog_view => '{name}'{more})"
            )
            assert [tuple(row) for row in result.collect()] == [(name,)]
            view = spark.table(name)
            # Of a net change Java tells the last commit that copied the row.
            told = view.columns[:3] if "net_changes" in more else view.columns
            views.append((view.columns, sorted(map(str, view.select(*told).collect()))))
            spark.catalog.dropTempView(name)
        assert views[0] == views[1], more
    default = [
        run("CALL java_sql.system.create_changelog_view('db.called_changes')").first()[0]
        for run in (sql_lake.call, spark.sql)
    ]
    assert default[0] == default[1]
    spark.catalog.dropTempView("called_changes_changes")


def test_registered_tables_are_those_of_java(spark: Any, sql_lake: Lake) -> None:
    table = appended(spark, sql_lake, "called_source")
    results = []
    for who, run in (("frazil", sql_lake.call), ("java", spark.sql)):
        name = f"db.registered_by_{who}"
        result = run(f"CALL java_sql.system.register_table('{name}', '{table.metadata_location}')")
        results.append((result.schema, [tuple(row) for row in result.collect()]))
        assert sql_lake.load_table(name).count() == 38
    assert results[0] == results[1]
