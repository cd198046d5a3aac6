"""The Iceberg table format for PySpark in pure Python, no jar.

import frazil

lake = frazil.connect(spark, warehouse="/data/lake")
trips = lake.create_table("db.trips", "id bigint, ts timestamp", partition_by=["month(ts)"])
trips.append(df)
trips.scan(where="ts >= '2024-01-01'").to_df()
"""

from frazil import errors
from frazil.errors import FrazilError
from frazil.format import types
from frazil.format.predicates import col
from frazil.format.schema import Schema
from frazil.format.types import NestedField
from frazil.spark.lake import Lake, connect, open_table
from frazil.spark.scan import Scan
from frazil.spark.table import Table
from frazil.table.references import Retention

__all__ = [
    "FrazilError",
    "Lake",
    "NestedField",
    "Retention",
    "Scan",
    "Schema",
    "Table",
    "col",
    "connect",
    "errors",
    "open_table",
    "types",
]
