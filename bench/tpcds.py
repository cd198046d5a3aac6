"""The tables and the 99 queries of TPC-DS, as DuckDB's extension makes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import duckdb
import duckdb_extension_tpcds
from pyspark.sql import SparkSession

import frazil

FACTS: Final[Mapping[str, str]] = {
    "store_sales": "ss_sold_date_sk",
    "catalog_sales": "cs_sold_date_sk",
    "web_sales": "ws_sold_date_sk",
    "store_returns": "sr_returned_date_sk",
    "catalog_returns": "cr_returned_date_sk",
    "web_returns": "wr_returned_date_sk",
    "inventory": "inv_date_sk",
}
"""The fact tables, with the column by which rows of a day lie together."""

FILES_OF_A_FACT: Final = 8


def queries() -> dict[int, str]:
    """Return the queries' texts by their numbers, in Spark's quoting."""
    rows = _connection().execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
    return {
        number: re.sub(r'"([^"]*)"', r"`\1`", text).strip().rstrip(";") for number, text in rows
    }


def write_parquet(folder: Path, scale: float) -> list[str]:
    """Write each table as Parquet files in a folder of its name, and return their names.

    Args:
        scale: 1 is a gigabyte of text.
    """
    connection = _connection()
    connection.execute(f"CALL dsdgen(sf={float(scale)})")
    names = [
        name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    ]
    for name in names:
        path = folder / name
        path.mkdir(parents=True)
        order = f" ORDER BY {FACTS[name]}" if name in FACTS else ""
        text = f"COPY (SELECT * FROM {name}{order}) TO '{path / 'rows.parquet'}' (FORMAT parquet)"
        connection.execute(text)
    return sorted(names)


def make_tables(spark: SparkSession, lake: frazil.Lake, namespace: str, folder: Path) -> None:
    """Make the tables in a lake; rows of a fact lie in several files, in the order of their day."""
    lake.create_namespace(namespace)
    for path in sorted(folder.iterdir()):
        make_table(spark, lake, namespace, path)


def make_table(spark: SparkSession, lake: frazil.Lake, namespace: str, path: Path) -> None:
    """Make the table of the folder's name in a namespace that is there."""
    rows = spark.read.parquet(str(path))
    if path.name in FACTS:
        rows = rows.repartitionByRange(FILES_OF_A_FACT, FACTS[path.name])
    else:
        rows = rows.coalesce(1)
    lake.create_table_as_select(f"{namespace}.{path.name}", rows)


def make_plain_table(spark: SparkSession, database: str, path: Path) -> None:
    """Make a table of Spark's own on the Parquet files of a folder."""
    spark.sql(f"CREATE TABLE {database}.{path.name} USING parquet LOCATION '{path}'")


def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    folder = Path(next(iter(duckdb_extension_tpcds.__path__))) / "extensions"
    file = folder / f"v{duckdb.__version__}" / "tpcds.duckdb_extension"
    connection.execute(f"LOAD '{file}'")
    return connection
