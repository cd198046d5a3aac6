"""A stream's log as a streaming DataFrame."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.types import NestedField
from frazil.spark.files.arrow.convert import convert_column, is_scanned, scan_type
from frazil.spark.files.parquet.native import CURRENT_DEFAULT, EXISTS_DEFAULT, default_text
from frazil.spark.files.scan_names import scan_names
from frazil.spark.session.facts import prepare_session, type_support
from frazil.spark.types import FIELD_ID_KEY, SparkTypeSupport, named_column, type_to_spark

_OPTIONS = {
    # One line of the log is one batch: the follower has cut them.
    "maxFilesPerTrigger": "1",
    "latestFirst": "false",
    "recursiveFileLookup": "true",
    # Rows of unreadable files must never be left out silently, whatever the session says.
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}


def streaming_dataframe(
    spark: SparkSession, folder: str, fields: tuple[NestedField, ...]
) -> DataFrame:
    """The rows of the log's batches as they come, in these columns.

    Columns are found by field id (SPEC rule 52) and scanned under names that no file has: a filter
    that Spark pushes by name could meet another column of that name in a file to come.
    """
    prepare_session(spark)
    support = type_support(spark)
    stored = [field for field in fields if is_scanned(field.field_type)]
    names = scan_names(stored, None)
    schema = S.StructType([_scanned_field(f, names[f.field_id], support) for f in stored])
    rows = spark.readStream.schema(schema).options(**_OPTIONS).parquet(folder)
    return rows.select(*(_shown_column(field, names, support) for field in fields))


def _scanned_field(field: NestedField, name: str, support: SparkTypeSupport) -> S.StructField:
    metadata: dict[str, Any] = {FIELD_ID_KEY: field.field_id}
    default = default_text(field, support)
    if default is not None:
        metadata |= {EXISTS_DEFAULT: default, CURRENT_DEFAULT: default}
    return S.StructField(name, scan_type(field.field_type, support), True, metadata)


def _shown_column(field: NestedField, names: dict[int, str], support: SparkTypeSupport) -> Column:
    target = type_to_spark(field.field_type, support=support)
    if not is_scanned(field.field_type):
        return named_column(F.lit(None).cast(target), field)
    column = F.col(quote_name_always([names[field.field_id]]))
    return named_column(convert_column(column, field.field_type, support), field)
