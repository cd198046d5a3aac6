"""Tables whose rows Spark keeps, by CACHE TABLE: reads of them take the plan that it keeps.

Spark finds kept rows where an equal plan is read. A snapshot's plan never changes, and the next
snapshot has another one: rows that are kept are never those of an earlier one. While a table is
kept, all of its files are read whatever a query asks for, since a part of them is another plan. The
first read after a commit keeps the rows anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.storagelevel import StorageLevel

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.plans.machine import Machine, analysed_plan
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.context import NamedTable
from frazil.spark.sql.new_columns import with_new_columns
from frazil.spark.table import Table

_NOTHING: Final = StorageLevel(False, False, False, False)


@dataclass(slots=True)
class _CachedTable:
    """A table whose rows are kept.

    Attributes:
        level: where.
        state: which rows these are.
        rows: the DataFrame that Spark keeps.
    """

    level: StorageLevel
    state: Hashable
    rows: DataFrame

    @property
    def is_kept(self) -> bool:
        """Whether Spark has not been told to forget it."""
        return self.rows.storageLevel != _NOTHING


@dataclass(frozen=True, slots=True)
class CachedTables:
    """What one application of Spark keeps, whose sessions share it.

    Attributes:
        known: tables.
        lock: held where a table is kept anew; never where Spark may call its parser, which is
            ours and looks here in another thread.
        queries: the rows of queries over tables, by the names of their temporary views.
    """

    known: dict[Hashable, _CachedTable] = field(default_factory=dict)
    queries: dict[str, DataFrame] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, spark: SparkSession) -> CachedTables:
        """Return those of a session's application; over Spark Connect of the session."""
        with _LOCK:
            return _ALL.setdefault(spark if is_connect(spark) else spark.sparkContext, cls())

    def keep(self, named: NamedTable, rows: DataFrame, level: StorageLevel) -> None:
        """Have Spark keep the rows of a table, which it reads when they are first asked for."""
        self.forget(named)
        rows.persist(level)
        self.known[_key_of(named)] = _CachedTable(level, _state_of(named), rows)

    def forget(self, named: NamedTable) -> None:
        """Have Spark keep nothing of a table."""
        found = self.known.pop(_key_of(named), None)
        if found is not None:
            found.rows.unpersist()

    def has(self, named: NamedTable) -> bool:
        """Return whether the rows of a table are kept, or will be when they are read."""
        found = self.known.get(_key_of(named)) if self.known else None
        return found is not None and found.is_kept

    def rows(
        self, spark: SparkSession, named: NamedTable, read: Callable[[], DataFrame]
    ) -> DataFrame | None:
        """Return the rows of a table that are kept; None where they are not.

        Args:
            read: returns the table's rows of now.
        """
        if not self.known or not isinstance(named.table, Table):
            return None
        key = _key_of(named)
        found = self.known.get(key)
        if found is None:
            return None
        if not found.is_kept:
            self.known.pop(key, None)
            return None
        rows = found.rows
        if found.state != _state_of(named):
            rows = read()
            with self.lock:
                if self.known.get(key) is found:
                    self.keep(named, rows, found.level)
        return rows if rows.sparkSession is spark else _in_session(spark, rows)

    def rows_anew(
        self, spark: SparkSession, named: NamedTable, read: Callable[[], DataFrame]
    ) -> DataFrame:
        """Return the rows of a table in columns of their own: those that are kept, if they are."""
        found = self.rows(spark, named, read)
        if found is None:
            return read()
        return found if is_connect(spark) else with_new_columns(found)

    def note_query(self, spark: SparkSession, view: str) -> None:
        """Note a temporary view whose rows Spark keeps."""
        self.queries[view] = spark.table(quote_name_always([view]))

    def follow(self, spark: SparkSession) -> None:
        """Keep the rows of a session's queries anew, where their tables have changed since."""
        for view, rows in list(self.queries.items()):
            level = rows.storageLevel
            if level == _NOTHING or not spark.catalog.tableExists(quote_name_always([view])):
                self.queries.pop(view, None)
                rows.unpersist()
            elif rows.sparkSession is spark:
                now = spark.table(quote_name_always([view]))
                if now.storageLevel == _NOTHING:
                    rows.unpersist()
                    self.queries[view] = now.persist(level)


_ALL: Final[WeakKeyDictionary[object, CachedTables]] = WeakKeyDictionary()
_LOCK: Final = threading.Lock()


def _in_session(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """The rows of another classic session, by the very plan that Spark keeps."""
    return Machine(spark.sparkContext._gateway).frame(spark, analysed_plan(rows))


def _key_of(named: NamedTable) -> Hashable:
    """What tells the table, whatever its name is, and what of it is read."""
    metadata = named.table.metadata
    what = (tuple(named.version.arguments.items()), named.metadata_table)
    return (metadata.table_uuid, metadata.location, *what)


def _state_of(named: NamedTable) -> Hashable:
    """What tells the rows and columns that a read gives."""
    table = named.table
    if named.metadata_table is not None:
        return table.metadata_location if isinstance(table, Table) else None
    scan = table.scan(**named.version.arguments)
    return scan.snapshot and scan.snapshot.snapshot_id, scan.projection.fields
