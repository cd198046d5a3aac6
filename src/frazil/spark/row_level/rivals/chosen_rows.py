"""Some rows of a target, chosen by their place or by when they were changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.types import NestedField
from frazil.spark.deletes.bitmap import Words
from frazil.spark.files.projection import FILE_ORDINAL_FIELD, LAST_UPDATED_FIELD, projection_beside
from frazil.spark.read.reader import TableReader
from frazil.spark.row_level.target import Target, file_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsAt(Target):
    """Rows at some places.

    Attributes:
        positions: in files, by the files' ordinals; at least one.
    """

    positions: Mapping[int, Words]

    @classmethod
    def among(cls, target: Target, places: Mapping[int, Words]) -> Self:
        """Those of a target."""
        return cls(**_attributes(target.only(places)), positions=places)

    def rows_with_files(self, fields: Sequence[NestedField]) -> DataFrame:
        """Return these columns of the live rows and the ordinal of each row's file."""
        rows = self.rows_at(self.positions)
        names = [F.col(quote_name_always([field.name])) for field in fields]
        return rows.select(*names, file_of(F.col(self.place)).alias(self.file))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsChangedSince(Target):
    """Rows that were added or changed after a sequence number, or that may have been.

    Attributes:
        since: the sequence number.
    """

    since: int

    @classmethod
    def among(cls, target: Target, since: int) -> Self:
        """Those of a target, of a table whose rows have ids."""
        return cls(**_attributes(target), since=since)

    def rows_with_files(self, fields: Sequence[NestedField]) -> DataFrame:
        """Return these columns of the live rows and the ordinal of each row's file."""
        extra = (FILE_ORDINAL_FIELD, LAST_UPDATED_FIELD)
        projection = projection_beside(extra, self.schema, tuple(fields))
        read = TableReader(self.spark, self.metadata, self.io).rows(self.plan, projection)
        named = read.toDF(*(field.name for field in fields), self.file, self.last_updated)
        number = F.col(quote_name_always([self.last_updated]))
        return named.where(number.isNull() | (number > self.since)).drop(self.last_updated)


def _attributes(target: Target) -> dict[str, Any]:
    return {each.name: getattr(target, each.name) for each in fields(Target)}
