"""A server in this process some of whose answers raise what nobody expects: what clients get.

Each line has the name of a face, what fails, and the error and the rows of the next statement.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from frazil.spark.attached.configured import configured_lakes
from frazil.spark.catalog.lake_catalog import LakeCatalog
from frazil.spark.catalog.parser import LakeParser
from frazil.spark.catalog.place import SessionPlace
from frazil.spark.catalog.server import SparkListening, SparkServer
from frazil.spark.catalog.sessions import install
from frazil.spark.local.session import local_session

FAILS = {
    "executeCommand": (SessionPlace, "run", "INSERT INTO lake.db.t VALUES (2)"),
    "parsePlan": (LakeParser, "_parse", "SELECT max(id) FROM lake.db.t"),
    "loadTable": (LakeCatalog, "_rows_named", "BEGIN SELECT max(id) FROM lake.db.t; END"),
}
"""What Spark calls: where the error is raised in it, and a statement that comes there."""
NEXT = "SELECT max(id) FROM lake.db.t"


@contextmanager
def raising(kind: type, name: str) -> Iterator[None]:
    """Have a method raise what is no error of ours."""

    def fail(*_: object, **__: object) -> None:
        raise KeyError("the key that is missing")

    before = getattr(kind, name)
    setattr(kind, name, fail)
    try:
        yield
    finally:
        setattr(kind, name, before)


def tell(face: str, run: Callable[[str], Any]) -> None:
    """Print what a face is told of each."""
    for name, (kind, method, text) in FAILS.items():
        error = None
        with raising(kind, method):
            try:
                run(text)
            except Exception as raised:
                error = str(getattr(raised, "java_exception", raised))
        print(json.dumps([face, name, error, str(run(NEXT))]), flush=True)


def main(connect: str, thrift: str) -> None:
    """Ask by a client of each kind, and by a session of this process."""
    from jdbc_client import Driver
    from pyspark.sql.connect.session import SparkSession as Client

    listening = SparkListening(connect=int(connect), thrift=int(thrift), settings={})
    spark = local_session(config={"spark.ui.enabled": "false", **listening.spark_settings})
    own = spark.newSession()
    configured_lakes().attach(own)
    install(own)
    server = SparkServer(spark, configured_lakes().attach, listening)
    server.start()
    client = Client.builder.remote(f"sc://127.0.0.1:{connect}").create()
    for text in ("CREATE NAMESPACE lake.db", "CREATE TABLE lake.db.t AS SELECT 1 AS id"):
        client.sql(text).collect()
    tell("Connect", lambda text: [tuple(row) for row in client.sql(text).collect()])
    tell("JDBC", Driver(spark._jvm, thrift).run)
    tell(
        "attached",
        lambda text: [
            tuple(row)
            for row in own.sql(
                text if text.startswith("BEGIN") else f"EXECUTE IMMEDIATE {text!r}"
            ).collect()
        ],
    )
    server.stop(seconds=5)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
