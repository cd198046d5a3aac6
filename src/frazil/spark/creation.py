"""Tables come to be: empty, with a DataFrame's rows, or in place of another definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.identifiers import parse_table_identifier, shown
from frazil.catalog.protocol import Catalog, LoadedTable, StagedTable
from frazil.errors import FrazilError
from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import PartitionField, spec_for
from frazil.format.sorting import SortField, order_for
from frazil.spark.port import SparkPort
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.start import Start, with_own_files
from frazil.spark.row_level.writes import Rows
from frazil.spark.schemas.schema_like import SchemaLike, schema_of
from frazil.spark.session.facts import engine_summary
from frazil.spark.types import query_schema_from_spark
from frazil.spark.write.files import write_data_files
from frazil.spark.write.rows import rows_of
from frazil.spark.write.write_audit_publish import Destination, refuse_replacement
from frazil.storage.files import normalize_location
from frazil.table.file_changes import FileChanges
from frazil.table.snapshots.producer import SnapshotSettings, snapshot_options
from frazil.table.transaction import CreateTransaction
from frazil.table.updates.replacement import DefinitionKwargs, ReplaceDefinition


class CreateKwargs(DefinitionKwargs, total=False):
    """Keywords of new tables.

    Attributes:
        location: where the files lie; chosen by the catalog unless given.
        format_version: 1, 2 (the default) or 3.
    """

    location: str | None
    format_version: int | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """Make a table; `CreateKwargs` says what its definition means.

    Attributes:
        identifier: its name.
        schema: its columns; those of the rows unless given.
        rows: its first rows, in the same commit; none unless given.
        options: what the snapshot says, and how files are written.
    """

    identifier: str | Sequence[str]
    schema: SchemaLike | None = None
    rows: Rows | None = None
    partition_by: str | Sequence[str | PartitionField] = ()
    sort_by: str | Sequence[str | SortField] = ()
    properties: Mapping[str, str] | None = None
    location: str | None = None
    format_version: int | str | None = None
    options: CommitOptions = field(default_factory=CommitOptions)

    def run(self, spark: SparkSession, catalog: Catalog) -> LoadedTable:
        """Run it; see `Lake.create_table` and `Lake.create_table_as_select`."""
        name = parse_table_identifier(self.identifier)
        if self.rows is None:
            return catalog.create_table(name, self._metadata(catalog, self.schema))
        rows = rows_of(spark, self.rows)
        metadata = self._metadata(catalog, rows if self.schema is None else self.schema)
        settings = self._settings(spark)
        staged = catalog.stage_table(name, metadata)
        files = self._write(spark, rows, staged)
        with CreateTransaction(catalog, staged) as transaction:
            transaction.files.append(files, **with_own_files(settings, files))
        return transaction.created_table

    def run_within(
        self, spark: SparkSession, catalog: Catalog, begin: Callable[[StagedTable], SparkPort]
    ) -> SparkPort:
        """Run it as a part of a larger commit.

        Args:
            begin: what is done to the table is collected by the port that it returns.
        """
        name = parse_table_identifier(self.identifier)
        rows = None if self.rows is None else rows_of(spark, self.rows)
        metadata = self._metadata(catalog, rows if self.schema is None else self.schema)
        settings = self._settings(spark)
        staged = catalog.stage_table(name, metadata)
        port = begin(staged)
        if rows is not None:
            files = self._write(spark, rows, staged)
            FileChanges(port).append(files, **with_own_files(settings, files))
        return port

    def _settings(self, spark: SparkSession) -> SnapshotSettings:
        summary = {**engine_summary(spark), **(self.options.snapshot_properties or {})}
        settings: SnapshotSettings = {"snapshot_properties": summary}
        snapshot_options(**settings)
        return settings

    def _write(self, spark: SparkSession, rows: DataFrame, staged: StagedTable) -> list[DataFile]:
        try:
            return write_data_files(
                spark,
                rows,
                metadata=staged.metadata,
                io=staged.io,
                name=shown(staged.identifier),
                options=self.options.options,
                on_progress=self.options.on_progress,
            )
        except BaseException:
            _remove_empty_folders(staged)
            raise

    def _metadata(self, catalog: Catalog, schema: SchemaLike | None) -> TableMetadata:
        columns = schema_of(schema)
        if self.location is None:
            location = catalog.default_table_location(self.identifier)
        else:
            location = normalize_location(self.location)
        return new_table_metadata(
            columns,
            spec_for(columns, self.partition_by),
            order_for(columns, self.sort_by),
            location=location,
            properties=dict(self.properties or {}),
            format_version=self.format_version,
        )


def _remove_empty_folders(staged: StagedTable) -> None:
    """Remove the folders of a table that does not come to be, unless somebody has files there."""
    with suppress(FrazilError):
        for folder in (f"{staged.metadata.location}/data", staged.metadata.location):
            staged.io.delete_empty_folder(folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceTable:
    """Give a table a DataFrame's schema and rows; its history stays.

    Attributes:
        rows: what the table has afterwards; columns keep their ids by name.
        options: what the snapshot says, and how files are written.
    """

    rows: Rows
    partition_by: str | Sequence[str | PartitionField] = ()
    sort_by: str | Sequence[str | SortField] = ()
    properties: Mapping[str, str] | None = None
    options: CommitOptions = field(default_factory=CommitOptions)

    def run(self, port: SparkPort) -> None:
        """Run it; see `Table.replace_as_select`."""
        rows = rows_of(port.spark, self.rows)
        refuse_replacement(port.spark, port.newest())
        with port.in_one_commit() as together:
            together.run(
                ReplaceDefinition(
                    query_schema_from_spark(rows.schema),
                    partition_by=self.partition_by,
                    sort_by=self.sort_by,
                    properties=self.properties,
                )
            )
            start = Start.of(together, self.options, Destination())
            files = start.write_files(rows)
            FileChanges(together).append(files, **with_own_files(start.settings, files))
