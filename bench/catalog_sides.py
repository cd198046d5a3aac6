"""A catalog of Frazil's and one of the Java runtime's side by side: loads and appends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import frazil
from bench.context import Context
from bench.rows import flat
from frazil.format.manifests import DataFile
from frazil.table.handle import TableHandle

Sides = tuple[Callable[[], object], Callable[[], object]]
"""Ours and theirs."""
LOAD = "warm load"
APPEND = "warm append of 1 000 rows"


def set_java_catalog(context: Context, name: str, properties: Mapping[str, str]) -> None:
    """Name a catalog of the Java runtime, which keeps no table between two loads."""
    for key, value in {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".cache-enabled": "false",
        **{f".{name}": value for name, value in properties.items()},
    }.items():
        context.spark.conf.set(f"spark.sql.catalog.{name}{key}", value)


def java_table(context: Context, name: str) -> Any:
    """Load a table of the Java runtime anew."""
    jvm: Any = context.spark.sparkContext._jvm
    session = context.spark._jsparkSession
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, name)


def load_and_append(
    context: Context, lake: frazil.Lake, our_name: str, java_name: str
) -> dict[str, Sides]:
    """Both sides of a warm load and of a warm append.

    Args:
        our_name: of a table that the lake loads.
        java_name: of one that the Java runtime loads, with its catalog.
    """
    table = lake.load_table(our_name)

    def rows() -> Any:
        return flat(context.spark, 1000).coalesce(1)

    return {
        LOAD: (lambda: lake.load_table(our_name), lambda: java_table(context, java_name)),
        APPEND: (
            lambda: table.append(rows()),
            lambda: rows().writeTo(java_name).append(),
        ),
    }


def grow(table: TableHandle, snapshots: int) -> None:
    """Append so many files that nobody reads, a commit each."""
    for number in range(snapshots):
        table.files.fast_append([unread_file(f"{table.location}/data/grown{number}.parquet")])


def unread_file(path: str) -> DataFile:
    """A file of a manifest, of which nothing lies in a store."""
    return DataFile(file_path=path, record_count=1, file_size_in_bytes=1000)
