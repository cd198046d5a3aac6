"""Whether Spark reads files with variants: a reader that does not know them reads no column."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

from frazil.format import types as I
from frazil.format.schema import Schema
from frazil.spark.abilities import missing_ability_error, reads_variants
from frazil.spark.session.by_session import BySession
from frazil.spark.session.facts import is_connect

_KNOWN: Final = BySession[bool]()


def check_variants(spark: SparkSession, schema: Schema) -> None:
    """Check that Spark knows the files of a table.

    Raises:
        UnsupportedError: they have variants, which this Spark does not know.
    """
    fields = schema.fields_by_id.values()
    if not any(isinstance(field.field_type, I.VariantType) for field in fields):
        return
    if not _KNOWN.get_or_make(spark, _reads_variants):
        raise missing_ability_error(
            "reader of Parquet files with columns of the type variant",
            since="4.1",
            instead="keep such columns out of the table",
        )


def _reads_variants(spark: SparkSession) -> bool:
    # A server of Connect tells nothing of that; there Spark's own error is raised.
    return is_connect(spark) or reads_variants(spark._jvm)
