"""A table in a query: what it is analysed by, and the rows that it stands for."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as S

from frazil.catalog.identifiers import shown
from frazil.errors import SqlSyntaxError, ValidationError
from frazil.format import types as I
from frazil.format.predicates import AlwaysTrue, Expression
from frazil.planning.plan import kept_plan, plan
from frazil.planning.scan_plan import ScanPlan
from frazil.planning.scan_report import PlannedScan
from frazil.spark.files.projection import METADATA_COLUMNS
from frazil.spark.read.failures import naming_the_read
from frazil.spark.read.pruning import ExecutorPruning
from frazil.spark.read.reader import TableReader
from frazil.spark.scan import Scan
from frazil.spark.session import costs
from frazil.spark.session.facts import is_connect, type_support
from frazil.spark.sql.binding.buckets import Buckets, in_buckets
from frazil.spark.sql.cached_tables import CachedTables
from frazil.spark.sql.context import NamedTable, SqlContext, TableVersion
from frazil.spark.sql.table_uses import TableUse
from frazil.spark.types import struct_to_spark
from frazil.spark.words import words_of
from frazil.storage.files import is_local


@dataclass(frozen=True)
class QueriedTable:
    """A table of the lake at one place of a query.

    Attributes:
        use: where it stands.
        named: what its name means.
        metadata_columns: the reserved columns that the query names, such as ``_file``.
    """

    context: SqlContext
    use: TableUse
    named: NamedTable
    metadata_columns: tuple[str, ...]

    @property
    def whole_name(self) -> tuple[str, ...]:
        """The catalog, the namespace and what the query's name ends with."""
        return self.context.whole_name(self.use.name.parts)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, hidden ones too; none of a metadata table's."""
        if self.named.metadata_table is not None:
            return ()
        own = (field.name for field in self.scan.projection.fields)
        return (*own, *(field.name for field in METADATA_COLUMNS))

    @property
    def can_prune(self) -> bool:
        """Whether conditions leave files out."""
        return self.named.metadata_table is None

    @property
    def has_few_files(self) -> bool:
        """Whether all files are opened sooner than it is found out which a query needs."""
        if not self.can_prune or self.scan.snapshot is None:
            return True
        summary = self.scan.snapshot.summary or {}
        told = (summary.get(name, "") for name in ("total-data-files", "total-files-size"))
        files, size = (int(each) if each.isdecimal() else None for each in told)
        return (
            is_local(self.named.table.metadata.location)
            and summary.get("total-delete-files") == "0"
            and files is not None
            and files <= costs.OPENED_FILES
            and size is not None
            and size < costs.LARGE_SIDE_BYTES
        )

    @cached_property
    def scan(self) -> Scan:
        """The read of the table's rows, all of them."""
        table = self.named.table
        version = self.version.arguments
        whole = table.scan(**version)
        if not self.metadata_columns:
            return whole
        taken = [name for name in self.metadata_columns if name not in whole.projection.names]
        return table.scan(columns=[*whole.projection.names, *taken], **version)

    @property
    def schema(self) -> S.StructType:
        """The columns, as Spark has them."""
        support = type_support(self.context.spark)
        return struct_to_spark(I.StructType(self.scan.projection.fields), support=support)

    def no_rows(self) -> DataFrame:
        """Return a relation of the same columns without rows."""
        if self.named.metadata_table is not None:
            return self.named.metadata_rows(self.version)
        return self.context.spark.createDataFrame([], self.schema)

    def rows(self, where: Expression, buckets: Sequence[Buckets] = ()) -> DataFrame:
        """Return the rows of the files that may hold rows for which a predicate is TRUE.

        Args:
            buckets: such rows are in one of these, of each.
        """
        kept = self._kept_rows()
        if kept is not None:
            return kept
        if self.named.metadata_table is not None:
            return self.named.metadata_rows(self.version)
        if isinstance(where, AlwaysTrue) and not buckets:
            return self.scan.to_df()
        table = self.named.table
        reader = TableReader(self.context.spark, table.metadata, table.io)
        plan = self.plan(where)
        if buckets:
            plan = plan.where_files(in_buckets(plan.files, table.metadata, buckets))
            return reader.rows(plan, self.scan.projection)
        return reader.rows_of_snapshot(self._as_whole(plan), self.scan.projection)

    def relation(self, where: Expression, buckets: Sequence[Buckets] = ()) -> DataFrame:
        """Return `rows` whose columns are the same at each call.

        Where Spark can read a column as it is, it is that of the scan, with what scans need in
        its metadata. Over Spark Connect it is not.
        """
        if self.named.metadata_table is not None or buckets or is_connect(self.context.spark):
            return self.rows(where, buckets)
        kept = self._kept_rows()
        return self._relation(where) if kept is None else kept

    def rows_anew(self) -> DataFrame:
        """Return the rows of all files in columns of their own."""
        if not self._is_as_cached:
            return self.scan.to_df()
        spark = self.context.spark
        return CachedTables.of(spark).rows_anew(spark, self._named_version, self.scan.to_df)

    @property
    def is_cached(self) -> bool:
        """Whether CACHE TABLE keeps the table's rows."""
        return self._is_as_cached and CachedTables.of(self.context.spark).has(self._named_version)

    def _kept_rows(self) -> DataFrame | None:
        """The rows that CACHE TABLE keeps; None where it keeps none."""
        if not self._is_as_cached:
            return None
        kept = CachedTables.of(self.context.spark)
        return kept.rows(self.context.spark, self._named_version, self.whole_relation)

    @property
    def _is_as_cached(self) -> bool:
        return not self.metadata_columns and not self.named.options

    @property
    def _named_version(self) -> NamedTable:
        return replace(self.named, version=self.version)

    def whole_relation(self) -> DataFrame:
        """Return the rows of all files, as CACHE TABLE keeps them."""
        if self.named.metadata_table is not None:
            return self.named.metadata_rows(self.version)
        if is_connect(self.context.spark):
            return self.scan.to_df()
        return self._relation(AlwaysTrue())

    def _relation(self, where: Expression) -> DataFrame:
        table, began = self.named.table, time.perf_counter_ns()
        plan = self._as_whole(self.plan(where))
        projection = self.scan.projection
        table.port.report_scan(
            PlannedScan(
                metadata=table.metadata,
                plan=plan,
                columns={each.field_id: each.name for each in projection.fields},
                nanoseconds=time.perf_counter_ns() - began,
            )
        )
        name = shown(self.use.name.parts)
        with naming_the_read(table=name, snapshot_id=plan.snapshot_id, operation="a query"):
            reader = TableReader(self.context.spark, table.metadata, table.io)
            return reader.relation_of_snapshot(plan, projection)

    def kept_files(self, where: Expression) -> int | None:
        """Return how many files `rows` reads; None where what is prepared of them is not kept."""
        table = self.named.table
        plan = self._as_whole(self.plan(where))
        reader = TableReader(self.context.spark, table.metadata, table.io)
        return plan.file_count if reader.keeps(plan, self.scan.projection) else None

    def _as_whole(self, plan: ScanPlan) -> ScanPlan:
        """The whole snapshot's plan where a predicate leaves no file out: one read serves both."""
        if plan.skipped:
            return plan
        whole = self.plan(AlwaysTrue())
        return whole if whole.delete_index.is_empty else plan

    def plan(
        self, where: Expression, *, statistics: Mapping[str, Collection[int]] | None = None
    ) -> ScanPlan:
        """Return what is read for a bound predicate.

        Args:
            statistics: values of metrics to keep, as of `frazil.planning.plan.plan`.
        """
        scan, table = self.scan, self.named.table
        elsewhere = ExecutorPruning(self.context.spark)
        if not statistics:
            return kept_plan(
                table.metadata,
                scan.snapshot,
                table.io,
                where=where,
                schema=scan.schema,
                elsewhere=elsewhere,
            )
        return plan(
            table.metadata,
            scan.snapshot,
            table.io,
            where=where,
            schema=scan.schema,
            statistics=statistics,
            elsewhere=elsewhere,
        )

    def values_of(self, column: str, where: Expression, *, at_most: int) -> list[Any] | None:
        """Return the values of a column in rows for which a predicate is TRUE, without NULL.

        Returns:
            Each value once; None where there are more than so many.
        """
        version = self.version.arguments
        rows = self.named.table.scan(where, columns=[column], **version).to_df()
        found = rows.distinct().limit(at_most + 1).collect()
        return None if len(found) > at_most else [row[0] for row in found if row[0] is not None]

    def aggregates(
        self, measures: Sequence[tuple[str, str | None]], where: Expression
    ) -> DataFrame | None:
        """Return aggregates of the rows for which a predicate is TRUE, from metadata alone.

        Args:
            measures: a function, ``count``, ``min`` or ``max``, and its column each; None for
                ``*``.

        Returns:
            One row; None where rows would have to be read.
        """
        texts = [
            f"{kind}({'*' if column is None else _quoted_column(column)}) as `{number}`"
            for number, (kind, column) in enumerate(measures)
        ]
        try:
            found = self.named.table.scan(where, **self.version.arguments).aggregate(texts)
        except ValidationError:
            # A type without an order has no bounds that metadata knows.
            return None
        return None if found.files_to_scan else found.to_df()

    @cached_property
    def version(self) -> TableVersion:
        """Which version of the table is read, by its name or by AS OF."""
        use, said = self.use, self.named.version
        if use.version is None and use.timestamp is None:
            return said
        if said.arguments:
            raise ValidationError(
                f"the name {'.'.join(use.name.parts)} says a version, and AS OF another one"
            )
        if use.version is not None:
            return self._of_version(use.version)
        return TableVersion(as_of=_moment(self.context, str(use.timestamp)))

    def _of_version(self, text: str) -> TableVersion:
        words = words_of(text)
        is_number = words[0].text.isascii() and words[0].text.isdigit()
        if len(words) != 1 or not (words[0].is_string or is_number):
            raise SqlSyntaxError(f"VERSION AS OF takes a snapshot's id or a reference, not {text}")
        said = words[0].text
        metadata = self.named.table.metadata
        if is_number:
            # A snapshot's id goes before a reference of that name.
            known = int(said) in metadata.snapshots_by_id or said not in metadata.refs
            return TableVersion(snapshot_id=int(said)) if known else TableVersion(ref=said)
        return TableVersion(ref=said)


def _moment(context: SqlContext, text: str) -> Any:
    """The time that an expression says: seconds since the epoch, or what is a time to Spark."""
    words = words_of(text)
    if len(words) == 1 and words[0].text.isascii() and words[0].text.isdigit():
        return int(words[0].text) * 1000
    query = f"SELECT unix_millis(CAST({text} AS TIMESTAMP))"
    [row] = context.spark.sql(query).collect()
    if row[0] is None:
        raise ValidationError(f"TIMESTAMP AS OF {text} is no time")
    return int(row[0])


def _quoted_column(name: str) -> str:
    return name if name.isidentifier() else f"`{name.replace('`', '``')}`"
