"""A session of Spark on an S3 server of the tests, by Hadoop's connector."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from frazil.spark.local.java import find_java

_JARS = Path(pyspark.__file__).parent / "jars"
_CENTRAL = """<ivysettings><settings defaultResolver="central"/>
<resolvers><ibiblio name="central" m2compatible="true"/></resolvers></ivysettings>"""


def spark_on(given: Mapping[str, str], master: str, settings: Mapping[str, str]) -> SparkSession:
    """Start a session that reaches a store.

    Args:
        given: the store's properties.
        settings: more of Spark's.
    """
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    for name, value in {**hadoop_settings(given), **settings}.items():
        builder.config(name, value)
    return builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()


def hadoop_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Settings of Spark with which Hadoop's connector reaches a store of these properties."""
    hadoop = {
        "endpoint": given["s3.endpoint"],
        "endpoint.region": given["s3.region"],
        "access.key": given["s3.access-key-id"],
        "secret.key": given["s3.secret-access-key"],
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
    }
    return {f"spark.hadoop.fs.s3a.{name}": value for name, value in hadoop.items()}


def connector() -> str:
    """Hadoop's connector to S3, of the version of Spark's Hadoop, for `spark.jars.packages`."""
    [found] = _JARS.glob("hadoop-client-api-*.jar")
    return f"org.apache.hadoop:hadoop-aws:{found.stem.rpartition('-')[2]}"


def connector_jars(folder: Path) -> list[Path]:
    """The jars of the connector, as Spark's own Ivy finds them; it keeps them for other sessions.

    Args:
        folder: for notes of Ivy.
    """
    settings, told = folder / "ivy.xml", folder / "ivy.path"
    settings.write_text(_CENTRAL)
    [ivy] = _JARS.glob("ivy-*.jar")
    cache = Path.home() / ".ivy2.5.2" / "cache"
    words = [find_java().path, "-cp", str(ivy), "org.apache.ivy.Main", "-settings", str(settings)]
    words += ["-cache", str(cache), "-dependency", *connector().split(":")]
    subprocess.run([*words, "-confs", "default", "-cachepath", str(told)], check=True)
    return [Path(each) for each in told.read_text().strip().split(os.pathsep)]
