"""The same tables in other engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
from pyiceberg.catalog.sql import SqlCatalog

import frazil
from flights_demo.show import Row

Query = Callable[[str, frazil.Table], list[Row]]
"""Asks SQL of a table that the text calls ``{table}``."""


def engines(lake: frazil.Lake) -> dict[str, Query]:
    """Frazil on Spark, PyIceberg and DuckDB; each reads the table's newest metadata by itself."""
    pyiceberg = SqlCatalog(lake.catalog.name, **lake.catalog.properties)
    duck = _open_duckdb()

    def by_frazil(sql: str, table: frazil.Table) -> list[Row]:
        table.to_df().createOrReplaceTempView("rows_of_a_table")
        return [
            tuple(row) for row in table.spark.sql(sql.format(table="rows_of_a_table")).collect()
        ]

    def by_pyiceberg(sql: str, table: frazil.Table) -> list[Row]:
        arrow = pyiceberg.load_table(table.name).scan().to_arrow()  # noqa: F841  (the SQL names it)
        return duckdb.sql(sql.format(table="arrow")).fetchall()

    def by_duckdb(sql: str, table: frazil.Table) -> list[Row]:
        return duck.execute(
            sql.format(table=f"iceberg_scan('{table.metadata_location}')")
        ).fetchall()

    return {"Frazil on Spark": by_frazil, "PyIceberg": by_pyiceberg, "DuckDB": by_duckdb}


def _open_duckdb() -> duckdb.DuckDBPyConnection:
    """DuckDB with its Iceberg extension, from the installed packages."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for module in (duckdb_extension_avro, duckdb_extension_iceberg):
        folder = Path(str(module.__file__)).parent / "extensions" / f"v{duckdb.__version__}"
        extension = next(folder.glob("*.duckdb_extension"))
        connection.execute(f"LOAD '{extension}'")
    return connection
