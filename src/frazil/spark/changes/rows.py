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
from frazil.format.name_mapping import NameMapping
from frazil.format.predicates import AlwaysTrue, Expression
from frazil.format.predicates.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.format.types import NestedField
from frazil.planning.plan import plan
from frazil.spark.changes.columns import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    CHANGELOG_COLUMNS,
    COMMIT_SNAPSHOT_ID,
)
from frazil.spark.changes.parts import Part, Round, rounds_of
from frazil.spark.read.dataframe import dataframe_for
from frazil.spark.read.inputs import ReadInput, read_input
from frazil.spark.read.projection import DELETED, FILE, METADATA_COLUMNS, POS, Projection
from frazil.spark.scan import NAME_MAPPING_PROPERTY, spark_condition
from frazil.spark.session import prepare_session, type_support
from frazil.storage.files import FileIO

_LABELLED: Final = "_frazil_labelled_file"
_BASE_FILE: Final = "_frazil_base_file"
_BASE_POS: Final = "_frazil_base_pos"
_LABELS: Final = S.StructType(
    [
        S.StructField(CHANGE_TYPE, S.StringType(), False),
        S.StructField(CHANGE_ORDINAL, S.IntegerType(), False),
        S.StructField(COMMIT_SNAPSHOT_ID, S.LongType(), False),
    ]
)
_RESERVED: Final = {field.name: field for field in METADATA_COLUMNS}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRows:
    """Reads parts of one table.

    Attributes:
        schema: the schema that rows are read with, whatever they were written with.
        where: which rows, bound to the schema.
    """

    spark: SparkSession
    metadata: TableMetadata
    io: FileIO
    schema: Schema
    where: Expression

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
            decided = all(isinstance(part.plan.residual, AlwaysTrue) for part in chosen)
            for each in rounds_of(self.metadata, chosen):
                found = [self._left(each)] if is_left else self._taken(each)
                frames += [self._finished(rows, each, decided=decided) for rows in found]
        return frames

    def none(self) -> DataFrame:
        """No rows, in the columns of `rows`."""
        prepare_session(self.spark)
        nothing = plan(self.metadata, None, self.io, schema=self.schema)
        rows = self._read(read_input(self.metadata, nothing), ())
        labels = (F.lit(None).cast(each.dataType).alias(each.name) for each in _LABELS.fields)
        return rows.select("*", *labels)

    def _left(self, each: Round) -> DataFrame:
        """Rows that the deletes leave."""
        return self._read(each.read, (FILE,) if _needs_file(each) else ())

    def _taken(self, each: Round) -> list[DataFrame]:
        """Rows that the deletes take, and that those before had not taken yet."""
        had_deletes = each.base.pairs["ordinal"].unique()
        files = each.read.files["ordinal"]
        first = each.only(files.filter(~files.is_in(had_deletes.implode())))
        again = each.only(files.filter(files.is_in(had_deletes.implode())))
        frames = []
        if len(first.read.files):
            frames.append(self._deleted(first.read, (FILE, POS)))
        if len(again.read.files):
            now = self._deleted(again.read, (FILE, POS))
            before = self._deleted(again.base, (FILE, POS), columns=()).select(
                F.col(FILE).alias(_BASE_FILE), F.col(POS).alias(_BASE_POS)
            )
            same = (F.col(FILE) == F.col(_BASE_FILE)) & (F.col(POS) == F.col(_BASE_POS))
            frames.append(now.join(before, same, "left_anti"))
        return frames

    def _deleted(
        self,
        read: ReadInput,
        metadata_columns: Sequence[str],
        columns: Sequence[NestedField] | None = None,
    ) -> DataFrame:
        rows = self._read(read, (*metadata_columns, DELETED), columns)
        return rows.where(F.col(DELETED))

    def _read(
        self,
        read: ReadInput,
        metadata_columns: Sequence[str],
        columns: Sequence[NestedField] | None = None,
    ) -> DataFrame:
        text = self.metadata.properties.get(NAME_MAPPING_PROPERTY)
        fields = self.schema.fields if columns is None else tuple(columns)
        return dataframe_for(
            self.spark,
            read,
            Projection((*fields, *(_RESERVED[name] for name in metadata_columns))),
            io=self.io,
            support=type_support(self.spark),
            mapping=None if text is None else NameMapping.from_json(text),
        )

    def _finished(self, rows: DataFrame, each: Round, *, decided: bool) -> DataFrame:
        """The rows that match, with their labels."""
        if not decided:
            rows = rows.where(spark_condition(self.where, type_support(self.spark)))
        columns: list[Column | str] = [
            F.col(quote_name_always([field.name])) for field in self.schema.fields
        ]
        if not _needs_file(each):
            values = each.labels.row(0, named=True)
            labels = [
                F.lit(values[each.name]).cast(each.dataType).alias(each.name)
                for each in _LABELS.fields
            ]
            return rows.select(*columns, *labels)
        table = each.labels.select(pl.col("path").alias(_LABELLED), *CHANGELOG_COLUMNS)
        schema = S.StructType([S.StructField(_LABELLED, S.StringType(), False), *_LABELS.fields])
        known = F.broadcast(self.spark.createDataFrame(table.to_arrow(), schema))
        joined = rows.join(known, F.col(FILE) == F.col(_LABELLED))
        return joined.select(*columns, *CHANGELOG_COLUMNS)


def _needs_file(each: Round) -> bool:
    """Whether rows of one round have not all the same labels."""
    return each.labels.select(CHANGELOG_COLUMNS).n_unique() > 1
