"""A local Spark for one command."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from frazil.catalog.base import LoadedTable
from frazil.spark.session import prepare_session
from frazil.spark.table import Table
from frazil.table.handle import TableHandle


@contextmanager
def open_with_spark(handle: TableHandle) -> Iterator[Table]:
    """The table with a quiet local session, which ends with the block."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark = (
        SparkSession.builder.master("local[*]")
        .appName("frazil")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    try:
        prepare_session(spark)
        loaded = LoadedTable(handle.identifier, handle.metadata, handle.metadata_location)
        yield Table(spark, handle.catalog, loaded)
    finally:
        spark.stop()
