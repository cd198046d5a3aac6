"""Shared fixtures: one Spark session a test process, the real tables of other engines."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connect_server import connect_server

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT.parent / "shared" / "fixtures"

# Every Spark of the tests runs many small queries: compiling them further costs more than it saves.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def fixtures_dir() -> Path:
    """The folder of real tables and golden files by other engines."""
    if not FIXTURES.is_dir():
        pytest.skip("the folder shared/fixtures is not beside this checkout")
    return FIXTURES


@dataclass(frozen=True)
class S3Store:
    """A server of the S3 protocol on a loopback port.

    Attributes:
        client: boto3's, to make buckets and to look at what lies there without this library.
        properties: what a catalog or FileIO needs to reach it.
    """

    client: Any
    properties: dict[str, str]

    def new_bucket(self, name: str) -> str:
        """Make a bucket of that name and return its URI."""
        self.client.create_bucket(Bucket=name)
        return f"s3://{name}"

    def keys(self, bucket: str) -> list[str]:
        """Every key in a bucket, folder markers too."""
        name = bucket.removeprefix("s3://")
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=name)
        return [item["Key"] for page in pages for item in page.get("Contents", ())]


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Store]:
    """moto's S3 over HTTP, with made-up credentials."""
    import boto3
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Handler(WSGIRequestHandler):
        disable_nagle_algorithm = True

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    app = DomainDispatcherApplication(create_backend_app)
    # One request at a time: moto itself does not make a condition and its write one step.
    server = make_server("127.0.0.1", 0, app, threaded=False, request_handler=Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    properties = {
        "s3.endpoint": f"http://127.0.0.1:{server.server_port}",
        "s3.access-key-id": "AKIAMADEUPFORTESTS",
        "s3.secret-access-key": "made-up-secret-of-tests",
        "s3.region": "us-east-1",
    }
    client = boto3.client(
        "s3",
        endpoint_url=properties["s3.endpoint"],
        aws_access_key_id=properties["s3.access-key-id"],
        aws_secret_access_key=properties["s3.secret-access-key"],
        region_name=properties["s3.region"],
    )
    yield S3Store(client, properties)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The one local Spark session of this test process."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    scratch = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("frazil-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.default.parallelism", "2")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of this test process's own Spark Connect server."""
    pytest.importorskip("grpc", reason="the extra `connect` is not installed")
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address
