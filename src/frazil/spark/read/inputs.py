"""What reading needs of a plan, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from frazil.format.schema import Schema
from frazil.format.table_metadata import TableMetadata

PARTITION_PREFIX: Final = "partition."

POSITION_DELETES: Final = 1
EQUALITY_DELETES: Final = 2


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
            ``equality_ids``, ``content_offset``, ``content_size``, ``null_value_counts``.
        pairs: which delete file applies to which data file: ``ordinal``, ``delete``.
    """

    metadata: TableMetadata
    schema: Schema
    snapshot_id: int | None
    files: pl.DataFrame
    deletes: pl.DataFrame
    pairs: pl.DataFrame
