"""Spark sessions to measure in: Frazil alone, or with the Java runtime beside it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

JAVA_PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0,org.xerial:sqlite-jdbc:3.46.1.3"
)
STORE_PACKAGES = "org.apache.hadoop:hadoop-aws:3.4.2,org.apache.iceberg:iceberg-aws-bundle:1.12.0"


def has_java_runtime() -> bool:
    """Whether there is a Java runtime for this Spark: 4.1 is the newest that has one."""
    return pyspark.__version__.startswith("4.1.")


def start(
    folder: Path, *, memory: str = "6g", on_stores: bool = False, master: str = "local[2]"
) -> SparkSession:
    """A session, of two cores here unless told; on 4.1 with the Java runtime as catalog `java`.

    `java` is the JDBC catalog on the database that Frazil uses in `folder`.

    Args:
        folder: of the lake.
        memory: of the driver.
        on_stores: whether s3a and S3FileIO are there too.
        master: where the cores are.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.master(master)
        .appName("frazil-bench")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", memory)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
    )
    if has_java_runtime():
        packages = f"{JAVA_PACKAGES},{STORE_PACKAGES}" if on_stores else JAVA_PACKAGES
        builder = (
            builder.config("spark.jars.packages", packages)
            .config(
                "spark.sql.extensions",
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            )
            .config("spark.sql.catalog.java", "org.apache.iceberg.spark.SparkCatalog")
            .config("spark.sql.catalog.java.type", "jdbc")
            .config("spark.sql.catalog.java.uri", f"jdbc:sqlite:{folder / 'catalog.db'}")
            .config("spark.sql.catalog.java.jdbc.schema-version", "V1")
            .config("spark.sql.catalog.java.warehouse", str(folder))
            .config("spark.sql.catalog.java.cache-enabled", "false")
        )
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
