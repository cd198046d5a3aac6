"""What reading needs of a plan, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from frazil.errors import UnsupportedError
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.planning.frames import partition_keys
from frazil.planning.scan_plan import ScanPlan

PARTITION_PREFIX: Final = "partition."

POSITION_DELETES: Final = 1
EQUALITY_DELETES: Final = 2
GLOBAL_SCOPE: Final = -1
"""The scope of an equality delete that applies to every partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadInput:
    """The files of one scan.

    Attributes:
        metadata: the table.
        schema: the schema that rows are read with: the snapshot's.
        snapshot_id: for messages; None where the table is empty.
        files: one row a data file: ``ordinal`` (unique, from 0), ``path``, ``format``, ``size``
            (bytes), ``record_count``, ``spec_id``, ``sequence_number`` (the data sequence number),
            ``first_row_id``, ``scope`` (equal for files of one spec and partition), and
            ``partition.<field id>`` a partition field of any spec (internal values; null where
            the file's spec has no such field).
        deletes: one row a delete file: ``delete`` (unique), ``path``, ``format``, ``size``,
            ``content`` (1 positions, also deletion vectors; 2 equality), ``record_count``,
            ``sequence_number``, ``scope`` (-1 for an equality delete of every partition),
            ``equality_ids``, ``content_offset``, ``content_size``, ``may_hold_null_keys`` (false
            where no compared value is NULL).
        pairs: which delete file applies to which data file: ``ordinal``, ``delete``.
    """

    metadata: TableMetadata
    schema: Schema
    snapshot_id: int | None
    files: pl.DataFrame
    deletes: pl.DataFrame
    pairs: pl.DataFrame


def read_input(metadata: TableMetadata, plan: ScanPlan) -> ReadInput:
    """The plan as reading needs it.

    Raises:
        UnsupportedError: a file is encrypted.
    """
    for frame in (plan.files, plan.deletes):
        encrypted = frame.filter(pl.col("key_metadata").is_not_null())
        if len(encrypted):
            raise UnsupportedError(
                f"the file {encrypted['file_path'][0]} is encrypted; reading encrypted tables is "
                "not supported"
            )
    files, deletes = _with_scopes(_unpacked(plan.files), _unpacked(plan.deletes), metadata)
    return ReadInput(
        metadata=metadata,
        schema=plan.schema,
        snapshot_id=plan.snapshot_id,
        files=files.select(
            pl.col("ordinal").cast(pl.Int64),
            pl.col("file_path").alias("path"),
            pl.col("file_format").alias("format"),
            pl.col("file_size_in_bytes").alias("size"),
            "record_count",
            "spec_id",
            "sequence_number",
            "first_row_id",
            "scope",
            *(name for name in files.columns if name.startswith(PARTITION_PREFIX)),
        ),
        deletes=deletes.select(
            pl.col("delete").cast(pl.Int64),
            pl.col("file_path").alias("path"),
            pl.col("file_format").alias("format"),
            pl.col("file_size_in_bytes").alias("size"),
            "content",
            "record_count",
            "sequence_number",
            "scope",
            pl.col("equality_ids").cast(pl.List(pl.Int32)),
            "content_offset",
            pl.col("content_size_in_bytes").alias("content_size"),
            "may_hold_null_keys",
        ),
        pairs=plan.pairs.select(pl.col("ordinal").cast(pl.Int64), pl.col("delete").cast(pl.Int64)),
    )


def _unpacked(entries: pl.DataFrame) -> pl.DataFrame:
    kind = entries.schema["partition"]
    if not isinstance(kind, pl.Struct):
        return entries.drop("partition")
    fields = [
        pl.col("partition").struct.field(field.name).alias(f"{PARTITION_PREFIX}{field.name}")
        for field in kind.fields
    ]
    return entries.with_columns(fields).drop("partition")


def _with_scopes(
    files: pl.DataFrame, deletes: pl.DataFrame, metadata: TableMetadata
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A number for each (spec, partition), by the equality of rule 180."""
    if deletes.is_empty():
        none = pl.lit(0, pl.Int64).alias("scope")
        return files.with_columns(none), deletes.with_columns(none)
    keys = pl.concat([_scope_keys(files), _scope_keys(deletes)], how="diagonal_relaxed")
    scopes = keys.select(pl.struct(pl.all()).rank("dense").cast(pl.Int64)).to_series()
    unpartitioned = [spec.spec_id for spec in metadata.partition_specs if spec.is_unpartitioned]
    everywhere = (pl.col("content") == EQUALITY_DELETES) & pl.col("spec_id").is_in(unpartitioned)
    return (
        files.with_columns(scopes.head(len(files)).alias("scope")),
        deletes.with_columns(scopes.tail(len(deletes)).alias("scope")).with_columns(
            pl.when(everywhere).then(GLOBAL_SCOPE).otherwise(pl.col("scope")).alias("scope")
        ),
    )


def _scope_keys(entries: pl.DataFrame) -> pl.DataFrame:
    names = [name for name in entries.columns if name.startswith(PARTITION_PREFIX)]
    return entries.select("spec_id", *(partition_keys(entries[name]) for name in names))
