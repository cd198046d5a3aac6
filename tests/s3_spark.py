"""A session of Spark on an S3 server of the tests, by Hadoop's connector."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession


def spark_on(given: Mapping[str, str], master: str, settings: Mapping[str, str]) -> SparkSession:
    """Start a session that reaches a store.

    Args:
        given: the store's properties.
        settings: more of Spark's.
    """
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    hadoop = {
        "endpoint": given["s3.endpoint"],
        "endpoint.region": given["s3.region"],
        "access.key": given["s3.access-key-id"],
        "secret.key": given["s3.secret-access-key"],
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
    }
    for name, value in hadoop.items():
        builder.config(f"spark.hadoop.fs.s3a.{name}", value)
    for name, value in settings.items():
        builder.config(name, value)
    return builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
