"""The one way from a plan to rows.

Scans, changelogs, streams and everything that rewrites rows read through `TableReader`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.errors import InvalidFormatError, StorageError, UnsupportedError
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.table_mapping import name_mapping_of
from frazil.format.predicates.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    BoundRef,
    Expression,
    leaves,
)
from frazil.format.predicates.sql.quoting import SparkForms, quote_name_always
from frazil.format.predicates.sql.sql_text import to_spark_sql
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.deletes.resolve import EqualityReading, equality_reading
from frazil.spark.files.floats import is_float, not_pushed
from frazil.spark.files.lost_files import note_read
from frazil.spark.files.projection import Projection
from frazil.spark.read.dataframe import PlannedRead
from frazil.spark.read.prepared import (
    PreparedRead,
    PreparedReads,
    ReadRequest,
    settings_of,
)
from frazil.spark.read.result_columns import metadata_of
from frazil.spark.session import costs
from frazil.spark.session.facts import prepare_session, type_support
from frazil.storage.files import FileIO


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads rows of one table in one session.

    Whatever conditions are put on the rows, none on floats reaches Parquet's filters, which compare
    them otherwise; but the predicate of `rows_where` does.

    Attributes:
        spark: the session that the rows are read in.
        metadata: the table.
        io: the table's files.
    """

    spark: SparkSession
    metadata: TableMetadata
    io: FileIO

    def rows(self, plan: ScanPlan, projection: Projection) -> DataFrame:
        """Return the live rows of a plan's files, before its residual is checked.

        Equality deletes are applied as the session setting ``frazil.read.equality-deletes`` says.
        With the column ``_deleted`` the deleted rows are there too, and the column tells them.

        Args:
            plan: the files; it names every delete that applies to them.
            projection: the columns.

        Raises:
            UnsupportedError: a delete or a file that cannot be applied or read rightly.
            MissingFileError, InvalidDataFileError: a footer that had to be read cannot be.
        """
        prepare_session(self.spark)
        request = self._request(projection, self._equality(plan))
        return self._prepare(plan, request).frame()

    def rows_where(
        self,
        plan: ScanPlan,
        projection: Projection,
        where: Expression,
        *,
        without_nan: Collection[int] = (),
    ) -> DataFrame:
        """Return those of `rows` for which a predicate holds; Spark may skip parts of files by it.

        Args:
            projection: the columns, with those of the predicate, as the table names them.
            where: bound to the table's schema.
            without_nan: ids of float columns that hold no NaN in the plan's files.
        """
        if isinstance(where, AlwaysTrue):
            return self.rows(plan, projection)
        prepare_session(self.spark)
        refs = [leaf.ref for leaf in leaves(where)]
        floats = {ref.parts[0] for ref in refs if isinstance(ref, BoundRef) and is_float(ref.type)}
        tested = [field for field in projection.fields if field.name in floats]
        pushed = frozenset(field.field_id for field in tested)
        request = replace(self._request(projection, self._equality(plan)), pushed=pushed)
        forms = SparkForms(time="time" if request.support.time else "long")
        text = to_spark_sql(where, forms=forms, without_nan=without_nan)
        test = F.lit(False) if isinstance(where, AlwaysFalse) else F.expr(text)
        rows = self._prepare(plan, request).frame().where(test)
        if not tested:
            return rows
        columns = []
        for field in projection.fields:
            column = F.col(quote_name_always([field.name]))
            if field.field_id in pushed:
                column = not_pushed(column, field.field_type)
                column = column.alias(field.name, metadata=metadata_of(field))
            columns.append(column)
        return rows.select(*columns)

    def rows_of_snapshot(self, plan: ScanPlan, projection: Projection) -> DataFrame:
        """Return `rows` of a plan that will be asked for again: what is prepared is kept."""
        return self._kept_read(plan, projection).frame()

    def relation_of_snapshot(self, plan: ScanPlan, projection: Projection) -> DataFrame:
        """Return `rows_of_snapshot` for a query's text, the same columns at every call.

        What scans need stands in the metadata of the columns.
        """
        return self._kept_read(plan, projection).relation

    def keeps(self, plan: ScanPlan, projection: Projection) -> bool:
        """Return whether what `rows_of_snapshot` has prepared is kept."""
        request = self._request(projection, self._equality(plan))
        return PreparedReads.of(self.io).has(self.spark, plan, request)

    def rows_under_some_deletes(self, plan: ScanPlan, projection: Projection) -> DataFrame:
        """Return the rows that the plan's deletes leave; others may apply to the files too.

        Nothing of it is kept: what is resolved of such deletes says nothing of the files.
        """
        prepare_session(self.spark)
        return self._prepare(plan, self._request(projection, EqualityReading.JOIN)).frame()

    def with_delete_ways(self, plan: ScanPlan, projection: Projection) -> ScanPlan:
        """Return the plan with how `rows` of it would apply its deletes; no delete is read.

        It stays as it is where that cannot be told, or takes long: of very many pairs of files.
        """
        index = plan.delete_index
        if index.is_empty or index.pair_count > costs.EXPLAINED_PAIRS:
            return plan
        request = self._request(projection, self._equality(plan))
        try:
            return replace(plan, delete_ways=tuple(self._plan(plan, request).delete_ways()))
        except (InvalidFormatError, StorageError, UnsupportedError):
            return plan

    def _kept_read(self, plan: ScanPlan, projection: Projection) -> PreparedRead:
        prepare_session(self.spark)
        request = self._request(projection, self._equality(plan))
        kept = PreparedReads.of(self.io)
        return kept.read(self.spark, plan, request, lambda: self._prepare(plan, request))

    def _equality(self, plan: ScanPlan) -> EqualityReading:
        reading = equality_reading(self.spark)
        if reading is EqualityReading.AUTO and not isinstance(plan.residual, AlwaysTrue):
            # A filter may skip most of the files: resolving would read the keys of all rows.
            return EqualityReading.KNOWN
        return reading

    def _request(self, projection: Projection, equality: EqualityReading) -> ReadRequest:
        return ReadRequest(
            projection=projection,
            support=type_support(self.spark),
            mapping=name_mapping_of(self.metadata),
            equality=equality,
            settings=settings_of(self.spark, self.io),
        )

    def _prepare(self, plan: ScanPlan, request: ReadRequest) -> PreparedRead:
        return self._plan(plan, request).prepared()

    def _plan(self, plan: ScanPlan, request: ReadRequest) -> PlannedRead:
        note_read(self.metadata)
        return PlannedRead.of(self.spark, plan, request, metadata=self.metadata, io=self.io)
