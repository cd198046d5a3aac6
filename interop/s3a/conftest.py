"""A session with Hadoop's connector to S3, and a lake on the server that the environment names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from jvm_options import JVM_OPTIONS
from s3a_store import BUCKET, ENDPOINT, SECRET, STORE, WAREHOUSE

from frazil.spark.lake import Lake, connect
from frazil.storage.files import FileIO

HADOOP_AWS = "org.apache.hadoop:hadoop-aws:3.4.2"
_HADOOP = {
    "endpoint": ENDPOINT,
    "endpoint.region": STORE["s3.region"],
    "access.key": STORE["s3.access-key-id"],
    "secret.key": SECRET,
    "path.style.access": "true",
    "connection.ssl.enabled": "false",
    # moto's server speaks HTTP/1.0, in which nobody answers `Expect: 100-continue`.
    "connection.expect.continue": "false",
    "attempts.maximum": "1",
    "retry.limit": "1",
}
_SETTINGS = {
    "spark.jars.packages": HADOOP_AWS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": JVM_OPTIONS,
    # It notes the Python line of every column, with a failed import of IPython each time.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with Hadoop's connector to S3, and without any other engine."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[1]").appName("frazil-s3a")
    for key, value in _SETTINGS.items():
        builder.config(key, value)
    for key, value in _HADOOP.items():
        builder.config(f"spark.hadoop.fs.s3a.{key}", value)
    builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("spark")))
    with FileIO().lock(str(Path(__file__).parent.parent)):
        session = builder.getOrCreate()
    # What it says is looked through for credentials.
    session.sparkContext.setLogLevel("INFO")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def client() -> Any:
    """boto3's, which looks at the buckets without this library."""
    made = boto3.client(
        "s3",
        endpoint_url=ENDPOINT,
        aws_access_key_id=STORE["s3.access-key-id"],
        aws_secret_access_key=SECRET,
        region_name=STORE["s3.region"],
    )
    made.create_bucket(Bucket=BUCKET)
    return made


@pytest.fixture(scope="session")
def lake(spark: Any, client: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """An embedded SQL catalog on the local disk whose tables lie on S3."""
    uri = f"sqlite:///{tmp_path_factory.mktemp('catalog') / 'catalog.db'}"
    with connect(spark, uri=uri, warehouse=WAREHOUSE, **STORE) as made:
        made.create_namespace("db")
        yield made


@pytest.fixture
def fresh(request: pytest.FixtureRequest) -> str:
    """A table's name for one test."""
    name = "".join(c if c.isalnum() else "_" for c in request.node.name).strip("_").lower()
    return f"db.{name}"
