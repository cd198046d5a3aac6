"""Rows changed by Frazil: other engines read the same rows, and Java gives the same lineage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from interop_engines import DuckDB
from interop_rows import all_rows

from ci_share import only_in_interop, only_in_soak
from frazil.spark.lake import Lake
from frazil.spark.table import Table

DDL = "id bigint, v double, s struct<x: int, t: string>, p string"
ROWS = (
    "select id, id / 4 as v, named_struct('x', int(id), 't', concat('t', id)) as s, "
    "if(id % 5 = 0, null, concat('p', id % 3)) as p from range({}, {}, 1, 1)"
)
LATE = (
    "select id, -1D as v, named_struct('x', 0, 't', 'late') as s, 'p9' as p, id % 4 as kind "
    "from range(10, 70, 7, 1)"
)
MERGE = """
merge into {} as target using late as source on target.id = source.id
when matched and source.kind = 0 then delete
when matched and source.kind < 3 then update set v = source.v, s.t = source.s.t
when not matched and source.kind <> 1 then insert (id, v, s, p)
    values (source.id, source.v, source.s, source.p)
when not matched by source and target.id < 3 then update set v = target.v + 100
when not matched by source and target.p is null and target.id > 45 then delete
"""

Lineage = dict[int, tuple[int | None, int]]


def change_by_frazil(spark: Any, table: Table) -> None:
    table.delete("p = 'p1' and id < 6 or s.x = 33")
    table.update({"v": "v * 2", "p": "concat(p, '!')"}, "id % 9 = 4")
    merge_by_frazil(table)


def merge_by_frazil(table: Table) -> None:
    (
        table.merge(table.spark.table("late"), "target.id = source.id")
        .when_matched_delete(condition="source.kind = 0")
        .when_matched_update({"v": "source.v", "s.t": "source.s.t"}, condition="source.kind < 3")
        .when_not_matched_insert(
            {name: f"source.{name}" for name in ("id", "v", "s", "p")},
            condition="source.kind <> 1",
        )
        .when_not_matched_by_source_update({"v": "v + 100"}, condition="id < 3")
        .when_not_matched_by_source_delete(condition="p is null and id > 45")
        .execute()
    )


def change_by_java(spark: Any, name: str) -> None:
    spark.sql(f"delete from {name} where p = 'p1' and id < 6 or s.x = 33")
    spark.sql(f"update {name} set v = v * 2, p = concat(p, '!') where id % 9 = 4")
    spark.sql(MERGE.format(name))


@pytest.mark.parametrize(
    ("mode", "version"),
    [
        only_in_soak("copy-on-write", 2),
        only_in_interop("copy-on-write", 3),
        only_in_soak("merge-on-read", 2),
        ("merge-on-read", 3),
    ],
)
def test_other_engines_read_changed_rows(
    spark: Any, sql_lake: Lake, duck: DuckDB, mode: str, version: int
) -> None:
    """The same commands by Java on a table of its own leave the same rows."""
    short = mode.replace("-", "_")
    spark.sql(LATE).createOrReplaceTempView("late")
    tables = {}
    for who in ("frazil", "java"):
        tables[who] = sql_lake.create_table(
            f"db.changed_{short}_{version}_by_{who}",
            DDL,
            partition_by=["truncate(2, p)"],
            format_version=version,
            properties={f"write.{each}.mode": mode for each in ("delete", "update", "merge")},
        )
        for start in (0, 30):
            tables[who].append(spark.sql(ROWS.format(start, start + 30)))
    names = {who: f"java_sql.{'.'.join(table.identifier)}" for who, table in tables.items()}
    change_by_frazil(spark, tables["frazil"])
    change_by_java(spark, names["java"])

    expected = all_rows("java", spark, duck, tables["java"], names["java"])
    spark.sql(f"refresh table {names['frazil']}")
    for engine in ("frazil", "java", "duckdb", "pyiceberg"):
        found = all_rows(engine, spark, duck, tables["frazil"], names["frazil"])
        assert found == expected, engine
    if version == 3:
        lineages = {who: lineage(spark, name) for who, name in names.items()}
        assert lineages["frazil"] == lineages["java"]


def lineage(spark: Any, name: str) -> Lineage:
    """Of each row its id, and the commit of its last change; the ids of new rows are free."""
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    rows = spark.table(name).select(*columns).collect()
    assert len({row[1] for row in rows}) == len(rows)
    appended = 60
    return {row[0]: (row[1] if row[1] < appended else None, row[2]) for row in rows}


CLAUSES_FOR_EVERY_FILE = """
merge into {} as target using late as source on target.id = source.id
when matched and source.kind = 0 then delete
when matched then update set v = source.v
when not matched then insert (id, v, s, p)
    values (source.id, source.v, source.s, source.p)
when not matched by source and target.id % 2 = 0 then update set v = target.v + 100
when not matched by source and target.id % 15 = 1 then delete
"""
OF_WRITERS = (
    *("added-files-size", "removed-files-size", "total-files-size"),
    *("app-id", "app-name", "engine-name", "engine-version", "iceberg-version", "spark.app.id"),
)


def merge_every_file(table: Table) -> None:
    (
        table.merge(table.spark.table("late").drop("kind"), "target.id = source.id")
        .when_matched_delete(condition="source.id % 4 = 0")
        .when_matched_update({"v": "source.v"})
        .when_not_matched_insert_all()
        .when_not_matched_by_source_update({"v": "v + 100"}, condition="id % 2 = 0")
        .when_not_matched_by_source_delete(condition="id % 15 = 1")
        .execute()
    )


COMMANDS: dict[str, tuple[Callable[[Table], Any], str]] = {
    "delete": (lambda t: t.delete("v < 3 and p = 'p1'"), "delete from {} where v < 3 and p = 'p1'"),
    "update": (
        lambda t: t.update({"v": "v * 2"}, "id % 9 = 4"),
        "update {} set v = v * 2 where id % 9 = 4",
    ),
    "merge": (merge_every_file, CLAUSES_FOR_EVERY_FILE),
    "whole files": (lambda t: t.delete("p = 'p2'"), "delete from {} where p = 'p2'"),
}


@pytest.mark.interop
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_summaries_are_those_of_java(spark: Any, sql_lake: Lake, mode: str) -> None:
    """Each command on the same files, entry by entry, but for sizes and what names the writer.

    Java's `delete` and `update` tell their rows from Spark 4.2 on; here they are counted.
    """
    spark.sql(LATE).createOrReplaceTempView("late")
    found: dict[str, dict[str, dict[str, str]]] = {"frazil": {}, "java": {}}
    for who, summaries in found.items():
        table = sql_lake.create_table(
            f"db.summaries_{mode.replace('-', '_')}_by_{who}",
            DDL,
            partition_by=["p"],
            properties={f"write.{each}.mode": mode for each in ("delete", "update", "merge")},
        )
        for start in (0, 30):
            table.append(spark.sql(ROWS.format(start, start + 30)))
        first = table.current_snapshot.snapshot_id
        for command, (by_frazil, by_java) in COMMANDS.items():
            if who == "frazil":
                by_frazil(table)
            else:
                spark.sql(by_java.format(f"java_sql.{'.'.join(table.identifier)}"))
            held = table.refresh().current_snapshot.summary
            summaries[command] = {k: text for k, text in held.items() if k not in OF_WRITERS}
            table.rollback_to_snapshot(first)
    for command, changed in {"delete": ("deleted", 3), "update": ("updated", 7)}.items():
        what, count = changed
        written = int(found["java"][command].get("added-records", "0"))
        copied = written - (count if command == "update" else 0)
        found["java"][command] |= {
            f"spark.{command}.num-{what}-rows": str(count),
            f"spark.{command}.num-copied-rows": str(copied if mode == "copy-on-write" else 0),
        }
    found["java"]["whole files"] |= {
        "spark.delete.num-deleted-rows": found["java"]["whole files"]["deleted-records"],
        "spark.delete.num-copied-rows": "0",
    }
    assert found["frazil"] == found["java"]
