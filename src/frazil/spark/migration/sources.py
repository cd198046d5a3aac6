"""Where data files are brought in from: a folder, a file, or a table of Spark's catalog."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

import polars as pl
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from frazil.catalog.identifiers import parse_identifier
from frazil.errors import (
    MissingFileError,
    NoSuchTableError,
    UnsupportedError,
    ValidationError,
)
from frazil.format.manifests.model import DATA_FORMATS, FileFormat
from frazil.storage.files import FileIO, normalize_location
from frazil.storage.listing import list_beginning, list_folders
from frazil.storage.paths import join, name_of, parent_of
from frazil.table.migration.partitions import (
    SourceFiles,
    data_files,
    files_in_folders,
    files_of_folders,
    no_files,
    unescape_folder,
)

SESSION_CATALOG: Final = "spark_catalog"
_LOGS: Final = {"_delta_log": "Delta", ".hoodie": "Hudi"}
"""Folders in which other table formats say which of the files beside them count."""
_OTHERS: Final = {name.lower(): name for name in _LOGS.values()}
_NOT_FOUND: Final = "TABLE_OR_VIEW_NOT_FOUND"


@dataclass(frozen=True, slots=True)
class FileSource:
    """Data files that are there, and how errors call them.

    Attributes:
        name: of the folder or the table.
        file_format: of every file.
        files: with the texts of their partitions.
    """

    name: str
    file_format: FileFormat
    files: SourceFiles


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A table of files in Spark's own catalog.

    Attributes:
        database: of the table.
        name: without its database.
        file_format: of its files.
        location: the folder, or what its files lie below.
        schema: as Spark reads it, partition columns last.
        partition_columns: in their order.
        is_managed: whether Spark deletes the files with the table.
        is_bucketed: whether its rows are in buckets of Spark's own.
        properties: as users set them.
    """

    database: str
    name: str
    file_format: FileFormat
    location: str
    schema: StructType
    partition_columns: tuple[str, ...] = ()
    is_managed: bool = False
    is_bucketed: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def sql_name(self) -> str:
        """The name in SQL."""
        return quoted_name((SESSION_CATALOG, self.database, self.name))

    def __str__(self) -> str:
        return f"{self.database}.{self.name}"


def quoted_name(parts: Sequence[str]) -> str:
    """Return a name of several parts as SQL has it."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def source_of(
    spark: SparkSession, io: FileIO, source: str, file_format: str | None = None
) -> FileSource:
    """Find the files that a source has.

    Args:
        spark: has the catalog of Spark's tables.
        io: lists folders.
        source: a table's name, ```parquet`.`/folder```, or a path where a format is given.
        file_format: ``parquet``, ``orc`` or ``avro``.

    Raises:
        ValidationError: the text is neither, or the folders do not name one partitioning.
        NoSuchTableError, MissingFileError: there is no such table or folder.
        UnsupportedError: a view, a table of another source (Delta and Hudi too, whose folders tell
            it), or an unknown format.
    """
    if file_format is not None:
        return _folder(io, source, file_format)
    if not isinstance(source, str) or not source.strip():
        raise ValidationError(
            f"the source is {source!r}: give a table's name, or `parquet`.`/folder`"
        )
    parts = parse_identifier(source) if "`" in source else tuple(source.split(".", 1))
    if len(parts) == 2 and parts[0].lower() in DATA_FORMATS:
        return _folder(io, parts[1], parts[0].lower())
    if "/" in source:
        raise ValidationError(
            f"{source!r} looks like a path: write it as `parquet`.`{source}`, or give its format"
        )
    table = spark_table(spark, source)
    return FileSource(str(table), table.file_format, files_of_table(spark, io, table))


def spark_table(spark: SparkSession, name: str) -> SparkTable:
    """Describe a table of Spark's session catalog.

    Raises:
        NoSuchTableError: there is none of that name.
        UnsupportedError: it is a view, or its files are none that Iceberg tables have.
    """
    parts = parse_identifier(name)
    if len(parts) == 3 and parts[0].lower() == SESSION_CATALOG:
        parts = parts[1:]
    if len(parts) == 1:
        parts = (spark.catalog.currentDatabase(), *parts)
    if len(parts) != 2:
        raise ValidationError(
            f"{name!r} is no table of Spark's session catalog: write table, database.table or "
            f"{SESSION_CATALOG}.database.table"
        )
    full = quoted_name((SESSION_CATALOG, *parts))
    try:
        [[text]] = spark.sql(f"DESCRIBE TABLE EXTENDED {full} AS JSON").collect()
        told: dict[str, Any] = json.loads(text)
        schema = spark.table(full).schema
    except PySparkException as error:
        if _NOT_FOUND in str(error):
            raise NoSuchTableError(
                f"Spark's session catalog has no table {'.'.join(parts)}"
            ) from None
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        raise UnsupportedError(
            f"{'.'.join(parts)} is no table of files that Spark describes: {first}"
        ) from error
    kind, provider = str(told.get("type", "")), str(told.get("provider", "")).lower()
    if kind == "VIEW" or provider not in DATA_FORMATS or "location" not in told:
        if provider in _OTHERS:
            raise _of_another_format(".".join(parts), _OTHERS[provider])
        what = "a view" if kind == "VIEW" else f"a table of the source {provider or 'unknown'!r}"
        raise UnsupportedError(
            f"{'.'.join(parts)} is {what}: tables of {', '.join(DATA_FORMATS)} files can become "
            "Iceberg tables; of a Hive table, bring in the folder as `parquet`.`/folder`"
        )
    return SparkTable(
        database=parts[0],
        name=parts[1],
        file_format=next(each for each in DATA_FORMATS if each == provider),
        location=normalize_location(str(told["location"])),
        schema=schema,
        partition_columns=tuple(told.get("partition_columns", ())),
        is_managed=kind == "MANAGED",
        is_bucketed=bool(told.get("num_buckets")),
        properties=dict(told.get("table_properties", {})),
    )


def files_of_table(
    spark: SparkSession, io: FileIO, table: SparkTable, *, ignore_missing_files: bool = False
) -> SourceFiles:
    """Find the files that Spark reads for a table, and the partition of each.

    Args:
        spark: has the catalog.
        io: looks for folders.
        ignore_missing_files: whether folders may be missing of partitions that the catalog has.

    Raises:
        MissingFileError: the folder of a partition is not there.
        UnsupportedError: the files are of a Delta or Hudi table.
        ValidationError: a file lies in no partition that the catalog knows.
    """
    refuse_other_formats(io, table.location, str(table))
    spark.catalog.refreshTable(table.sql_name)
    # Spark tells URIs, and paths in metadata are literal.
    paths = [normalize_location(unquote(uri)) for uri in spark.table(table.sql_name).inputFiles()]
    frame = pl.DataFrame({"path": paths}, schema={"path": pl.String()})
    if not table.partition_columns:
        return SourceFiles((), frame)
    frame = frame.with_columns(pl.col("path").str.extract(r"(?s)^(.*)/[^/]*$", 1).alias("folder"))
    folders = frame["folder"].unique(maintain_order=True).to_list()
    known = _known_partitions(spark, table)
    if known is None:
        # Where the catalog keeps none, Spark finds them by their folders too.
        root = table.location.rstrip("/") + "/"
        found = {folder: folder.removeprefix(root) for folder in folders}
    else:
        found, missing = _partition_folders(spark, io, table, folders, known)
        if missing and not ignore_missing_files:
            raise MissingFileError(
                f"{len(missing)} partitions of {table} have no folder, such as {missing[0]}: drop "
                "them in Spark's catalog, or ignore missing files"
            )
    files = files_of_folders(frame, found, table.location)
    return files if len(files) else no_files(table.partition_columns)


def refuse_other_formats(io: FileIO, folder: str, name: str) -> None:
    """Refuse files beside the log of another table format, or in a partition of such a table.

    Args:
        folder: where the files are.
        name: what errors call it.

    Raises:
        UnsupportedError: they are of such a table.
    """
    while folder:
        for log, kind in _LOGS.items():
            if io.is_folder(join(folder, log)):
                raise _of_another_format(name, kind)
        if "=" not in name_of(folder):
            return
        folder = parent_of(folder)


def _of_another_format(name: str, kind: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name} holds files of a {kind} table, whose log says which files count and which rows "
        f"are deleted: without it deleted rows would come back. Read it with {kind}'s own reader "
        "and write the rows into a new table; where it has Iceberg metadata too, register that"
    )


def _known_partitions(spark: SparkSession, table: SparkTable) -> set[str] | None:
    """The partitions as the catalog writes them; None where it keeps none."""
    try:
        return {row[0] for row in spark.sql(f"SHOW PARTITIONS {table.sql_name}").collect()}
    except PySparkException:
        return None


def _partition_folders(
    spark: SparkSession, io: FileIO, table: SparkTable, folders: Sequence[str], known: set[str]
) -> tuple[dict[str, str], list[str]]:
    """By folder, the partition that the catalog has there; and the folders that are missing."""
    root = table.location.rstrip("/") + "/"
    placed = {
        folder: folder.removeprefix(root)
        for folder in folders
        if folder.startswith(root) and folder.removeprefix(root) in known
    }
    missing: list[str] = []
    for partition in sorted(known - set(placed.values())):
        if len(placed) == len(folders) and io.is_folder(root + partition):
            continue
        place = _location_of(spark, table, partition)
        if place in folders:
            placed[place] = partition
        elif not io.is_folder(place):
            missing.append(place)
    lost = sorted(set(folders) - set(placed))
    if lost:
        raise ValidationError(
            f"the files of {table} in {lost[0]} lie in no partition that Spark's catalog has"
        )
    return placed, missing


def _location_of(spark: SparkSession, table: SparkTable, partition: str) -> str:
    pairs = [part.partition("=") for part in partition.split("/")]
    values = ", ".join(
        f"{quoted_name([unescape_folder(name)])} = {_sql_text(text)}" for name, _, text in pairs
    )
    statement = f"DESCRIBE TABLE EXTENDED {table.sql_name} PARTITION ({values})"
    rows = spark.sql(statement).collect()
    [place] = [row["data_type"] for row in rows if row["col_name"] == "Location"][:1]
    return normalize_location(str(place))


def _sql_text(text: str) -> str:
    escaped = unescape_folder(text).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _folder(io: FileIO, path: str, file_format: str) -> FileSource:
    known = next((each for each in DATA_FORMATS if each == file_format.lower()), None)
    if known is None:
        raise UnsupportedError(
            f"files of format {file_format!r} cannot be in a table: "
            f"they are {', '.join(DATA_FORMATS)}"
        )
    root = normalize_location(path)
    if not io.is_folder(root):
        if not io.exists(root):
            raise MissingFileError(f"there is no folder {root} to bring files in from")
        refuse_other_formats(io, parent_of(root), root)
        return FileSource(root, known, SourceFiles((), pl.DataFrame({"path": [root]})))
    refuse_other_formats(io, root, root)
    beginning = list_beginning(io, root)
    below = pl.concat([beginning.files, list_folders(io, beginning.folders)])
    for log, kind in _LOGS.items():
        if below["path"].str.contains(f"/{log}/", literal=True).any():
            raise _of_another_format(root, kind)
    listed = data_files(below, root).sort("path")
    return FileSource(root, known, files_in_folders(listed["path"], root))
