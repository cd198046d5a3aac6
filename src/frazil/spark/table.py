"""Table: a table handle that Spark fills and reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.base import Catalog, LoadedTable
from frazil.errors import CommitStateUnknownException, ValidationException
from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.partitioning import PartitionField
from frazil.format.predicates.expressions import Expression
from frazil.format.snapshots import MAIN_BRANCH
from frazil.format.sorting import SortField
from frazil.spark.copy_on_write import Overwriting
from frazil.spark.metadata_frames import MetadataFrames
from frazil.spark.scan import Scan
from frazil.spark.session import is_case_sensitive
from frazil.spark.types import query_schema_from_spark
from frazil.spark.write.files import WriteProgress, write_data_files
from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle
from frazil.table.transaction import CreateTransaction
from frazil.table.validation import Isolation, Validation

OnProgress = Callable[[WriteProgress], None]

WAP_ENABLED = "write.wap.enabled"


class Table(MetadataFrames, TableHandle):
    """An Iceberg table: `append`, `overwrite`, `scan`, and every change of a `TableHandle`.

    Writes match columns by name and take the Java runtime's write options as
    ``options={"distribution-mode": "none"}``. A handle shows the table as it was when it was loaded
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

    def append(
        self,
        df: DataFrame,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Add a DataFrame's rows in one commit.

        Args:
            df: the rows; columns are matched by name, optional ones may be missing.
            branch: the branch to write to; `main` unless given.
            snapshot_properties: entries for the snapshot's summary.
            options: write options by the Java runtime's names.
            on_progress: called as files are written.

        Raises:
            SchemaMismatchError: the rows do not fit; nothing was written.
            CommitFailedException: other writers kept being first; the files were removed.
            CommitStateUnknownException: the outcome is unknown; nothing was removed.
        """
        self.refresh()
        files = self._write(df, options, on_progress)
        branch, wap_id = self._destination(branch)
        with _removing_on_failure(self.io, files):
            self.commit_append(
                files, branch=branch, snapshot_properties=snapshot_properties, wap_id=wap_id
            )

    def overwrite(
        self,
        df: DataFrame,
        *,
        where: str | Expression | None = None,
        isolation: Isolation | None = None,
        validate_from_snapshot_id: int | None = None,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Replace the rows that match a predicate, or all rows, by a DataFrame's, in one commit.

        Files whose rows all match are dropped by metadata; a file of which only some match is
        rewritten without those. Rows that others change meanwhile in a rewritten file are a
        ConflictError, never lost.

        Args:
            df: the new rows; they need not match the predicate.
            where: which rows go; all unless given.
            isolation: ``serializable`` also refuses rows that others added meanwhile and that
                match, ``snapshot`` only what they deleted; unless given, matching rows that
                others added are replaced too.
            validate_from_snapshot_id: look for such changes from here on; what this call reads
                unless given.

        Raises:
            ConflictError: a concurrent commit contradicts it; nothing was changed.
            PredicateError: the predicate does not fit the schema.
            SchemaMismatchError: the rows do not fit; nothing was written.
        """
        self.refresh()
        branch, wap_id = self._destination(branch)
        overwriting = Overwriting.planned(
            self._spark,
            self.metadata,
            self.io,
            where=where,
            branch=branch or MAIN_BRANCH,
            case_sensitive=is_case_sensitive(self._spark),
        )
        rows, schema = overwriting.rows(df)
        files = write_data_files(
            self._spark,
            rows,
            metadata=self.metadata,
            io=self.io,
            options=options,
            schema=schema,
            on_progress=on_progress,
        )
        with _removing_on_failure(self.io, files):
            self.commit_overwrite(
                files,
                removed_paths=overwriting.rewritten_paths,
                where=overwriting.where,
                validation=overwriting.validation(isolation, validate_from_snapshot_id),
                case_sensitive=overwriting.case_sensitive,
                branch=branch,
                snapshot_properties=snapshot_properties,
                wap_id=wap_id,
            )

    def overwrite_partitions(
        self,
        df: DataFrame,
        *,
        isolation: Isolation | None = None,
        validate_from_snapshot_id: int | None = None,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Replace exactly the partitions that the DataFrame has rows for (dynamic overwrite).

        An unpartitioned table is replaced whole. Without rows nothing is replaced.

        Raises:
            ConflictError: with `isolation`, a concurrent commit touched these partitions.
            SchemaMismatchError: the rows do not fit; nothing was written.
        """
        self.refresh()
        branch, wap_id = self._destination(branch)
        head = self.metadata.ref_snapshot(branch or MAIN_BRANCH)
        files = self._write(df, options, on_progress)
        validation = None
        if isolation is not None:
            read = head.snapshot_id if head is not None else None
            start = validate_from_snapshot_id if validate_from_snapshot_id is not None else read
            validation = Validation(start, isolation)
        with _removing_on_failure(self.io, files):
            self.commit_replace_partitions(
                files,
                validation=validation,
                branch=branch,
                snapshot_properties=snapshot_properties,
                wap_id=wap_id,
            )

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
        schema = query_schema_from_spark(df.schema)
        with self.replace_transaction(
            schema, partition_by=partition_by, sort_by=sort_by, properties=properties
        ) as transaction:
            files = write_data_files(
                self._spark,
                df,
                metadata=transaction.metadata,
                io=self.io,
                options=options,
                on_progress=on_progress,
            )
            transaction.commit_append(files, snapshot_properties=snapshot_properties)
            # The block's own end commits, so a failure there is met here.
            with _removing_on_failure(self.io, files):
                transaction.commit()
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
        with _removing_on_failure(catalog.io, files):
            with CreateTransaction(catalog, identifier, metadata) as transaction:
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
        """All rows of the current snapshot as a native DataFrame."""
        return self.scan().to_df()

    # -- parts -----------------------------------------------------------------------------------

    def _write(
        self, df: DataFrame, options: Mapping[str, str] | None, on_progress: OnProgress | None
    ) -> list[DataFile]:
        return write_data_files(
            self._spark,
            df,
            metadata=self.metadata,
            io=self.io,
            options=options,
            on_progress=on_progress,
        )

    def _destination(self, branch: str | None) -> tuple[str | None, str | None]:
        """The branch and the WAP id of a write, as the session says for write-audit-publish."""
        if self.properties.get(WAP_ENABLED, "false").lower() != "true":
            return branch, None
        wap_id = self._spark.conf.get("spark.wap.id", None)
        wap_branch = self._spark.conf.get("spark.wap.branch", None)
        if wap_id and wap_branch:
            raise ValidationException(
                f"spark.wap.id is {wap_id!r} and spark.wap.branch is {wap_branch!r}: set one"
            )
        if wap_branch and branch not in (None, wap_branch):
            raise ValidationException(
                f"the write names the branch {branch!r}, but spark.wap.branch is {wap_branch!r}"
            )
        return (wap_branch or branch), (wap_id or None)


@contextmanager
def _removing_on_failure(io: FileIO, files: Sequence[DataFile]) -> Iterator[None]:
    """Remove data files whose commit failed; keep them where the outcome is unknown."""
    try:
        yield
    except CommitStateUnknownException:
        raise
    except Exception:
        io.delete_many({file.file_path for file in files})
        raise
