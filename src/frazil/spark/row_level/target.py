"""The table of a row-level command: which files it may touch, and their rows by place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import polars as pl
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import Expression
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import NestedField
from frazil.planning.plan import plan_rewrite
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.deletes.bitmap import Longs, Words, by_file, words_of_files
from frazil.spark.deletes.collect import collect_places, most_words
from frazil.spark.deletes.joins import Bitmaps, bitmaps_of_words, in_arrays
from frazil.spark.files.parquet.file_log import RowPlace
from frazil.spark.files.projection import (
    FILE_ORDINAL_FIELD,
    LAST_UPDATED_FIELD,
    METADATA_COLUMNS,
    POS,
    ROW_ID_FIELD,
    projection_beside,
)
from frazil.spark.read.pruning import ExecutorPruning
from frazil.spark.read.reader import TableReader
from frazil.spark.session.facts import type_support
from frazil.spark.session.free_names import free_names
from frazil.spark.types import schema_to_spark
from frazil.spark.write.row_count import ExpectedRows
from frazil.storage.files import FileIO

POSITION_BITS: Final = 40
"""A place is ``file << 40 | position``: room for a trillion rows a file, in eight million files."""

_POS: Final = next(field for field in METADATA_COLUMNS if field.name == POS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Rows of a table that a command may touch, at one snapshot.

    Attributes:
        spark: the session that the rows are read in.
        plan: the files, with every delete that applies to them.
        place: the name of the column that says where a row lies; no column of the table or of the
            command's source is called so.
        file: the name of the column that says in which file a row lies, likewise.
        row_id, last_updated: the names of the row lineage columns.
    """

    spark: SparkSession
    metadata: TableMetadata
    io: FileIO
    plan: ScanPlan
    place: str
    file: str
    row_id: str
    last_updated: str

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        metadata: TableMetadata,
        io: FileIO,
        head: Snapshot | None,
        *,
        where: Expression,
        beside: Iterable[str] = (),
    ) -> Target:
        """Plan the files that may hold rows of a predicate.

        Args:
            where: bound to the table's schema.
            beside: names of columns that the rows will stand beside.
        """
        taken = [*(field.name for field in metadata.schema.fields), *beside]
        place, file, row_id, last_updated = free_names(
            ["_frazil_place", "_frazil_file", ROW_ID_FIELD.name, LAST_UPDATED_FIELD.name], taken
        )
        return cls(
            spark=spark,
            metadata=metadata,
            io=io,
            plan=plan_rewrite(metadata, head, io, where=where, elsewhere=ExecutorPruning(spark)),
            place=place,
            file=file,
            row_id=row_id,
            last_updated=last_updated,
        )

    @property
    def schema(self) -> Schema:
        """The table's schema."""
        return self.metadata.schema

    @property
    def keeps_lineage(self) -> bool:
        """Whether the table's rows have ids that a change keeps (SPEC rule 148)."""
        return self.metadata.format_version >= 3

    @property
    def lineage(self) -> tuple[NestedField, ...]:
        """The row lineage columns, under free names; none before version 3."""
        return tuple(replace(field, name=name) for field, name in self._lineage_names.items())

    @property
    def _lineage_names(self) -> dict[NestedField, str]:
        own = {ROW_ID_FIELD: self.row_id, LAST_UPDATED_FIELD: self.last_updated}
        return own if self.keeps_lineage else {}

    @property
    def written_schema(self) -> Schema:
        """The schema of rows that are written anew."""
        return Schema((*self.schema.fields, *self.lineage), self.schema.schema_id)

    @property
    def written_names(self) -> list[Column]:
        """The columns of rows that are written anew."""
        return [F.col(quote_name_always([field.name])) for field in self.written_schema.fields]

    def no_rows(self) -> DataFrame:
        """Return no rows of the table's columns, for Spark to analyse expressions over."""
        shape = schema_to_spark(self.schema, support=type_support(self.spark))
        return self.spark.createDataFrame([], shape)

    def places(self, fields: Sequence[NestedField]) -> DataFrame:
        """Return these columns of the live rows, then the file and the position of each."""
        return self.read(fields, {FILE_ORDINAL_FIELD: self.file, _POS: self.place})

    def read(self, fields: Sequence[NestedField], beside: Mapping[NestedField, str]) -> DataFrame:
        """Return columns of the live rows, then reserved ones under these names."""
        projection = projection_beside(tuple(beside), self.schema, tuple(fields))
        rows = TableReader(self.spark, self.metadata, self.io).rows(self.plan, projection)
        return rows.toDF(*(field.name for field in fields), *beside.values())

    @property
    def live_row_count(self) -> int:
        """The rows that no delete has deleted; only files with deletes are read for it."""
        if self.plan.delete_index.is_empty:
            return self.plan.record_count
        return int(self.rows_with_files([]).count())

    def expected_rows(self, most_rows: int) -> ExpectedRows:
        """Return how much a write of rows is that go to the partitions of the files."""
        partitions = self.plan.files.select("spec_id", "partition").n_unique()
        if not partitions:
            return ExpectedRows(rows=most_rows)
        return ExpectedRows(rows=most_rows, partitions=partitions)

    def rows_with_files(self, fields: Sequence[NestedField]) -> DataFrame:
        """Return these columns of the live rows and the ordinal of each row's file.

        Spark knows the file without a look at each row, which a place costs.
        """
        return self.read(fields, {FILE_ORDINAL_FIELD: self.file})

    def rows_without_places(self) -> DataFrame:
        """Return the live rows with their lineage, without the time that a place of each takes."""
        return self.read(self.schema.fields, self._lineage_names)

    def restricted_to(self, ordinals: Collection[int]) -> Target:
        """Return the same with some of the files; they keep their ordinals."""
        return replace(self, plan=self.plan.restricted_to(ordinals))

    def with_paths(self, paths: Collection[str]) -> Target:
        """Return the same with the files of these paths."""
        wanted = pl.Series(list(paths), dtype=pl.String)
        return self.where_files(self.plan.files["file_path"].is_in(wanted.implode()))

    def of_new_files(self, files: Sequence[DataFile]) -> Target:
        """Return the same with data files that no snapshot has yet, by their number as ordinal."""
        return replace(self, plan=ScanPlan.of_new_files(files, self.schema))

    @property
    def ordinals(self) -> list[int]:
        """The ordinals of the files."""
        return [int(each) for each in self.plan.files["ordinal"]]

    def where_files(self, keep: pl.Series) -> Target:
        """Return the same with the files for which `keep` is true."""
        return replace(self, plan=self.plan.where_files(keep))

    def rows(
        self, fields: Sequence[NestedField] | None = None, *, lineage: bool = False
    ) -> DataFrame:
        """Return the live rows: these columns, their place, and the lineage if asked for.

        Args:
            fields: top-level columns; all of them unless given.
        """
        named, place = self._rows_and_place(fields, lineage=lineage)
        return self._with_place(named, place)

    def rows_at(self, places: Mapping[int, Words]) -> DataFrame:
        """Return the live rows at some places, with their lineage and their place.

        Args:
            places: positions in files by the files' ordinals.
        """
        parts: list[DataFrame] = []
        for part in in_arrays(places):
            named, place = self.restricted_to(part)._rows_and_place(None, lineage=True)
            parts.append(
                self._with_place(self._bitmaps(part).deleted_at(place).only_deleted(named), place)
            )
        return reduce(DataFrame.unionByName, parts)

    def rows_but(self, places: Mapping[int, Words]) -> DataFrame:
        """Return the live rows at all other places, with their lineage.

        Args:
            places: positions in files by the files' ordinals.
        """
        every = {ordinal: places.get(ordinal, Words.empty()) for ordinal in self.ordinals}
        parts: list[DataFrame] = []
        for part in in_arrays(every):
            named, place = self.restricted_to(part)._rows_and_place(None, lineage=True)
            left = self._bitmaps(part).deleted_at(place).without_deleted(named)
            parts.append(left.select(*self.written_names))
        return reduce(DataFrame.unionByName, parts)

    def _bitmaps(self, places: Mapping[int, Words]) -> Bitmaps:
        return bitmaps_of_words(self.spark, places, self.io.caches["bitmaps"])

    def _with_place(self, rows: DataFrame, place: RowPlace) -> DataFrame:
        ordinal, position = F.expr(place.ordinal), F.expr(place.position)
        packed = F.shiftleft(ordinal, POSITION_BITS).bitwiseOR(position)
        return rows.withColumn(self.place, packed).drop(ordinal, position)

    def _rows_and_place(
        self, fields: Sequence[NestedField] | None, *, lineage: bool
    ) -> tuple[DataFrame, RowPlace]:
        """The live rows with two more columns, and what these are called."""
        (position,) = free_names(
            ["_frazil_pos"],
            [*(f.name for f in self.schema.fields), self.place, self.file, self.row_id],
        )
        more = self._lineage_names if lineage else {}
        named = self.read(
            self.schema.fields if fields is None else fields,
            {FILE_ORDINAL_FIELD: self.file, _POS: position, **more},
        )
        return named, RowPlace(quote_name_always([self.file]), quote_name_always([position]))

    def paths(self, ordinals: Collection[int]) -> tuple[str, ...]:
        """Return the paths of files."""
        return tuple(self.restricted_to(ordinals).plan.files["file_path"])


def file_of(place: Column) -> Column:
    """Return the ordinal of the file that a place lies in."""
    return F.shiftright(place, POSITION_BITS)


def position_of(place: Column) -> Column:
    """Return the position in its file of a place."""
    return place.bitwiseAND(F.lit((1 << POSITION_BITS) - 1))


def words_of_places(
    target: Target, places: DataFrame, *, most_rows: int | None = None
) -> Mapping[int, Words] | None:
    """Collect the places of rows of a target's files; None where they are too many for it.

    Args:
        places: with the column of places, each as often as it comes; computed once.
        most_rows: how many there are at most; None where that is not known.

    Returns:
        the positions by the ordinal of those files of the target that have some.
    """
    files = target.plan.files
    room, last = most_words(files["record_count"]), max(files["ordinal"], default=0)
    rows = as_file_and_position(places, F.col(target.place))
    with collect_places(rows, most_words=room, most_rows=most_rows, most_ordinal=last) as found:
        if found.words is None:
            return None
        known = set(files["ordinal"])
        held = [ordinal for ordinal in found.counts["ordinal"] if ordinal in known]
        return by_file(found.words, held)


def words_at(places: Longs) -> Words:
    """Return places of rows as `words_of_files` does."""
    return words_of_files(places >> POSITION_BITS, places & ((1 << POSITION_BITS) - 1))


def as_file_and_position(rows: DataFrame, place: Column) -> DataFrame:
    """Return the ordinal of the file and the position of each place, as two columns."""
    return rows.select(file_of(place).alias("file"), position_of(place).alias("position"))
