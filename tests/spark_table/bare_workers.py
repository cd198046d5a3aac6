"""Every command where the Python of Spark's executors has no package of Frazil's.

bare_workers.py <folder> <python of the executors> <address of a Connect server, or local> <some or
all>: prints what was wrong, or `right`. A step either works, or is a typed error that says what the
executors lack, and then nothing is left of it: no commit, no file.
"""

import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import frazil
from frazil.changes import ARRIVAL
from frazil.format import types as I
from frazil.format.manifests import Content
from frazil.format.schema import Schema
from frazil.spark.session import costs

DDL = "id bigint, p int, s string"
LACKED = "the Python of Spark's executors lacks the packages frazil"
MODES = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}
LARGE = (
    "DECODED_BYTES",
    "LISTED_SNAPSHOTS",
    "PLANNED_BYTES",
    "PRUNING_CORES",
    "REWRITTEN_BYTES",
    "LISTED_FOLDERS",
    "CHECKED_FILES",
    "LOCAL_FOOTERS",
    "REMOTE_FOOTERS",
    "DELETED_ROWS",
    *("SMALL_ROWS_HERE", "SMALL_FILES_HERE", "POSITIONS_HERE", "POSITION_FILES_HERE"),
)
"""What is the driver's work up to some size: none of it, for a table that is large."""

UNSEEN = -1


def of_executors(limit):
    """A limit or a cost with no work for the driver."""
    return replace(limit, here=0) if isinstance(limit, costs.Cost) else UNSEEN


def files_of(table):
    """Every file below a table."""
    root = Path(table.location.removeprefix("file://"))
    return {str(path) for path in root.rglob("*") if path.is_file()}


class Steps:
    """Steps on one table, and the rows that it has to hold.

    Attributes:
        rows: the table's, as a model in plain Python has them.
        wrong: what was not as it had to be.
    """

    def __init__(self, table, name):
        self.table, self.name = table, name
        self.rows, self.wrong = Counter(), []

    def check(self, step):
        found = Counter(map(tuple, self.table.refresh().to_df().collect()))
        if found != self.rows:
            self.wrong.append(f"{self.name}: {step}: {found} is not {self.rows}")

    def works(self, step, act, change=None):
        """A step that changes rows as it says, or none."""
        if not self.reads(step, act):
            return
        if change is not None:
            self.rows = Counter(change([*self.rows.elements()]))
        self.check(step)

    def reads(self, step, act):
        """A step that changes no file, so that no row is looked at again."""
        try:
            act(self.table)
        except Exception as error:
            self.wrong.append(f"{self.name}: {step}: {type(error).__name__}: {str(error)[:600]}")
            return False
        return True

    def refused(self, step, act):
        """A step that executors' Python is needed for."""
        before = files_of(self.table), self.table.refresh().metadata_location
        try:
            act(self.table)
            self.wrong.append(f"{self.name}: {step}: nothing was refused")
        except frazil.errors.ConfigurationError as error:
            if LACKED not in str(error) or "PYSPARK_PYTHON" not in str(error):
                self.wrong.append(f"{self.name}: {step}: {error}")
        except Exception as error:
            self.wrong.append(f"{self.name}: {step}: {type(error).__name__}: {str(error)[:600]}")
        after = files_of(self.table), self.table.refresh().metadata_location
        if after != before:
            self.wrong.append(f"{self.name}: {step}: left {after[0] ^ before[0]}")


def frame(spark, rows, ddl=DDL):
    return spark.createDataFrame(list(rows), ddl).coalesce(1)


def expire(table):
    return table.maintenance.expire_snapshots(retain_last=1, older_than="2100-01-01 00:00:00")


def put(rows, new):
    """Rows by their first column, with others in their place or beside them."""
    return list({**{row[0]: row for row in rows}, **{row[0]: row for row in new}}.values())


def changed(spark, lake, by, version):
    """Rows in, changed and out, a table of a few partitions; Arrow's writer is only one way."""
    name = f"v{version}_{'by_p' if by else 'plain'}"
    table = lake.create_table(
        f"db.{name}", DDL, partition_by=by, format_version=version, properties=MODES
    )
    steps = Steps(table, name)
    first = [(n, n % 2, f"s{n}") for n in range(12)]
    steps.works("append", lambda t: t.append(frame(spark, first)), lambda _: first)
    few = pa.table(
        {"id": pa.array([20, 21]), "p": pa.array([0, 1], pa.int32()), "s": ["few", "few"]}
    )
    steps.works(
        "append of Arrow", lambda t: t.append(few), lambda r: [*r, (20, 0, "few"), (21, 1, "few")]
    )
    start = table.refresh().current_snapshot.snapshot_id
    steps.works("delete", lambda t: t.delete("id = 3"), lambda r: [x for x in r if x[0] != 3])
    steps.works(
        "update that moves a row",
        lambda t: t.update(set={"p": "1 - p", "s": "'moved'"}, where="id = 1"),
        lambda r: put(r, [(1, 0, "moved")]),
    )
    new = [(2, 1, "new"), (30, 1, "new")]
    steps.works("upsert", lambda t: t.upsert(frame(spark, new), keys="id"), lambda r: put(r, new))
    merged = [(4, 0, "merged"), (31, 1, "merged")]

    def merge(target):
        merge = target.merge(frame(spark, merged), on="target.id = source.id")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    steps.works("merge", merge, lambda r: put(r, merged))
    for mode in ("merge", "equality-deletes"):
        applied = [(5, 0, mode), (32, 1, mode)]
        steps.works(
            f"apply_changes, {mode}",
            lambda t, rows=applied, mode=mode: t.apply_changes(
                frame(spark, rows), keys="id", mode=mode
            ),
            lambda r, rows=applied: put(r, rows),
        )
    changes = frame(spark, [(6, 0, "arrived"), (6, 0, "again")])
    steps.refused(
        "apply_changes in the order of arrival",
        lambda t: t.apply_changes(changes, keys="id", order_by=ARRIVAL, mode="equality-deletes"),
    )
    steps.reads("changes", lambda t: t.changes(start).collect())
    steps.works(
        "conversion of equality deletes", lambda t: t.maintenance.convert_equality_deletes()
    )
    steps.works("position deletes", lambda t: t.maintenance.rewrite_position_deletes())
    steps.works("manifests", lambda t: t.maintenance.rewrite_manifests())
    over = [(40, 0, "over")]
    steps.works(
        "overwrite by a condition",
        lambda t: t.overwrite(frame(spark, over), where="p = 0"),
        lambda r: [*(x for x in r if x[1] != 0), *over],
    )
    dynamic = [(41, 1, "dynamic"), (42, 2, "dynamic")]
    if by:
        steps.works(
            "overwrite of partitions",
            lambda t: t.overwrite_partitions(frame(spark, dynamic)),
            lambda r: [*(x for x in r if x[1] == 0), *dynamic],
        )
    else:
        steps.works("append", lambda t: t.append(frame(spark, dynamic)), lambda r: [*r, *dynamic])
    strategies = ({}, {"strategy": "sort", "sort_order": "s desc"})
    for more in strategies if by else ({"strategy": "zorder", "columns": ["id", "s"]},):
        steps.works(f"compaction {more}", lambda t, more=more: t.compact(rewrite_all=True, **more))
    steps.reads(
        "aggregates", lambda t: t.scan().aggregate(["max(id)", "count(s)"]).to_df().collect()
    )
    steps.works("overwrite", lambda t: t.overwrite(frame(spark, first)), lambda _: first)
    steps.works("expiry", expire)
    return steps


def of_other_types(spark, lake):
    """What only executors' Python can write or hash; reads of it need none."""
    found = []
    for name, kind, by, value in (
        ("uuid", I.UUIDType(), [], "string(uuid())"),
        ("hashed", I.DecimalType(38, 4), ["bucket(4, x)"], "cast(id as decimal(38, 4))"),
    ):
        fields = I.NestedField(1, "id", I.LongType()), I.NestedField(2, "x", kind)
        steps = Steps(lake.create_table(f"db.{name}", Schema(fields), partition_by=by), name)
        rows = spark.range(3).selectExpr("id", f"{value} x")
        steps.refused("append", lambda t, rows=rows: t.append(rows))
        steps.refused("upsert", lambda t, rows=rows: t.upsert(rows, keys="id"))
        found.append(steps)
    return found


def of_other_layouts(spark, lake, folder):
    """Files that only Arrow reads."""
    Path(f"{folder}/orc").mkdir()
    rows = pa.table({"id": pa.array([1, 2]), "p": pa.array([0, 0], pa.int32()), "s": ["a", "b"]})
    orc.write_table(rows, f"{folder}/orc/one.orc")
    Path(f"{folder}/parquet").mkdir()
    pq.write_table(rows, f"{folder}/parquet/one.parquet")
    steps = Steps(lake.create_table("db.added", DDL, properties=MODES), "added files")

    def add(target):
        kept, costs.REMOTE_FOOTERS = costs.REMOTE_FOOTERS, of_executors(costs.REMOTE_FOOTERS)
        target.maintenance.add_files(f"{folder}/parquet", format="parquet")
        costs.REMOTE_FOOTERS = kept

    steps.works(
        "add_files of Parquet",
        add,
        lambda _: [(1, 0, "a"), (2, 0, "b")],
    )
    steps.works("delete", lambda t: t.delete("id = 1"), lambda r: [x for x in r if x[0] != 1])
    steps.works("compaction", lambda t: t.compact(rewrite_all=True))
    steps.reads("migrated rows", lambda t: t.scan("s = 'b'").count())
    last = lake.create_table("db.orc", DDL)
    last.maintenance.add_files(f"{folder}/orc", format="orc")
    made = Steps(last, "ORC")
    for step, act in {
        "to_df": lambda t: t.to_df(),
        "count with a condition": lambda t: t.scan("id = 1").count(),
        "to_arrow": lambda t: t.scan().to_arrow(),
        "delete": lambda t: t.delete("s = 'a'"),
        "update": lambda t: t.update(set={"s": "'x'"}, where="id = 1"),
        "compaction": lambda t: t.compact(rewrite_all=True),
        "overwrite": lambda t: t.overwrite(frame(spark, []), where="s = 'a'"),
    }.items():
        made.refused(step, act)
    if last.count() != 2:
        made.wrong.append("ORC: the count that metadata states")
    return [steps, made]


def large(spark, lake):
    """What is the executors' work of large tables."""
    kept = {name: getattr(costs, name) for name in LARGE}
    table = lake.create_table("db.large", DDL, partition_by=["p"], properties=MODES)
    steps = Steps(table, "large")
    rows = [(n, n % 3, f"s{n}") for n in range(12)]
    steps.works("append", lambda t: t.append(frame(spark, rows)), lambda _: rows)
    steps.works("delete", lambda t: t.delete("id = 3"), lambda r: [x for x in r if x[0] != 3])
    steps.works(
        "equality deletes",
        lambda t: t.apply_changes(frame(spark, [(5, 2, "k")]), keys="id", mode="equality-deletes"),
        lambda r: put(r, [(5, 2, "k")]),
    )
    steps.works("append", lambda t: t.append(frame(spark, rows[:1])), lambda r: [*r, rows[0]])
    holds = steps.check

    def set_all(values):
        for name, value in values.items():
            setattr(costs, name, value)

    def check(step):
        # Deletes of a large table are read by executors.
        set_all(kept)
        holds(step)
        set_all(unseen)

    unseen = {limit: of_executors(value) for limit, value in kept.items()}
    steps.check = check
    set_all(unseen)
    one = [(60, 0, "one")]
    try:
        steps.works("append", lambda t: t.append(frame(spark, one)), lambda r: [*r, *one])
        steps.works(
            "overwrite by a condition on partitions",
            lambda t: t.overwrite(frame(spark, rows[:1]), where="p = 0"),
            lambda r: [*(x for x in r if x[1] != 0), rows[0]],
        )
        steps.works("expiry", expire)
        for step, act in {
            "delete": lambda t: t.delete("id = 7"),
            "manifests": lambda t: t.maintenance.rewrite_manifests(),
            "conversion": lambda t: t.maintenance.convert_equality_deletes(),
            "orphans": lambda t: t.maintenance.remove_orphan_files(),
            "check": lambda t: t.maintenance.check(),
            "entries": lambda t: t.inspect.dataframes.entries().collect(),
            "files": lambda t: t.files().collect(),
            "all_manifests": lambda t: t.inspect.dataframes.all_manifests().collect(),
            "partitions": lambda t: t.partitions().collect(),
        }.items():
            steps.refused(step, act)
        steps.reads("history", lambda t: t.history().collect())
    finally:
        set_all(kept)
    steps.check = holds
    if not table.refresh().inspect.delete_files().filter(content=Content.EQUALITY_DELETES).height:
        steps.wrong.append("large: the equality deletes went")
    return steps


def maintenance(spark, lake):
    """Statistics and orphans of a small table."""
    table = lake.create_table(
        "db.kept", "id bigint, s string, n timestamp_ntz, d decimal(9, 2)", partition_by=["s"]
    )
    steps = Steps(table, "maintenance")
    rows = [(n, f"s{n % 2}") for n in range(4)]
    df = frame(spark, rows, "id bigint, s string").selectExpr(
        "*", "timestamp_ntz'2024-01-01 00:00:00' n", "cast(id as decimal(9, 2)) d"
    )
    steps.rows = Counter(map(tuple, df.collect()))
    steps.works("append", lambda t: t.append(df))
    steps.works("partition statistics", lambda t: t.maintenance.compute_partition_stats())
    steps.works("statistics", lambda t: t.maintenance.compute_table_stats(columns=["id", "s", "n"]))
    steps.refused("statistics of decimals", lambda t: t.maintenance.compute_table_stats())
    steps.works("orphans", lambda t: t.maintenance.remove_orphan_files())
    steps.reads("check", lambda t: t.maintenance.check())
    steps.works("optimize", lambda t: t.optimize())
    for view in ("entries", "files", "manifests", "partitions", "all_files", "history"):
        steps.reads(view, lambda t, view=view: getattr(t.inspect.dataframes, view)().collect())
    steps.refused("position_deletes", lambda t: t.inspect.dataframes.position_deletes())
    return steps


def session(remote):
    if remote != "local":
        return SparkSession.builder.remote(remote).getOrCreate()
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def main(folder, python, remote, parts):
    # What leads this process to the checkout must not lead executors there.
    os.environ.pop("PYTHONPATH", None)
    os.environ["PYSPARK_PYTHON"] = python
    spark = session(remote)
    if remote == "local":
        spark.sparkContext.setLogLevel("OFF")
    lake = frazil.connect(spark, warehouse=f"{folder}/lake")
    lake.create_namespace("db")
    steps = [
        changed(spark, lake, ["p"], 2),
        *of_other_types(spark, lake),
        *of_other_layouts(spark, lake, folder),
    ]
    if parts == "all":
        steps += [
            changed(spark, lake, [], 3),
            maintenance(spark, lake),
            large(spark, lake),
        ]
    wrong = [line for each in steps for line in each.wrong]
    spark.stop()
    print("\n".join(wrong) or "right")


if __name__ == "__main__":
    main(*sys.argv[1:])
