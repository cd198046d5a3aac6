"""Load the tables, evolve them, and ask them questions."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil
from flights_demo.show import console, heading, show_plan, step, step_on
from flights_demo.source import read_csv

SMALL_TABLES = {
    "airlines": [],
    "airports": ["truncate(1, faa)"],
    "planes": ["bucket(4, tailnum)"],
    "weather": ["month(time_hour)", "origin"],
}
"""The tables beside the flights, and how each is partitioned."""


def load_small_tables(spark: SparkSession, lake: frazil.Lake, folder: Path) -> None:
    """Load airlines, airports, planes and weather."""
    with step(f"Load {', '.join(SMALL_TABLES)}"):
        for name, partitions in SMALL_TABLES.items():
            lake.create_or_replace_table_as_select(
                f"nyc.{name}", read_csv(spark, folder, name), partition_by=partitions
            )


def load_flights(lake: frazil.Lake, rows: DataFrame) -> frazil.Table:
    """Load half a year, evolve schema and partitions, and load the rest."""
    own = rows.drop("scheduled_month", "scheduled")
    first_half = rows.where("scheduled_month <= 6").drop("scheduled_month", "scheduled")
    second_half = rows.where("scheduled_month > 6").drop("scheduled_month", "scheduled")
    with step("Create nyc.flights, hidden partitions: month(departure), bucket(4, tailnum)"):
        flights = lake.create_table(
            "nyc.flights",
            own.schema,
            partition_by=["month(departure)", "bucket(4, tailnum)"],
            sort_by=["departure"],
        )
    with step_on(flights, "Load January to June"):
        flights.append(first_half)
    with step_on(flights, "Evolve the schema: a new column, a new name, a wider type"):
        with flights.update_schema() as change:
            change.add_column("speed", "double", doc="miles an hour in the air")
            change.rename_column("dest", "destination")
            change.update_column("distance", "long")
        flights.create_tag("half-year")
    with step_on(flights, "Evolve the partitions: days instead of months, no buckets"):
        with flights.update_spec() as change:
            change.remove_field("departure_month")
            change.remove_field("tailnum_bucket")
            change.add_field("day(departure)")
    with step_on(flights, "Load July to December into the evolved table"):
        flights.append(
            second_half.withColumnRenamed("dest", "destination")
            .withColumn("speed", F.round(F.col("distance") / F.col("air_time") * 60, 1))
            .withColumn("distance", F.col("distance").cast("long"))
        )
    return flights


def show_plans(flights: frazil.Table) -> None:
    """Print what four questions read, and what they skip."""
    show_plan("Everything", flights.scan())
    show_plan(
        "One week of March (files of the first spec: months)",
        flights.scan("departure >= '2013-03-04' and departure < '2013-03-11'"),
    )
    show_plan(
        "One day of November (files of the second spec: days)",
        flights.scan("departure >= '2013-11-28' and departure < '2013-11-29'"),
    )
    show_plan("One aeroplane (buckets of the first spec)", flights.scan("tailnum = 'N14228'"))


def travel_in_time(flights: frazil.Table) -> int:
    """Print the history, and rows now and at a tag; return the number of rows now."""
    heading("Travel in time")
    flights.history().select("made_current_at", "snapshot_id", "is_current_ancestor").show(
        truncate=False
    )
    now, then = flights.scan().count(), flights.scan(ref="half-year").count()
    console.print(f"rows now: {now:,}; at the tag half-year: {then:,}; both from metadata alone")
    console.print(f"columns at the tag: {', '.join(flights.scan(ref='half-year').to_df().columns)}")
    return now


def worst_days(lake: frazil.Lake, flights: frazil.Table) -> None:
    """Join flights with the weather."""
    heading("The worst days, with the weather")
    weather = lake.load_table("nyc.weather").to_df()
    rain = weather.groupBy("origin", F.make_date("year", "month", "day").alias("day")).agg(
        F.round(F.sum("precip"), 2).alias("rain"), F.max("wind_speed").alias("wind")
    )
    (
        flights.to_df()
        .where("departure is not null")
        .groupBy("origin", F.to_date("departure").alias("day"))
        .agg(F.round(F.avg("dep_delay"), 1).alias("delay"), F.count("*").alias("flights"))
        .join(rain, ["origin", "day"])
        .orderBy(F.desc("delay"))
        .show(5)
    )
