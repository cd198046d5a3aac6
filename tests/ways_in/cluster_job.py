"""The life of a table on a cluster: cluster_job.py <what it is given, as JSON>.

Prints what executors have, what was wrong, and what was refused. It knows nothing of the tests.
"""

import importlib.util
import json
import os
import signal
import sys
import time

from pyspark import TaskContext
from pyspark.sql import SparkSession

import frazil
from frazil.format.types import LongType, UUIDType

DDL = "id bigint, p int, s string"
MODES = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}


def main(given):
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    if given["add"]:
        spark.sparkContext.addPyFile(given["add"])
    lake = frazil.connect(
        spark, uri=given["uri"], warehouse=given["warehouse"], **given["properties"]
    )
    lake.create_namespace("db")
    told = {"executors": seen(spark, given["hidden"]), "wrong": [], "refused": None}
    table = lake.create_table("db.t", DDL, partition_by=["p"], properties=MODES)
    model = {}

    def step(name, act, change):
        act()
        change()
        found = sorted(tuple(row) for row in table.refresh().to_df().collect())
        expected = sorted((key, *value) for key, value in model.items())
        if found != expected:
            told["wrong"].append(f"{name}: {found} is not {expected}")

    def put(ids, s, p=None):
        model.update({n: (n % 3 if p is None else p, s) for n in ids})

    def rows(first, end, s):
        return spark.range(first, end, 1, 4).selectExpr("id", "int(id % 3) p", f"'{s}' s")

    step("append", lambda: table.append(rows(0, 12, "a")), lambda: put(range(12), "a"))
    for way, first in given["hurt"].items():
        hurt = rows(first, first + 12, way).mapInArrow(attempts(way, first), DDL)
        step(
            way,
            lambda hurt=hurt: table.append(hurt),
            lambda way=way, first=first: put(range(first, first + 12), way),
        )
    if given["all"]:
        live(table, step, model, rows, put, told)
    by_arrow = lake.create_table(
        "db.u",
        frazil.Schema(
            (frazil.NestedField(1, "id", LongType()), frazil.NestedField(2, "u", UUIDType()))
        ),
    )
    try:
        by_arrow.append(spark.range(3).selectExpr("id", "string(uuid()) u"))
    except frazil.ConfigurationError as error:
        told["refused"] = str(error)
    told["by arrow"] = by_arrow.refresh().count()
    print(json.dumps(told))
    spark.stop()


def live(table, step, model, rows, put, told):
    """Commands, and what keeps a table healthy."""
    start = table.refresh().current_snapshot.snapshot_id
    step("delete", lambda: table.delete("id = 5"), lambda: model.pop(5))
    step(
        "update",
        lambda: table.update(set={"s": "'u'", "p": "0"}, where="id = 1"),
        lambda: put([1], "u", 0),
    )
    step(
        "merge",
        lambda: (
            table.merge(rows(10, 14, "m"), on="target.id = source.id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        ),
        lambda: put(range(10, 14), "m"),
    )
    step("compaction", lambda: table.compact(rewrite_all=True), lambda: None)
    changed = {row["id"] for row in table.changes(start).collect()}
    if changed != {1, 5, *range(10, 14)}:
        told["wrong"].append(f"changes: {changed}")
    table.maintenance.expire_snapshots(retain_last=1, older_than="2100-01-01 00:00:00")
    step("expiry", lambda: None, lambda: None)
    told["check"] = str(table.maintenance.check())


def seen(spark, hidden):
    """What the Python of each executor is, where its Frazil is, and whether it sees the driver."""

    def look(_):
        time.sleep(0.3)
        found = importlib.util.find_spec("frazil")
        origin = None if found is None else found.origin
        return sys.prefix, origin, os.path.exists(hidden)

    return sorted({*spark.sparkContext.parallelize(range(4), 4).map(look).collect()}, key=str)


def attempts(way, first):
    """Rows whose first attempt ends in the middle: with its executor, or never."""

    def pass_on(batches):
        context = TaskContext.get()
        is_first = context.attemptNumber() == 0 and context.partitionId() == 0
        for batch in batches:
            yield batch
            if is_first and way == "killed":
                with open(f"/proc/{os.getppid()}/status") as status:
                    machine = next(line for line in status if line.startswith("PPid:"))
                os.kill(int(machine.split()[1]), signal.SIGKILL)
        if is_first and way == "slow":
            time.sleep(600)

    return pass_on


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
