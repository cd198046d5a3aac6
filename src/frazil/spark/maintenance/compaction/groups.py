"""Which data files a compaction rewrites, and which of them together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from frazil.format.metadata import TableMetadata
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.planning.delete_load import delete_load
from frazil.planning.frames import partition_keys
from frazil.planning.removal import data_files
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.maintenance.compaction.options import CompactionOptions

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
    files = _weigh(plan, options)
    if not options.rewrites_all:
        files = files.filter("is_wanted")
    groups: list[FileGroup] = []
    room = options.max_files
    for some in _pack(files, options):
        chosen = some if room is None else some.head(room)
        if len(chosen):
            groups.append(_group(metadata, plan, chosen))
        room = None if room is None else room - len(chosen)
    return _order(groups, options.job_order)


def chosen_groups(
    metadata: TableMetadata,
    plan: ScanPlan,
    options: CompactionOptions,
    chosen: Sequence[pl.Series],
) -> list[FileGroup]:
    """Return groups of files that somebody else has chosen.

    Args:
        plan: with every delete that applies to its files.
        options: sizes of groups, and which comes first.
        chosen: ordinals of files of one partition each.
    """
    groups: list[FileGroup] = []
    numbers = [pl.repeat(n, len(each), eager=True) for n, each in enumerate(chosen)]
    if not numbers:
        return groups
    choices = pl.DataFrame({"ordinal": pl.concat(chosen), "choice": pl.concat(numbers)})
    files = _weigh(plan.restricted_to(choices["ordinal"]), options)
    by_choice = files.join(choices, on="ordinal", maintain_order="left").partition_by(
        "choice", as_dict=True, include_key=False
    )
    for number in sorted(by_choice):
        members = by_choice[number]
        runs = options.sizes.group_slices(members["file_size_in_bytes"].to_numpy())
        groups += [_group(metadata, plan, members[run]) for run in runs]
    return _order(groups, options.job_order)


def _pack(files: pl.DataFrame, options: CompactionOptions) -> Iterator[pl.DataFrame]:
    """Files that are rewritten together, where that is worth it."""
    for _, members in files.group_by("scope", maintain_order=True):
        for run in options.sizes.group_slices(members["file_size_in_bytes"].to_numpy()):
            some = members[run]
            if (
                options.rewrites_all
                or some["has_many_deletes"].any()
                or options.sizes.is_worth_it(len(some), int(some["file_size_in_bytes"].sum()))
            ):
                yield some


def _weigh(plan: ScanPlan, options: CompactionOptions) -> pl.DataFrame:
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


def _order(groups: Sequence[FileGroup], job_order: str) -> list[FileGroup]:
    if job_order not in _ORDERS:
        return list(groups)
    name, is_descending = _ORDERS[job_order]
    return sorted(groups, key=lambda group: int(getattr(group, name)), reverse=is_descending)
