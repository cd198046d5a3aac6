"""The rows of changed files, each with what happened to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.format.metadata import TableMetadata
from frazil.format.predicates import AlwaysTrue
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.format.types import NestedField
from frazil.planning.plan import plan
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.changes.change_files import LabelledFiles, Part, labelled_files
from frazil.spark.changes.columns import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    CHANGELOG_COLUMNS,
    COMMIT_SNAPSHOT_ID,
)
from frazil.spark.conditions import Condition
from frazil.spark.files.projection import (
    DELETED,
    FILE_ORDINAL_FIELD,
    METADATA_COLUMNS,
    POS,
    projection_beside,
)
from frazil.spark.read.reader import TableReader
from frazil.spark.session.facts import prepare_session
from frazil.spark.session.free_names import free_names
from frazil.storage.files import FileIO

_LABELLED: Final = "_frazil_labelled_file"
_BASE: Final = "_frazil_taken_before"
# Room for a trillion rows a file, in eight million files.
_POSITION_BITS: Final = 40
_LABELS: Final = S.StructType(
    [
        S.StructField(CHANGE_TYPE, S.StringType(), False),
        S.StructField(CHANGE_ORDINAL, S.IntegerType(), False),
        S.StructField(COMMIT_SNAPSHOT_ID, S.LongType(), False),
    ]
)
_POS, _DELETED = (
    next(field for field in METADATA_COLUMNS if field.name == name) for name in (POS, DELETED)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRows:
    """Reads parts of one table.

    Attributes:
        schema: the schema that rows are read with, whatever they were written with.
        condition: which rows, over the schema's columns.
    """

    spark: SparkSession
    metadata: TableMetadata
    io: FileIO
    schema: Schema
    condition: Condition

    def rows(self, parts: Sequence[Part]) -> list[DataFrame]:
        """The changed rows: the table's columns and the changelog's.

        Raises:
            UnsupportedError: a delete or a file that cannot be applied or read rightly.
            MissingFileError, InvalidDataFileError: a file that had to be looked at cannot be read.
        """
        prepare_session(self.spark)
        frames: list[DataFrame] = []
        for is_left in (True, False):
            chosen = [part for part in parts if (part.base is None) == is_left]
            decided = self.condition.is_exact and all(
                isinstance(part.plan.residual, AlwaysTrue) for part in chosen
            )
            if chosen:
                files = labelled_files(chosen)
                found = [self._rows_left(files)] if is_left else self._rows_taken(files)
                frames += [self._with_labels(rows, files, decided=decided) for rows in found]
        return frames

    def none(self) -> DataFrame:
        """No rows, in the columns of `rows`."""
        prepare_session(self.spark)
        nothing = plan(self.metadata, None, self.io, schema=self.schema)
        rows = self._read(nothing, ())
        labels = (F.lit(None).cast(each.dataType).alias(each.name) for each in _LABELS.fields)
        return rows.select("*", *labels)

    def _rows_left(self, files: LabelledFiles) -> DataFrame:
        """Rows that the deletes leave."""
        return self._read(files.read, (FILE_ORDINAL_FIELD,) if _are_mixed(files.labels) else ())

    def _rows_taken(self, files: LabelledFiles) -> list[DataFrame]:
        """Rows that the deletes take, and that those before had not taken yet."""
        ordinals = files.read.files["ordinal"]
        had_deletes = ordinals.is_in(files.base.delete_index.ordinals().implode())
        first, again = (
            files.only(ordinals.filter(~had_deletes)),
            files.only(ordinals.filter(had_deletes)),
        )
        frames = []
        if len(first.read.files):
            frames.append(self._deleted_rows(first.read, self.schema.fields))
        if len(again.read.files):
            now = self._deleted_rows(again.read, self.schema.fields)
            before = self._deleted_rows(again.base, ()).select(_place().alias(_BASE))
            frames.append(now.join(before, _place() == F.col(_BASE), "left_anti"))
        return frames

    def _deleted_rows(self, read: ScanPlan, columns: Sequence[NestedField]) -> DataFrame:
        """The rows that deletes take, with their places."""
        places = (FILE_ORDINAL_FIELD, _POS, _DELETED)
        return self._read(read, places, columns).where(F.col(DELETED))

    def _read(
        self,
        read: ScanPlan,
        metadata_columns: Sequence[NestedField],
        columns: Sequence[NestedField] | None = None,
    ) -> DataFrame:
        fields = self.schema.fields if columns is None else columns
        projection = projection_beside(metadata_columns, self.schema, fields)
        reader = TableReader(self.spark, self.metadata, self.io)
        return reader.rows_under_some_deletes(read, projection)

    def _with_labels(self, rows: DataFrame, files: LabelledFiles, *, decided: bool) -> DataFrame:
        """The rows that match, with their labels."""
        names = [field.name for field in self.schema.fields]
        places = rows.columns[len(names) :]
        known_file, *free = free_names([_LABELLED, *places], names)
        if rows.columns != [*names, *free]:
            rows = rows.toDF(*names, *free)
        if not decided:
            rows = self.condition.matching(rows)
        columns: list[Column | str] = [F.col(quote_name_always([name])) for name in names]
        if not _are_mixed(files.labels):
            values = files.labels.row(0, named=True)
            labels = [
                F.lit(values[label.name]).cast(label.dataType).alias(label.name)
                for label in _LABELS.fields
            ]
            return rows.select(*columns, *labels)
        table = files.labels.select(
            pl.col("ordinal").alias(known_file), *CHANGELOG_COLUMNS
        ).rechunk()
        schema = S.StructType([S.StructField(known_file, S.LongType(), False), *_LABELS.fields])
        known = F.broadcast(self.spark.createDataFrame(table.to_arrow(), schema))
        ordinal = free[places.index(FILE_ORDINAL_FIELD.name)]
        joined = rows.join(known, F.col(ordinal) == F.col(known_file))
        return joined.select(*columns, *CHANGELOG_COLUMNS)


def _are_mixed(labels: pl.DataFrame) -> bool:
    """Whether the files have not all the same labels."""
    return labels.select(CHANGELOG_COLUMNS).n_unique() > 1


def _place() -> Column:
    """A row's file and position as one number, which Spark joins by cheaply."""
    file = F.shiftleft(F.col(FILE_ORDINAL_FIELD.name), _POSITION_BITS)
    return file.bitwiseOR(F.col(POS))
