"""Which data files need no look at their footers, since table and entries say who wrote them.

A file is trusted where its name is one that Frazil's or Java's writers give, and the snapshot that
added it is still there and says that Frazil on Spark or Java made it; files that an engine of its
own commits by `table.files` are in snapshots without Spark. Three things follow, and no more:

- It has field ids. Files that were only added to a table (`add_files`, `migrate`) have none, and
  their snapshots look like any append's; their tables have a name mapping, without which Java reads
  none of them. Where the rule is wrong nonetheless Spark refuses the file: no row can be wrong.
- Its columns have names of schemas that are known: the schema of its snapshot is kept with it.
- It has the columns that it is partitioned by. The specification lets writers leave out those whose
  value the entry has (identity), so this follows of Frazil's snapshots alone, and a file of Java's
  in a spec with such a column is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import polars as pl
from pyspark.sql import SparkSession

from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.format.schema.name_mapping import NameMapping
from frazil.planning.frames import column_of
from frazil.spark.files.layout.layouts import Layout, Reader
from frazil.spark.files.scan_names import columns_of_schema
from frazil.spark.session.facts import word_of_setting
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

_Summary: TypeAlias = Mapping[str, str]


def are_footers_asked(spark: SparkSession) -> bool:
    """Whether a session asks for footers in any case.

    Raises:
        ConfigurationError: the setting is malformed.
    """
    return word_of_setting(spark, FOOTERS_SETTING, "auto", "always") == "always"


def trusted_layout(metadata: TableMetadata) -> Layout:
    """How such files are read: they hold at least the columns that they are partitioned by."""
    return Layout(Reader.BY_ID, columns_of_schema(metadata.schema), frozenset())


def is_trusted(
    metadata: TableMetadata, files: pl.DataFrame, mapping: NameMapping | None
) -> pl.Series:
    """Whether table and entry tell enough of each of a plan's files.

    Args:
        mapping: the table's, with which they tell of none.
    """
    if mapping is not None or known_schemas(metadata) is None:
        return pl.repeat(False, len(files), dtype=pl.Boolean, eager=True)
    folder = f"{data_location(metadata).rstrip('/')}/"
    path = pl.col("file_path")
    may_lack_columns = [
        spec.spec_id for spec in metadata.partition_specs if spec.identity_source_ids
    ]
    by_frazil = pl.col("snapshot_id").is_in(_snapshots_of(metadata, files, _is_by_frazil))
    by_java = pl.col("snapshot_id").is_in(_snapshots_of(metadata, files, _is_by_java))
    return files.select(
        (pl.col("file_format") == "parquet")
        & pl.col("split_offsets").is_not_null()
        & path.str.starts_with(folder)
        & path.str.contains(_NAME)
        & (by_frazil | (by_java & ~pl.col("spec_id").is_in(may_lack_columns))).fill_null(False)
    ).to_series()


def _snapshots_of(
    metadata: TableMetadata, files: pl.DataFrame, is_by: Callable[[_Summary], bool]
) -> list[int]:
    """The snapshots that added some of the files, of known schemas and with such a summary."""
    kept = metadata.snapshots_at_hand
    added = (kept.get(snapshot_id) for snapshot_id in column_of(files, "snapshot_id").unique())
    return [
        snapshot.snapshot_id
        for snapshot in added
        if snapshot is not None
        and snapshot.schema_id in metadata.schemas_by_id
        and is_by(snapshot.summary or {})
    ]


def _is_by_frazil(summary: _Summary) -> bool:
    library = summary.get("iceberg-version", "")
    return library.startswith("Frazil ") and summary.get("engine-name") == "spark"


def _is_by_java(summary: _Summary) -> bool:
    return summary.get("iceberg-version", "").startswith("Apache Iceberg ")


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
