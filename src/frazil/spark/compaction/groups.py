"""Which data files a compaction rewrites, and which of them together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from frazil.format.manifests import Content
from frazil.format.metadata import TableMetadata
from frazil.format.partitions.sources import schema_with_sources
from frazil.planning.deletes.runs import Runs
from frazil.planning.frames import partition_keys
from frazil.planning.removal import data_files
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.compaction.options import CompactionOptions

_ORDERS: Final[Mapping[str, tuple[str, bool]]] = {
    "bytes-asc": ("size_in_bytes", False),
    "bytes-desc": ("size_in_bytes", True),
    "files-asc": ("files_count", False),
    "files-desc": ("files_count", True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Data files that one job rewrites.

    Attributes:
        ordinals: of the files in the plan.
        size_in_bytes: of the files.
        record_count: of the files, before deletes.
        has_deletes: whether deletes apply to any of them.
        is_of_output_spec: whether all are of one partition of the spec of the new files; if not,
            they may become files of many partitions.
        partition: as in paths; empty for none or several.
    """

    ordinals: tuple[int, ...]
    size_in_bytes: int
    record_count: int
    has_deletes: bool
    is_of_output_spec: bool
    partition: str

    @property
    def files_count(self) -> int:
        """How many files there are."""
        return len(self.ordinals)


def plan_groups(
    metadata: TableMetadata, plan: ScanPlan, options: CompactionOptions
) -> list[FileGroup]:
    """Return the groups that are worth a rewrite, in the order in which they are rewritten.

    Files of one partition are packed together. Files of other specs than that of the new files
    form groups without regard to their partitions.

    Args:
        plan: with every delete that applies to its files.
    """
    files = _weighed(plan, options)
    if not options.rewrites_all:
        files = files.filter("is_wanted")
    groups: list[FileGroup] = []
    room = options.max_files
    for some in _packed(files, options):
        chosen = some if room is None else some.head(room)
        if len(chosen):
            groups.append(_group(metadata, plan, chosen))
        room = None if room is None else room - len(chosen)
    return _ordered(groups, options.job_order)


def _packed(files: pl.DataFrame, options: CompactionOptions) -> Iterator[pl.DataFrame]:
    """Files that are rewritten together, where that is worth it."""
    for _, members in files.group_by("scope", maintain_order=True):
        for run in options.sizes.packed(members["file_size_in_bytes"].to_numpy()):
            some = members[run]
            if (
                options.rewrites_all
                or some["has_many_deletes"].any()
                or options.sizes.is_worth_it(len(some), int(some["file_size_in_bytes"].sum()))
            ):
                yield some


def _weighed(plan: ScanPlan, options: CompactionOptions) -> pl.DataFrame:
    """The files, with the number of their group's partition and whether each is to be rewritten."""
    sizes, size = options.sizes, pl.col("file_size_in_bytes")
    ratio = pl.min_horizontal("deleted_rows", "record_count") / pl.col("record_count")
    many = (pl.col("delete_files") >= options.delete_files) | (
        # A file without rows has no share of them.
        (pl.col("record_count") > 0) & (ratio >= options.delete_ratio)
    )
    return (
        plan.files.select(
            "ordinal",
            "file_size_in_bytes",
            "record_count",
            "spec_id",
            _scopes(plan.files, options.spec_id),
        )
        .join(delete_load(plan), on="ordinal", how="left", maintain_order="left")
        .with_columns(pl.col("delete_files", "deleted_rows").fill_null(0))
        .with_columns(
            many.alias("has_many_deletes"),
            (pl.col("spec_id") == options.spec_id).alias("is_of_output_spec"),
        )
        .with_columns(
            ((size < sizes.smallest) | (size > sizes.largest) | pl.col("has_many_deletes")).alias(
                "is_wanted"
            )
        )
    )


def delete_load(plan: ScanPlan) -> pl.DataFrame:
    """Return what is deleted of each data file that deletes apply to.

    A delete of one data file counts as what it says. Of a delete that applies to several, position
    or equality, each has the share that its rows are of theirs.

    Returns:
        `ordinal`, `delete_files` (their number) and `deleted_rows`, an estimate.
    """
    index = plan.delete_index
    parts = [_load_of_pairs(plan, index.pairs), *(_load_of_runs(plan, runs) for runs in index.runs)]
    return (
        pl.concat(parts)
        .group_by("ordinal")
        .agg(pl.col("delete_files").sum(), pl.col("deleted_rows").sum())
        .filter(pl.col("delete_files") > 0)
    )


def _load_of_pairs(plan: ScanPlan, which: pl.DataFrame) -> pl.DataFrame:
    """The load of deletes of single files, and of a few."""
    deletes = plan.deletes.select(
        "delete", pl.col("record_count").alias("deletes"), "referenced_data_file", "content"
    )
    rows = plan.files.select("ordinal", "record_count")
    pairs = which.join(deletes, on="delete").join(rows, on="ordinal")
    is_of_one_file = pl.col("referenced_data_file").is_not_null() & (
        pl.col("content") == int(Content.POSITION_DELETES)
    )
    all_rows = pl.col("record_count").sum().over("delete")
    share = (pl.col("deletes") * pl.col("record_count") / all_rows).fill_nan(0.0)
    deleted = pl.when(is_of_one_file).then(pl.col("deletes").cast(pl.Float64)).otherwise(share)
    return (
        pairs.with_columns(deleted.alias("deleted"))
        .group_by("ordinal")
        .agg(
            pl.len().cast(pl.Int64).alias("delete_files"),
            pl.col("deleted").sum().alias("deleted_rows"),
        )
    )


def _load_of_runs(plan: ScanPlan, runs: Runs) -> pl.DataFrame:
    """The load of deletes of many files, without a look at each pair."""
    records = _by_number(plan.files["ordinal"], plan.files["record_count"])[runs.order]
    deletes = _by_number(plan.deletes["delete"], plan.deletes["record_count"])[runs.deletes]
    before = np.concatenate([[0.0], np.cumsum(records)])
    reached = before[runs.end] - before[runs.start]
    share = np.divide(deletes, reached, out=np.zeros(len(deletes)), where=reached > 0)
    return pl.DataFrame(
        {
            "ordinal": runs.order,
            "delete_files": runs.sums(np.ones(len(deletes))).astype(np.int64),
            "deleted_rows": np.maximum(runs.sums(share), 0.0) * records,
        }
    )


def _by_number(numbers: pl.Series, values: pl.Series) -> npt.NDArray[np.float64]:
    """The values at the places of their numbers."""
    placed = np.zeros(int(str(numbers.max())) + 1)
    placed[numbers.to_numpy()] = values.to_numpy()
    return placed


def _scopes(files: pl.DataFrame, spec_id: int) -> pl.Series:
    """A number for each partition of the spec, and one for all files of other specs."""
    is_of_spec = pl.col("spec_id") == spec_id
    keys = files.select(is_of_spec.alias("is_of_spec"), "spec_id")
    if isinstance(files.schema["partition"], pl.Struct):
        unpacked = files["partition"].struct.unnest()
        keys = keys.with_columns(
            partition_keys(unpacked[name]).alias(f"partition.{name}") for name in unpacked.columns
        )
    columns = [column for column in keys.columns if column.startswith("partition.")]
    # One number for all files of other specs: what they hold may be of any partition.
    alike = keys.with_columns(pl.when("is_of_spec").then(c).alias(c) for c in columns)
    named = pl.struct("is_of_spec", *columns)
    return alike.select(named.rank("dense").alias("scope")).to_series()


def _group(metadata: TableMetadata, plan: ScanPlan, files: pl.DataFrame) -> FileGroup:
    is_of_output_spec = bool(files["is_of_output_spec"].all())
    ordinals = tuple(int(each) for each in files["ordinal"])
    return FileGroup(
        ordinals=ordinals,
        size_in_bytes=int(files["file_size_in_bytes"].sum()),
        record_count=int(files["record_count"].sum()),
        has_deletes=bool((files["delete_files"] > 0).any()),
        is_of_output_spec=is_of_output_spec,
        partition=_path_of(metadata, plan, ordinals[0]) if is_of_output_spec else "",
    )


def _path_of(metadata: TableMetadata, plan: ScanPlan, ordinal: int) -> str:
    [file] = data_files(metadata, plan, [ordinal])
    spec = metadata.spec_by_id(file.spec_id)
    partition: tuple[Any, ...] = file.partition
    return spec.partition_path(schema_with_sources(metadata), partition)


def _ordered(groups: Sequence[FileGroup], job_order: str) -> list[FileGroup]:
    if job_order not in _ORDERS:
        return list(groups)
    name, is_descending = _ORDERS[job_order]
    return sorted(groups, key=lambda group: int(getattr(group, name)), reverse=is_descending)
