"""Many statements of one session of a server; prints what both processes hold, in megabytes.

The first argument is ``lake``, or ``plain``: then the table is Spark's own, of Parquet files.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from frazil.spark.attached.configured import configured_lakes
from frazil.spark.catalog.sessions import serve_sessions
from frazil.spark.local.session import local_session

_MEGABYTE = 1 << 20
SETTINGS = {"spark.master": "local[1]", "spark.ui.enabled": "false"}
CYCLE = [
    "SELECT id FROM lake.db.t WHERE id = 1",
    "EXECUTE IMMEDIATE 'SELECT max(id) FROM lake.db.t'",
    "WITH c AS (SELECT * FROM lake.db.t) SELECT c.id FROM c JOIN lake.db.t t ON c.id = t.id",
    "SELECT 1 AS one",
    "USE lake.db",
    "SELECT id FROM t VERSION AS OF 'main'",
    "USE spark_catalog.default",
    "EXPLAIN DELETE FROM lake.db.t WHERE id = 1",
]
"""Statements that cost little, each of another kind."""
CHANGES = ["INSERT INTO lake.db.t VALUES (2)", "DELETE FROM lake.db.t WHERE id = 2"]
FIRST = [
    "CREATE NAMESPACE lake.db",
    "CREATE TABLE lake.db.t (id BIGINT) USING iceberg",
    "INSERT INTO lake.db.t VALUES (1)",
]
PLAIN = {
    "NAMESPACE lake.db": "NAMESPACE spark_catalog.db",
    "USING iceberg": "USING parquet",
    "lake.db.t": "spark_catalog.db.t",
    "USE lake.db": "USE spark_catalog.db",
    " VERSION AS OF 'main'": "",
    "DELETE FROM spark_catalog.db.t WHERE id = 2": "INSERT OVERWRITE spark_catalog.db.t VALUES (1)",
}
"""What a statement has for what, where the table is Spark's own."""
EVERY = 250
"""So many statements stand between two changes."""


def held(spark: Any) -> dict[str, float]:
    """Megabytes of both processes without what is garbage, and objects that Spark may call."""
    for _ in range(3):
        gc.collect()
        spark._jvm.java.lang.System.gc()
        time.sleep(0.3)
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "python": pages * resource.getpagesize() / _MEGABYTE,
        "java": (runtime.totalMemory() - runtime.freeMemory()) / _MEGABYTE,
        "objects": len(spark.sparkContext._gateway.gateway_property.pool.dict),
    }


def plain(text: str) -> str:
    """A statement for a table of Spark's own."""
    for ours, theirs in PLAIN.items():
        text = text.replace(ours, theirs)
    return text


def main(kind: str, *marks: str) -> None:
    """Run statements, and say at some of their numbers what is held."""
    spark = local_session(config={"spark.sql.catalogImplementation": "in-memory", **SETTINGS})
    session: Any = spark
    if kind == "lake":
        serve_sessions(spark, configured_lakes().attach)
    served = session._jsparkSession.newSession()
    cycle, changes, first = CYCLE, CHANGES, FIRST
    if kind == "plain":
        cycle, changes, first = (list(map(plain, each)) for each in (CYCLE, CHANGES, FIRST))
    for text in first:
        served.sql(text)
    number = changed = 0
    for mark in map(int, marks):
        while number < mark:
            served.sql(cycle[number % len(cycle)])
            number += 1
            if number % EVERY == 0:
                served.sql(changes[changed % 2])
                changed += 1
        print(json.dumps({"statements": number, **held(spark)}), flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
