"""Streams of tables on S3, with their checkpoints on the local disk and on S3.

Run by `test_interop_s3a`. Expected rows are plain Python.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from s3a_store import BUCKET, Rows, ordered

from frazil.spark.lake import Lake

ODD_CHECKPOINT = f"s3a://{BUCKET}/check/a b/50%25 x=y 日本"


@pytest.mark.parametrize(
    "place", ["local", "s3a://lake/check/own", "s3://lake/check/s3", ODD_CHECKPOINT]
)
def test_streams(
    spark: Any, lake: Lake, client: Any, fresh: str, tmp_path: Path, place: str
) -> None:
    """Each row once over restarts, flat and nested, deletes as changes."""
    table = lake.create_table(fresh, "id int, city string", partition_by=["city"])
    folder = str(tmp_path) if place == "local" else place
    # Spark itself knows only its connector's scheme.
    spark_folder = folder.replace("s3://", "s3a://")
    seen: Rows = []

    def take(batch: Any, number: int) -> None:
        seen.extend(tuple(row) for row in batch.collect())

    expected: Rows = []
    for number in range(3):
        rows = [(number, "a b"), (number, "50%"), (number, "日本")]
        table.append(spark.createDataFrame(rows, "id int, city string"))
        expected += rows
        stream = table.read_stream(checkpoint=folder, max_files_per_batch=2)
        query = (
            stream.writeStream.foreachBatch(take)
            .option("checkpointLocation", spark_folder)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        assert ordered(seen) == ordered(expected)


def test_stream_of_changes(spark: Any, lake: Lake, client: Any, fresh: str, tmp_path: Path) -> None:
    """Rows that a batch needs written lie in the checkpoint, here on S3."""
    table = lake.create_table(fresh, "id int, tags array<int>")
    folder = f"s3a://{BUCKET}/check/changes"
    seen: Rows = []

    def take(batch: Any, number: int) -> None:
        seen.extend(tuple(row) for row in batch.select("id", "_change_type").collect())

    for step in range(2):
        if step == 0:
            df = spark.createDataFrame([(1, [1]), (2, None)], "id int, tags array<int>")
            table.append(df)
        else:
            table.refresh().overwrite(
                spark.createDataFrame([(3, [3])], "id int, tags array<int>"), where="id = 1"
            )
        query = (
            table.read_stream(checkpoint=folder, on_overwrite="changes", on_delete="changes")
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", folder)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
    assert ordered(seen) == ordered([(1, "INSERT"), (2, "INSERT"), (1, "DELETE"), (3, "INSERT")])
