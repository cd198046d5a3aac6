"""Spark's own file log as the way to hand it a list of files.

A folder with ``_spark_metadata/0`` makes ``spark.read`` take the listed files as they are: no
listing and no look-up a file. The log's ``modificationTime`` carries the file's ordinal in the
plan, so every row knows its file through ``_metadata.file_modification_time`` at no cost.

Spark's Parquet reader numbers the rows of a file under a reserved name. A column of that name in a
scan's schema is that number; `_metadata.row_index` is the same, but Spark makes a struct of it for
every row. The reserved name is used for scans of one file.

Where the log is switched off or does not work, the same files are handed over as plain paths and
a row's ordinal is found through its path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import polars as pl
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from frazil.spark.abilities import class_named, module_named, number_of_rows_column
from frazil.spark.files.parquet.access import WHOLE_SETTING, SparkAccess, reading_access
from frazil.spark.files.parquet.locations import spark_path
from frazil.spark.files.scan_names import ROW_INDEX_NAME
from frazil.spark.gateway_errors import Py4JError
from frazil.spark.session import costs
from frazil.spark.session.by_session import BySession
from frazil.spark.session.facts import is_connect, temporary_settings, word_of_setting
from frazil.spark.session.scratch import is_scratch_local, scratch_folder
from frazil.storage.caches import BoundedCache
from frazil.storage.files import FileIO
from frazil.storage.paths import join

FILE_LOG_SETTING: Final = "frazil.read.file-log"
"""Session setting: ``auto`` (the log unless Spark may not read it), ``always`` or ``never``."""

ORDINAL: Final = "_frazil_ordinal"
"""The scan's column with the file's ordinal in the plan, a long."""
POSITION: Final = "_frazil_pos"
"""The scan's column with the row's position in its file, a long from 0."""

METADATA_COLUMN: Final = "_metadata"
"""Spark's hidden column of what it knows of a row's file."""

MANAGER_SETTING: Final = "spark.sql.streaming.checkpointFileManagerClass"
"""Session setting of Spark: what keeps the lists of files of its streams."""

_FOR_LOCAL_DISKS: Final = (
    "FileContextBasedCheckpointFileManager",
    "FileSystemBasedCheckpointFileManager",
)

_IGNORE_LOG: Final = "spark.sql.streaming.fileStreamSink.ignoreMetadata"
_DISCOVERY_THRESHOLD: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"

ROW_NUMBERS_SETTING: Final = "frazil.read.row-numbers"
"""Where a row's position comes from: ``reserved``, ``metadata``, or ``auto``, by what Spark can."""

READING_SETTINGS: Final = (
    FILE_LOG_SETTING,
    ROW_NUMBERS_SETTING,
    _IGNORE_LOG,
    MANAGER_SETTING,
    WHOLE_SETTING,
    "spark.sql.caseSensitive",
    *costs.PACKING,
)
"""Session settings that change what a native scan is made of."""

# Rows of unreadable files must never be left out silently, whatever the session says.
_STRICT_OPTIONS: Final[Mapping[str, str]] = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}

# What java.net.URI does not take raw in a path, and JSON not in a string.
_ESCAPES: Final[Mapping[str, str]] = {c: quote(c) for c in ' %"<>\\^`{|}[]#?'}
_ODD_CHARACTER: Final = r"[\x00-\x1f\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f\u2060\u3000]"
_BLOCK_SIZE: Final = 128 * 1024 * 1024

_LINES_AT_ONCE: Final = 100_000
"""So many files' lines, some 25 MB, are made and written together."""


@dataclass(frozen=True, slots=True)
class RowPlace:
    """SQL text that says where a row is.

    Attributes:
        ordinal: its file's ordinal in the plan, a long.
        position: its position in the file, a long from 0.
        is_one_file: whether all rows are of one file, whose ordinal is a constant.
    """

    ordinal: str
    position: str
    is_one_file: bool = False


NAMED_PLACE: Final = RowPlace(ORDINAL, POSITION)
"""Where a row is whose scan has the columns `ORDINAL` and `POSITION`."""

_NUMBERING_SERVERS: Final = "4."

# A reader that does not know the reserved name would say NULL, which must not pass for a position.
_RESERVED_INDEX: Final = (
    f"coalesce({ROW_INDEX_NAME}, cast(raise_error('this Spark does not number the rows of Parquet "
    f"files: set {ROW_NUMBERS_SETTING} to metadata') as bigint))"
)
_METADATA_INDEX: Final = f"{METADATA_COLUMN}.row_index"

_KNOWN_PATH: Final = "_frazil_known_path"
_LOG_ORDINAL: Final = f"unix_millis({METADATA_COLUMN}.file_modification_time)"


@dataclass(frozen=True, slots=True)
class ParquetScan:
    """A native scan of some files.

    Attributes:
        rows: the columns of the schema, `ROW_INDEX_NAME` if they are numbered under it, and
            Spark's hidden ``_metadata``.
        ordinal: makes the column of the files' ordinals.
        position: makes the column of the rows' positions, where the rows are numbered.
        place: both as text, right where the rows are numbered and no column is named
            ``_metadata``; None where text cannot say it.
    """

    rows: DataFrame
    ordinal: Callable[[], Column]
    position: Callable[[], Column]
    place: RowPlace | None


def encode_paths(paths: pl.Series) -> pl.Series:
    """Literal paths as URIs: what a URI cannot hold is percent-encoded, the rest stays."""
    encoded = paths.str.replace_many(list(_ESCAPES), list(_ESCAPES.values()))
    odd = encoded.str.contains(_ODD_CHARACTER)
    if odd.any():
        pattern = re.compile(_ODD_CHARACTER)
        mended = [pattern.sub(lambda m: quote(m.group()), text) for text in encoded.filter(odd)]
        encoded = encoded.scatter(odd.arg_true(), mended)
    return encoded


def log_lines(files: pl.DataFrame) -> bytes:
    """The log ``0`` of these files.

    Args:
        files: columns ``path`` (as Spark shall open it), ``size`` in bytes and ``ordinal``.
    """
    return b"".join(log_pieces(files))


def log_pieces(files: pl.DataFrame) -> Iterator[bytes]:
    """The same in pieces, of which few are in memory at a time."""
    yield b"v1"
    for some in files.select("path", "size", "ordinal").iter_slices(_LINES_AT_ONCE):
        yield _lines(some)


def _lines(files: pl.DataFrame) -> bytes:
    """The lines of some files, each after the end of the line before."""
    line = pl.concat_str(
        pl.lit('{"path":"'),
        encode_paths(files["path"]).alias("path"),
        pl.lit('","size":'),
        pl.col("size"),
        pl.lit(',"isDir":false,"modificationTime":'),
        pl.col("ordinal"),
        pl.lit(f',"blockReplication":1,"blockSize":{_BLOCK_SIZE},"action":"add"}}'),
    )
    # One text, not a Python object for each file.
    text: str = files.select(line).to_series().str.join("\n").item()
    return f"\n{text}".encode()


def read_parquet(
    spark: SparkSession,
    files: pl.DataFrame,
    schema: StructType,
    *,
    io: FileIO,
    table_location: str,
    rows: int,
    numbered: bool = False,
) -> ParquetScan:
    """A native Parquet scan of exactly these files.

    Columns whose metadata has a ``parquet.field.id`` are found by id, others by name.

    Args:
        files: columns ``path`` (as the manifest says), ``size`` in bytes, ``ordinal``; at least
            one row.
        numbered: whether the rows have their positions. No file may have a column of the reserved
            name then.
    """
    is_reserved = numbered and _use_reserved_name(spark, len(files))
    if is_reserved:
        schema = StructType([*schema.fields, StructField(ROW_INDEX_NAME, LongType())])
    largest = int(files["size"].cast(pl.Int64).max() or 0)  # type: ignore[arg-type]
    access = reading_access(files["path"], spark, io, largest=largest)
    located = files.with_columns(access.paths)
    index = _RESERVED_INDEX if is_reserved else _METADATA_INDEX
    ordinal: Callable[[], Column]
    place: RowPlace | None
    if _use_log(spark, table_location):
        data = _read_through_log(
            spark, located, schema, access, io=io, table_location=table_location
        )
        data = with_size_of_rows(data, rows)
        ordinal, place = partial(_log_ordinal, data), RowPlace(_LOG_ORDINAL, index)
    else:
        data, ordinal = _read_through_paths(spark, located, schema, access)
        place = None
    if len(files) == 1:
        only = f"{files['ordinal'][0]}L"
        ordinal, place = partial(F.expr, only), RowPlace(only, index, True)
    position = partial(F.expr, index) if is_reserved else partial(_metadata, data, "row_index")
    return ParquetScan(data, ordinal, position, place)


def _metadata(data: DataFrame, field: str) -> Column:
    return data.metadataColumn(METADATA_COLUMN).getField(field)


def _log_ordinal(data: DataFrame) -> Column:
    return F.unix_millis(_metadata(data, "file_modification_time"))


def _use_log(spark: SparkSession, table_location: str) -> bool:
    choice = word_of_setting(spark, FILE_LOG_SETTING, "auto", "always", "never")
    if choice == "auto":
        if str(spark.conf.get(_IGNORE_LOG, "false")).lower() == "true":
            return False
        # Such a manager may know no local disk, and Spark reads the log by it.
        return not (_names_manager(spark) and is_scratch_local(spark, table_location))
    return choice == "always"


def _names_manager(spark: SparkSession) -> bool:
    """Whether the session keeps lists of files by something that may know no local disk."""
    manager = spark.conf.get(MANAGER_SETTING, None) or ""
    return bool(manager) and manager.rpartition(".")[2] not in _FOR_LOCAL_DISKS


def session_of_lists(spark: SparkSession) -> Any:
    """Return a session of the virtual machine that keeps lists of files on the driver's disk."""
    session: Any = spark
    if not _names_manager(spark):
        return session._jsparkSession
    return _PLAIN.get_or_make(spark, _plain_session)


def _plain_session(spark: SparkSession) -> Any:
    session: Any = spark
    made = session._jsparkSession.newSession()
    made.conf().unset(MANAGER_SETTING)
    return made


_PLAIN: Final = BySession[Any]()


def _use_reserved_name(spark: SparkSession, file_count: int) -> bool:
    choice = word_of_setting(spark, ROW_NUMBERS_SETTING, "auto", "reserved", "metadata")
    if choice == "auto":
        # Spark refuses both names in one scan, which it sees where it cannot narrow `_metadata` to
        # the fields in use. A scan of one file needs no `_metadata`.
        return file_count == 1 and _NUMBERS_ROWS.get_or_make(spark, _numbers_rows)
    return choice == "reserved"


def _numbers_rows(spark: SparkSession) -> bool:
    """Whether the reader fills the reserved column; a server of Connect only tells its number."""
    if is_connect(spark):
        return spark.version.startswith(_NUMBERING_SERVERS)
    return number_of_rows_column(spark._jvm) == ROW_INDEX_NAME


_NUMBERS_ROWS: Final = BySession[bool]()


def _read_through_log(
    spark: SparkSession,
    files: pl.DataFrame,
    schema: StructType,
    access: SparkAccess,
    *,
    io: FileIO,
    table_location: str,
) -> DataFrame:
    folder = scratch_folder(spark, io, table_location)
    try:
        named = _named_in_plans(table_location)
        folder.write(f"{named}/_spark_metadata/0", log_pieces(files))
        # Seen only by a Spark that lists the folder instead of reading the log: it fails there,
        # and would pass over a file without bytes.
        folder.write(f"{named}/file-log-was-ignored.parquet", [b"not a data file"])
        return (
            access.reader(spark)
            .options(**_STRICT_OPTIONS)
            .option("recursiveFileLookup", "true")
            .schema(schema)
            .parquet(spark_path(join(folder.location, named), spark, folder.io))
        )
    finally:
        folder.release()


def _named_in_plans(table_location: str) -> str:
    """The name of a folder by which plans that show it tell which table is read: `db.t`."""
    last_two = [part for part in table_location.split("/") if part][-2:]
    # Spark takes some characters for patterns, and leaves out names that begin with others.
    return re.sub(r"[^A-Za-z0-9.-]", "-", ".".join(last_two))[-100:].lstrip(".") or "table"


def _read_through_paths(
    spark: SparkSession, files: pl.DataFrame, schema: StructType, access: SparkAccess
) -> tuple[DataFrame, Callable[[], Column]]:
    """The rows, and what makes the column of their files' ordinals."""
    by_path = files.select(
        encode_paths(files["path"]).str.replace("^file:/+", "file:/").alias("path"), "ordinal"
    )
    with temporary_settings(spark, {_DISCOVERY_THRESHOLD: str(2**31 - 1)}):
        data = (
            access.reader(spark)
            .options(**_STRICT_OPTIONS)
            .option("recursiveFileLookup", "true")
            .option("__globPaths__", "false")
            .schema(schema)
            .parquet(*files["path"])
        )
    ordinals = spark.createDataFrame(
        by_path.select(
            pl.col("path").alias("_frazil_path"), pl.col("ordinal").alias(ORDINAL)
        ).to_arrow()
    )
    path = _metadata(data, "file_path")
    # Spark 4.0 makes no join whose condition has a hidden column.
    known = data.withColumn(_KNOWN_PATH, F.regexp_replace(path, "^file:/+", "file:/"))
    is_same = known[_KNOWN_PATH] == ordinals["_frazil_path"]
    joined = known.join(F.broadcast(ordinals), is_same, "left")
    lost = F.raise_error(F.concat(F.lit("a file that the plan does not hold was read: "), path))
    return joined, lambda: F.coalesce(ordinals[ORDINAL], lost.cast("bigint"))


ROW_BYTES: Final = 8
"""What Spark counts for a row beside its columns."""

_CATALOG: Final = "org.apache.spark.sql.catalyst.catalog"
_SIZES: Final = 256
_DIGITS: Final = 4
"""Sizes are rounded up to so many binary digits, so that few of them have to be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowMakers:
    """What makes relations of a known size in a session; each is an object of the virtual machine.

    Attributes:
        dataset: makes DataFrames.
        table: makes what a catalog knows of a table.
        arguments: what it is made of.
        statistics: the place of the statistics among these.
        statistics_of: makes statistics.
        no_columns: that nothing is known of single columns.
        option: Scala's class.
        jvm: has other classes.
        known: tables by size.
    """

    dataset: Any
    table: Any
    arguments: Sequence[Any]
    statistics: int
    statistics_of: Any
    no_columns: Any
    option: Any
    jvm: Any
    known: BoundedCache[Any] = field(default_factory=lambda: BoundedCache(_SIZES))


_ROW_MAKERS: Final = BySession[_RowMakers | None]()


def with_size_of_rows(data: DataFrame, rows: int) -> DataFrame:
    """Return a scan of files of which Spark knows how much its rows take.

    Of Parquet files it knows their bytes, which encoding and compression have made small: it would
    send millions of rows to every task. Their number and their types say better what they take.

    Args:
        data: the scan.
        rows: how many rows the files have.

    Returns:
        the same rows; the same DataFrame where their size does not matter, or where this Spark
        cannot be told.
    """
    spark = data.sparkSession
    if is_connect(spark):
        return data
    frame: Any = data
    try:
        session = frame._jdf.sparkSession()
        size = rows * (ROW_BYTES + int(frame._jdf.schema().defaultSize()))
        # Spark sends no relation of more bytes to every task.
        if size <= int(session.sessionState().conf().autoBroadcastJoinThreshold()):
            return data
        makers = _ROW_MAKERS.get_or_make(spark, _row_makers)
        if makers is None:
            return data
        relation = frame._jdf.queryExecution().analyzed()
        sized = relation.copy(
            relation.relation(),
            relation.output(),
            _table_of(spark, makers, _round(size)),
            relation.isStreaming(),
            relation.stream(),
        )
        return DataFrame(makers.dataset.ofRows(session, sized), spark)
    except Py4JError:  # This Spark has relations of another form.
        _ROW_MAKERS.put(spark, None)
        return data


def _round(size: int) -> int:
    """The size, rounded up to few digits."""
    unit = 1 << max(size.bit_length() - _DIGITS, 0)
    return -(-size // unit) * unit


def _table_of(spark: SparkSession, makers: _RowMakers, size: int) -> Any:
    """What a catalog would know of a table of so many bytes."""
    known = makers.known.get(size)
    if known is not None:
        return known
    # Python would make a number of its own of Scala's: the statistics get it inside a list.
    numbers: Any = spark.range(size)
    count = numbers._jdf.queryExecution().analyzed().stats().rowCount().toList()
    values = makers.jvm.java.util.ArrayList()
    values.addAll(makers.jvm.scala.jdk.javaapi.CollectionConverters.asJava(count))
    values.add(makers.option.empty())
    values.add(makers.no_columns)
    arguments = list(makers.arguments)
    statistics = makers.statistics_of.newInstance(values.toArray())
    arguments[makers.statistics] = makers.option.apply(statistics)
    made = makers.option.apply(makers.table.apply(*arguments))
    makers.known.put(size, made, 1)
    return made


def _row_makers(spark: SparkSession) -> _RowMakers:
    session: Any = spark
    jvm = session._jvm
    spark_sql = jvm.org.apache.spark.sql
    table = module_named(jvm, f"{_CATALOG}.CatalogTable")
    count = class_named(jvm, f"{_CATALOG}.CatalogTable").getConstructors()[0].getParameterCount()
    arguments = [
        # Plans show the name of a relation: it has none.
        spark_sql.catalyst.TableIdentifier(""),
        spark_sql.catalyst.catalog.CatalogTableType.EXTERNAL(),
        module_named(jvm, f"{_CATALOG}.CatalogStorageFormat").empty(),
        session.range(0)._jdf.schema(),
    ]
    defaults = range(len(arguments) + 1, count + 1)
    arguments += [getattr(table, f"apply$default${number}")() for number in defaults]
    example = table.apply(*arguments)
    names = [example.productElementName(number) for number in range(count)]
    return _RowMakers(
        dataset=spark_sql.classic.Dataset,
        table=table,
        arguments=arguments,
        statistics=names.index("stats"),
        statistics_of=class_named(jvm, f"{_CATALOG}.CatalogStatistics").getConstructors()[0],
        no_columns=getattr(module_named(jvm, f"{_CATALOG}.CatalogStatistics"), "apply$default$3")(),
        option=jvm.scala.Option,
        jvm=jvm,
    )
