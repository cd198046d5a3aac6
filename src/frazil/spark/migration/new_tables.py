"""Iceberg tables of Spark's tables: beside them (a snapshot), or in their place (a migration)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from frazil.catalog.identifiers import Identifier, parse_table_identifier, shown
from frazil.catalog.protocol import Catalog, LoadedTable
from frazil.errors import (
    AlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)
from frazil.format.metadata import TableMetadata
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import spec_for
from frazil.format.properties.table import (
    DATA_PATH,
    FOLDER_STORAGE_PATH,
    GC_ENABLED,
    METADATA_PATH,
    OBJECT_STORAGE_PATH,
)
from frazil.spark.migration.importing import Importer
from frazil.spark.migration.sources import (
    FileSource,
    SparkTable,
    files_of_table,
    quoted_name,
    spark_table,
)
from frazil.spark.session.facts import engine_summary
from frazil.spark.types import query_schema_from_spark
from frazil.storage.files import normalize_location
from frazil.storage.paths import is_inside
from frazil.table.transaction import CreateTransaction
from frazil.table.updates.name_mapping import learn_names

BACKUP_SUFFIX: Final = "_BACKUP_"
"""What the name of a migrated table ends with."""

_OF_SPARK: Final = frozenset({"path", "transient_lastDdlTime", "serialization.format", "location"})
_LOCATIONS: Final = frozenset(
    each.name for each in (METADATA_PATH, FOLDER_STORAGE_PATH, OBJECT_STORAGE_PATH, DATA_PATH)
)


def snapshot_table(
    spark: SparkSession,
    catalog: Catalog,
    source: str,
    name: str | Sequence[str],
    *,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
    parallelism: int | None = None,
    ignore_missing_files: bool = False,
) -> LoadedTable:
    """Make a table over the files of a Spark table, which keeps them: see `Lake.snapshot_table`."""
    identifier = _free_identifier(catalog, name)
    found = _check_usable(spark_table(spark, source))
    place = (
        catalog.default_table_location(identifier)
        if location is None
        else normalize_location(location)
    )
    there = found.location
    if place == there or is_inside(place, there) or is_inside(there, place):
        raise ValidationError(
            f"the location {place} and that of {found}, {found.location}, lie in one another: the "
            "files of both would be mixed; give another location"
        )
    kept = {key: text for key, text in _copy_of_properties(found).items() if key not in _LOCATIONS}
    own = {**kept, **(properties or {}), GC_ENABLED.name: "false", "snapshot": "true"}
    metadata = _metadata(found, place, own)
    return _create(spark, catalog, identifier, metadata, found, parallelism, ignore_missing_files)


def migrate(
    spark: SparkSession,
    catalog: Catalog,
    source: str,
    *,
    properties: Mapping[str, str] | None = None,
    drop_backup: bool = False,
    backup_table_name: str | None = None,
    parallelism: int | None = None,
    ignore_missing_files: bool = False,
) -> LoadedTable:
    """Make a table of a Spark table's name and files, in its place: see `Lake.migrate`."""
    found = _check_usable(spark_table(spark, source))
    if found.is_managed:
        raise UnsupportedError(
            f"{found} is a managed table: Spark moves its files when it is renamed, and deletes "
            "them when it is dropped, and the Iceberg table would have the same files. Take "
            f"snapshot_table({str(found)!r}, …) to read it as Iceberg, or migrate a table that was "
            "made with LOCATION"
        )
    identifier = _free_identifier(catalog, (found.database, found.name))
    own = {**_copy_of_properties(found), **(properties or {}), "migrated": "true"}
    metadata = _metadata(found, found.location, own)
    backup = replace(found, name=backup_table_name or found.name + BACKUP_SUFFIX)
    _rename(spark, found, backup)
    try:
        table = _create(
            spark, catalog, identifier, metadata, backup, parallelism, ignore_missing_files
        )
    except BaseException:
        if not catalog.table_exists(identifier):
            _rename(spark, backup, found)
        raise
    if drop_backup:
        spark.sql(f"DROP TABLE {backup.sql_name}")
    return table


def _free_identifier(catalog: Catalog, name: str | Sequence[str]) -> Identifier:
    identifier = parse_table_identifier(name)
    if not catalog.namespace_exists(identifier[:-1]):
        raise NoSuchNamespaceError(
            f"there is no namespace {shown(identifier[:-1])} in the lake: create it first"
        )
    if catalog.table_exists(identifier):
        raise TableAlreadyExistsError(f"the table {shown(identifier)} exists in the lake")
    return identifier


def _check_usable(table: SparkTable) -> SparkTable:
    if table.is_bucketed:
        raise UnsupportedError(
            f"{table} is bucketed, in a way that only Spark's own tables have: write its rows into "
            "a new table"
        )
    return table


def _copy_of_properties(table: SparkTable) -> dict[str, str]:
    return {key: text for key, text in table.properties.items() if key not in _OF_SPARK}


def _metadata(table: SparkTable, location: str, properties: Mapping[str, str]) -> TableMetadata:
    # Spark's readers take every column of files for optional.
    schema = query_schema_from_spark(table.schema)
    columns = [quoted_name([name]) for name in table.partition_columns]
    return new_table_metadata(
        schema, spec_for(schema, columns), location=location, properties=properties
    )


def _create(
    spark: SparkSession,
    catalog: Catalog,
    identifier: Identifier,
    metadata: TableMetadata,
    source: SparkTable,
    parallelism: int | None,
    ignore_missing_files: bool,
) -> LoadedTable:
    staged = catalog.stage_table(identifier, metadata)
    # A server may have chosen the place, and given out ids of its own.
    importer = Importer(spark, staged.io, staged.metadata, shown(identifier), parallelism)
    files = files_of_table(spark, staged.io, source, ignore_missing_files=ignore_missing_files)
    entries, names = importer.files_of(FileSource(str(source), source.file_format, files))
    with CreateTransaction(catalog, staged) as transaction:
        transaction.port.run(learn_names(staged.metadata, names))
        transaction.files.append(entries, snapshot_properties=engine_summary(spark))
    return transaction.created_table


def _rename(spark: SparkSession, table: SparkTable, new: SparkTable) -> None:
    try:
        spark.sql(f"ALTER TABLE {table.sql_name} RENAME TO {quoted_name((new.database, new.name))}")
    except PySparkException as error:
        text = str(error)
        if "ALREADY_EXISTS" in text:
            raise AlreadyExistsError(
                f"{table} cannot be renamed to {new}: there is such a table; give another "
                "backup_table_name"
            ) from error
        if "NOT_FOUND" in text:
            raise NoSuchTableError(f"Spark's session catalog has no table {table}") from error
        raise
