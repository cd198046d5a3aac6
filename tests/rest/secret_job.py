"""A whole job whose secrets must be nowhere; run by `test_rest_secrets` in a process of its own.

What it says goes to its output, to a log of everything at DEBUG, and to Spark's event log.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import frazil

SETUP = json.loads(os.environ["FRAZIL_SECRET_JOB"])
OUT = Path(SETUP["out"])


@contextlib.contextmanager
def failing(what: str) -> Iterator[None]:
    """A block that must fail; everything that its error says is said."""
    try:
        yield
    except Exception as error:
        logging.exception("%s failed", what)
        traceback.print_exc()
        print(what, "FAILED", repr(error), str(error), error.args, flush=True)
    else:
        print(what, "DID NOT FAIL", flush=True)


def session() -> SparkSession:
    (OUT / "events").mkdir()
    builder = SparkSession.builder.master("local[1]").appName("frazil-secrets")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{OUT}/events",
        "spark.sql.warehouse.dir": str(OUT / "warehouse"),
        **SETUP["spark"],
    }.items():
        builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("INFO")
    return spark


def shown(spark: SparkSession, table: Any) -> None:
    """Everything that can be asked to show itself."""
    loaded = table.catalog.load_table(table.identifier)
    scan = table.scan("id > 1 AND v = 'a'")
    connection = table.catalog._connection
    for each in (
        *(table, table.catalog, table.io, loaded, scan, scan.plan(), connection, vars(table)),
        *(connection.client, connection.client.authenticator, table.port, table.metadata),
        *(loaded.io, getattr(loaded.io, "_credentials", None)),
    ):
        print(repr(each), str(each), flush=True)
    df = scan.to_df()
    for mode in ("extended", "cost", "formatted"):
        df.explain(mode=mode)
    print(df._jdf.queryExecution().toString())
    print(spark.conf.getAll)
    spark.sql("SET").show(1000, False)
    spark.sql("SET -v").show(2000, False)
    print(spark.sparkContext.getConf().getAll())
    for entry in spark._jsparkSession.sessionState().newHadoopConf().iterator():
        print(entry.getKey(), entry.getValue())


def stream(table: Any) -> None:
    folder = OUT / "checkpoint"
    rows = table.read_stream(checkpoint=folder)
    query = (
        rows.writeStream.option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
        .format("parquet")
        .option("path", str(OUT / "streamed"))
        .start()
    )
    query.awaitTermination()
    print(query.lastProgress)


def main() -> None:
    spark = session()
    logging.basicConfig(level=logging.DEBUG, filename=OUT / "python.log", force=True)
    lake = frazil.connect(spark, **SETUP["catalog"])
    print(repr(lake), lake)
    rows = spark.range(10).selectExpr("id", "'a' v")
    table = lake.create_table("db.t", "id long, v string")
    table.append(rows)
    if SETUP["stream"]:
        stream(table)
    else:
        with failing("a stream"):
            stream(table)
    with failing("a session's own credentials"):
        spark.conf.set("frazil.files.credentials", "neither")
        print(table.to_df().count())
    spark.conf.unset("frazil.files.credentials")
    changed = spark.createDataFrame([(5, "b"), (50, "c")], "id long, v string")
    merge = table.merge(changed, on=["id"]).when_matched_update_all()
    merge.when_not_matched_insert_all().execute()
    table.delete("id = 3")
    print(table.count(), table.scan("id > 4").to_df().collect())
    print(lake.sql("SELECT count(*) FROM db.t").collect())
    print(table.inspect.dataframes.data_files().collect())
    shown(spark, table)
    with failing("a column"):
        table.append(rows.withColumn("more", rows.id))
    with failing("a value"):
        table.scan("nothing = 1").to_df()
    with failing("a table"):
        lake.load_table("db.nothing")
    with failing("files of the wrong keys"):
        other = lake.load_table("db.closed")
        print(repr(other), other.io)
        other.append(rows)
    with failing("reading with the wrong keys"):
        lake.load_table("db.closed").io.read(f"{SETUP['closed']}/x")
    with failing("a server that repeats what it was sent"):
        lake.load_table("db.echo")
    with failing("another login"):
        frazil.connect(spark, **{**SETUP["catalog"], **SETUP["wrong"]})
    with failing("a malformed property"):
        frazil.connect(spark, **{**SETUP["catalog"], "token-refresh-enabled": "maybe"})
    lake.close()
    spark.stop()
    print("THE END")


if __name__ == "__main__":
    sys.exit(main())
