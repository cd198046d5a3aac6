"""Changes of tables on S3, with a fault at each request of them: a line for each kind of change."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import frazil
from frazil.errors import CommitStateUnknownError, FrazilError
from s3_counted import Fault, counted_s3
from s3_spark import spark_on

ROWS = "SELECT int(id) id, int(id % 4) p, string(id) v FROM range({}, {})"
MERGED = (
    "MERGE INTO db.{0} t USING (SELECT int(id * 3) id, int(id * 3 % 4) p, 'm' v FROM range(10)) s "
    "ON t.id = s.id AND t.p = s.p WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN "
    "INSERT *"
)
COMMANDS = {
    "append": "INSERT INTO db.flat VALUES (1000, 1, 'x')",
    "append of many": f"INSERT INTO db.flat {ROWS.format(1000, 60_000)}",
    "nested append": "INSERT INTO db.nested SELECT id, p, struct(v AS x) s FROM db.flat",
    "delete": "DELETE FROM db.marked WHERE id IN (3, 11)",
    "merge": MERGED.format("marked"),
    "merge of whole files": MERGED.format("flat"),
    "update of whole files": "UPDATE db.flat SET v = 'u' WHERE id = 5",
    "overwrite": f"INSERT OVERWRITE db.flat {ROWS.format(2000, 2040)}",
    "compaction": "CALL system.rewrite_data_files(table => 'db.flat', "
    "options => map('rewrite-all', 'true'))",
}
TABLES = {"nested append": "nested", "delete": "marked", "merge": "marked"}
MARKED = "TBLPROPERTIES ('write.delete.mode'='merge-on-read', 'write.merge.mode'='merge-on-read')"
ONCE = {
    "busy": Fault(status=503),
    "answer lost": Fault(status=0, is_done=True),
    "broken, and done": Fault(status=500, code="InternalError", is_done=True),
    "cut off": Fault(keeps=3),
}
FOR_EVER = {
    "refused": Fault(times=1_000_000, status=403, code="AccessDenied"),
    "down": Fault(times=1_000_000, status=503),
}
FAULTS = {**ONCE, **FOR_EVER}
QUICK = {
    "s3.retry.num-retries": "2",
    "s3.retry.min-wait-ms": "1",
    "s3.retry.max-wait-ms": "5",
}
QUICK_CONNECTOR = {
    "attempts.maximum": "2",
    "retry.limit": "2",
    "retry.interval": "10ms",
    "retry.throttle.limit": "2",
    "retry.throttle.interval": "10ms",
}


def make_tables(lake):
    lake.create_namespace("db")
    for name, columns, properties in (
        ("flat", "id INT, p INT, v STRING", ""),
        ("marked", "id INT, p INT, v STRING", MARKED),
        ("nested", "id INT, p INT, s STRUCT<x: STRING>", ""),
    ):
        lake.sql(f"CREATE TABLE db.{name} ({columns}) PARTITIONED BY (p) {properties}")
    for name in ("flat", "marked"):
        lake.sql(f"INSERT INTO db.{name} {ROWS.format(0, 40)}")


def with_fault(fault, passes):
    return Fault(**{name: getattr(fault, name) for name in fault.__slots__} | {"passes": passes})


def check(lake, store, table, run, stride):
    """Run a change again and again, each time with a fault later: all of it is there, or nothing.

    Returns how many runs ended in each way.
    """

    def rows():
        return sorted(map(repr, lake.sql(f"SELECT * FROM db.{table}").collect()))

    first, before = lake.load_table(f"db.{table}").current_snapshot, rows()
    store.take()
    run()
    requests, after, outcomes = len(store.take()), rows(), Counter()
    for turn, passes in enumerate(range(0, requests, stride)):
        fresh = lake.load_table(f"db.{table}")
        if first is not None:
            fresh.rollback_to_snapshot(first.snapshot_id)
        elif fresh.current_snapshot is not None:
            fresh.delete("true")
        name, fault = list(FAULTS.items())[turn % len(FAULTS)]
        started = time.monotonic()
        store.fail(with_fault(fault, passes))
        try:
            run()
            outcome = "done"
        except CommitStateUnknownError:
            outcome = "unknown"
        except FrazilError as error:
            outcome = type(error).__name__
        except (Py4JJavaError, PySparkException) as error:
            # Of the query whose rows are written.
            if "FAILED_READ_FILE" not in str(error):
                raise
            outcome = "not read"
        finally:
            store.fail()
        found = rows()
        expected = {"done": [after], "unknown": [before, after]}.get(outcome, [before])
        if found not in expected:
            raise AssertionError(f"{name} at request {passes} of {requests}: {outcome}, {found}")
        if name in ONCE and outcome == "unknown" and "lost" not in name:
            raise AssertionError(f"{name} at request {passes} of {requests} was not asked again")
        outcomes[outcome] += 1
        print(table, name, passes, outcome, f"{time.monotonic() - started:.1f} s", flush=True)
    if first is not None:
        lake.load_table(f"db.{table}").rollback_to_snapshot(first.snapshot_id)
    return outcomes


def main(folder, settings, io, stride):
    with counted_s3() as store:
        quick = {f"spark.hadoop.fs.s3a.{name}": value for name, value in QUICK_CONNECTOR.items()}
        place, given = store.new_bucket("lake"), store.properties
        spark = spark_on(given, "local[2]", {**json.loads(settings), **quick})
        by = {"io": "hadoop"} if io else {**given, **QUICK}
        with frazil.connect(
            spark, uri=f"sqlite:///{folder}/c.db", warehouse=f"{place}/w", **by
        ) as lake:
            make_tables(lake)
            for name, statement in COMMANDS.items():
                act = lake.call if statement.startswith("CALL") else lake.sql
                found = check(
                    lake,
                    store,
                    TABLES.get(name, "flat"),
                    lambda act=act, statement=statement: act(statement).collect(),
                    int(stride),
                )
                print(json.dumps([name, found]), flush=True)
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
