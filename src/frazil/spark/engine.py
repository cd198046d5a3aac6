"""What a snapshot's summary says of the Spark that made it, under the Java runtime's names."""

from __future__ import annotations

from pyspark.sql import SparkSession


def engine_summary(spark: SparkSession) -> dict[str, str]:
    """Return the engine's name and version and the application's id, where Spark tells it."""
    app_id = spark.conf.get("spark.app.id", None)
    ids = {} if not app_id else {"app-id": app_id, "spark.app.id": app_id}
    return {"engine-name": "spark", "engine-version": spark.version, **ids}
