"""Handing Spark a list of files: its own file log, and plain paths as the fallback."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as S
from spark_read_model import with_id

from frazil.errors import ConfigurationError
from frazil.planning.deletes.index import DeleteIndex
from frazil.spark.files.layout.weights import for_even_tasks, weighed_by_deletes
from frazil.spark.files.parquet.file_log import (
    FILE_LOG_SETTING,
    encode_paths,
    log_lines,
    read_parquet,
)
from frazil.spark.session.facts import prepare_session, temporary_settings
from frazil.storage.files import FileIO

ODD_NAMES = [
    "plain",
    "per%41cent",
    "sp ace",
    "a=b",
    "[1]{2}*?",
    "ü€𝄞",
    "hash#tag",
    'quo"te',
    "back\\slash",
    "tab\t\u2028\u00a0",
]
SCHEMA = S.StructType([S.StructField("id", S.LongType(), True, {"parquet.field.id": 1})])


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_encoded_path_decodes_to_itself(name: str) -> None:
    encoded = encode_paths(pl.Series("path", [f"file:///a/{name}"]))[0]
    assert unquote(encoded) == f"file:///a/{name}"
    assert not set(encoded) & set(' "<>\\^`{|}[]#?\t\u2028\u00a0')


def test_log_lines_are_json_with_the_ordinal_as_time() -> None:
    files = pl.DataFrame({"path": ['s3://b/ü "x'], "size": [7], "ordinal": [41]})
    version, line = log_lines(files).decode().split("\n")
    assert version == "v1"
    assert json.loads(line) == {
        "path": "s3://b/ü%20%22x",
        "size": 7,
        "isDir": False,
        "modificationTime": 41,
        "blockReplication": 1,
        "blockSize": 128 * 1024 * 1024,
        "action": "add",
    }


@pytest.mark.parametrize("choice", ["auto", "never"])
def test_every_file_is_read_once_and_knows_its_ordinal(
    spark: Any, tmp_path: Path, choice: str
) -> None:
    prepare_session(spark)
    schema = pa.schema([with_id("id", pa.int64(), 1)])
    paths = [tmp_path / f"{name}.parquet" for name in ODD_NAMES]
    for place, path in enumerate(paths):
        pq.write_table(pa.table([[place] * (place + 1)], schema=schema), path)
    files = pl.DataFrame(
        {
            "path": [f"file://{path}" for path in paths],
            # Manifests of real tables state more than the file has.
            "size": [path.stat().st_size + 100 for path in paths],
            "ordinal": [3 * place for place in range(len(paths))],
        }
    )
    with temporary_settings(spark, {FILE_LOG_SETTING: choice}):
        scan = read_parquet(
            spark, files, SCHEMA, rows=10, io=FileIO(), table_location=f"file://{tmp_path}"
        )
        found = (
            scan.rows.select("id", scan.ordinal().alias("o")).groupBy("id", "o").count().collect()
        )
    assert sorted(map(tuple, found)) == [(i, 3 * i, i + 1) for i in range(len(paths))]


def test_a_session_that_ignores_file_logs_gets_paths(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([[1]], schema=pa.schema([with_id("id", pa.int64(), 1)])), path)
    files = pl.DataFrame({"path": [f"file://{path}"], "size": [1000], "ordinal": [5]})
    key = "spark.sql.streaming.fileStreamSink.ignoreMetadata"
    with temporary_settings(spark, {key: "true"}):
        scan = read_parquet(
            spark, files, SCHEMA, rows=10, io=FileIO(), table_location=f"file://{tmp_path}"
        )
        assert scan.rows.select("id", scan.ordinal()).collect() == [(1, 5)]


def test_a_log_that_spark_ignores_where_it_has_to_be_used_fails_the_read(
    shared_lake: Any, spark: Any
) -> None:
    table = shared_lake.create_table("db.ignored", "id bigint")
    table.append(spark.range(3))
    key = "spark.sql.streaming.fileStreamSink.ignoreMetadata"
    with (
        temporary_settings(spark, {FILE_LOG_SETTING: "always", key: "true"}),
        pytest.raises(Exception, match="file-log-was-ignored"),
    ):
        table.to_df().collect()


def test_missing_files_are_an_error_whatever_the_session_says(spark: Any, tmp_path: Path) -> None:
    files = pl.DataFrame(
        {"path": [f"file://{tmp_path}/gone.parquet"], "size": [1000], "ordinal": [0]}
    )
    with temporary_settings(spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
        scan = read_parquet(
            spark, files, SCHEMA, rows=10, io=FileIO(), table_location=f"file://{tmp_path}"
        )
        with pytest.raises(Exception, match="FILE_NOT_EXIST"):
            scan.rows.agg(F.sum("id")).collect()


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_a_file_that_is_said_to_be_larger_is_read_once(
    spark: Any, tmp_path: Path, vectorized: str
) -> None:
    path = tmp_path / "a.parquet"
    schema = pa.schema([with_id("id", pa.int64(), 1)])
    pq.write_table(pa.table([range(10_000)], schema=schema), path, row_group_size=1000)
    size = path.stat().st_size
    settings = {
        "spark.sql.files.maxPartitionBytes": str(size // 5),
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.parquet.enableVectorizedReader": vectorized,
    }
    files = pl.DataFrame({"path": [f"file://{path}"], "size": [7 * size], "ordinal": [3]})
    with temporary_settings(spark, settings):
        scan = read_parquet(
            spark, files, SCHEMA, rows=10, io=FileIO(), table_location=f"file://{tmp_path}"
        )
        place = scan.rows.metadataColumn("_metadata").getField("row_index")
        rows = scan.rows.select("id", place, F.expr(scan.place.ordinal)).collect()
        assert scan.rows.rdd.getNumPartitions() > 20
    assert sorted(rows) == [(i, i, 3) for i in range(10_000)]


def test_a_file_weighs_its_bytes_and_its_deletes() -> None:
    files = pl.DataFrame({"ordinal": [0, 1, 2], "file_size_in_bytes": [100, 200, 300]})
    deletes = pl.DataFrame(
        {"delete": [7, 8], "file_size_in_bytes": [40, 5000], "content_size_in_bytes": [None, 6]},
        schema_overrides={"content_size_in_bytes": pl.Int64},
    )
    index = DeleteIndex.of_pairs(np.array([0, 2, 2, 9]), np.array([7, 7, 8, 8]))
    plan: Any = SimpleNamespace(delete_index=index, deletes=deletes)
    assert weighed_by_deletes(plan, files).rows() == [(0, 140), (1, 200), (2, 346)]


@pytest.mark.parametrize(
    ("sizes", "settings", "tasks"),
    [
        # Two cores: so many files of 4 MiB, which opening them costs, and of their own bytes.
        ([1000] * 50, {}, 2),
        ([1000] * 80, {}, 4),
        ([1000] * 130, {}, 6),
        ([1000] * 300, {}, 10),
        ([10 << 20, *[1 << 20] * 50], {}, 4),
        ([1000] * 80, {"spark.sql.files.openCostInBytes": "4MB"}, 3),
        ([1000] * 80, {"spark.sql.files.maxPartitionBytes": "64m"}, 5),
    ],
)
def test_few_tasks_are_as_many_for_each_core(
    spark: Any, tmp_path: Path, sizes: list[int], settings: dict[str, str], tasks: int
) -> None:
    """Spark itself says how many tasks there are, and reads each file once."""
    first = tmp_path / "0.parquet"
    pq.write_table(pa.table([[7]], schema=pa.schema([with_id("id", pa.int64(), 1)])), first)
    for number in range(1, len(sizes)):
        (tmp_path / f"{number}.parquet").hardlink_to(first)
    files = pl.DataFrame(
        {
            "path": [f"file://{tmp_path}/{number}.parquet" for number in range(len(sizes))],
            "file_size_in_bytes": sizes,
            "ordinal": range(len(sizes)),
        }
    )
    with temporary_settings(spark, settings):
        even = for_even_tasks(spark, files)
        assert (even["file_size_in_bytes"] >= files["file_size_in_bytes"]).all()
        scan = read_parquet(
            spark,
            even.rename({"file_size_in_bytes": "size"}),
            SCHEMA,
            rows=len(sizes),
            io=FileIO(),
            table_location=f"file://{tmp_path}",
        )
        of_tasks = scan.rows.rdd.glom().map(len).collect()
    assert (len(of_tasks), sum(of_tasks)) == (tasks, len(sizes))
    if not settings and len(set(sizes)) == 1:
        assert max(of_tasks) - min(of_tasks) <= len(sizes) / 10


def test_a_table_is_read_by_as_many_tasks_for_each_core(shared_lake: Any, spark: Any) -> None:
    table = shared_lake.create_table("db.even_tasks", "id bigint")
    table.append(spark.range(800).repartition(80))
    assert len(table.scan().plan().files) == 80
    of_tasks = table.to_df().rdd.glom().map(len).collect()
    assert (len(of_tasks), sum(of_tasks)) == (4, 800)
    with temporary_settings(spark, {"spark.sql.files.maxPartitionBytes": "64m"}):
        assert table.to_df().rdd.getNumPartitions() == 5


def test_an_unknown_choice_is_refused(spark: Any, tmp_path: Path) -> None:
    files = pl.DataFrame({"path": ["file:///a"], "size": [1], "ordinal": [0]})
    with (
        temporary_settings(spark, {FILE_LOG_SETTING: "perhaps"}),
        pytest.raises(ConfigurationError, match="perhaps"),
    ):
        read_parquet(spark, files, SCHEMA, rows=10, io=FileIO(), table_location="file:///a")
