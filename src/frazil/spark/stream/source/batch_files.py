"""Files that a stream's batches are made of: the table's own where Spark's stream can read them.

A stream has one schema and one way to read for all its files: Spark's Parquet reader, by field id.
A data file goes into the log as it is if that reader yields its rows exactly. Rows of all others
(under deletes, in ORC or Avro, without field ids, with a default or a partition value that the
reader cannot fill in) and rows that are changes are read as a batch query reads them, and written
as Parquet files with field ids beside the log: one copy of those rows, and then the same road.
The alternative, a Python data source that yields Arrow, would send every row through Python in
each run of a batch, and cannot be one relation with the native files.

A unit is what a batch takes whole: one file, or the files that were written together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.format.metadata import TableMetadata
from frazil.format.metadata.table_mapping import name_mapping_of
from frazil.format.partitions.partitioning import UNPARTITIONED
from frazil.format.predicates.expressions import Expression
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.sorting import UNSORTED
from frazil.format.types import IntegerType, LongType, NestedField, StringType
from frazil.planning.changes import appended_files
from frazil.planning.plan import plan
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.changes.changelog import Changelog
from frazil.spark.changes.columns import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT_ID,
    ChangeType,
)
from frazil.spark.files.arrow.convert import is_scanned
from frazil.spark.files.arrow.files import TableColumns
from frazil.spark.files.file_layouts import CHECKED_FILES, NO_NATIVE_DEFAULT, survey
from frazil.spark.files.layout.layouts import Layout, Reader
from frazil.spark.files.layout.trusted import are_footers_asked
from frazil.spark.files.parquet.access import check_lasting_access
from frazil.spark.files.parquet.locations import spark_paths
from frazil.spark.files.projection import Projection
from frazil.spark.read.reader import TableReader
from frazil.spark.stream.source.batches import UNIT_SCHEMA, cut_batches
from frazil.spark.stream.source.options import StreamOptions
from frazil.spark.stream.source.pending import Pending, PendingSnapshots
from frazil.spark.write.files import write_data_files
from frazil.storage.files import FileIO

CHANGE_FIELDS: Final[tuple[NestedField, ...]] = (
    NestedField(2147483543, CHANGE_TYPE, StringType(), required=True),
    NestedField(2147483542, CHANGE_ORDINAL, IntegerType(), required=True),
    NestedField(2147483541, COMMIT_SNAPSHOT_ID, LongType(), required=True),
)
"""The changelog's columns, with their reserved ids (SPEC rule 67)."""


@dataclass(frozen=True)
class Units:
    """Makes units of what is pending.

    Attributes:
        metadata: the table as it is now.
        io: its files.
        schema: what the stream reads, whatever the table's schema is by now.
        rows_folder: where files are written.
        rows_io: the store of that folder.
    """

    spark: SparkSession
    metadata: TableMetadata
    io: FileIO
    schema: Schema
    options: StreamOptions
    rows_folder: str
    rows_io: FileIO

    def units_of(self, pending: Pending) -> pl.DataFrame:
        """The files in the order to read them (`UNIT_SCHEMA`), with paths as Spark opens them.

        Raises:
            UnsupportedError: a delete or a file that cannot be applied or read rightly.
            MissingFileError, InvalidDataFileError: a file that had to be looked at cannot be read.
        """
        frames: list[pl.DataFrame] = []
        if pending.initial is not None:
            frames += self._initial_units(pending.initial)
        for part in pending.parts:
            if self.options.reads_changes:
                frames.append(self._files_of_rows(self._changes(part)))
            else:
                frames += self._rows(self._plan_of_appends(part))
        numbered = [
            frame.with_columns((pl.col("unit") + _width(frames[:place])).alias("unit"))
            for place, frame in enumerate(frames)
        ]
        return pl.concat([pl.DataFrame(schema=UNIT_SCHEMA), *numbered])

    def _initial_units(self, snapshot: Snapshot) -> Iterator[pl.DataFrame]:
        """The table's content, oldest rows first."""
        whole = plan(self.metadata, snapshot, self.io, where=self._pruned_by, schema=self.schema)
        files = whole.files.sort("sequence_number", "ordinal", maintain_order=True)
        whole = replace(whole, files=files)
        if not self.options.reads_changes:
            yield from self._rows(whole)
            return
        for chunk in self._chunks(whole):
            yield self._files_of_rows(
                self._read(chunk).select(
                    "*",
                    F.lit(str(ChangeType.INSERT)).alias(CHANGE_TYPE),
                    F.lit(0).alias(CHANGE_ORDINAL),
                    F.lit(snapshot.snapshot_id).cast("bigint").alias(COMMIT_SNAPSHOT_ID),
                )
            )

    def _plan_of_appends(self, part: PendingSnapshots) -> ScanPlan:
        """The files that the snapshots added, in the order of the snapshots."""
        snapshots = part.snapshots.snapshots
        whole = appended_files(
            self.metadata, snapshots, self.io, where=self._pruned_by, schema=self.schema
        )
        order = pl.DataFrame(
            {
                "snapshot_id": [each.snapshot_id for each in snapshots],
                "nth": list(range(len(snapshots))),
            },
            schema={"snapshot_id": pl.Int64, "nth": pl.Int64},
        )
        files = whole.files.join(order, on="snapshot_id", how="left", maintain_order="left")
        return replace(whole, files=files.sort("nth", "ordinal", maintain_order=True).drop("nth"))

    def _changes(self, part: PendingSnapshots) -> DataFrame:
        changelog = Changelog(self.spark, self.metadata, self.io, part.snapshots, self.schema)
        ordinal = (F.col(CHANGE_ORDINAL) + F.lit(part.change_ordinal)).cast("int")
        return changelog.changes().withColumn(CHANGE_ORDINAL, ordinal)

    # -- rows ------------------------------------------------------------------------------------

    def _rows(self, whole: ScanPlan) -> Iterator[pl.DataFrame]:
        """Units of a plan's files, in their order."""
        if whole.files.is_empty():
            return
        native, sizes = self._native_files(whole)
        runs = native.rle_id()
        for run in runs.unique(maintain_order=True):
            here = runs == run
            if native.filter(here).first():
                yield self._own_units(whole.files.filter(here), sizes.filter(here))
                continue
            for chunk in self._chunks(whole.where_files(here)):
                yield self._files_of_rows(self._read(chunk))

    def _own_units(self, files: pl.DataFrame, sizes: pl.Series) -> pl.DataFrame:
        """The table's files as units of one."""
        check_lasting_access(files["file_path"], self.spark, self.io)
        return files.select(
            spark_paths(files["file_path"], self.spark, self.io).alias("path"),
            sizes.cast(pl.Int64).alias("size"),
            pl.col("record_count").cast(pl.Int64).alias("rows"),
            pl.int_range(pl.len(), dtype=pl.Int64).alias("unit"),
        )

    def _chunks(self, whole: ScanPlan) -> Iterator[ScanPlan]:
        """The plan in parts that a batch may hold."""
        units = whole.files.select(
            pl.col("file_path").alias("path"),
            pl.col("file_size_in_bytes").alias("size"),
            pl.col("record_count").alias("rows"),
            pl.int_range(pl.len(), dtype=pl.Int64).alias("unit"),
        )
        start = 0
        for batch in cut_batches(units, self.options):
            place = pl.int_range(len(units), eager=True)
            yield whole.where_files((place >= start) & (place < start + len(batch)))
            start += len(batch)

    def _native_files(self, whole: ScanPlan) -> tuple[pl.Series, pl.Series]:
        """For each file whether Spark's stream reads it exactly, and its true size."""
        fields = tuple(f for f in self.schema.fields if is_scanned(f.field_type))
        mapping = name_mapping_of(self.metadata)
        table = TableColumns(fields=self.schema.fields, mapping=mapping)
        identity = {
            spec.spec_id: spec.identity_source_ids & {f.field_id for f in fields}
            for spec in self.metadata.partition_specs
        }
        asks_footers = are_footers_asked(self.spark)
        # Where a missing column may be a partition value, no file is left to guesses.
        step = CHECKED_FILES if any(identity.values()) else max(whole.file_count, 1)
        native: list[pl.Series] = []
        sizes: list[pl.Series] = []
        for start in range(0, whole.file_count, step):
            files = whole.files.slice(start, step)
            known = survey(self.io, self.metadata, files, fields, table, asks_footers=asks_footers)
            ways = known.files.group_by("layout", "spec_id").agg(pl.len())
            exact = [
                (layout, spec_id)
                for layout, spec_id, _ in ways.iter_rows()
                if self._is_exact(known.layouts[layout], identity[spec_id])
            ]
            wanted = pl.DataFrame(
                exact,
                schema={"layout": known.files["layout"].dtype, "spec_id": pl.Int64},
                orient="row",
            ).with_columns(pl.lit(True).alias("exact"))
            files = known.files.with_columns(pl.col("spec_id").cast(pl.Int64))
            joined = files.join(wanted, on=["layout", "spec_id"], how="left", maintain_order="left")
            native.append(joined["exact"].fill_null(False))
            sizes.append(joined["file_size_in_bytes"])
        free = ~whole.files["ordinal"].is_in(whole.delete_index.ordinals().implode())
        once = ~whole.files["file_path"].is_duplicated()
        return pl.concat(native) & free & once, pl.concat(sizes)

    def _is_exact(self, layout: Layout, identity: frozenset[int]) -> bool:
        """Whether Spark's reader by id fills in the columns that files of this layout lack."""
        if layout.reader is not Reader.BY_ID or layout.missing & identity:
            return False
        absent = (self.schema.find_field(field_id) for field_id in layout.missing)
        return not any(
            field.initial_default is not None and isinstance(field.field_type, NO_NATIVE_DEFAULT)
            for field in absent
        )

    @property
    def _pruned_by(self) -> Expression | None:
        """What leaves out files; rows before and after a change are not pruned apart."""
        return None if self.options.reads_changes else self.options.pruned_by

    def _read(self, part: ScanPlan) -> DataFrame:
        """The rows of a plan, as a batch query reads them."""
        reader = TableReader(self.spark, self.metadata, self.io)
        return reader.rows(part, Projection(self.schema.fields))

    def _files_of_rows(self, rows: DataFrame) -> pl.DataFrame:
        """The rows as files of the stream: one unit."""
        added = CHANGE_FIELDS if self.options.reads_changes else ()
        written = write_data_files(
            self.spark,
            rows,
            metadata=self._layout((*self.schema.fields, *added)),
            io=self.rows_io,
        )
        frame = pl.DataFrame(
            {
                "path": [file.file_path for file in written],
                "size": [file.file_size_in_bytes for file in written],
                "rows": [file.record_count for file in written],
                "unit": [0] * len(written),
            },
            schema=UNIT_SCHEMA,
        )
        return frame.with_columns(spark_paths(frame["path"], self.spark, self.rows_io))

    def _layout(self, fields: tuple[NestedField, ...]) -> TableMetadata:
        """A table that is only these columns in that folder."""
        schema = replace(self.schema, fields=fields, identifier_field_ids=())
        return replace(
            self.metadata,
            location=self.rows_folder,
            schemas=(schema,),
            current_schema_id=schema.schema_id,
            partition_specs=(UNPARTITIONED,),
            default_spec_id=UNPARTITIONED.spec_id,
            sort_orders=(UNSORTED,),
            default_sort_order_id=UNSORTED.order_id,
            properties={},
        )


def _width(frames: list[pl.DataFrame]) -> int:
    """How many units the frames have."""
    return sum(int(str(frame["unit"].max() or 0)) + 1 for frame in frames if len(frame))
