"""Many statements of one session of a server; prints what both processes hold, in megabytes."""

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


def main(*marks: str) -> None:
    """Run statements, and say at some of their numbers what is held."""
    spark = local_session(config={"spark.sql.catalogImplementation": "in-memory", **SETTINGS})
    serve_sessions(spark, configured_lakes().attach)
    session: Any = spark
    served = session._jsparkSession.newSession()
    for text in ("CREATE NAMESPACE lake.db", "CREATE TABLE lake.db.t (id BIGINT)"):
        served.sql(text)
    served.sql("INSERT INTO lake.db.t VALUES (1)")
    number = changes = 0
    for mark in map(int, marks):
        while number < mark:
            served.sql(CYCLE[number % len(CYCLE)])
            number += 1
            if number % EVERY == 0:
                served.sql(CHANGES[changes % 2])
                changes += 1
        print(json.dumps({"statements": number, **held(spark)}), flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
