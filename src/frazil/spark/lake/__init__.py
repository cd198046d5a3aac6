"""A lake: a catalog of Iceberg tables beside a Spark session."""

from frazil.spark.lake.lake import DEFAULT_CATALOG_NAME, Lake, connect, open_table

__all__ = ["DEFAULT_CATALOG_NAME", "Lake", "connect", "open_table"]
