"""A process that changes a table at random.

history_worker.py <catalog> <folder> <writer> <isolation> <log> <changes or maintenance>

Waits until the file `go` is in the folder, and works until `stop` is. Before each change it writes
a line with what it is about to do, and after it another with the outcome.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

from changes_in_order import DDL, condition_text
from table_cases import open_catalog

from frazil.errors import CommitFailedError, ConflictError

KEYS = 40
MAINTENANCE = ("compact", "compact", "convert", "positions", "mode")
MODES = ("merge-on-read", "copy-on-write")
LEAST = 4
"""Changes, on however slow a machine."""


class Worker:
    """One writer."""

    def __init__(self, spark, table, writer, isolation, role):
        self.spark, self.table, self.isolation = spark, table, isolation
        self.random = random.Random(writer)
        self.writer = writer
        self.looks_after = role == "maintenance"
        self.count = 0

    def next_change(self):
        """What to do: plain values."""
        r = self.random
        self.count += 1
        op = f"w{self.writer}-{self.count}"
        kinds = ["append", "delete", "update", "update", "merge", "merge", "overwrite"]
        kind = r.choice(MAINTENANCE if self.looks_after else [*kinds, "compact", "by key"])
        change = {"op": op, "kind": kind}
        low = r.randrange(KEYS)
        if kind in ("delete", "update", "overwrite"):
            change["where"] = r.choice(
                [
                    {"low": low, "high": low + r.randrange(3)},
                    {"p": r.choice("abc"), "low": low, "high": low + 9},
                ]
            )
        if kind == "compact":
            change["strategy"] = r.choice(["binpack", "binpack", "sort"])
        if kind == "mode":
            change["mode"] = r.choice(MODES)
        if kind == "compact":
            change["p"] = r.choice("abc")
        if kind in ("append", "merge", "overwrite", "by key"):
            keys = r.sample(range(KEYS), 3)
            change["rows"] = [[key, r.choice("abc"), r.randrange(9), op] for key in keys]
        if kind == "merge":
            change["deletes_from"] = r.choice([None, 7])
            change["updates"] = r.random() < 0.8
            change["inserts"] = r.random() < 0.8 or not change["updates"]
            change["others"] = r.choice([None, None, {"p": r.choice("abc"), "n": r.randrange(9)}])
        return change

    def run(self, change):
        """Do it; the snapshot that it read, or None where it read none or changed nothing."""
        table, op = self.table.refresh(), change["op"]
        properties = {"op": op}
        with_op = {"snapshot_properties": properties}
        isolated = {**with_op, "isolation": self.isolation}
        match change["kind"]:
            case "append":
                table.append(self.frame(change), **with_op)
            case "overwrite":
                table.overwrite(
                    self.frame(change), where=condition_text(change["where"]), **with_op
                )
            case "delete":
                return table.delete(condition_text(change["where"]), **isolated).snapshot_id
            case "update":
                where = condition_text(change["where"])
                return table.update({"v": f"'{op}'", "n": "n + 1"}, where, **isolated).snapshot_id
            case "merge":
                return self.merge(table, change, isolated).snapshot_id
            case "by key":
                # The table is not read for it.
                table.apply_changes(
                    self.frame(change), keys=["id", "p"], mode="equality-deletes", **with_op
                )
            case "compact":
                order = {"sort_order": "id desc"} if change["strategy"] == "sort" else {}
                table.maintenance.compact(
                    f"p = '{change['p']}'",
                    strategy=change["strategy"],
                    rewrite_all=True,
                    **order,
                    **with_op,
                )
            case "convert":
                table.maintenance.convert_equality_deletes(**with_op)
            case "positions":
                table.maintenance.rewrite_position_deletes(rewrite_all=True, **with_op)
            case "mode":
                names = (f"write.{name}.mode" for name in ("delete", "update", "merge"))
                table.set_properties(dict.fromkeys(names, change["mode"]))
        return None

    def merge(self, table, change, isolated):
        merge = table.merge(self.frame(change), on="target.id = source.id", **isolated)
        if change["deletes_from"] is not None:
            merge.when_matched_delete(condition=f"target.n >= {change['deletes_from']}")
        if change["updates"]:
            merge.when_matched_update_all()
        if change["inserts"]:
            merge.when_not_matched_insert_all()
        if change["others"] is not None:
            here = "target.p = '{p}' and target.n = {n}".format(**change["others"])
            merge.when_not_matched_by_source_delete(condition=here)
        return merge.execute()

    def frame(self, change):
        return self.spark.createDataFrame([tuple(row) for row in change["rows"]], DDL).coalesce(1)


def main(kind, folder, writer, isolation, log, role):
    """Work until it is time to stop."""
    from pyspark.sql import SparkSession

    from frazil.spark.lake import Lake

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.default.parallelism", "1")
        .config("spark.driver.memory", "512m")
        # Compiling a query would take longer than running it.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", f"{folder}/spark-{writer}")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    lake = Lake(spark, open_catalog(kind, folder))
    worker = Worker(spark, lake.load_table("db.t"), int(writer), isolation, role)
    with open(log, "w", buffering=1) as out:
        out.write(json.dumps({"ready": writer}) + "\n")
        while not Path(folder, "go").exists():
            time.sleep(0.05)
        while worker.count < LEAST or not Path(folder, "stop").exists():
            change = worker.next_change()
            out.write(json.dumps({"begins": change}) + "\n")
            try:
                read = worker.run(change)
            except (ConflictError, CommitFailedError) as error:
                outcome = {"refused": f"{type(error).__name__}: {error}"}
            else:
                outcome = {"read": read}
            out.write(json.dumps({"ends": change["op"], **outcome}) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
