"""Paths as Spark opens them: moved prefixes and the schemes of Hadoop's connectors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

import polars as pl
from pyspark.sql import SparkSession

from frazil.storage.files import FileIO
from frazil.storage.moved import MovedFileIO

_S3_IMPLEMENTATION: Final = "spark.hadoop.fs.s3.impl"

LOCATION_SETTINGS: Final = (_S3_IMPLEMENTATION,)
"""Session settings that change what `spark_paths` says."""


def spark_paths(paths: pl.Series, spark: SparkSession, io: FileIO) -> pl.Series:
    """Manifest paths as Spark shall open them, in the same order.

    A moved table's prefixes are replaced. ``s3://`` becomes ``s3a://``, Hadoop's own connector,
    unless the session names an implementation for ``s3``. Plain local paths get ``file://``.
    """
    if isinstance(io, MovedFileIO):
        paths = _physical(paths, io.moved)
    if paths.str.starts_with("s3://").any() and not spark.conf.get(_S3_IMPLEMENTATION, None):
        paths = paths.str.replace("^s3://", "s3a://")
    if paths.str.starts_with("/").any():
        paths = paths.str.replace("^/+", "file:///")
    relative = ~paths.str.contains("^[A-Za-z][A-Za-z0-9+.-]*:/")
    if relative.any():
        base = "file://" + os.path.abspath("") + "/"
        paths = paths.scatter(relative.arg_true(), base + paths.filter(relative))
    return paths


def _physical(paths: pl.Series, moved: Mapping[str, str]) -> pl.Series:
    """Where the files lie, as `MovedFileIO.physical` says of one."""
    name = found = pl.col("path")
    # The first prefix that fits, which is the longest, decides last here.
    for old, new in reversed([*moved.items()]):
        there = pl.concat_str(pl.lit(new), name.str.slice(len(old)))
        found = pl.when(name.str.starts_with(old)).then(there).otherwise(found)
    return paths.to_frame("path").select(found.alias(paths.name)).to_series()


def spark_path(path: str, spark: SparkSession, io: FileIO) -> str:
    """One path as Spark shall open it, by the same rules."""
    return str(spark_paths(pl.Series([path]), spark, io).item())
