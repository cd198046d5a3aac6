"""A server in this process whose clients come and go; prints what is kept of them."""

from __future__ import annotations

import gc
import os
import sys
import time
import traceback
from typing import Any

from frazil.spark.attached.configured import configured_lakes
from frazil.spark.catalog.server import SparkListening, SparkServer
from frazil.spark.catalog.sessions import served_sessions
from frazil.spark.local.session import local_session
from frazil.spark.plans.machine import value_of


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


def main(connect: str, thrift: str) -> None:
    """Have clients of both kinds; there is none of Connect on a Spark that does not serve it."""
    ports = {"connect": int(connect) or None, "thrift": int(thrift)}
    listening = SparkListening(**ports, settings={})
    spark = local_session(config=listening.spark_settings)
    server = SparkServer(spark, configured_lakes().attach, listening)
    server.start()
    if listening.connect:
        over_connect(spark, server, connect)
    by_jdbc(spark._jvm, server, thrift)
    well = server.status()
    server.stop(seconds=5)
    print("status", well, server.status(), flush=True)


def over_connect(spark: Any, server: SparkServer, port: str) -> None:
    """Have clients that leave in each way, and one that stays."""
    from pyspark.sql.connect.session import SparkSession as Client

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
    if not hasattr(type(stays), "cloneSession"):
        print("rows none", flush=True)
        return
    copy = stays.cloneSession()
    copy.sql("INSERT INTO lake.db.t VALUES (3)").collect()
    stays.sql("ROLLBACK").collect()
    print("rows", stays.table("lake.db.t").count(), flush=True)


def by_jdbc(machine: Any, server: SparkServer, port: str) -> None:
    """Have one client that leaves, one that is killed, and one that stays."""
    others = len(served_sessions())

    def client() -> Any:
        url, nothing = f"jdbc:hive2://127.0.0.1:{port}", machine.java.util.Properties()
        return machine.org.apache.hive.jdbc.HiveDriver().connect(url, nothing)

    def run(connection: Any, *texts: str) -> None:
        for text in texts:
            connection.createStatement().execute(text)

    stays, leaves, killed = client(), client(), client()
    run(stays, "CREATE NAMESPACE lake.by_jdbc", "CREATE TABLE lake.by_jdbc.t (id BIGINT)")
    for number, each in enumerate((stays, leaves, killed)):
        run(each, "USE lake.by_jdbc", "BEGIN", f"INSERT INTO t VALUES ({number})")
    print("kept", len(served_sessions()) - others, flush=True)
    leaves.close()
    # Nothing is said to the server: the socket is gone, as that of a process is.
    value_of(killed, "transport").close()
    for _ in range(100):
        server.forget_closed(after=0)
        if len(served_sessions()) == others + 1:
            break
        time.sleep(0.1)
    print("kept", len(served_sessions()) - others, flush=True)
    run(stays, "COMMIT")
    found = stays.createStatement().executeQuery("SELECT max(id), count(*) FROM lake.by_jdbc.t")
    found.next()
    print("rows", found.getLong(1), found.getLong(2), flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
