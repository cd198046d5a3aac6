"""Scan: which rows and columns of a table, of which moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.errors import ValidationError
from frazil.format.arguments import SnapshotId, one_or_several, optional_snapshot_id_of
from frazil.format.html_text import notebook_card
from frazil.format.metadata import TableMetadata
from frazil.format.predicates import BoundRef, Expression, leaves
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.planning.aggregates import answer, needed_statistics_of
from frazil.planning.counts.rows import CountedRows, count_planned, count_rows
from frazil.planning.plan import plan
from frazil.planning.scan_plan import ScanPlan
from frazil.planning.scan_report import PlannedScan
from frazil.spark.aggregates import Aggregation, parse_request
from frazil.spark.conditions import Condition, condition_of
from frazil.spark.files.arrow.convert import pruned_column
from frazil.spark.files.floats import is_float
from frazil.spark.files.layout.variants import with_variants_apart
from frazil.spark.files.projection import Projection, project, with_fields
from frazil.spark.read.failures import naming_the_read
from frazil.spark.read.pruning import ExecutorPruning
from frazil.spark.read.reader import TableReader
from frazil.spark.session.facts import (
    is_case_sensitive,
    prepare_session,
    time_zone_of,
    type_support,
)
from frazil.spark.types import named_column
from frazil.storage.avro.columns import value_column
from frazil.storage.files import FileIO
from frazil.storage.on_driver import OnDriver
from frazil.table.time_travel import Moment, find_snapshot

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS: Final = 2**31 - 1
"""The largest limit that Spark takes."""


class Scan(OnDriver):
    """A read of one snapshot of a table; nothing is read until a method asks for it.

    Args:
        spark: the session that reads.
        metadata: the table as it was when the scan was made.
        io: the table's files.
        where: which rows: any condition of Spark as SQL text or as a `Column`, sub-queries too, or
            an expression of `frazil.format.predicates`. What it says of single columns prunes
            partitions and files.
        columns: the columns in the order wanted, ``"s.x"`` for a field of a struct, and the
            metadata columns ``_file``, ``_pos``, ``_deleted``, ``_spec_id``, ``_partition``,
            ``_row_id`` and ``_last_updated_sequence_number``; all of the table's without.
        snapshot_id: read this snapshot, with its schema.
        as_of: read what was current at this time, with the schema of then; text without an offset
            is a time in the session's zone, a datetime without one local time.
        ref: read a tag, with its schema, or a branch, with the table's.
        case_sensitive: whether names are matched with their case; the session's setting without.
        limit: at most this many rows, any of them; all without.
        name: the table's name, for messages.
        on_planned: told of each plan that is made.

    Raises:
        NoSuchSnapshotError, NoSuchRefError: there is no such snapshot or reference.
        PredicateError: the condition cannot be parsed or does not fit the schema.
        ValidationError: a column that is not there or named twice, or a limit that is no number of
            rows.
    """

    def __init__(
        self,
        spark: SparkSession,
        metadata: TableMetadata,
        io: FileIO,
        *,
        where: str | Column | Expression | None = None,
        columns: str | Sequence[str] | None = None,
        snapshot_id: SnapshotId | None = None,
        as_of: Moment | None = None,
        ref: str | None = None,
        case_sensitive: bool | None = None,
        limit: int | None = None,
        name: str = "",
        on_planned: Callable[[PlannedScan], None] | None = None,
    ) -> None:
        self._spark = spark
        self._metadata = metadata
        self._io = io
        self._name = name or metadata.location
        self._on_planned = on_planned
        asked_id = optional_snapshot_id_of(snapshot_id)
        zone = time_zone_of(spark)
        self.snapshot: Snapshot | None = find_snapshot(
            metadata, snapshot_id=asked_id, as_of=as_of, ref=ref, text_zone=zone
        )
        is_tag = ref is not None and ref in metadata.refs and not metadata.ref(ref).is_branch
        is_past = asked_id is not None or as_of is not None or is_tag
        self.schema: Schema = metadata.schema_of(self.snapshot) if is_past else metadata.schema
        cased = is_case_sensitive(spark) if case_sensitive is None else case_sensitive
        self._condition: Condition = condition_of(
            where, self.schema, spark=spark, case_sensitive=cased, time_zone=zone
        )
        self._case_sensitive = cased
        self._limit = None if limit is None else _row_limit(limit)
        self._reads_whole_snapshot = self._condition.is_always_true
        self.projection: Projection = project(
            self.schema,
            None if columns is None else one_or_several(columns, argument="columns"),
            case_sensitive=cased,
        )

    def __repr__(self) -> str:
        snapshot = "no snapshot" if self.snapshot is None else f"{self.snapshot.snapshot_id}"
        limit = "" if self._limit is None else f", limit {self._limit}"
        condition = self._condition
        where = condition.implied.to_sql() if condition.is_exact else condition.text
        return (
            f"Scan({self._name}, snapshot {snapshot}, columns {list(self.projection.names)}, "
            f"where {where}{limit})"
        )

    def _repr_html_(self) -> str:
        condition = self._condition
        facts = {
            "table": self._name,
            "snapshot": "none" if self.snapshot is None else self.snapshot.snapshot_id,
            "columns": ", ".join(self.projection.names),
            "where": condition.implied.to_sql() if condition.is_exact else condition.text,
        }
        if self._limit is not None:
            facts["limit"] = f"{self._limit:,}"
        return notebook_card("Scan", facts)

    def plan(self) -> ScanPlan:
        """Return the files to read, how deletes are applied to them, and what is left out.

        Examples:
            >>> print(trips.scan("ts >= '2024-03-01'").plan())
        """
        reader = TableReader(self._spark, self._metadata, self._io)
        return reader.with_delete_ways(self._plan, self.projection)

    def to_df(self) -> DataFrame:
        """Return the rows as a DataFrame, native and lazy.

        Equality deletes of a million rows or more may be resolved to positions first, by a job that
        reads the compared columns (the session setting ``frazil.read.equality-deletes``).

        Raises:
            UnsupportedError: a delete or a file that cannot be applied or read rightly.
            MissingFileError, InvalidDataFileError: a file that had to be looked at cannot be read.
        """
        rows = self._all_rows()
        return rows if self._limit is None else rows.limit(self._limit)

    def _all_rows(self) -> DataFrame:
        """The rows, whatever the limit."""
        prepare_session(self._spark)
        read = with_fields(self.projection.fields, self.schema, self._tested_ids)
        with self._naming_read("to_df"):
            kept = self._matching_rows(TableReader(self._spark, self._metadata, self._io), read)
        if read.fields == self.projection.fields:
            return kept
        return kept.select(*_wanted_parts(read, self.projection))

    def _matching_rows(self, reader: TableReader, read: Projection) -> DataFrame:
        """The rows that match, of those of the plan's files."""
        if self._reads_whole_snapshot:
            return reader.rows_of_snapshot(self._plan, read)
        condition, nan_free = self._condition, self._without_nan
        if condition.is_exact:
            return reader.rows_where(self._plan, read, self._plan.residual, without_nan=nan_free)
        rows = reader.rows_where(self._plan, read, condition.known, without_nan=nan_free)
        return condition.matching_rows(rows)

    @property
    def _tested_ids(self) -> set[int]:
        """Ids of the columns that tell whether a row of the plan's files matches."""
        if self._condition.is_exact:
            return _filtered_ids(self._plan.residual)
        names = self._condition.column_names
        fields = self.schema.fields
        return {field.field_id for field in fields if names is None or field.name in names}

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table in this process; a variant as metadata and value.

        Raises:
            MissingFileError, InvalidDataFileError: a file cannot be read; besides those of `to_df`.
        """
        rows = with_variants_apart(self.to_df())
        with self._naming_read("to_arrow"):
            table: pa.Table = rows.toArrow()
            return table

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame in this process; errors as of `to_arrow`."""
        rows = self.to_df()
        with self._naming_read("to_pandas"):
            frame: pd.DataFrame = rows.toPandas()
            return frame

    def count(self) -> int:
        """Return the number of rows; only files are read whose live rows metadata does not tell.

        With a limit it is the number of rows that the scan gives, the limit at most.

        Errors are those of `to_arrow`.
        """
        found = self._counts()
        total = found.known
        if found.rest is not None and (self._limit is None or total < self._limit):
            rows = self._rows_of(found.rest, frozenset())
            with self._naming_read("count"):
                total += int(rows.count())
        return total if self._limit is None else min(total, self._limit)

    def _counts(self) -> CountedRows:
        """What metadata tells of the number of rows."""
        if not self._condition.is_exact:
            return self._counted_in_plan()
        return count_rows(
            self._metadata,
            self.snapshot,
            self._io,
            where=self._condition.implied,
            schema=self.schema,
            whole_plan=lambda: self._plan,
        )

    def _counted_in_plan(self) -> CountedRows:
        specs = self._metadata.partition_specs
        return count_planned(self._plan, schema=self.schema, specs=specs)

    def aggregate(
        self, aggregates: str | Sequence[str], *, by: str | Sequence[str] = ()
    ) -> Aggregation:
        """Counts, minima and maxima of the scan's rows, from metadata where it is exact.

        The scan's `columns` play no part.

        Args:
            aggregates: ``count(*)``, ``count(x)``, ``min(x)``, ``max(x)``, a field of a struct as
                ``s.x``, each with ``as name`` for a name of the result's column.
            by: what rows are grouped by: columns and transforms of columns, as partition fields are
                written (``city``, ``days(ts)``, ``bucket(16, id) as shard``). Where files are
                partitioned so, their groups are known without reading them.

        Raises:
            ValidationError: a text is no aggregate, a column is not there or has no order, or
                two results have one name, or the scan has a limit: which rows it gives is not
                said, so nor is what they come to.

        Examples:
            >>> trips.scan().aggregate(["count(*)", "max(fare)"], by="month(ts)").to_df()
        """
        if self._limit is not None:
            raise ValidationError(
                f"the scan gives any {self._limit} of its rows, and aggregates depend on which: "
                "aggregate a scan without a limit, or scan.to_df() with the limit"
            )
        request = parse_request(
            one_or_several(aggregates, argument="aggregates"),
            one_or_several(by, argument="by"),
            self.schema,
            case_sensitive=self._case_sensitive,
        )
        plan = self._plan_with(needed_statistics_of(request.measures))
        found = answer(
            plan,
            request.measures,
            request.keys,
            schema=self.schema,
            specs=self._metadata.partition_specs,
        )
        return Aggregation(
            self._spark,
            request,
            plan,
            found,
            schema=self.schema,
            support=type_support(self._spark),
            rows=self._rows_of,
        )

    def _rows_of(self, part: ScanPlan, field_ids: frozenset[int]) -> DataFrame:
        """The rows of a part of the plan, with these columns if any are named."""
        scan = object.__new__(type(self))
        scan.__dict__.update(self.__dict__, _plan=part)
        scan._reads_whole_snapshot = False
        if field_ids:
            scan.projection = with_fields((), self.schema, set(field_ids))
        return scan._all_rows()

    @contextmanager
    def _naming_read(self, operation: str) -> Iterator[None]:
        snapshot_id = None if self.snapshot is None else self.snapshot.snapshot_id
        with naming_the_read(table=self._name, snapshot_id=snapshot_id, operation=operation):
            yield

    @cached_property
    def _plan(self) -> ScanPlan:
        return self._plan_with({})

    @property
    def _without_nan(self) -> frozenset[int]:
        """Ids of the predicate's float columns that by the metrics hold no NaN in any file."""
        files = self._plan.files
        floats = _float_ids(self._condition.implied)
        counts = {i: value_column("nan_value_counts", i) for i in floats}
        return frozenset(
            field_id
            for field_id, name in counts.items()
            if name in files.columns and bool((files[name] == 0).fill_null(False).all())
        )

    def _plan_with(self, statistics: Mapping[str, Collection[int]]) -> ScanPlan:
        floats = _float_ids(self._condition.implied)
        if floats:
            # The predicate is planned with these counts in any case.
            counted = floats.union(statistics.get("nan_value_counts", ()))
            statistics = {**statistics, "nan_value_counts": counted}
        began = time.perf_counter_ns()
        found = self._files(self._condition.implied, statistics)
        if self._on_planned is not None:
            self._on_planned(
                PlannedScan(
                    metadata=self._metadata,
                    plan=found,
                    columns={each.field_id: each.name for each in self.projection.fields},
                    nanoseconds=time.perf_counter_ns() - began,
                )
            )
        return found if self._condition.is_exact else found.left_to_spark(self._condition.text)

    def _files(self, where: Expression, statistics: Mapping[str, Collection[int]]) -> ScanPlan:
        """The plan of the files that may hold rows of a bound predicate."""
        return plan(
            self._metadata,
            self.snapshot,
            self._io,
            where=where,
            schema=self.schema,
            statistics=statistics,
            elsewhere=ExecutorPruning(self._spark),
        )


def _row_limit(given: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= _MOST_ROWS:
        raise ValidationError(
            f"limit is {given!r}: give a number of rows, from 0 to {_MOST_ROWS}, or none for all"
        )
    return given


def _filtered_ids(expression: Expression) -> set[int]:
    refs = (leaf.ref for leaf in leaves(expression))
    return {ref.field_id for ref in refs if isinstance(ref, BoundRef)}


def _float_ids(expression: Expression) -> set[int]:
    refs = (leaf.ref for leaf in leaves(expression))
    return {ref.field_id for ref in refs if isinstance(ref, BoundRef) and is_float(ref.type)}


def _wanted_parts(read: Projection, wanted: Projection) -> list[Column]:
    """The wanted columns of rows that hold more columns, or structs with more fields."""
    wider = {field.field_id: field for field in read.fields}
    columns = []
    for field in wanted.fields:
        column = F.col(quote_name_always([field.name]))
        if wider[field.field_id] != field:
            column = pruned_column(column, field.field_type, wider[field.field_id].field_type)
            column = named_column(column, field)
        columns.append(column)
    return columns
