"""Shared fixtures: one Spark session a test process, the real tables of other engines."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from absent import skip_without
from circles import pytest_terminal_summary  # noqa: F401
from connect_server import connect_server
from glue_server import GlueServer, glue_server
from postgres_server import PostgresServer, postgres_server
from s3_server import S3Store, s3_server

pytest_plugins = ["run_recorder"]

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT.parent / "shared" / "fixtures"

# Every Spark of the tests runs many small queries: compiling them further costs more than it saves,
# and so do sweeping the small code cache of that level, verifying Spark's classes, and noting the
# Python line of every column (a failed import of IPython each time). Pages of 32 MB, the default
# for each sort or aggregate, fill the heap for a few rows: it would be swept every few seconds. It
# would also be at each step in which the room for classes grows, were that small to begin with.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
    "-XX:ReservedCodeCacheSize=512m -XX:-MethodFlushing "
    "-XX:MetaspaceSize=256m -Dspark.buffer.pageSize=1m "
    "-Dspark.python.sql.dataFrameDebugging.enabled=false",
)


def pytest_configure() -> None:
    """End by SIGTERM as by Control-C: what the tests started is ended too."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def fixtures_dir() -> Path:
    """The folder of real tables and golden files by other engines."""
    if not FIXTURES.is_dir():
        skip_without("the folder shared/fixtures is not beside this checkout")
    return FIXTURES


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Store]:
    """A server of the S3 protocol that many tests share."""
    with s3_server() as store:
        yield store


@pytest.fixture(scope="session")
def glue() -> Iterator[GlueServer]:
    """Servers of the Glue and S3 protocols that many tests share."""
    with glue_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that many tests share."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def logical() -> Iterator[PostgresServer]:
    """A PostgreSQL whose log tells changes; skipped where there is none."""
    with postgres_server("wal_level=logical") as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer, request: pytest.FixtureRequest) -> str:
    """A database for one test alone."""
    return postgres.new_database(f"t{abs(hash(request.node.nodeid)) % 10**12}")


@pytest.fixture
def local_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the zone of this process, not of Spark's JVM, until the end of the test."""

    def change(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield change
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The one local Spark session of this test process."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        skip_without("there is no Java 17 or newer (Debian: apt-get install default-jre-headless)")
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


@pytest.fixture(autouse=True)
def no_views_are_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """The temporary views that a test makes are not there in the next one; a module's own stay."""
    if "spark" not in request.fixturenames:
        yield
        return
    catalog = request.getfixturevalue("spark")._jsparkSession.sessionState().catalog()

    def views() -> set[str]:
        found = catalog.listLocalTempViews("*")
        return {found.apply(place).table() for place in range(found.size())}

    before = views()
    yield
    for name in views() - before:
        catalog.dropTempView(name)


@pytest.fixture
def lake_settings(tmp_path: Path) -> dict[str, Any]:
    """What `lake` is opened with; a folder or module of other catalogs gives its own."""
    return {"warehouse": str(tmp_path / "lake")}


@pytest.fixture
def lake(spark: Any, lake_settings: dict[str, Any]) -> Iterator[Any]:
    """A lake of one test with the namespace `db`; `lake_settings` says of which catalog."""
    import frazil

    with frazil.connect(spark, **lake_settings) as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture(scope="module")
def shared_lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A lake of one module, named `lake`, for tables that no test changes."""
    import frazil

    folder = tmp_path_factory.mktemp("lake")
    with frazil.connect(spark, warehouse=str(folder), name="lake") as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture
def table_settings() -> dict[str, Any]:
    """What `table` is made of: `schema`, `appends`, and settings of `create_table`.

    A folder or module gives its own. Each of `appends` is a commit of one file: rows or a query.
    """
    return {"schema": "id bigint"}


@pytest.fixture
def table(table_settings: dict[str, Any], lake: Any) -> Any:
    """The table `db.t` of one test."""
    settings = dict(table_settings)
    schema, appends = settings.pop("schema"), settings.pop("appends", ())
    made = lake.create_table("db.t", schema, **settings)
    for rows in appends:
        is_query = isinstance(rows, str)
        found = lake.spark.sql(rows) if is_query else lake.spark.createDataFrame(rows, schema)
        made.append(found.coalesce(1))
    return made


@pytest.fixture
def session(spark: Any) -> Iterator[Callable[..., None]]:
    """Sets session settings for one test."""
    before: dict[str, Any] = {}

    def change(**settings: Any) -> None:
        for name, value in settings.items():
            key = name.replace("__", ".")
            before.setdefault(key, spark.conf.get(key, None))
            spark.conf.set(key, value)

    yield change
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


@pytest.fixture(scope="session")
def connect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of this test process's own Spark Connect server."""
    pytest.importorskip("grpc", reason="the extra `connect` is not installed")
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address
