"""The rows of a table as a snapshot of PostgreSQL has them, read by Spark's executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import pyarrow as pa
from psycopg import sql
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

from frazil.cdc.catalog import LeafTable
from frazil.cdc.connections import Dsn
from frazil.cdc.values import ValueColumn, arrays_of
from frazil.spark.session.tasks import map_batches
from frazil.spark.types import type_to_spark

PAGES_A_TASK: Final = 32_768
"""A task reads 256 MiB of a table."""

_ROWS_AT_ONCE: Final = 10_000
_TASKS: Final = "namespace string, name string, first bigint, last bigint"


def initial_rows(
    spark: SparkSession,
    dsn: Dsn,
    leaves: Sequence[LeafTable],
    columns: Sequence[ValueColumn],
    snapshot: str,
) -> DataFrame:
    """Return all rows of a snapshot; the executors connect to the server for them.

    Args:
        leaves: the tables that the rows lie in.
        snapshot: its name; the transaction that exported it must last until the rows are read.
    """
    tasks: list[tuple[str, str, int, int | None]] = []
    for leaf in leaves:
        starts = range(0, max(leaf.pages, 1), PAGES_A_TASK)
        # The last task has no end: the table may have grown since.
        ends = [*starts[1:], None]
        tasks += [(leaf.namespace, leaf.name, a, b) for a, b in zip(starts, ends, strict=True)]
    schema = S.StructType([S.StructField(c.name, _spark_type(c), True) for c in columns])
    spread = spark.createDataFrame(tasks, _TASKS).repartition(len(tasks))
    return map_batches(spread, _LeafReader(dsn, tuple(columns), snapshot), schema)


def _spark_type(column: ValueColumn) -> S.DataType:
    return type_to_spark(column.type.iceberg)


@dataclass(frozen=True, slots=True)
class _LeafReader:
    """What a Python worker runs: page ranges in, rows out."""

    dsn: Dsn
    columns: tuple[ValueColumn, ...]
    snapshot: str

    def __call__(self, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tasks:
            for task in batch.to_pylist():
                with self.dsn.errors("cannot read the table's rows"):
                    yield from self._rows(task)

    def _rows(self, task: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        names = [column.name for column in self.columns]
        bounds = [sql.SQL("ctid >= {}").format(sql.Literal(f"({task['first']},0)"))]
        if task["last"] is not None:
            bounds.append(sql.SQL("ctid < {}").format(sql.Literal(f"({task['last']},0)")))
        query = sql.SQL("copy (select {} from only {} where {}) to stdout").format(
            sql.SQL(", ").join(map(sql.Identifier, names)),
            sql.Identifier(task["namespace"], task["name"]),
            sql.SQL(" and ").join(bounds),
        )
        with self.dsn.connect() as connection, connection.cursor() as cursor:
            cursor.execute("begin isolation level repeatable read read only")
            cursor.execute(
                sql.SQL("set transaction snapshot {}").format(sql.Literal(self.snapshot))
            )
            with cursor.copy(query) as copied:
                copied.set_types([column.type.loader_oid for column in self.columns])
                rows = copied.rows()
                while some := list(islice(rows, _ROWS_AT_ONCE)):
                    arrays = [_without_times(array) for array in arrays_of(some, self.columns)]
                    yield pa.RecordBatch.from_arrays(arrays, names=names)
            cursor.execute("commit")


def _without_times(array: pa.Array) -> pa.Array:
    """Times of the day as microseconds, since not every Spark has the type."""
    if pa.types.is_time64(array.type):
        return array.cast(pa.int64())
    if pa.types.is_list(array.type) and pa.types.is_time64(array.type.value_type):
        return array.cast(pa.list_(pa.int64()))
    return array
