"""What an overwrite by predicate keeps: rows of files that match only in part."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.format.metadata import TableMetadata
from frazil.format.predicates import Expression, SparkForms, to_spark_sql
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import NestedField
from frazil.planning.plan import plan_rewrite
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.free_names import free_names
from frazil.spark.read.projection import LAST_UPDATED_FIELD, ROW_ID_FIELD, projection_beside
from frazil.spark.read.reader import TableReader
from frazil.spark.scan import bound_predicate
from frazil.spark.session import (
    is_case_sensitive,
    prepare_session,
    time_zone_of,
    type_support,
)
from frazil.spark.write.align import align
from frazil.storage.files import FileIO
from frazil.table.conflicts.validation import Validation


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwriting:
    """An overwrite, planned.

    Attributes:
        where: which rows go, bound: every use of it means the same rows.
        rewritten: the files of which only some rows go; the others of their rows are written anew.
    """

    spark: SparkSession
    metadata: TableMetadata
    io: FileIO
    where: Expression
    rewritten: ScanPlan
    case_sensitive: bool

    @classmethod
    def planned(
        cls,
        spark: SparkSession,
        metadata: TableMetadata,
        io: FileIO,
        *,
        where: str | Expression | None,
        head: Snapshot | None,
        case_sensitive: bool,
    ) -> Overwriting:
        """Find the files at the head of a branch that the predicate matches in part.

        Raises:
            PredicateError: the predicate does not fit the schema.
        """
        bound = bound_predicate(
            where,
            metadata.schema,
            case_sensitive=case_sensitive,
            time_zone=time_zone_of(spark),
        )
        matched = plan_rewrite(metadata, head, io, where=bound)
        return cls(
            spark=spark,
            metadata=metadata,
            io=io,
            where=bound,
            rewritten=_restricted(matched, ~matched.files["all_rows_match"]),
            case_sensitive=case_sensitive,
        )

    @property
    def rewritten_paths(self) -> tuple[str, ...]:
        """The paths of the files that are rewritten."""
        return tuple(self.rewritten.files["file_path"])

    def rows(self, df: DataFrame) -> tuple[DataFrame, Schema | None]:
        """The rows to write: the new ones, and those that rewritten files keep.

        In a version 3 table kept rows keep their row ids (SPEC rule 148); the schema then has the
        lineage columns too, and is None otherwise.
        """
        if self.rewritten.file_count == 0:
            return df, None
        schema = self.metadata.schema
        lineage = _lineage(self.metadata)
        written = Schema((*schema.fields, *lineage), schema.schema_id) if lineage else schema
        # The rows are one query with those of the DataFrame, which runs in the session of that.
        spark = df.sparkSession
        prepare_session(spark)
        support = type_support(spark)
        read = TableReader(spark, self.metadata, self.io).rows(
            self.rewritten,
            projection_beside((ROW_ID_FIELD, LAST_UPDATED_FIELD)[: len(lineage)], schema),
        )
        named = read.toDF(*(field.name for field in written.fields))
        forms = SparkForms(time="time" if support.time else "long")
        # Rows for which the predicate is NULL do not match it and stay.
        kept = named.where(F.expr(f"not coalesce({to_spark_sql(self.where, forms=forms)}, false)"))
        new = align(df, schema, case_sensitive=is_case_sensitive(self.spark))
        for field in lineage:
            new = new.withColumn(field.name, F.lit(None).cast("bigint"))
        same = align(kept, written, case_sensitive=True)
        return new.unionByName(same), written if lineage else None

    def narrowed(self, validation: Validation) -> Validation:
        """Return what must not have happened to the rows that this overwrite is about.

        Deletes count where files are rewritten, whatever was asked for.
        """
        return replace(
            validation,
            conflict_filter=self.where,
            check_deletes=validation.check_deletes or self.rewritten.file_count > 0,
            case_sensitive=self.case_sensitive,
        )


def _lineage(metadata: TableMetadata) -> tuple[NestedField, ...]:
    """The row lineage columns of a version 3 table's files, called as none of its columns is.

    Readers know them by their ids.
    """
    if metadata.format_version < 3:
        return ()
    fields = (ROW_ID_FIELD, LAST_UPDATED_FIELD)
    names = free_names([f.name for f in fields], [f.name for f in metadata.schema.fields])
    return tuple(replace(f, name=name) for f, name in zip(fields, names, strict=True))


def _restricted(matched: ScanPlan, keep: pl.Series) -> ScanPlan:
    """The plan of some of the files, with the deletes that apply to them."""
    files = matched.files.filter(keep)
    pairs = matched.pairs.join(files.select("ordinal"), on="ordinal", how="semi")
    return replace(matched, files=files, pairs=pairs, skipped=())
