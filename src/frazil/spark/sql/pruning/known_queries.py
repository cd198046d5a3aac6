"""Queries that were run before: what they need of their tables is not found out again.

Spark analyses a query at each call, since functions, variables and temporary views may have changed
in the session. Where its plan is then the same as before, over the same versions of the tables, the
same files serve it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from frazil.spark.abilities import may_have_variables
from frazil.spark.files.parquet.access import access_tag
from frazil.spark.read.prepared import BYTES_PER_FILE
from frazil.spark.session.facts import is_connect, prepare_session
from frazil.spark.sql.binding.bound_text import BoundText
from frazil.spark.sql.binding.relations import QueriedTable
from frazil.spark.sql.new_columns import OTHER_SPARK, with_new_columns
from frazil.spark.sql.parameters import Args
from frazil.spark.sql.pruning.written_rows import WrittenRows
from frazil.spark.table import Table
from frazil.storage.caches import BoundedCache

_BETWEEN: Final = "\x01"
_BYTES_PER_QUERY: Final = 128 * 1024
"""What Spark's driver keeps of a query beside its files, about."""


@dataclass(frozen=True, slots=True)
class KnownQuery:
    """A query that was run.

    Attributes:
        rows: of each table, in the order of the query's names.
        plan: the query's plan over these rows, as the virtual machine has it, before it is
            optimized.
    """

    rows: tuple[DataFrame, ...]
    plan: Any

    def run_again(self, bound: BoundText, args: Args) -> DataFrame | None:
        """Return the query over the same rows; None where it is another one by now.

        Raises:
            AnalysisException: of Spark, where the mistake is in the query.
        """
        found = bound.run(args, dict(zip(bound.tables, self.rows, strict=True)))
        try:
            return with_new_columns(found) if _plan_of(found).sameResult(self.plan) else None
        except OTHER_SPARK:
            return None


class KnownQueries:
    """The queries that were used last, in the cache of reads."""

    def __init__(self, kept: BoundedCache[KnownQuery], key: Hashable) -> None:
        self._kept = kept
        self._key = key

    @classmethod
    def of(cls, bound: BoundText, args: Args) -> KnownQueries | None:
        """Return what is known of a query; None where that would not last.

        So it is over Spark Connect, of a query that reads rows which are not a table's, or tables
        in a transaction, or that are cached.
        """
        spark, tables = bound.spark, [*bound.tables.values()]
        if is_connect(spark) or not bound.reads_the_lake_alone or not tables:
            return None
        if any(each.is_cached for each in tables):
            return None
        versions = [_version_of(spark, each) for each in tables]
        if None in versions:
            return None
        given = [*args.items()] if isinstance(args, Mapping) else args
        try:
            settings = _settings_of(spark)
        except OTHER_SPARK:
            return None
        key = ("query", spark, bound.given, repr(given), settings, *versions)
        return cls(tables[0].named.table.io.caches["reads"], key)

    def run_again(self, bound: BoundText, args: Args) -> DataFrame | None:
        """Return the query's rows, where it is known and still the same one."""
        known = self._kept.get(self._key)
        if known is None:
            return None
        prepare_session(bound.spark)
        return known.run_again(bound, args)

    def keep(
        self,
        bound: BoundText,
        wanted: Mapping[str, WrittenRows],
        rows: Mapping[str, DataFrame],
        found: DataFrame,
    ) -> None:
        """Keep a query that was run over some rows, where little memory is needed for it.

        Args:
            wanted: what was asked of each table, by the names in the query.
            rows: of each table.
            found: the query's.
        """
        tables = bound.tables
        if any(each.buckets for each in wanted.values()):
            return
        files = [each.kept_files(wanted[name].where) for name, each in tables.items()]
        try:
            plan = _plan_of(found)
            lasts = _is_lasting(bound.spark, plan)
        except OTHER_SPARK:
            return
        if None in files or not lasts:
            return
        known = KnownQuery(tuple(rows[name] for name in tables), plan)
        size = _BYTES_PER_QUERY + sum(number or 0 for number in files) * BYTES_PER_FILE
        self._kept.put(self._key, known, size)


def _version_of(spark: SparkSession, queried: QueriedTable) -> Hashable | None:
    """What tells the rows and columns of a table at a place of a query; None where it cannot."""
    table = queried.named.table
    if queried.named.metadata_table is not None or not isinstance(table, Table):
        return None
    version = tuple(queried.version.arguments.items())
    tag = access_tag(spark, table.io)
    return (table.metadata_location, version, queried.metadata_columns, tag)


def _settings_of(spark: SparkSession) -> Hashable:
    """What tells the session's settings, without their values; some are secrets."""
    session: Any = spark
    settings = str(session._jsparkSession.conf().getAll().mkString(_BETWEEN))
    return hashlib.sha256(settings.encode()).digest(), os.path.abspath("")


def _plan_of(query: DataFrame) -> Any:
    # The plan is not in PySpark's own API; only a classic session has it. Normalized, it is what
    # Spark compares with plans of cached rows.
    frame: Any = query
    return frame._jdf.queryExecution().normalized()


def _is_lasting(spark: SparkSession, plan: Any) -> bool:
    """Whether equal plans ask for the same rows at any time: none tells the time or the user."""
    session: Any = spark
    patterns = session._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    return not (plan.containsPattern(patterns.CURRENT_LIKE()) or may_have_variables(session, plan))
