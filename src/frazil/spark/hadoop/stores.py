"""Who opens the stores of a lake: fsspec, or the file systems of Spark's Hadoop."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from frazil.errors import ConfigurationError, UnsupportedError
from frazil.later import later
from frazil.spark.hadoop.from_elsewhere import StoresElsewhere
from frazil.spark.session.facts import is_connect
from frazil.storage.stores.remote_options import S3_SCHEMES
from frazil.storage.stores.store import HADOOP, IO_PROPERTY, Store, Stores

if TYPE_CHECKING:
    from frazil.spark.hadoop.driver import FileServer
    from frazil.spark.hadoop.store import HadoopObjectStore, HadoopStore
    from frazil.spark.hadoop.systems import HadoopFileSystems
else:
    FileServer = later("frazil.spark.hadoop.driver", "FileServer")
    HadoopStore = later("frazil.spark.hadoop.store", "HadoopStore")
    HadoopObjectStore = later("frazil.spark.hadoop.store", "HadoopObjectStore")
    HadoopFileSystems = later("frazil.spark.hadoop.systems", "HadoopFileSystems")


class HadoopStores:
    """Stores of one lake by Hadoop's file systems, in the configuration of its session.

    Another process that this is sent to, an executor or a forked child, has no virtual machine
    beside it: its files come and go through the process of the session.

    Args:
        session: returns the session, when a file is first asked for.
    """

    def __init__(self, session: Callable[[], SparkSession]) -> None:
        self._session = session
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._systems: HadoopFileSystems | None = None
        self._server: FileServer | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        elsewhere = self._stores_elsewhere()
        return StoresElsewhere, (elsewhere.address, elsewhere.key)

    def open(self, scheme: str) -> Store:
        """Return the store of the paths of a scheme."""
        if os.getpid() != self._process:
            return self._stores_elsewhere().open(scheme)
        systems = self._open()
        if scheme in S3_SCHEMES and systems.deletes_many:
            return HadoopObjectStore(systems, scheme)
        return HadoopStore(systems, scheme)

    def _open(self) -> HadoopFileSystems:
        with self._lock:
            if self._systems is None:
                self._systems = HadoopFileSystems(_classic(self._session()))
            return self._systems

    def _stores_elsewhere(self) -> StoresElsewhere:
        """How another process reaches them."""
        if self._server is None and os.getpid() != self._process:
            raise UnsupportedError(
                f"process {os.getpid()} was forked from the one of the Spark session, and "
                f"{IO_PROPERTY}={HADOOP} reaches files through that session alone: start it with "
                "multiprocessing's 'spawn' method, and let it have a session of its own"
            )
        systems = self._open()
        with self._lock:
            if self._server is None:
                self._server = FileServer.start(systems.spark, self.open)
            return StoresElsewhere(self._server.address, self._server.key)


def stores_of(properties: Mapping[str, str], spark: SparkSession | None = None) -> Stores | None:
    """Return who opens the stores of a catalog with these properties; None where fsspec does.

    Args:
        properties: of the catalog.
        spark: the session; the active one at the first file unless given.

    Raises:
        ConfigurationError: the property has an unknown value.
        UnsupportedError: the session is one of Spark Connect.
    """
    choice = properties.get(IO_PROPERTY)
    if choice is None:
        return None
    if choice != HADOOP:
        raise ConfigurationError(
            f"{IO_PROPERTY} is {choice!r}: it must be {HADOOP}, or left out for fsspec's drivers"
        )
    if spark is None:
        return HadoopStores(_active)
    session = _classic(spark)
    return HadoopStores(lambda: session)


def _active() -> SparkSession:
    found = SparkSession.getActiveSession()
    if found is None:
        raise ConfigurationError(
            f"{IO_PROPERTY}={HADOOP} reaches files through a Spark session, and none is active: "
            "open the catalog by frazil.connect(spark, …)"
        )
    return found


def _classic(spark: SparkSession) -> SparkSession:
    if is_connect(spark):
        raise UnsupportedError(
            f"{IO_PROPERTY}={HADOOP} needs Spark's driver beside this process, and over Spark "
            f"Connect it is on the server: leave {IO_PROPERTY} out and reach the store by its own "
            "properties (s3.…, gcs.…, adls.…; hdfs.host with libhdfs), or use a classic session"
        )
    return spark
