"""Hive metastores in processes of their own, with their databases in a folder."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4
from xml.sax.saxutils import escape

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from pymetastore.metastore import HMS

METASTORES: Final = Path(__file__).parents[2] / ".venvmetastores"
"""What scripts/metastores.sh has got."""
OF_SPARK: Final = "2.3.10"
"""Spark has all of that Hive's metastore among its jars."""
VERSIONS: Final = ("4.0.1", "3.1.3", OF_SPARK)
LOCKS_END_SOON: Final = 4
"""Seconds after which a metastore in PostgreSQL ends the lock of a writer that it does not hear.

In Derby it ends none: there what ends locks and those who ask for them wait for each other.
"""

_SECONDS: Final = 120
_SCHEMA_TOOLS: Final = {
    "4.0.1": "org.apache.hadoop.hive.metastore.tools.schematool.MetastoreSchemaTool",
    "3.1.3": "org.apache.hadoop.hive.metastore.tools.MetastoreSchemaTool",
}
_HOUSE_KEEPER: Final = "org.apache.hadoop.hive.metastore.txn.service.AcidHouseKeeperService"
"""What ends the locks of the dead."""
_JAVA_OPTIONS: Final = (
    *("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *("--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.net=ALL-UNNAMED"),
)
_LOGGING_OF_HIVE_2: Final = ("-Dhive.root.logger=console", "-Dhive.log.level=INFO")
_OF_HIVE_2: Final = {
    # Without Hive's own archive some classes are not there: of pools, and of logs beside the work.
    "datanucleus.connectionPoolingType": "HikariCP",
    "hive.async.log.enabled": "false",
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
}
_LOGGING_JARS: Final = ("slf4j-api", "log4j-api", "log4j-core", "log4j-slf4j2-impl")
_HADOOP_JARS: Final = ("hadoop-client-api", "hadoop-client-runtime", "jcl-over-slf4j", "commons")


@dataclass(frozen=True)
class Metastore:
    """A metastore that runs.

    Attributes:
        version: Hive's.
        port: where it listens on this machine.
        folder: its files; the warehouse is `warehouse`.
        process: the server.
    """

    version: str
    port: int
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def warehouse(self) -> str:
        return f"file://{self.folder}/wh"


def properties_of(hive: Metastore, **more: str) -> dict[str, str]:
    """The properties of a catalog on a metastore, in a warehouse where nothing lies."""
    warehouse = f"{hive.warehouse}/{uuid4().hex}"
    return {"type": "hive", "uri": hive.uri, "warehouse": warehouse, **more}


@contextmanager
def client_of(hive: Metastore) -> Iterator[Any]:
    """A client of the metastore itself."""
    with HMS.create("127.0.0.1", hive.port) as made:
        yield made.client


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])


@contextmanager
def metastore(
    version: str,
    folder: Path,
    *,
    database: str | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
    java_options: Sequence[str] = (),
) -> Iterator[Metastore]:
    """Start a metastore; skips the test where it was not to be had.

    Args:
        version: Hive's.
        folder: for its files.
        database: the address of one of PostgreSQL, with the user in it; Derby's otherwise.
        more: settings of Hive and of Hadoop.
        java_options: of the server alone.
    """
    home = METASTORES / f"apache-hive-metastore-{version}-bin"
    if version != OF_SPARK and not home.exists():
        pytest.skip(
            f"Hive's metastore {version} is not there: `make catalogs` gets it, or says why"
        )
    if database is not None and not list(METASTORES.glob("postgresql-*.jar")):
        pytest.skip("the driver of PostgreSQL is not there: `make catalogs` gets it, or says why")
    port = free_port()
    configuration = folder / "conf"
    configuration.mkdir(parents=True)
    settings = {**_settings(folder, port), **_database(folder, database), **more}
    (configuration / "core-site.xml").write_text(_site(more))
    java = [*_java(home, configuration), f"-Dderby.stream.error.file={folder}/derby.log"]
    if version == OF_SPARK:
        (configuration / "hive-site.xml").write_text(_site({**settings, **_OF_HIVE_2}))
        _make_locks_of_hive_2(configuration)
        java = [*_program(), *_LOGGING_OF_HIVE_2, "-cp", _classes_of_hive_2(configuration)]
    else:
        (configuration / "metastore-site.xml").write_text(_site(settings))
        tool = [_SCHEMA_TOOLS[version], "-dbType", "postgres" if database else "derby"]
        made = subprocess.run(
            [*java, *tool, "-initSchema"],
            env={**os.environ, "METASTORE_HOME": str(home)},
            capture_output=True,
        )
        assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-3000:]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [java[0], *java_options, *java[1:], "org.apache.hadoop.hive.metastore.HiveMetaStore"],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        running = Metastore(version, port, folder, process)
        _wait(running)
        yield running
    finally:
        process.kill()
        process.wait(60)


def _java(home: Path, configuration: Path) -> list[str]:
    """Java with the metastore's classes, those of Hadoop as Spark has them."""
    own = [f"{home}/lib/*", f"{METASTORES}/more/*", *map(str, METASTORES.glob("*.jar"))]
    jars = [str(configuration), *_of_spark(_LOGGING_JARS), *own, *_of_spark(_HADOOP_JARS)]
    return [*_program(), "-cp", ":".join(jars)]


def _program() -> list[str]:
    found = os.environ.get("JAVA_HOME")
    return [f"{found}/bin/java" if found else "java", *_JAVA_OPTIONS]


def _classes_of_hive_2(configuration: Path) -> str:
    return f"{configuration}:{Path(pyspark.__file__).parent}/jars/*"


def _make_locks_of_hive_2(configuration: Path) -> None:
    """Make the tables of locks, which no program among Spark's jars makes; the server the rest."""
    jars = Path(pyspark.__file__).parent / "jars"
    port, process = launch_gateway(
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        classpath=_classes_of_hive_2(configuration),
        javaopts=[*_JAVA_OPTIONS, *_LOGGING_OF_HIVE_2],
        die_on_exit=True,
        return_proc=True,
        cwd=str(configuration),
    )
    try:
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
        hive = gateway.jvm.org.apache.hadoop.hive
        hive.metastore.txn.TxnDbUtil.prepDb(hive.conf.HiveConf())
        gateway.close()
    finally:
        process.kill()
        process.wait(60)


def _of_spark(names: tuple[str, ...]) -> list[str]:
    folder = Path(pyspark.__file__).parent / "jars"
    return [str(jar) for name in names for jar in folder.glob(f"{name}-*.jar")]


def _database(folder: Path, url: str | None) -> dict[str, str]:
    if url is None:
        place = f"jdbc:derby:;databaseName={folder}/database;create=true"
        driver, user, password = "org.apache.derby.jdbc.EmbeddedDriver", "APP", "mine"
    else:
        parts = urlsplit(url)
        place = f"jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}"
        driver, user, password = "org.postgresql.Driver", str(parts.username), str(parts.password)
    ends_locks = {
        "metastore.task.threads.always": _HOUSE_KEEPER,
        "metastore.acid.housekeeper.interval": "1s",
        "metastore.txn.timeout": f"{LOCKS_END_SOON}s",
    }
    return {
        **({} if url is None else ends_locks),
        "javax.jdo.option.ConnectionURL": place,
        "javax.jdo.option.ConnectionDriverName": driver,
        "javax.jdo.option.ConnectionUserName": user,
        "javax.jdo.option.ConnectionPassword": password,
    }


def _settings(folder: Path, port: int) -> dict[str, str]:
    return {
        "metastore.thrift.uris": "",
        "metastore.thrift.port": str(port),
        "metastore.thrift.bind.host": "127.0.0.1",
        "hive.metastore.port": str(port),
        "metastore.warehouse.dir": f"{folder}/managed",
        "hive.metastore.warehouse.dir": f"{folder}/managed",
        "metastore.warehouse.external.dir": f"{folder}/wh",
        "metastore.expression.proxy": (
            "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy"
        ),
        # Another one is a class of Hive's query engine.
        "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
        "metastore.schema.verification": "false",
        # Columns of Iceberg tables change their order and their types.
        "metastore.disallow.incompatible.col.type.changes": "false",
        "hive.metastore.disallow.incompatible.col.type.changes": "false",
    }


def _site(settings: Mapping[str, str]) -> str:
    rows = (
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    )
    return f"<configuration>{''.join(rows)}</configuration>"


def _wait(server: Metastore) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline and server.process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", server.port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"no metastore: {(server.folder / 'log').read_text()[-3000:]}")
