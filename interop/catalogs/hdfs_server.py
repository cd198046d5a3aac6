"""An HDFS of one name node and one data node, in a Java of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

JARS: Final = Path(__file__).parents[2] / ".jars"
"""What scripts/minicluster.sh has got."""
_OPTIONS: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True)
class Hdfs:
    """A cluster that runs.

    Attributes:
        uri: of its root.
        cluster: Hadoop's ``MiniDFSCluster``.
        java: the machine that it runs in.
    """

    uri: str
    cluster: Any
    java: Any


@contextmanager
def hdfs(folder: Path) -> Iterator[Hdfs]:
    """Start a cluster whose files lie in a folder; skips the test where it was not to be had."""
    found = sorted(JARS.glob("hadoop-client-minicluster-*.jar"))
    if not found:
        pytest.skip("Hadoop's mini cluster is not there: `make catalogs` gets it, or says why")
    jars = Path(pyspark.__file__).parent / "jars"
    with (folder / "log").open("w") as log:
        port, process = launch_gateway(
            jarpath=str(next(jars.glob("py4j-*.jar"))),
            classpath=f"{found[-1]}:{jars}/*",
            javaopts=[*_OPTIONS, f"-Dhadoop.tmp.dir={folder}"],
            die_on_exit=True,
            return_proc=True,
            redirect_stdout=log,
            redirect_stderr=log,
            cwd=str(folder),
        )
    try:
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
        cluster = _started(gateway.jvm, folder)
        yield Hdfs(f"hdfs://127.0.0.1:{cluster.getNameNodePort()}", cluster, gateway.jvm)
        gateway.close()
    finally:
        process.kill()
        process.wait(60)


def _started(java: Any, folder: Path) -> Any:
    settings = java.org.apache.hadoop.conf.Configuration()
    settings.set("hdfs.minidfs.basedir", os.fspath(folder))
    builder = getattr(java.org.apache.hadoop.hdfs, "MiniDFSCluster$Builder")(settings)
    cluster = builder.numDataNodes(1).build()
    cluster.waitActive()
    return cluster
