"""The rows of files that Spark reads in one scan, without those that are deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import polars as pl
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.format import types as I
from frazil.format.partitions.transforms import IdentityTransform
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.planning.frames import partition_names
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.deletes.bitmap import Words
from frazil.spark.deletes.equality import (
    ROW_SCOPE,
    ROW_SEQUENCE,
    deleted_by_keys,
    top_level_id,
)
from frazil.spark.deletes.groups import DeleteGroup
from frazil.spark.deletes.joins import ArrayBitmaps, Bitmaps, bitmaps_of_words, in_arrays
from frazil.spark.deletes.positions import PositionDeletes
from frazil.spark.files.arrow.convert import convert_column, is_scanned, needs_conversion, scan_type
from frazil.spark.files.arrow.files import TableColumns
from frazil.spark.files.arrow_scan import scan_with_arrow
from frazil.spark.files.file_layouts import Survey
from frazil.spark.files.file_rows import (
    FileValue,
    attach,
    file_value,
    partition_value,
    scan_value,
)
from frazil.spark.files.layout.layouts import Layout, Reader
from frazil.spark.files.layout.weights import for_even_tasks, weighed_by_deletes
from frazil.spark.files.parquet.file_log import NAMED_PLACE
from frazil.spark.files.parquet.native import (
    NativeScan,
    ScanContext,
    Wanted,
    default_text,
    scan_by_id,
    scan_by_name,
)
from frazil.spark.files.projection import (
    DELETED,
    FILE,
    FILE_ORDINAL_FIELD,
    LAST_UPDATED,
    PARTITION,
    POS,
    ROW_ID,
    SPEC_ID,
    Projection,
    is_metadata_column,
)
from frazil.spark.files.scan_names import ROW_INDEX_NAME
from frazil.spark.read.prepared import PreparedRows
from frazil.spark.read.result_columns import (
    FIRST_ROW_ID,
    ScanColumn,
    constant_name,
    metadata_column,
    metadata_of,
    partition_type,
    scan_name,
)
from frazil.spark.types import type_to_spark


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedReading:
    """What the groups of one scan share."""

    context: ScanContext
    plan: ScanPlan
    projection: Projection
    scanned: Projection
    names: Mapping[int, str]
    schema: Schema
    table: TableColumns
    survey: Survey
    resolved: Mapping[int, Words]
    pushed: frozenset[int]

    def field(self, field_id: int) -> I.NestedField:
        """The scanned top-level column of an id."""
        return next(field for field in self.scanned.fields if field.field_id == field_id)


@dataclass(frozen=True, slots=True)
class ScanGroup:
    """Files of one delete group that Spark reads in one scan."""

    reading: SharedReading
    group: DeleteGroup
    files: pl.DataFrame
    layout: Layout
    constants: tuple[int, ...]

    def rows(self) -> list[PreparedRows]:
        """The rows in the result's columns; with ``_deleted``, also the deleted ones."""
        sets, others, scan = self._deleted_positions()
        if not sets:
            return self._rows(others, scan)
        files = self.files["ordinal"]
        words = {o: Words.union(each[o] for each in sets if o in each) for o in files}
        if not others and DELETED not in self.reading.projection.metadata_names:
            counts = dict(zip(files, self.files["record_count"], strict=True))
            left = {o: some for o, some in words.items() if not _holds_all(some, counts[o])}
            # A scan that is made has the rows of all the files.
            words = left if scan is None or not left else words
            if not words:
                return []
        # What executors read they would read for each part.
        parts = [words] if others else in_arrays(words)
        found: list[PreparedRows] = []
        for part in parts:
            members = self.files.filter(files.is_in(pl.Series(list(part)).implode()))
            context, group = self.reading.context, replace(self, files=members)
            bitmaps = bitmaps_of_words(context.spark, part, context.io.caches["bitmaps"])
            found += group._rows([*others, bitmaps], scan if len(parts) == 1 else None)
        return found

    def _deleted_positions(
        self,
    ) -> tuple[list[Mapping[int, Words]], list[Bitmaps], NativeScan | DataFrame | None]:
        """What is deleted by position: sets by file, and what executors read.

        Also the scan, where it was made while threads read the deletes.
        """
        context, sets = self.reading.context, list[Mapping[int, Words]]()
        if self.group.has_resolved:
            sets.append(self.reading.resolved)
        if not self.group.has_positions:
            return sets, [], None
        positions = PositionDeletes.of(context, self.reading.plan, self.files["ordinal"])
        if not len(positions.tasks):
            return sets, [], None
        reading_here = positions.reading_here()
        # Where every row may be deleted, there may be nothing to scan.
        may_leave_rows = positions.most_deleted < int(self.files["record_count"].sum())
        if reading_here is not None and may_leave_rows:
            with ThreadPoolExecutor(1, "frazil-deletes") as thread:
                reading = thread.submit(reading_here)
                scan = self._scan()
            return [*sets, reading.result()], [], scan
        found = positions.choice().way.apply()
        if not isinstance(found, dict):
            return sets, [found], None
        return [*sets, found], [], None

    def _rows(
        self, all_bitmaps: Sequence[Bitmaps], made: NativeScan | DataFrame | None
    ) -> list[PreparedRows]:
        """The same without what is deleted by position; the files are under these bitmaps."""
        reading, context = self.reading, self.reading.context
        plain = self._plain_columns()
        scan = self._scan() if made is None else made
        if plain is not None and not self.group.has_deletes:
            is_small = isinstance(scan, NativeScan)
            return [PreparedRows(_frame_of(scan), plain, is_small)]
        if plain is not None and not self.group.equality:
            kept = _kept_rows(scan, all_bitmaps)
            if kept is not None:
                return [PreparedRows(kept, plain, is_small=True)]
        rows, columns, known = self._rows_and_columns(
            _frame_of(scan),
            [field.field_id for field in reading.scanned.fields]
            if plain is None
            else [field_id for part in self.group.equality for field_id in part.ids],
        )
        keeps_deleted = DELETED in reading.projection.metadata_names
        deleted: list[DataFrame] = []
        by_keys = (
            deleted_by_keys(context, reading.schema, part, reading.table, columns, known)
            for part in self.group.equality
        )
        by_position = (bitmaps.deleted_at(NAMED_PLACE) for bitmaps in all_bitmaps)
        for gone in (*by_position, *by_keys):
            if keeps_deleted:
                deleted.append(gone.only_deleted(rows))
            rows = gone.without_deleted(rows)
        if plain is not None:
            return [PreparedRows(rows, plain)]
        return [
            PreparedRows(self._result(rows, columns, known, is_deleted=False)),
            *(
                PreparedRows(self._result(gone, columns, known, is_deleted=True))
                for gone in deleted
            ),
        ]

    def _plain_columns(self) -> tuple[ScanColumn, ...] | None:
        """The result's columns, where each is a column of the scan; else None."""
        reading, support = self.reading, self.reading.context.support
        if self.constants or self._ids_with_defaults:
            return None
        columns: list[ScanColumn] = []
        for field in reading.projection.fields:
            kind = field.field_type
            if (
                is_metadata_column(field)
                or not isinstance(kind, I.PrimitiveType)
                or not is_scanned(kind)
                or needs_conversion(kind, support)
                or reading.field(field.field_id).field_type != kind
                or scan_type(kind, support) != type_to_spark(kind, support=support)
            ):
                return None
            columns.append(ScanColumn(reading.names[field.field_id], field.name, field.doc))
        return tuple(columns)

    def _rows_and_columns(
        self, rows: DataFrame, ids: Iterable[int]
    ) -> tuple[DataFrame, dict[int, Column], dict[str, Column]]:
        """The scan's rows, their top-level columns of these ids, and what the plan knows, by name.

        Ids of fields in structs stand for the columns that hold them.
        """
        reading = self.reading
        names = reading.names
        values = self._file_values()
        rows, known = attach(reading.context.spark, rows, self.files["ordinal"], values)
        wanted = {top_level_id(reading.schema, field_id) for field_id in ids}
        columns: dict[int, Column] = {}
        for field in reading.scanned.fields:
            if field.field_id not in wanted:
                continue
            if field.field_id in self.constants:
                columns[field.field_id] = known[constant_name(field.field_id)]
            elif field.field_id in self._ids_with_defaults:
                support = reading.context.support
                literal = F.expr(str(default_text(field, support)))
                # A literal's own type may differ: in a decimal's precision, or double for float.
                columns[field.field_id] = literal.cast(scan_type(field.field_type, support))
            else:
                columns[field.field_id] = F.col(quote_name_always([names[field.field_id]]))
        return rows, columns, known

    @property
    def _ids_with_defaults(self) -> frozenset[int]:
        """Ids of columns that none of the files has, and whose initial default is one literal."""
        if self.layout.reader is Reader.ARROW:
            return frozenset()
        support = self.reading.context.support
        fields = (self.reading.field(field_id) for field_id in self.layout.missing)
        return frozenset(f.field_id for f in fields if default_text(f, support) is not None)

    def _scan(self) -> NativeScan | DataFrame:
        """Spark's own scan, or that of Arrow's readers."""
        reading, layout = self.reading, self.layout
        requested = reading.projection.metadata_names
        literal = self._ids_with_defaults.union(self.constants)
        fields = tuple(f for f in reading.scanned.fields if f.field_id not in literal)
        wanted = Wanted(
            fields=fields,
            names={field.field_id: reading.names[field.field_id] for field in fields},
            named_alike=frozenset(
                field.field_id
                for field in fields
                if field.field_id in reading.survey.named_alike
                and reading.names[field.field_id] == field.name
            ),
            pushed=reading.pushed,
            ordinal=self.group.by_position
            or bool(self._file_values())
            or FILE_ORDINAL_FIELD.name in requested,
            position=self.group.by_position or bool(requested & {POS, ROW_ID}),
        )
        # Spark would take the column of this name for the rows' positions.
        is_misread = wanted.position and ROW_INDEX_NAME in (reading.survey.file_names or ())
        if layout.reader is not Reader.ARROW and not is_misread:
            weighed = weighed_by_deletes(reading.plan, self.files)
            files = for_even_tasks(reading.context.spark, weighed)
            if layout.reader is Reader.BY_ID:
                return scan_by_id(reading.context, files, wanted)
            return scan_by_name(reading.context, files, wanted, layout.columns)
        return scan_with_arrow(reading.context, self.files, wanted, reading.table)

    def _file_values(self) -> list[FileValue]:
        reading, files = self.reading, self.files
        support = reading.context.support
        requested = reading.projection.metadata_names
        values: list[FileValue] = []
        for field_id in self.constants:
            field = reading.field(field_id)
            stored = self._partition_column(field_id)
            values.append(scan_value(constant_name(field_id), stored, field.field_type, support))
        if FILE in requested:
            values.append(file_value(scan_name(FILE), files["file_path"], I.StringType(), support))
        if SPEC_ID in requested:
            values.append(
                file_value(scan_name(SPEC_ID), files["spec_id"], I.IntegerType(), support)
            )
        if PARTITION in requested:
            values.append(_partition(reading, files))
        if requested & {ROW_ID, LAST_UPDATED}:
            values.append(FileValue.of_longs(FIRST_ROW_ID, files["first_row_id"]))
        equality = self.group.equality
        if LAST_UPDATED in requested or any(part.needs_sequence for part in equality):
            values.append(FileValue.of_longs(ROW_SEQUENCE, files["sequence_number"]))
        if any(part.needs_scope for part in equality):
            values.append(FileValue.of_longs(ROW_SCOPE, files["scope"]))
        return values

    def _partition_column(self, source_id: int) -> pl.Series:
        """The identity partition value of a source column, for every file of the part."""
        specs = self.reading.context.metadata.specs_by_id
        names = {
            spec_id: str(field.field_id)
            for spec_id in self.files["spec_id"].unique()
            for field in specs[spec_id].fields_of_source(source_id)
            if isinstance(field.transform, IdentityTransform)
        }
        chosen = pl.coalesce(
            *(
                pl.when(pl.col("spec_id") == spec_id).then(pl.col("partition").struct.field(name))
                for spec_id, name in names.items()
            )
        )
        return self.files.select(chosen.alias("value"))["value"]

    def _result(
        self,
        rows: DataFrame,
        columns: Mapping[int, Column],
        known: Mapping[str, Column],
        *,
        is_deleted: bool,
    ) -> DataFrame:
        reading = self.reading
        support = reading.context.support
        chosen: list[Column] = []
        for field in reading.projection.fields:
            if is_metadata_column(field):
                column = metadata_column(field.name, columns, known, is_deleted)
            elif not is_scanned(field.field_type):
                column = F.lit(None).cast(type_to_spark(field.field_type, support=support))
            else:
                column = convert_column(
                    columns[field.field_id],
                    field.field_type,
                    support,
                    scanned=reading.field(field.field_id).field_type,
                    required=field.required,
                )
            chosen.append(column.alias(field.name, metadata=metadata_of(field)))
        return rows.select(*chosen)


def _holds_all(deleted: Words, record_count: int) -> bool:
    # A count of -1 is not known: Java writes it for Avro files that it adds.
    return record_count > 0 and deleted.holds_all_below(record_count)


def _frame_of(scan: NativeScan | DataFrame) -> DataFrame:
    return scan.frame() if isinstance(scan, NativeScan) else scan


def _kept_rows(scan: NativeScan | DataFrame, all_bitmaps: Sequence[Bitmaps]) -> DataFrame | None:
    """The scan without deleted rows and without another select; None where that cannot be said."""
    if not isinstance(scan, NativeScan) or scan.place is None:
        return None
    rows = scan.parquet.rows
    for bitmaps in all_bitmaps:
        if not isinstance(bitmaps, ArrayBitmaps):
            return None
        rows = bitmaps.deleted_at(scan.place).without_deleted(rows)
    return rows


def _partition(reading: SharedReading, files: pl.DataFrame) -> FileValue:
    unified = partition_type(reading.context.metadata, reading.plan.schema)
    stored = set(partition_names(files))
    values = {
        field.field_id: files["partition"].struct.field(str(field.field_id))
        for field in unified.fields
        if str(field.field_id) in stored
    }
    support = reading.context.support
    return partition_value(scan_name(PARTITION), unified.fields, values, len(files), support)
