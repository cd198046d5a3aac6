"""A Thrift server in this process whose clients come and go; prints what is kept of them."""

from __future__ import annotations

import os
import sys
import time
import traceback
from typing import Any

from frazil.spark.attached.configured import configured_lakes
from frazil.spark.catalog.machine import value_of
from frazil.spark.catalog.server import SparkListening, SparkServer
from frazil.spark.catalog.sessions import served_sessions
from frazil.spark.local.session import local_session


def main(port: str) -> None:
    """Have one client that leaves, one that is killed, and one that stays."""
    listening = SparkListening(thrift=int(port), settings={})
    spark = local_session(config=listening.spark_settings)
    server = SparkServer(spark, configured_lakes().attach, listening)
    server.start()
    machine = spark._jvm

    def client() -> Any:
        url, nothing = f"jdbc:hive2://127.0.0.1:{port}", machine.java.util.Properties()
        return machine.org.apache.hive.jdbc.HiveDriver().connect(url, nothing)

    def run(connection: Any, *texts: str) -> None:
        for text in texts:
            connection.createStatement().execute(text)

    stays, leaves, killed = client(), client(), client()
    run(stays, "CREATE NAMESPACE lake.db", "CREATE TABLE lake.db.t (id BIGINT)")
    for number, each in enumerate((stays, leaves, killed)):
        run(each, "USE lake.db", "BEGIN", f"INSERT INTO t VALUES ({number})")
    print("kept", len(served_sessions()), flush=True)
    leaves.close()
    # Nothing is said to the server: the socket is gone, as that of a process is.
    value_of(killed, "transport").close()
    for _ in range(100):
        server.forget_closed(after=0)
        if len(served_sessions()) == 1:
            break
        time.sleep(0.1)
    print("kept", len(served_sessions()), flush=True)
    run(stays, "COMMIT")
    found = stays.createStatement().executeQuery("SELECT max(id), count(*) FROM lake.db.t")
    found.next()
    print("rows", found.getLong(1), found.getLong(2), flush=True)
    server.stop(seconds=5)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
