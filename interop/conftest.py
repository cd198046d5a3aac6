"""One Spark 4.1 session with the Java runtime in it, and lakes that both use."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyspark
import pytest
from interop_engines import DuckDB
from interop_nessie import Nessie, nessie_server
from interop_rest import JavaHandlers, rest_server
from interop_tables import Engines, MadeOnce, write_with_frazil, write_with_java
from java_settings import SETTINGS

from circles import pytest_terminal_summary  # noqa: F401
from frazil.spark.lake import Lake, connect
from frazil.storage.files import FileIO
from s3_server import S3Store, s3_server


def pytest_configure() -> None:
    """End by SIGTERM as by Control-C: what the tests started is ended too."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the SQL catalog's tables."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def hadoop_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the filesystem catalog's tables."""
    return tmp_path_factory.mktemp("hadoop")


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, warehouse: Path, hadoop_warehouse: Path
) -> Iterator[Any]:
    """A session in which `java_sql` and `java_hadoop` are catalogs of the Java runtime."""
    assert pyspark.__version__.startswith("4.1."), "the Java runtime needs Spark 4.1: use .venv41"
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["TZ"] = "UTC"
    time.tzset()
    from pyspark.sql import SparkSession

    # Refusals of the other engine are expected here; their stack traces are not of interest.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    builder = SparkSession.builder.master("local[2]").appName("frazil-interop")
    catalogs = {
        "java_sql": {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{warehouse / 'catalog.db'}",
            "jdbc.schema-version": "V1",
            "warehouse": str(warehouse),
        },
        "java_hadoop": {"type": "hadoop", "warehouse": str(hadoop_warehouse)},
    }
    for name, settings in catalogs.items():
        builder.config(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
        for key, value in {**settings, "cache-enabled": "false"}.items():
            builder.config(f"spark.sql.catalog.{name}.{key}", value)
    for key, value in SETTINGS.items():
        builder.config(key, value)
    builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("spark")))
    # Two processes that fetch the runtime at once would fetch it into one folder.
    with FileIO().lock(str(Path(__file__).parent)):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def sql_lake(spark: Any, warehouse: Path) -> Iterator[Lake]:
    """Frazil's SQL catalog on the database of the Java runtime's JDBC catalog `java_sql`."""
    with connect(spark, warehouse=str(warehouse), name="java_sql") as lake:
        lake.create_namespace_if_not_exists("db")
        yield lake


@pytest.fixture(scope="session")
def hadoop_lake(spark: Any, hadoop_warehouse: Path) -> Iterator[Lake]:
    """Frazil's filesystem catalog on the folder of the Java runtime's `java_hadoop`."""
    with connect(spark, type="hadoop", warehouse=str(hadoop_warehouse)) as lake:
        lake.create_namespace_if_not_exists("db")
        yield lake


@pytest.fixture(scope="session")
def duck() -> DuckDB:
    """DuckDB with its Iceberg extension."""
    return DuckDB.started()


@pytest.fixture(scope="session")
def rest_lake(spark: Any, sql_lake: Lake) -> Iterator[DuckDB]:
    """Another DuckDB, with the tables of `java_sql` as `lake`, where it writes through REST."""
    duck = DuckDB.started()
    with rest_server(JavaHandlers(spark, sql_lake.catalog.name)) as address:
        duck.attach("lake", address)
        yield duck
        duck.connection.close()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Store]:
    """A server of the S3 protocol."""
    with s3_server() as store:
        yield store


@pytest.fixture(scope="session")
def nessie(s3: S3Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nessie]:
    """The server Nessie, with its tables in S3."""
    with nessie_server(s3, tmp_path_factory.mktemp("nessie")) as running:
        yield running


@pytest.fixture(scope="session")
def engines(spark: Any, sql_lake: Lake, duck: DuckDB) -> Engines:
    """Every reader of the tables in `java_sql`."""
    return Engines(spark, sql_lake, duck)


@pytest.fixture(scope="session")
def frazil_tables(spark: Any, sql_lake: Lake) -> MadeOnce:
    """The tables of the matrix, made by Frazil."""
    return MadeOnce(partial(write_with_frazil, spark, sql_lake), "f")


@pytest.fixture(scope="session")
def java_tables(spark: Any, sql_lake: Lake) -> MadeOnce:
    """The tables of the matrix, made by the Java runtime."""
    return MadeOnce(partial(write_with_java, spark), "j")
