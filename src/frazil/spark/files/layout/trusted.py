"""Which data files need no look at their footers, since their entries say who wrote them.

Writers of tables give every column its field id and store each type as the table format says. They
name files in ways of their own, below the table's data location, and note in the entry where row
groups start. Files that were only added to a table (`add_files`, `migrate`) come from anywhere
under any name, and have no ids; their snapshots look like any append's. Their tables have a name
mapping, without which no file of theirs can be read by Java. Where a rule is wrong nonetheless,
Spark refuses the file, since it has no ids: no row can be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl
from pyspark.sql import SparkSession

from frazil.errors import ConfigurationError
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.format.schema.name_mapping import NameMapping
from frazil.spark.files.layout.layouts import Layout, Reader
from frazil.spark.files.scan_names import columns_of_schema
from frazil.storage.locations import data_location

FOOTERS_SETTING: Final = "frazil.read.footers"
"""Session setting: ``auto`` (footers of files whose entries do not tell enough) or ``always``."""

_UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NAME: Final = (
    # Java's writers and Frazil's, in folders or behind the hash of a store's layout.
    rf"/(?:[01]{{8}}-)?\d{{5,}}-\d+-{_UUID}(?:-\d+)?-\d{{5,}}\.parquet$"
    # Spark's writer, below the folder of one write and those of its partitions.
    rf"|/{_UUID}/(?:[^/=]+=[^/]*/)*part-\d{{5,}}-{_UUID}[.-][^/]*\.parquet$"
)


def are_footers_asked(spark: SparkSession) -> bool:
    """Whether a session asks for footers in any case.

    Raises:
        ConfigurationError: the setting is malformed.
    """
    choice = str(spark.conf.get(FOOTERS_SETTING, "auto") or "auto").lower()
    if choice not in ("auto", "always"):
        raise ConfigurationError(f"{FOOTERS_SETTING} is {choice!r}: it must be auto or always")
    return choice == "always"


def trusted_layout(metadata: TableMetadata) -> Layout:
    """How such files are read: they hold at least the columns that they are partitioned by."""
    return Layout(Reader.BY_ID, columns_of_schema(metadata.schema), frozenset())


def is_trusted(
    metadata: TableMetadata, files: pl.DataFrame, mapping: NameMapping | None
) -> pl.Series:
    """Whether the entry of each of a plan's files tells enough.

    Args:
        mapping: the table's, with which none does.
    """
    if mapping is not None or known_schemas(metadata) is None:
        return pl.repeat(False, len(files), dtype=pl.Boolean, eager=True)
    folder = f"{data_location(metadata).rstrip('/')}/"
    path = pl.col("file_path")
    return files.select(
        (pl.col("file_format") == "parquet")
        & pl.col("split_offsets").is_not_null()
        & path.str.starts_with(folder)
        & path.str.contains(_NAME)
    ).to_series()


def known_schemas(metadata: TableMetadata) -> Sequence[Schema] | None:
    """Every schema that the table has had; None where they are not all known."""
    schemas = metadata.schemas
    ids = {schema.schema_id for schema in schemas}
    # v1 metadata may name only the current schema; elsewhere a gap tells of removed ones.
    if metadata.format_version == 1 or ids != set(range(len(schemas))):
        return None
    # So does a column that was in none of those that are left.
    columns = {field_id for schema in schemas for field_id in schema.fields_by_id}
    return schemas if columns.issuperset(range(1, metadata.last_column_id + 1)) else None
