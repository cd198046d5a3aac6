"""A session with Iceberg's Java runtime and the jars for S3; all are clients of one branch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jvm_options import JVM_OPTIONS
from pyiceberg.catalog.rest import RestCatalog as PyIcebergCatalog

from frazil.spark.lake import Lake, connect
from frazil.storage.files import FileIO

URI: str = os.environ.get("NESSIE_URI", "")
STORE: dict[str, str] = json.loads(os.environ.get("NESSIE_STORE", "{}"))
# Hadoop's jars have the SDK of S3, but none of the two HTTP clients that Iceberg takes.
JAVA_PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0,org.apache.hadoop:hadoop-aws:3.4.2,"
    "software.amazon.awssdk:url-connection-client:2.29.52"
)
# Nessie has views and names no endpoints, of which the protocol then leaves out views.
HAS_VIEWS = {"view-endpoints-supported": "true"}
_SETTINGS = {
    "spark.jars.packages": JAVA_PACKAGES,
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": JVM_OPTIONS,
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


def _settings() -> dict[str, str]:
    """Spark's own way to the bucket, and Java's: both are told the keys."""
    endpoint, key = STORE["s3.endpoint"], STORE["s3.access-key-id"]
    secret, region = STORE["s3.secret-access-key"], STORE["s3.region"]
    s3a = {
        "impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "endpoint": endpoint,
        "endpoint.region": region,
        "access.key": key,
        "secret.key": secret,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        # moto's server speaks HTTP/1.0, in which nobody answers `Expect: 100-continue`.
        "connection.expect.continue": "false",
    }
    java = {
        "type": "rest",
        "uri": URI,
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": endpoint,
        "s3.access-key-id": key,
        "s3.secret-access-key": secret,
        "s3.path-style-access": "true",
        "client.region": region,
        "http-client.type": "urlconnection",
        "cache-enabled": "false",
        **HAS_VIEWS,
    }
    return {
        **_SETTINGS,
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()},
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.sql.catalog.java": "org.apache.iceberg.spark.SparkCatalog",
        **{f"spark.sql.catalog.java.{name}": value for name, value in java.items()},
    }


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session; `java` is Nessie's catalog by the Java runtime."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[1]").appName("frazil-nessie")
    for key, value in _settings().items():
        builder.config(key, value)
    builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("spark")))
    with FileIO().lock(str(Path(__file__).parent.parent)):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def lake(spark: Any) -> Iterator[Lake]:
    """Nessie's catalog by Frazil."""
    with connect(spark, type="rest", uri=URI, **STORE, **HAS_VIEWS) as made:
        made.create_namespace("db")
        yield made


@pytest.fixture(scope="session")
def peer() -> PyIcebergCatalog:
    """Nessie's catalog by PyIceberg."""
    return PyIcebergCatalog("lake", uri=URI, **STORE, **HAS_VIEWS)
