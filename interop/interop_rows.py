"""Whole rows of tables with any columns, read by each engine, as text that can be compared."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from interop_cases import shown
from interop_engines import DuckDB
from pyiceberg.table import StaticTable


def shown_table(table: pa.Table) -> list[str]:
    """The rows of an Arrow table, with their column names, sorted."""
    return sorted(shown(row) for row in table.to_pylist())


def all_rows(
    engine: str, spark: Any, duck: DuckDB, table: Any, name: str, where: str = "true"
) -> list[str]:
    """A table's rows by an engine, under a filter that every engine understands."""
    scan = table.refresh().scan(where=where) if where != "true" else table.refresh().scan()
    match engine:
        case "frazil":
            return shown_table(scan.to_arrow())
        case "java":
            return shown_table(spark.table(name).where(where).toArrow())
    metadata = table.metadata_location
    if engine == "pyiceberg":
        found = StaticTable.from_metadata(metadata)
        return shown_table(
            found.scan(**({} if where == "true" else {"row_filter": where})).to_arrow()
        )
    path = metadata.removeprefix("file://")
    return shown_table(duck.query(f"select * from iceberg_scan('{path}') where {where}"))
