"""Rows become data files: native Parquet where Spark's writer can, Arrow where it cannot.

Spark writes under a fresh folder of the table's data location. What lies in that folder, outside of
hidden folders, is read back footer by footer and checked; on a local disk or HDFS each file is then
moved to where the table's layout wants it, elsewhere it stays. Files that no commit refers to are
invisible, and a write that fails removes its own.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

import polars as pl
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.errors import InvalidDataFileError, MissingFileError, StorageError, UnsupportedError
from frazil.format import types as I
from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.types.forms import FORMS
from frazil.format.types.inside import holds_type
from frazil.spark.files.parquet.access import SparkAccess, spark_access
from frazil.spark.files.parquet.native import check_variants
from frazil.spark.files.staging import StagedFolder
from frazil.spark.files.wire import entry_from_text, entry_wire
from frazil.spark.session import costs
from frazil.spark.session.facts import (
    WRITE_SETTINGS,
    is_case_sensitive,
    prepare_session,
    temporary_settings,
)
from frazil.spark.session.packages import have_packages
from frazil.spark.session.tasks import map_batches, work_on
from frazil.spark.write.arrow import ArrowTask, writes_few
from frazil.spark.write.columns.align import align
from frazil.spark.write.columns.partition_columns import identity_columns, key_names, partition_keys
from frazil.spark.write.distribute import Placement, distribute, in_order, order_columns
from frazil.spark.write.finish import Finisher
from frazil.spark.write.in_place import write_in_place
from frazil.spark.write.joined import joined_pieces
from frazil.spark.write.options import CODECS_OF_EVERY_SPARK, WriteOptions, write_options
from frazil.spark.write.row_count import ExpectedRows, RowCount
from frazil.storage.file_kinds import DATA_FILES, FileKind
from frazil.storage.files import FileInfo, FileIO
from frazil.storage.locations import new_data_folder
from frazil.storage.parquet.metrics import MetricsReader

_LOG: Final = logging.getLogger(__name__)
_OPEN_FILES: Final = "spark.sql.maxConcurrentOutputFileWriters"
_TASK_NUMBER = re.compile(r"^(?:part-)?(\d+)-")
_NO_CODEC: Final = re.compile(r"Codec (was not|not) found|NotFoundException\b.*Codec")

_RAW_LOCAL_FILES: Final[Mapping[str, str]] = {
    # Without checksum side files, which a patched or moved file would contradict.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes the files of a write: ``Spark`` or ``Arrow``, and why.

    Attributes:
        may_change: whether Spark writes them where a store refuses this one.
    """

    name: Literal["Spark", "Arrow"]
    why: str
    may_change: bool = False


SPARK: Final = Writer("Spark", "it writes every type of the columns")

_UNLABELLED: Final = (
    *(I.StructType, I.ListType, I.MapType),
    *(form.kind for form in FORMS if form.labelled),
)
"""Types whose columns Spark writes without an id or their logical type."""


@dataclass(frozen=True, slots=True)
class WriteProgress:
    """What a write is at.

    Attributes:
        stage: ``writing`` rows, reading ``footers``, or ``done``.
        writer: who writes the rows, and why; None of deletes.
        files: so far; 0 while rows are written.
        records: in those files.
        size_in_bytes: of those files.
    """

    stage: Literal["writing", "footers", "done"]
    files: int = 0
    records: int = 0
    size_in_bytes: int = 0
    writer: Writer | None = None

    @property
    def share(self) -> float | None:
        """How much is done, from 0 to 1; None, since Spark does not tell it."""
        return None

    def __str__(self) -> str:
        if self.stage == "writing":
            return "writing rows"
        return f"{self.files:,} files with {self.records:,} rows written"


def write_data_files(
    spark: SparkSession,
    df: DataFrame,
    *,
    metadata: TableMetadata,
    io: FileIO,
    name: str | None = None,
    options: Mapping[str, str] | None = None,
    schema: Schema | None = None,
    kind: FileKind = DATA_FILES,
    placement: Placement | None = None,
    expected: ExpectedRows | None = None,
    on_progress: Callable[[WriteProgress], None] | None = None,
) -> list[DataFile]:
    """Write rows as data files of a table, or as another kind; nothing is committed.

    Args:
        spark: of the table; what is set for the write is set in the session of the rows.
        df: the rows; columns are matched by name, see `align`.
        metadata: of the table: schema, spec, sort order, properties and locations.
        name: of the table, by which the written rows go in what Spark tells of their plan.
        options: the write's own, by the Java runtime's names: see `write_options`.
        schema: of the rows, where it is not the table's current one; so row lineage columns can
            be written beside the table's (rule 148).
        kind: of the files; those of equality deletes hold the columns that are compared.
        placement: which task writes which row; as options and properties say unless given.
        expected: how much is written, where there is an idea of it.
        on_progress: called at each stage.

    Returns:
        one entry for each file, without sequence numbers; none for no rows.

    Raises:
        SchemaMismatchError: the rows do not fit the table.
        ConfigurationError: an option or property is malformed.
        UnsupportedError: an unknown transform (rule 7), another file format than Parquet, or a
            codec that this Spark lacks.
        InvalidDataFileError: the files do not hold what was to be written.
        MissingFileError: a file that the rows are read from is gone.
        StorageError: the store refused or failed.
    """
    tell = on_progress or tell_nobody
    own = df.sparkSession

    plan_write = partial(
        FileWrite.plan, metadata, io, options, schema or metadata.schema, kind, placement
    )
    write = plan_write()
    write = replace(write, writer=chosen_writer(own, write, expected))
    # The rows may come out of tables, whose scans run in this session.
    prepare_session(own)
    aligned = align(df, write.schema, case_sensitive=is_case_sensitive(spark))
    if name is not None:
        aligned = aligned.alias(name)
    try:
        files = write.fill(own, aligned, tell)
    except StorageError as error:
        if not write.writer.may_change or isinstance(error, MissingFileError):
            raise
        # Spark's connector may have credentials that executors' Python has not.
        _LOG.warning("Arrow cannot write the files, and Spark is asked to: %s", error)
        write = replace(plan_write(), writer=replace(SPARK, why=f"Arrow could not: {error}"))
        files = write.fill(own, aligned, tell)
    with io.remove_on_failure(file.file_path for file in files):
        size = sum(file.file_size_in_bytes for file in files)
        records = sum(file.record_count for file in files)
        tell(WriteProgress("done", len(files), records, size, write.writer))
    return files


def tell_nobody(progress: WriteProgress) -> None:
    """Take the progress of a write that nobody asked about."""


def chosen_writer(spark: SparkSession, write: FileWrite, expected: ExpectedRows | None) -> Writer:
    """Return who is to write the files: Spark, but for what it cannot write or is slow at."""
    known = expected if write.placement is None else None
    if holds_type(write.schema.as_struct(), I.UUIDType, I.FixedType):
        return Writer("Arrow", "Spark's writer has no physical type for a column")
    if write.needs_labels and not write.is_local:
        if not write.io.replaces_ends(write.folder):
            return Writer(
                "Arrow", "footers of Spark's writer lack ids, and cannot be patched there"
            )
        # Mending the footer of a file of few rows costs more than they do.
        if known is not None and write.values_of_a_file(known) <= costs.FEW_VALUES:
            return Writer("Arrow", "partitions get few rows, and Spark's footers lack ids")
    # Spark's own writer needs no Python on executors.
    if known is not None and write.has_few(known) and have_packages(spark):
        why = "is slow at folders" if write.is_local else "asks a store three times for each file"
        why = f"partitions get few rows, and Spark's writer {why}"
        return Writer("Arrow", why, may_change=not write.is_local)
    return SPARK


@dataclass(frozen=True, slots=True)
class FileWrite:
    """One write to one fresh folder."""

    metadata: TableMetadata
    schema: Schema
    spec: PartitionSpec
    kind: FileKind
    options: WriteOptions
    staging: StagedFolder
    operation_id: str
    count: RowCount
    placement: Placement | None
    writer: Writer = SPARK

    @classmethod
    def plan(
        cls,
        metadata: TableMetadata,
        io: FileIO,
        options: Mapping[str, str] | None,
        schema: Schema,
        kind: FileKind,
        placement: Placement | None,
    ) -> FileWrite:
        settings = write_options(metadata, schema, options, kind=kind)
        spec = metadata.spec_by_id(settings.spec_id)
        operation_id = str(uuid.uuid4())
        staging = StagedFolder(io, new_data_folder(metadata, operation_id))
        count = RowCount()
        return cls(metadata, schema, spec, kind, settings, staging, operation_id, count, placement)

    @property
    def io(self) -> FileIO:
        return self.staging.io

    @property
    def folder(self) -> str:
        return self.staging.path

    @property
    def is_local(self) -> bool:
        return self.staging.is_local

    @property
    def needs_labels(self) -> bool:
        """Whether the footers of Spark's writer lack an id or a type."""
        return any(holds_type(field.field_type, *_UNLABELLED) for field in self.schema.fields)

    def has_few(self, expected: ExpectedRows) -> bool:
        """Whether each file gets few rows, and Spark's writer costs more than they do."""
        if self.is_local:
            few_folders = expected.is_usual and expected.partitions < costs.MANY_PARTITIONS
            if few_folders or not self.has_folders:
                return False
        return writes_few(self.schema, self.options, self.rows_of_a_file(expected))

    def values_of_a_file(self, expected: ExpectedRows) -> float:
        """About so many values a file gets."""
        return self.rows_of_a_file(expected) * len(self.schema.fields)

    def rows_of_a_file(self, expected: ExpectedRows) -> float:
        """About so many rows a file gets: those of a partition."""
        return expected.of_a_partition if self.has_folders else expected.rows

    @property
    def has_folders(self) -> bool:
        """Whether the table has partitions."""
        return any(not field.is_void for field in self.spec.fields)

    @property
    def takes_arrow(self) -> bool:
        """Whether PyArrow writes the files."""
        return self.writer.name == "Arrow"

    @property
    def partition_type(self) -> I.StructType:
        return self.spec.partition_type(self.schema)

    def finisher(self) -> Finisher:
        order = self.metadata.sort_order_by_id(self.options.sort_order_id)
        modes = self.kind.metrics_modes(
            self.schema,
            self.metadata.properties,
            sorted_ids=[field.source_id for field in order.fields],
        )
        reader = MetricsReader(self.schema, modes)
        keys = key_names(self.schema, self.spec)
        return Finisher(
            self.io, reader, self.spec, order.order_id, self.needs_labels, keys, self.kind
        )

    def fill(
        self, spark: SparkSession, aligned: DataFrame, tell: Callable[[WriteProgress], None]
    ) -> list[DataFile]:
        """Write the rows; return the entries of the files where they stay."""
        tell(WriteProgress("writing", writer=self.writer))
        with self.staging.discard_on_failure():
            return self.staging.publish(self.stage(spark, aligned, tell), self.final_path)

    def stage(
        self, spark: SparkSession, aligned: DataFrame, tell: Callable[[WriteProgress], None]
    ) -> list[DataFile]:
        """Fill the folder; return the entries of its files in the order of their paths.

        Raises:
            UnsupportedError: Spark could not read them.
        """
        check_variants(spark, self.schema)
        if self.takes_arrow:
            return self.with_arrow(aligned)
        written = self.write_natively(spark, aligned)
        self.count.ask()
        entries = self.entries(spark, written, tell)
        self.check_count(entries)
        return entries

    def place(self, aligned: DataFrame) -> tuple[DataFrame, tuple[str, ...]]:
        """The rows with their partition keys, distributed, counted and sorted."""
        keys = partition_keys(self.schema, self.spec)
        order = self.metadata.sort_order_by_id(self.options.sort_order_id)
        ordering: Sequence[Column] = order_columns(self.schema, order)
        chosen = self.placement
        if chosen is None:
            placed = distribute(
                aligned,
                mode=self.options.distribution_mode,
                keys=keys,
                sources=identity_columns(self.schema, self.spec),
                ordering=ordering,
            )
        else:
            ordering = ordering if chosen.ordering is None else chosen.ordering
            placed = chosen.place(aligned, keys=keys, ordering=ordering)
        # Behind the sort Spark would not know that the rows are in order, and sort them again.
        counted = placed if self.takes_arrow else self.count.counted_rows(placed)
        # Arrow's writer closes a partition's file where another partition begins.
        by_keys = [F.col(key) for key in keys] if self.takes_arrow and not ordering else []
        rows = in_order(counted, keys=() if by_keys else keys, ordering=by_keys or ordering)
        added = () if chosen is None else tuple(chosen.added)
        return rows.drop(*added) if added else rows, tuple(keys)

    def write_natively(self, spark: SparkSession, aligned: DataFrame) -> list[FileInfo] | None:
        """Let Spark write the folder.

        Returns:
            the files of a commit; None where the folder has to be listed for them.
        """
        access = self.access(spark)
        self.check_codec(spark)
        settings = dict(WRITE_SETTINGS)
        if holds_type(self.schema.as_struct(), I.VariantType):
            shreds = str(self.options.shreds_variants).lower()
            settings["spark.sql.variant.writeShredding.enabled"] = shreds
            # It would rename the columns of scans, and their field ids would be lost on the way.
            settings["spark.sql.variant.pushVariantIntoScan"] = "false"
        placed, keys = self.place(aligned)
        if self.placement is not None and self.placement.moves == "stay":
            settings[_OPEN_FILES] = str(costs.OPEN_FILES)
        options = {**self.options.spark_options(), **(_RAW_LOCAL_FILES if self.is_local else {})}
        with temporary_settings(spark, settings):
            found = write_in_place(
                placed, access, self.folder, keys=keys, options=options, is_local=self.is_local
            )
            if found is None:
                writer = placed.write.options(**options)
                writer = writer.partitionBy(*keys) if keys else writer
                access.writer(spark, writer).parquet(access.paths.item())
            return found

    def access(self, spark: SparkSession, below: str = "") -> SparkAccess:
        """Return how Spark reaches the folder, or one below it; errors as of `spark_access`."""
        return spark_access(pl.Series([self.folder + below]), spark, self.io)

    def arrow_task(self, keys: tuple[str, ...] = ()) -> ArrowTask:
        """Return what an executor does with rows that have these partition keys."""
        return ArrowTask(
            finisher=self.finisher(),
            keys=keys,
            folder=self.folder,
            operation_id=self.operation_id,
            options=self.options,
            partition_type=self.partition_type,
            kind=self.kind,
        )

    def with_arrow(self, aligned: DataFrame) -> list[DataFile]:
        """Let executors write the folder with PyArrow."""
        placed, keys = self.place(aligned)
        self.staging.make()
        rows = map_batches(placed, self.arrow_task(keys), "entry string").collect()
        return self.staged_entries([row["entry"] for row in rows])

    def staged_entries(self, entries: Sequence[str]) -> list[DataFile]:
        """Return what tasks tell of their files, in the order of paths; the rest goes."""
        staged = self.told_files(entries)
        self.staging.keep_only(staged)
        return staged

    def told_files(self, entries: Sequence[str]) -> list[DataFile]:
        """Return what tasks tell of their files, in the order of paths."""
        told = [entry_from_text(entry, self.partition_type) for entry in entries]
        return sorted(told, key=lambda entry: entry.file_path)

    def list_files(self) -> list[FileInfo]:
        """The files that lie in the folder, but for hidden ones, in the order of their paths."""
        listed = sorted(self.io.list(self.folder), key=lambda file: file.path)
        # What a late attempt of a task left is hidden, as it is from Spark's own readers.
        hidden = [file.path for file in listed if self._is_hidden(file.path)]
        if hidden and not self.staging.renames:
            self.io.delete_many(hidden)
        return [
            file
            for file in listed
            if file.path.endswith(".parquet") and not self._is_hidden(file.path)
        ]

    def entries(
        self,
        spark: SparkSession,
        found: Sequence[FileInfo] | None,
        tell: Callable[[WriteProgress], None],
    ) -> list[DataFile]:
        """The entries of files, folder by folder and in the order of tasks.

        Args:
            found: the files in the order of tasks; those of the folder where it is None.
        """
        written = self.list_files() if found is None else sorted(found, key=_folder_of)
        if self.placement is not None and self.placement.pieces > 1:
            written = joined_pieces(
                written, pieces=self.placement.pieces, most=self.options.target_file_size
            )
        size = sum(file.size for file in written)
        tell(WriteProgress("footers", len(written), 0, size, self.writer))
        entries = read_entries(
            spark,
            self.finisher(),
            self.partition_type,
            written,
            is_local=self.is_local,
        )
        empty = [entry for entry in entries if not entry.record_count]
        if empty:
            self.io.delete_many(entry.file_path for entry in empty)
        return [entry for entry in entries if entry.record_count]

    def check_count(self, staged: Sequence[DataFile]) -> None:
        """Compare the rows in the files with those that Spark counted on their way there.

        Raises:
            InvalidDataFileError: they differ.
        """
        counted, held = self.count.result(), sum(entry.record_count for entry in staged)
        if counted is not None and counted != held:
            raise InvalidDataFileError(
                f"Spark wrote {counted} rows, and the {len(staged)} files hold {held}: nothing was "
                "committed; write again, and look whether a committer of this store leaves files "
                "of attempts that failed",
                file=self.folder,
            )

    def check_codec(self, spark: SparkSession) -> None:
        """Let Spark write one row with a codec that not every Spark has.

        Raises:
            UnsupportedError: this one has not.
        """
        codec = self.options.codec
        if codec in CODECS_OF_EVERY_SPARK:
            return
        access = self.access(spark, "/_codec")
        try:
            writer = spark.range(0, 1, 1, 1).write.option("compression", codec)
            access.writer(spark, writer).parquet(access.paths.item())
        except Exception as error:  # Spark and the bridge to it have no class in common for this
            if _NO_CODEC.search(str(error)) is None:
                raise
            raise UnsupportedError(
                f"this Spark cannot write Parquet with the codec {codec}: set "
                "write.parquet.compression-codec or the option compression-codec to one of "
                f"{', '.join(CODECS_OF_EVERY_SPARK)}; nothing was written"
            ) from error
        finally:
            self.io.delete_folder(f"{self.folder}/_codec")

    def _is_hidden(self, path: str) -> bool:
        below = path.removeprefix(self.folder).strip("/")
        return any(part.startswith(("_", ".")) for part in below.split("/"))

    def final_path(self, entry: DataFile, count: int) -> str:
        """Where the table's layout wants a file."""
        task = _TASK_NUMBER.match(entry.file_path.rsplit("/", 1)[-1])
        name = self.kind.file_name(
            partition_id=int(task.group(1)) if task else 0,
            task_id=0,
            operation_id=self.operation_id,
            count=count + 1,
        )
        return self.kind.file_path(
            self.metadata, name, spec=self.spec, schema=self.schema, partition=entry.partition
        )


def _folder_of(file: FileInfo) -> str:
    return file.path.rpartition("/")[0]


def read_entries(
    spark: SparkSession,
    finisher: Finisher,
    partition_type: I.StructType,
    files: Sequence[FileInfo],
    *,
    is_local: bool,
) -> list[DataFile]:
    """Return the entries of files, in their order.

    Args:
        spark: its executors read what is too much for the driver.
        partition_type: of the entries.
        is_local: whether the driver's local disk has them.

    Raises:
        InvalidDataFileError: a file does not hold what was to be written.
        StorageError: a file cannot be read.
    """
    width = costs.COLUMNS_OF_A_FOOTER + len(finisher.schema.fields)
    if finisher.labels:
        width *= costs.LABELLED
    return work_on(
        spark,
        files,
        partial(_finish, finisher),
        entry_wire(partition_type),
        cost=costs.LOCAL_FOOTERS if is_local else costs.REMOTE_FOOTERS,
        units=len(files) * width if is_local else len(files),
    )


def _finish(finisher: Finisher, file: FileInfo) -> DataFile:
    return finisher.finish(file.path, file.size)
