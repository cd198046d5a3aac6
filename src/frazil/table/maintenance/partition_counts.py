"""What each partition of a snapshot holds, as partition statistics files say it (rule 206)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from frazil.format.manifests import Content, EntryStatus, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import in_threads
from frazil.table.inspect.files import EntryTables, commit_times

COUNTS: Final = (
    ("data_record_count", pl.Int64()),
    ("data_file_count", pl.Int32()),
    ("total_data_file_size_in_bytes", pl.Int64()),
    ("position_delete_record_count", pl.Int64()),
    ("position_delete_file_count", pl.Int32()),
    ("dv_count", pl.Int32()),
    ("equality_delete_record_count", pl.Int64()),
    ("equality_delete_file_count", pl.Int32()),
    ("total_record_count", pl.Int64()),
    ("last_updated_at", pl.Int64()),
    ("last_updated_snapshot_id", pl.Int64()),
)
"""The columns beside `partition` and `spec_id`."""

_KEYS: Final = ("partition", "spec_id")
_NEWEST: Final = "newest"


def partition_counts(
    metadata: TableMetadata, manifests: Sequence[ManifestFile], io: FileIO
) -> pl.DataFrame:
    """Return a row for each partition and spec, in the order of partitions, nulls first.

    A file that a manifest says is removed counts for the time of the last change alone. The number
    of rows after deletes is known where there are no position and equality delete files.

    Args:
        manifests: of the snapshot.
    """
    tables = EntryTables.of(metadata)
    times = commit_times(metadata).with_columns(pl.col("committed_at").dt.epoch("ms"))
    parts = in_threads(
        lambda manifest: _count(tables.tallies(io, manifest), times),
        manifests,
        name="frazil-counts",
    )
    together = pl.concat([_count(tables.no_tallies(), times), *parts])
    sums = [pl.col(name).sum() for name, _ in COUNTS[:8]]
    at = pl.col(_NEWEST)
    newest = at.filter(at.struct.field("committed_at").is_not_null()).sort().last()
    counted = together.group_by(_KEYS, maintain_order=True).agg(*sums, newest)
    no_files = (pl.col("position_delete_file_count") == 0) & (
        pl.col("equality_delete_file_count") == 0
    )
    left = pl.col("data_record_count") - pl.col("position_delete_record_count")
    return (
        counted.with_columns(
            pl.when(no_files).then(left).alias("total_record_count"),
            pl.col(_NEWEST).struct.field("committed_at").alias("last_updated_at"),
            pl.col(_NEWEST).struct.field("snapshot_id").alias("last_updated_snapshot_id"),
        )
        .select(*_KEYS, *(pl.col(name).cast(dtype) for name, dtype in COUNTS))
        .sort(*_partition_order(counted), nulls_last=False, maintain_order=True)
    )


def _partition_order(frame: pl.DataFrame) -> list[pl.Expr]:
    fields = frame.schema["partition"].fields  # type: ignore[attr-defined]
    return [pl.col("partition").struct.field(field.name) for field in fields] or [pl.lit(0)]


def _count(tallies: pl.DataFrame, times: pl.DataFrame) -> pl.DataFrame:
    is_live = pl.col("status") != int(EntryStatus.DELETED)
    vector = pl.col("file_format") == "PUFFIN"
    data, positions, equality = (
        is_live & (pl.col("content") == int(kind))
        for kind in (Content.DATA, Content.POSITION_DELETES, Content.EQUALITY_DELETES)
    )
    rows, size = pl.col("record_count"), pl.col("file_size_in_bytes")
    values = (
        rows.filter(data).sum(),
        data.sum(),
        size.filter(data).sum(),
        rows.filter(positions).sum(),
        (positions & ~vector).sum(),
        (positions & vector).sum(),
        rows.filter(equality).sum(),
        equality.sum(),
    )
    counts = [
        value.cast(pl.Int64).alias(name) for value, (name, _) in zip(values, COUNTS, strict=False)
    ]
    dated = tallies.join(times, on="snapshot_id", how="left", maintain_order="left")
    # Of files whose snapshot expired the time is not known.
    known = pl.struct("committed_at", "snapshot_id").filter(pl.col("committed_at").is_not_null())
    newest = known.sort().last().alias(_NEWEST)
    return dated.group_by(_KEYS, maintain_order=True).agg(*counts, newest)
