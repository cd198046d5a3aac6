"""The columns of a read's result: their types, and those that are not stored in files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.format import types as I
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.format.partitions.partitioning import unified_partition_type
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.spark.deletes.equality import (
    ROW_SEQUENCE,
)
from frazil.spark.files.parquet.file_log import ORDINAL, POSITION
from frazil.spark.files.projection import (
    DELETED,
    FILE_ORDINAL_FIELD,
    LAST_UPDATED,
    LAST_UPDATED_FIELD,
    PARTITION,
    POS,
    ROW_ID,
    ROW_ID_FIELD,
    Projection,
    is_metadata_column,
)
from frazil.spark.session.by_session import BySession
from frazil.spark.types import COMMENT_KEY, SparkTypeSupport, type_to_spark
from frazil.storage.caches import BoundedCache

FIRST_ROW_ID: Final = "_frazil_first_row_id"

_COLUMNS: Final = BySession[BoundedCache[Column]]()
_KEPT_COLUMNS: Final = 10_000


@dataclass(frozen=True, slots=True)
class ScanColumn:
    """A column of a result that is a scan's column.

    Attributes:
        stored: its name in the scan.
        name: its name in the result.
        comment: of the table's column.
    """

    stored: str
    name: str
    comment: str | None = None

    @property
    def is_as_stored(self) -> bool:
        """Whether the scan's column can stand for it in a query."""
        return self.stored == self.name and self.comment is None

    def as_stored(self) -> Column:
        """The scan's column, with what scans need in its metadata."""
        return F.col(quote_name_always([self.stored]))

    def made_anew(self, spark: SparkSession) -> Column:
        """A column of its own in each select, without what scans need in its metadata.

        What is written from it would have a table's field ids else, and Spark would find columns of
        other tables by them.
        """
        kept = _COLUMNS.get_or_make(spark, lambda _: BoundedCache(_KEPT_COLUMNS))
        column = kept.get(self)
        if column is None:
            column = self.as_stored().alias(self.name, metadata=metadata_of_comment(self.comment))
            kept.put(self, column, 1)
        return column


def metadata_column(
    name: str, columns: Mapping[int, Column], known: Mapping[str, Column], is_deleted: bool
) -> Column:
    """Return a metadata column; ``known`` is what the plan knows of files, by name."""
    if name == POS:
        return F.col(POSITION)
    if name == FILE_ORDINAL_FIELD.name:
        return F.col(ORDINAL)
    if name == DELETED:
        return F.lit(is_deleted)
    if name == ROW_ID:
        first = known[FIRST_ROW_ID]
        inherited = F.coalesce(columns[ROW_ID_FIELD.field_id], first + F.col(POSITION))
        return F.when(first.isNotNull(), inherited)
    if name == LAST_UPDATED:
        stored = columns[LAST_UPDATED_FIELD.field_id]
        inherited = F.coalesce(stored, known[ROW_SEQUENCE])
        return F.when(known[FIRST_ROW_ID].isNotNull(), inherited)
    return known[scan_name(name)]


def partition_type(metadata: TableMetadata, schema: Schema) -> I.StructType:
    """Return the type of ``_partition``: the fields of all specs of the table."""
    sources = schema_with_sources(metadata, schema)
    return unified_partition_type(metadata.partition_specs, sources)


def result_schema(
    metadata: TableMetadata, schema: Schema, projection: Projection, support: SparkTypeSupport
) -> S.StructType:
    """Return the Spark schema of the projection of a table that is read by a schema."""
    fields = []
    for field in projection.fields:
        field_type = field.field_type
        if field.name == PARTITION and is_metadata_column(field):
            field_type = partition_type(metadata, schema)
        spark_type = type_to_spark(field_type, support=support)
        fields.append(S.StructField(field.name, spark_type, not field.required, metadata_of(field)))
    return S.StructType(fields)


def metadata_of(field: I.NestedField) -> dict[str, str]:
    """Return what Spark's metadata of a column says: the comment."""
    return metadata_of_comment(field.doc)


def metadata_of_comment(comment: str | None) -> dict[str, str]:
    """Return what Spark's metadata of a column with this comment says."""
    return {} if comment is None else {COMMENT_KEY: comment}


def scan_name(name: str) -> str:
    """Return the scan's name of what the plan knows for a metadata column."""
    return f"_frazil{name}"


def constant_name(field_id: int) -> str:
    """Return the scan's name of a column that is one value a file."""
    return f"_frazil_constant_{field_id}"
