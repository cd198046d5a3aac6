"""A Spark that ignores file logs must fail where it is told to use them: no row goes silently."""

import pytest

import frazil


def test_a_log_that_spark_ignores_fails_the_read(spark, tmp_path):
    settings = {
        "frazil.read.file-log": "always",
        "spark.sql.streaming.fileStreamSink.ignoreMetadata": "true",
    }
    with frazil.connect(spark, warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", "id bigint")
        table.append(spark.range(3))
        for key, value in settings.items():
            spark.conf.set(key, value)
        try:
            with pytest.raises(Exception, match="file-log-was-ignored"):
                table.to_df().collect()
        finally:
            for key in settings:
                spark.conf.unset(key)
