"""MigrationCommands: tables of Spark as tables of a lake, as methods of the lake."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from frazil.catalog.protocol import Catalog
from frazil.later import later

if TYPE_CHECKING:
    from frazil.spark.migration.new_tables import migrate, snapshot_table
    from frazil.spark.table import Table
else:
    migrate, snapshot_table = later(
        "frazil.spark.migration.new_tables", "migrate", "snapshot_table"
    )
    Table = later("frazil.spark.table", "Table")


class MigrationCommands(ABC):
    """Iceberg tables over the files of Spark's tables.

    Attributes:
        spark: the session, whose session catalog has the sources.
        catalog: has the Iceberg tables.
    """

    spark: SparkSession
    catalog: Catalog

    def snapshot_table(
        self,
        source: str,
        identifier: str | Sequence[str],
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        parallelism: int | None = None,
        ignore_missing_files: bool = False,
    ) -> Table:
        """Make a table over the files of a Spark table, which stays as it is; to try Iceberg on.

        Rows that are written to the new table lie in its own folder. It has ``gc.enabled=false``,
        so that expiry, orphan removal and purge refuse to delete files, which are the source's.

        Args:
            source: a table of Parquet, ORC or Avro files in Spark's session catalog.
            identifier: the new table's name.
            location: where its own files lie; chosen by the catalog unless given.
            properties: table properties besides the source's own.
            parallelism: how many footers a process reads beside each other.
            ignore_missing_files: pass over partitions whose folders are not there.

        Raises:
            TableAlreadyExistsError: the name is taken.
            NoSuchNamespaceError, NoSuchTableError: the namespace or the source is not there.
            ValidationError: the location and the source's lie in one another.
            UnsupportedError: the source is a view, bucketed, or has other files.
            MissingFileError: the folder of a partition is not there.
            SchemaMismatchError, InvalidDataFileError: a file does not fit or is damaged.

        Examples:
            >>> spark.sql("create table seen (id int) using parquet location '/data/seen'")
            >>> lake.snapshot_table("seen", "db.seen_as_iceberg")
        """
        loaded = snapshot_table(
            self.spark,
            self.catalog,
            source,
            identifier,
            location=location,
            properties=properties,
            parallelism=parallelism,
            ignore_missing_files=ignore_missing_files,
        )
        return Table(self.spark, self.catalog, loaded)

    def migrate(
        self,
        source: str,
        *,
        properties: Mapping[str, str] | None = None,
        drop_backup: bool = False,
        backup_table_name: str | None = None,
        parallelism: int | None = None,
        ignore_missing_files: bool = False,
    ) -> Table:
        """Replace a Spark table by an Iceberg table of this lake with its name, place and files.

        The source is renamed first, so that nothing writes to it under its name, and gets its name
        back when the migration fails. What it leaves in Spark's catalog, the backup, names the
        same files: do not write to it. From then on the files are the Iceberg table's, whose expiry
        deletes those that no snapshot has any more.

        Args:
            source: a table of Parquet, ORC or Avro files in Spark's session catalog, made with a
                ``LOCATION``.
            properties: table properties besides the source's own.
            drop_backup: remove the renamed source from Spark's catalog in the end; its files stay.
            backup_table_name: the new name of the source; its name and ``_BACKUP_`` unless given.
            parallelism: how many footers a process reads beside each other.
            ignore_missing_files: pass over partitions whose folders are not there.

        Raises:
            TableAlreadyExistsError: the lake has a table of that name.
            AlreadyExistsError: Spark has a table of the backup's name.
            NoSuchNamespaceError, NoSuchTableError: the namespace or the source is not there.
            UnsupportedError: the source is managed, a view, bucketed, or has other files.
            MissingFileError: the folder of a partition is not there.
            SchemaMismatchError, InvalidDataFileError: a file does not fit or is damaged.

        Examples:
            >>> lake.create_namespace_if_not_exists("default")
            >>> spark.sql("create table met (id int) using parquet location '/data/met'")
            >>> lake.migrate("met")
        """
        loaded = migrate(
            self.spark,
            self.catalog,
            source,
            properties=properties,
            drop_backup=drop_backup,
            backup_table_name=backup_table_name,
            parallelism=parallelism,
            ignore_missing_files=ignore_missing_files,
        )
        return Table(self.spark, self.catalog, loaded)
