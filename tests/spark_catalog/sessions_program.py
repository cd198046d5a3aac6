"""A server in this process whose clients come and go; prints what is kept of them."""

from __future__ import annotations

import gc
import os
import sys
import time
import traceback
from typing import Any

from pyspark.sql.connect.session import SparkSession as Client

from frazil.spark.attached.configured import configured_lakes
from frazil.spark.catalog.server import SparkListening, SparkServer
from frazil.spark.catalog.sessions import served_sessions
from frazil.spark.local.session import local_session


def are_freed(machine: Any, references: list[Any]) -> bool:
    """Whether the virtual machine lets go of closed sessions, but for one that a thread may hold.

    One of them is that of the client that stays.
    """
    for _ in range(50):
        gc.collect()
        machine.java.lang.System.gc()
        if sum(each.get() is None for each in references) >= len(references) - 2:
            return True
        time.sleep(0.2)
    return False


def main(port: str) -> None:
    """Have clients that leave in each way, and one that stays."""
    listening = SparkListening(connect=int(port), settings={})
    spark = local_session(config=listening.spark_settings)
    lakes = configured_lakes()
    server = SparkServer(spark, lakes.attach, listening)
    server.start()
    service = spark._jvm.org.apache.spark.sql.connect.service
    connect = getattr(getattr(service, "SparkConnectService$"), "MODULE$")

    def client() -> Client:
        return Client.builder.remote(f"sc://127.0.0.1:{port}").create()

    def references() -> list[Any]:
        weak, sessions = spark._jvm.java.lang.ref.WeakReference, connect.sessionManager()
        found = [sessions.listActiveSessions().apply(i) for i in range(len(served_sessions()))]
        return [
            weak(sessions.getIsolatedSessionIfPresent(each.key()).get().session()) for each in found
        ]

    stays = client()
    stays.sql("CREATE NAMESPACE lake.db").collect()
    stays.sql("CREATE TABLE lake.db.t (id BIGINT)").collect()
    stays.sql("BEGIN").collect()
    stays.sql("INSERT INTO lake.db.t VALUES (1)").collect()
    leave = [client() for _ in range(3)]
    for each in leave:
        each.sql("USE lake.db").collect()
        each.sql("BEGIN").collect()
        each.sql("INSERT INTO t VALUES (2)").collect()
    print("kept", len(served_sessions()), flush=True)
    known = references()
    for each in leave:
        each.stop()
    server.forget_closed()
    print("kept", len(served_sessions()), flush=True)
    server.forget_closed(after=0)
    print("kept", len(served_sessions()), flush=True)
    print("freed", are_freed(spark._jvm, known), flush=True)
    stays.sql("COMMIT").collect()
    print("rows", stays.table("lake.db.t").count(), flush=True)
    # A copy of a session is one of its own.
    stays.sql("BEGIN").collect()
    copy = stays.cloneSession()
    copy.sql("INSERT INTO lake.db.t VALUES (3)").collect()
    stays.sql("ROLLBACK").collect()
    print("rows", stays.table("lake.db.t").count(), flush=True)
    server.stop(seconds=5)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
