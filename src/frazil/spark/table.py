"""Table: a table handle that Spark fills and reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.base import Catalog, LoadedTable
from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.partitioning import PartitionField
from frazil.format.predicates.expressions import Expression
from frazil.format.sorting import SortField
from frazil.spark.changes.table_changes import TableChanges
from frazil.spark.metadata_frames.frames import MetadataFrames
from frazil.spark.scan import Scan
from frazil.spark.stream.table_streams import TableStreams
from frazil.spark.transaction import TableTransaction, removing_on_failure
from frazil.spark.types import query_schema_from_spark
from frazil.spark.write.files import write_data_files
from frazil.spark.write_audit_publish import branch_to_read
from frazil.spark.writes import OnProgress, Writes
from frazil.table.handle import TableHandle
from frazil.table.replace import ReplaceDefinition
from frazil.table.transaction import CreateTransaction


class Table(Writes, TableChanges, TableStreams, MetadataFrames, TableHandle):
    """An Iceberg table: `append`, `overwrite`, `scan`, and every change of a `TableHandle`.

    A handle shows the table as it was when it was loaded
    or last changed through it; writes refresh it first, reads do not (`refresh`).
    """

    def __init__(self, spark: SparkSession, catalog: Catalog, loaded: LoadedTable) -> None:
        super().__init__(catalog, loaded)
        self._spark = spark

    @property
    def spark(self) -> SparkSession:
        """The session that moves the data."""
        return self._spark

    # -- writes ----------------------------------------------------------------------------------

    def transaction(self) -> TableTransaction:
        """Several operations in one commit, for a `with` block; it has `append` and the others."""
        self.refresh()
        return TableTransaction(self, self._spark)

    def replace_as_select(
        self,
        df: DataFrame,
        *,
        partition_by: Sequence[str | PartitionField] = (),
        sort_by: Sequence[str | SortField] = (),
        properties: Mapping[str, str] | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Table:
        """Give the table a DataFrame's schema and rows in one commit; its history stays.

        Columns keep their ids by name; partitioning and order are as given here.
        """
        self.refresh()
        transaction = TableTransaction(self, self._spark)
        with transaction:
            transaction.run_first(
                ReplaceDefinition(
                    query_schema_from_spark(df.schema),
                    partition_by=partition_by,
                    sort_by=sort_by,
                    properties=properties,
                )
            )
            transaction.append_to_main(
                df,
                snapshot_properties=snapshot_properties,
                options=options,
                on_progress=on_progress,
            )
        return self

    @classmethod
    def create_as_select(
        cls,
        spark: SparkSession,
        catalog: Catalog,
        identifier: str | Sequence[str],
        metadata: TableMetadata,
        df: DataFrame,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> Table:
        """A new table of the metadata with a DataFrame's rows, in one commit."""
        files = write_data_files(spark, df, metadata=metadata, io=catalog.io)
        with (
            removing_on_failure(catalog.io, files),
            CreateTransaction(catalog, identifier, metadata) as transaction,
        ):
            transaction.commit_append(files, snapshot_properties=snapshot_properties)
        return cls(spark, catalog, transaction.created)

    # -- reads -----------------------------------------------------------------------------------

    def scan(
        self,
        *,
        where: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        snapshot_id: int | None = None,
        as_of: int | str | datetime | None = None,
        ref: str | None = None,
        case_sensitive: bool | None = None,
    ) -> Scan:
        """A query of the table; nothing is read yet.

        Args:
            where: which rows, as SQL text or an expression; also prunes partitions and files.
            columns: which columns in which order, metadata columns such as ``_file`` among them.
            snapshot_id: read this snapshot.
            as_of: read the snapshot that was current then: milliseconds, ISO text or a datetime.
            ref: read a branch or tag.
            case_sensitive: how names are matched; as Spark is set unless given.

        Raises:
            NoSuchSnapshotError, NoSuchRefError: there is no such snapshot.
            PredicateError: the predicate does not fit the schema.
            ValidationException: a column is not there.
        """
        if snapshot_id is None and as_of is None and ref is None:
            ref = branch_to_read(self._spark, self.metadata)
        return Scan(
            self._spark,
            self.metadata,
            self.io,
            where=where,
            columns=columns,
            snapshot_id=snapshot_id,
            as_of=as_of,
            ref=ref,
            case_sensitive=case_sensitive,
        )

    def to_df(self) -> DataFrame:
        """All rows as a native DataFrame: those of `main`, or of the session's WAP branch."""
        return self.scan().to_df()

    # -- parts -----------------------------------------------------------------------------------

    def _committing(self, files: Sequence[DataFile]) -> AbstractContextManager[None]:
        return removing_on_failure(self.io, files)
