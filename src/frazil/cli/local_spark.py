"""A local Spark for one command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as S

from frazil.catalog.protocol import Catalog
from frazil.cli.planned import Read
from frazil.errors import FrazilError, StorageError
from frazil.spark.lake import Lake
from frazil.spark.local.session import quiet_session, silence_query_errors
from frazil.spark.read.failures import read_failure
from frazil.spark.scan import Scan
from frazil.spark.session.facts import prepare_session, take_cache_sizes
from frazil.spark.table import Table
from frazil.table.handle import TableHandle


@contextmanager
def opened_scan(read: Read) -> Iterator[Scan]:
    """Give a scan with the active session, or with a quiet local one that ends with the block."""
    with opened_table(read.handle) as table:
        yield table.scan(
            read.where, columns=read.columns, snapshot_id=read.past_snapshot_id, ref=read.branch
        )


@contextmanager
def opened_table(handle: TableHandle) -> Iterator[Table]:
    """Give a table with the active session, or with a quiet local one that ends with the block."""
    with opened_session() as spark:
        yield Table(spark, handle.catalog, handle.port.loaded_table)


@contextmanager
def opened_session() -> Iterator[SparkSession]:
    """Give the active session, or a quiet local one that ends with the block."""
    running = SparkSession.getActiveSession()
    spark = running or quiet_session()
    try:
        prepare_session(spark)
        yield spark
    finally:
        if running is None:
            spark.stop()


@contextmanager
def opened_lake(catalog: Catalog) -> Iterator[Lake]:
    """Give a lake with the active session, or with a quiet local one that ends with the block."""
    with opened_session() as spark:
        yield Lake(spark, catalog)


def first_rows(query: Scan, limit: int, *, table: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Column names and up to `limit` rows of plain values; instants know their zone.

    Raises:
        MissingFileError, InvalidDataFileError, UnsupportedError: a file cannot be read.
        StorageError: Spark failed for another reason.
    """
    df = query.to_df().limit(limit)
    try:
        rows = df.collect()
    except FrazilError:
        raise
    except Exception as error:
        # Spark raises several kinds that share no base.
        snapshot_id = None if query.snapshot is None else query.snapshot.snapshot_id
        known = read_failure(error, table=table, snapshot_id=snapshot_id, operation="scan")
        lines = [line.strip(" :") for line in str(error).splitlines() if line.strip()]
        raise known or StorageError(
            f"Spark could not read the rows: {' '.join(lines[:2])}"
        ) from error
    return df.columns, [plain_value(row, df.schema) for row in rows]


def lake_of(spark: SparkSession, catalog: Catalog) -> Lake:
    """Return a lake of a catalog in a session whose errors are told by us alone."""
    silence_query_errors()
    prepare_session(spark)
    take_cache_sizes(spark, catalog.caches)
    return Lake(spark, catalog)


def plain_value(value: Any, kind: S.DataType) -> Any:
    """Return a value without Spark's own classes; instants know their zone."""
    if value is None:
        return None
    match kind:
        case S.TimestampType():
            # PySpark gives instants in the time zone of this machine, without saying so.
            aware: datetime = value.astimezone(UTC)
            return aware
        case S.StructType():
            parts = zip(kind.fields, value, strict=True)
            return {field.name: plain_value(part, field.dataType) for field, part in parts}
        case S.ArrayType():
            return [plain_value(part, kind.elementType) for part in value]
        case S.MapType():
            return {
                plain_value(key, kind.keyType): plain_value(part, kind.valueType)
                for key, part in value.items()
            }
        case _:
            return value
