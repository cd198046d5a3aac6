"""The rows of a table as a snapshot of PostgreSQL has them, read by Spark's executors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import psycopg
import pyarrow as pa
from psycopg import sql
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

from frazil.cdc.connections import Connection, Dsn
from frazil.cdc.source.tables import PostgresTable, SourcePart
from frazil.cdc.values import ValueColumn, arrays_of
from frazil.errors import ConflictError
from frazil.spark.session.tasks import map_batches
from frazil.spark.types import type_to_spark

PAGES_A_TASK: Final = 32_768
"""A task reads 256 MiB of a table."""

LOCK_SECONDS: Final = 10.0
"""So long a task waits behind an ALTER TABLE that waits for the load itself."""

GAVE_WAY: Final = "the load gives way to it"

_ROWS_AT_ONCE: Final = 10_000
_TASKS: Final = "oid bigint, namespace string, name string, first bigint, last bigint"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRows:
    """Rows of a snapshot, which executors connect to the server for.

    Attributes:
        leaves: the tables that the rows lie in; they are locked until all rows are read.
        pages: how long each is, by OID.
        snapshot: its name; the transaction that exported it lasts until all rows are read.
    """

    dsn: Dsn
    leaves: Sequence[SourcePart]
    pages: Mapping[int, int]
    columns: Sequence[ValueColumn]
    snapshot: str

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the rows, under the names of Iceberg's columns."""
        tasks: list[tuple[int, str, str, int, int | None]] = []
        for leaf in self.leaves:
            starts = range(0, max(self.pages[leaf.oid], 1), PAGES_A_TASK)
            # The last task has no end: the table may grow meanwhile.
            ends = [*starts[1:], None]
            tasks += [
                (leaf.oid, leaf.namespace, leaf.name, a, b)
                for a, b in zip(starts, ends, strict=True)
            ]
        schema = S.StructType(
            [S.StructField(c.name, type_to_spark(c.type.iceberg), True) for c in self.columns]
        )
        spread = spark.createDataFrame(tasks, _TASKS).repartition(max(len(tasks), 1))
        reader = _LeafReader(self.dsn, tuple(self.columns), self.snapshot, LOCK_SECONDS)
        return map_batches(spread, reader, schema)


def lock_shared(connection: Connection, part: PostgresTable) -> bool:
    """Keep a table's rows where they are until the transaction ends; say whether it is the one.

    Its readers and writers go on. What moves rows waits: ALTER TABLE, VACUUM FULL, TRUNCATE.
    """
    connection.execute(sql.SQL("lock table only {} in access share mode").format(part.identifier))
    found = connection.execute(
        "select from pg_locks where pid = pg_backend_pid() and locktype = 'relation' and "
        "relation = %s and mode = 'AccessShareLock' and granted",
        [part.oid],
    ).fetchone()
    return found is not None


@dataclass(frozen=True, slots=True)
class _LeafReader:
    """What a Python worker runs: page ranges in, rows out."""

    dsn: Dsn
    columns: tuple[ValueColumn, ...]
    snapshot: str
    lock_seconds: float

    def __call__(self, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tasks:
            for task in batch.to_pylist():
                with self.dsn.errors("cannot read the table's rows"):
                    yield from self._rows(task)

    def _rows(self, task: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        part = PostgresTable(task["oid"], task["namespace"], task["name"])
        bounds = [sql.SQL("ctid >= {}").format(sql.Literal(f"({task['first']},0)"))]
        if task["last"] is not None:
            bounds.append(sql.SQL("ctid < {}").format(sql.Literal(f"({task['last']},0)")))
        query = sql.SQL("copy (select {} from only {} where {}) to stdout").format(
            sql.SQL(", ").join(sql.Identifier(column.source_name) for column in self.columns),
            part.identifier,
            sql.SQL(" and ").join(bounds),
        )
        names = [column.name for column in self.columns]
        with self.dsn.connect() as connection, connection.cursor() as cursor:
            cursor.execute("begin isolation level repeatable read read only")
            cursor.execute(
                sql.SQL("set transaction snapshot {}").format(sql.Literal(self.snapshot))
            )
            self._lock(connection, part)
            with cursor.copy(query) as copied:
                copied.set_types([column.type.loader_oid for column in self.columns])
                rows = copied.rows()
                while some := list(islice(rows, _ROWS_AT_ONCE)):
                    arrays = [_without_times(array) for array in arrays_of(some, self.columns)]
                    yield pa.RecordBatch.from_arrays(arrays, names=names)
            cursor.execute("commit")

    def _lock(self, connection: Connection, part: PostgresTable) -> None:
        milliseconds = sql.Literal(int(self.lock_seconds * 1000))
        connection.execute(sql.SQL("set local lock_timeout = {}").format(milliseconds))
        try:
            is_same = lock_shared(connection, part)
        except psycopg.errors.LockNotAvailable:
            raise ConflictError(
                f"a command that moves or changes the rows of {part} waits for the load, and keeps "
                f"the rest of it waiting: {GAVE_WAY}; load again once it is done"
            ) from None
        if not is_same:
            raise ConflictError(f"{part} became another table meanwhile: {GAVE_WAY}; load it again")


def _without_times(array: pa.Array) -> pa.Array:
    """Times of the day as microseconds, since not every Spark has the type."""
    if pa.types.is_time64(array.type):
        return array.cast(pa.int64())
    if pa.types.is_list(array.type) and pa.types.is_time64(array.type.value_type):
        return array.cast(pa.list_(pa.int64()))
    return array
