"""The one way from a plan to rows.

Scans, changelogs, streams and everything that rewrites rows read through `TableReader`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from frazil.format.metadata import TableMetadata
from frazil.format.metadata.table_mapping import name_mapping_of
from frazil.format.predicates.expressions import AlwaysTrue
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.deletes.resolve import EqualityReading, equality_reading
from frazil.spark.files.projection import Projection
from frazil.spark.read.dataframe import prepared_read
from frazil.spark.read.prepared import (
    PreparedRead,
    PreparedReads,
    ReadRequest,
    settings_of,
)
from frazil.spark.session.facts import prepare_session, type_support
from frazil.storage.files import FileIO


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads rows of one table in one session.

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
        return self._prepared(plan, request).frame()

    def rows_of_snapshot(self, plan: ScanPlan, projection: Projection) -> DataFrame:
        """Return `rows` of a plan that will be asked for again: what is prepared is kept."""
        prepare_session(self.spark)
        request = self._request(projection, self._equality(plan))
        kept = PreparedReads.of(self.io)
        return kept.read(self.spark, plan, request, lambda: self._prepared(plan, request))

    def rows_under_some_deletes(self, plan: ScanPlan, projection: Projection) -> DataFrame:
        """Return the rows that the plan's deletes leave; others may apply to the files too.

        Nothing of it is kept: what is resolved of such deletes says nothing of the files.
        """
        prepare_session(self.spark)
        return self._prepared(plan, self._request(projection, EqualityReading.JOIN)).frame()

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
            settings=settings_of(self.spark),
        )

    def _prepared(self, plan: ScanPlan, request: ReadRequest) -> PreparedRead:
        return prepared_read(
            self.spark,
            plan,
            request.projection,
            metadata=self.metadata,
            io=self.io,
            support=request.support,
            mapping=request.mapping,
            equality=request.equality,
        )
