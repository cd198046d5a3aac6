"""Every kind of write and read with executors in their own processes.

local_cluster.py <folder> <mode> <version> <executors, 1 or 2> <kept up or both>: prints
`right` at the end.
"""

import os
import sys
from collections import Counter

from pyspark.sql import SparkSession

import frazil
from frazil.spark.session import costs

EXECUTORS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=128m"
DDL = "id bigint not null, p string, v string"


def session(folder, executors):
    """Two cores of executors, each a JVM of its own."""
    return (
        SparkSession.builder.master(f"local-cluster[{executors},{2 // executors},1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        # Compiling a query would take longer than running it.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        # Executors run each query once or twice: compiling it further costs more than it saves.
        .config("spark.executor.extraJavaOptions", EXECUTORS)
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .getOrCreate()
    )


def frame(spark, rows):
    return spark.createDataFrame(list(rows), DDL)


def shown(table):
    return sorted(tuple(row) for row in table.to_df().collect())


def check(table, rows, step):
    """The rows, and at some steps those that a filter and a count find."""
    expected = sorted(rows.values())
    assert shown(table) == expected, step
    if step in ("delete", "merge", "the other mode"):
        assert table.scan(where="p = 'b'").count() == sum(row[1] == "b" for row in expected), step


def changed(spark, lake, mode, version):
    """Each kind of change, one after the other."""
    modes = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    table = lake.create_table(
        f"db.{mode.replace('-', '_')}_{version}",
        DDL,
        partition_by=["p"],
        format_version=version,
        properties=modes,
    )
    rows = {n: (n, "abc"[n % 3], f"v{n}") for n in range(300)}
    table.append(frame(spark, rows.values()))
    assert shown(table) == sorted(rows.values()), "append"
    table.delete("id % 10 = 3 or v = 'v5'")
    rows = {n: row for n, row in rows.items() if n % 10 != 3 and n != 5}
    check(table, rows, "delete")
    table.update({"v": "upper(v)", "p": "'b'"}, "id between 100 and 120")
    rows.update({n: (n, "b", f"V{n}") for n in rows if 100 <= n <= 120})
    check(table, rows, "update")
    source = [(n, "c", "merged") for n in range(290, 310)]
    (
        table.merge(frame(spark, source), on="target.id = source.id")
        .when_matched_delete(condition="target.id = 299")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    rows.update({row[0]: row for row in source})
    del rows[299]
    check(table, rows, "merge")
    new = [(7, "a", "upserted"), (1000, "a", "upserted")]
    table.upsert(frame(spark, new), keys="id")
    rows.update({row[0]: row for row in new})
    table.overwrite(frame(spark, [(2000, "a", "over")]), where="p = 'a'")
    rows = {n: row for n, row in rows.items() if row[1] != "a"} | {2000: (2000, "a", "over")}
    check(table, rows, "overwrite")
    if mode == "merge-on-read":
        # More deletes than the driver writes itself.
        costs.DELETED_ROWS = 0
        done = table.delete("id % 7 = 1")
        costs.DELETED_ROWS = 16_000_000
        assert done.deletes_added > 0, done
        rows = {n: row for n, row in rows.items() if n % 7 != 1}
        check(table, rows, "many deletes")
    # The same commands on files that have deletes, the other way.
    other = "merge-on-read" if mode == "copy-on-write" else "copy-on-write"
    table.set_properties(dict.fromkeys(modes, other))
    table.delete("id % 11 = 4")
    rows = {n: row for n, row in rows.items() if n % 11 != 4}
    table.update({"v": "'late'"}, "id > 290")
    rows.update({n: (*row[:2], "late") for n, row in rows.items() if n > 290})
    table.upsert(frame(spark, [(2000, "b", "last"), (2001, "b", "last")]), keys="id")
    rows.update({n: (n, "b", "last") for n in (2000, 2001)})
    check(table, rows, "the other mode")


def kept_up(spark, lake, version):
    """Equality deletes, the changelog, their conversion and a compaction, all by executors."""
    modes = {f"write.{command}.mode": "merge-on-read" for command in ("delete", "update", "merge")}
    table = lake.create_table(
        "db.kept_up", DDL, partition_by=["p"], format_version=version, properties=modes
    )
    rows = {n: (n, "abc"[n % 3], f"v{n}") for n in range(60)}
    table.append(frame(spark, rows.values()))
    costs.DELETED_ROWS = costs.SMALL_FILES_HERE = costs.COPIED_FILES_HERE = 0
    table.delete("id % 10 = 3")
    rows = {n: row for n, row in rows.items() if n % 10 != 3}
    check(table, rows, "places")
    kinds = set(table.inspect.delete_files()["file_format"])
    assert kinds == {"PUFFIN" if version == 3 else "PARQUET"}, kinds
    start, before = table.current_snapshot.snapshot_id, dict(rows)
    # Updates, one of them to another partition; a new key, and one that had been deleted; a delete.
    upserts = [(4, "a", "k"), (5, "c", "k"), (6, "a", "k"), (13, "b", "k"), (99, "a", "k")]
    changes = [(*row, "u") for row in upserts] + [(7, None, None, "d")]
    df = spark.createDataFrame(changes, f"{DDL}, op string")
    told = table.apply_changes(df, keys="id", op="op", mode="equality-deletes")
    assert told.mode == "equality-deletes", told
    rows.update({row[0]: row for row in upserts})
    del rows[7]
    check(table, rows, "equality deletes")
    found = table.changes(start).select("_change_type", "id", "p", "v").collect()
    gone = [("DELETE", *before[n]) for n in (4, 5, 6, 7)]
    expected = Counter([*gone, *(("INSERT", *row) for row in upserts)])
    assert Counter(map(tuple, found)) == expected, found
    converted = table.convert_equality_deletes()
    assert converted.deleted_rows_count == len(gone), converted
    assert set(table.inspect.delete_files()["file_format"]) == kinds
    check(table, rows, "conversion")
    compacted = table.compact(rewrite_all=True, remove_dangling_deletes=True)
    assert compacted.added_data_files_count == 3, compacted
    assert table.inspect.delete_files().is_empty()
    check(table, rows, "compaction")


def main(folder, mode, version, executors, parts):
    spark = session(folder, int(executors))
    spark.sparkContext.setLogLevel("OFF")
    lake = frazil.connect(spark, warehouse=f"{folder}/lake")
    lake.create_namespace("db")
    if parts == "both":
        changed(spark, lake, mode, int(version))
    # The other version, so that each session has both kinds of deletes.
    kept_up(spark, lake, 5 - int(version))
    spark.stop()
    print("right")


if __name__ == "__main__":
    main(*sys.argv[1:])
