"""The data files that rows are deleted of, and the deletes of theirs that new ones take over.

A new deletion vector holds all that is deleted of its file by position: there is at most one. A new
position delete file of one data file holds what earlier ones of it alone do. Deletes of several
data files stay, since others need them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

import polars as pl
from pyspark.sql import SparkSession

from frazil.errors import ValidationError
from frazil.format.manifests import Content, DataFile
from frazil.format.metadata import TableMetadata
from frazil.planning.deletes.index import POSITION_DELETES, DeleteIndex
from frazil.planning.removal import partitions_of
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.deletes.bitmap import Words, words_by_file
from frazil.spark.deletes.position_files import comparable_paths, deleted_rows, vector_positions
from frazil.spark.deletes.positions import PositionDeletes
from frazil.spark.files.parquet.native import ScanContext
from frazil.spark.session.facts import type_support
from frazil.storage.files import FileIO
from frazil.table.manifests.file_keys import PartitionKey, partition_key

ABOUT: Final = "about"
_DELETE_COLUMNS: Final = ("path", "format", "record_count", "content_offset", "content_size")
_EARLIER: Final[dict[str, pl.DataType]] = {
    "ordinal": pl.Int64(),
    "delete": pl.Int64(),
    "path": pl.String(),
    "format": pl.String(),
    "record_count": pl.Int64(),
    "content_offset": pl.Int64(),
    "content_size": pl.Int64(),
    "size": pl.Int64(),
    ABOUT: pl.String(),
}


class CarriedDeletes(Enum):
    """Which earlier deletes of a data file the new ones hold too."""

    ALL = "all"
    OF_ONE_FILE = "of one file"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class DeleteTargets:
    """The data files that rows are deleted of.

    Attributes:
        metadata: the table.
        plan: what the files are of; None of files that no snapshot has yet.
        files: in the order in which deletes are written, by partition and path: `ordinal`, `path`,
            `compared_path` (which earlier deletes are looked up by), `record_count`, `spec_id`,
            and `group`, equal for files of one spec and partition.
        partitions: of each of them.
        earlier: the deletes that are taken over and what they apply to: `ordinal`, `delete`,
            `path`, `format`, `size`, `record_count`, `content_offset`, `content_size`, and
            `about`, the one data file that the delete is about, null for several.
    """

    metadata: TableMetadata
    plan: ScanPlan | None
    files: pl.DataFrame
    partitions: tuple[tuple[Any, ...], ...]
    earlier: pl.DataFrame

    @classmethod
    def of(
        cls,
        plan: ScanPlan,
        ordinals: pl.Series,
        *,
        metadata: TableMetadata,
        io: FileIO,
        carried: CarriedDeletes,
    ) -> DeleteTargets:
        """Return those with these ordinals; others than the plan's are left out.

        Raises:
            ValidationError: deletion vectors are to be written, and a file is there twice.
        """
        files = plan.files.filter(pl.col("ordinal").is_in(ordinals.implode())).with_columns(
            pl.col("file_path").alias("path")
        )
        if metadata.format_version > 2:
            _check_once(files["path"])
        ordered, partitions = _arrange(files, partitions_of(metadata, files), io)
        earlier = _earlier(plan, files["ordinal"], carried)
        return cls(metadata, plan, ordered, partitions, earlier)

    @classmethod
    def just_written(
        cls, files: Sequence[DataFile], *, metadata: TableMetadata, io: FileIO
    ) -> DeleteTargets:
        """Return data files that no commit has yet, by their places; nothing is deleted of them."""
        frame = pl.DataFrame(
            {
                "ordinal": range(len(files)),
                "path": [file.file_path for file in files],
                "record_count": [file.record_count for file in files],
                "spec_id": [file.spec_id for file in files],
            },
            schema={
                "ordinal": pl.Int64,
                "path": pl.String,
                "record_count": pl.Int64,
                "spec_id": pl.Int64,
            },
        )
        ordered, partitions = _arrange(frame, [file.partition for file in files], io)
        return cls(metadata, None, ordered, partitions, pl.DataFrame(schema=_EARLIER))

    def position_deletes(self, spark: SparkSession, io: FileIO) -> PositionDeletes:
        """Return the deletes that are taken over, to be read."""
        assert self.plan is not None, "files that no snapshot has have no earlier deletes"
        context = ScanContext(
            spark=spark, metadata=self.metadata, io=io, support=type_support(spark)
        )
        pairs = self.earlier.select("ordinal", "delete")
        narrowed = replace(self.plan, delete_index=DeleteIndex(pairs))
        return PositionDeletes.of(context, narrowed, pairs["ordinal"].unique())

    def partition_of(self) -> dict[int, tuple[int, tuple[Any, ...]]]:
        """Return the spec id and the partition of each data file, by its ordinal."""
        pairs = zip(self.files["spec_id"], self.partitions, strict=True)
        return dict(zip(self.files["ordinal"], pairs, strict=True))

    def replaced_deletes(self, ordinals: set[int]) -> tuple[DataFile, ...]:
        """Return the deletes that are about one of these data files alone."""
        partition_of = self.partition_of()
        found = self.earlier.filter(
            pl.col(ABOUT).is_not_null() & pl.col("ordinal").is_in(list(ordinals))
        ).unique("delete", maintain_order=True)
        return tuple(
            DataFile(
                content=Content.POSITION_DELETES,
                file_path=row["path"],
                file_format=row["format"],
                # Deletes of a data file are of its partition (rules 176, 177).
                spec_id=partition_of[row["ordinal"]][0],
                partition=partition_of[row["ordinal"]][1],
                record_count=row["record_count"],
                file_size_in_bytes=row["size"],
                referenced_data_file=row[ABOUT],
                content_offset=row["content_offset"],
                content_size_in_bytes=row["content_size"],
            )
            for row in found.iter_rows(named=True)
        )

    def texts(self) -> list[str]:
        """Return what an executor needs to know of each file, as JSON."""
        lists: dict[int, list[dict[str, Any]]] = {}
        for row in self.earlier.select("ordinal", *_DELETE_COLUMNS).iter_rows(named=True):
            lists.setdefault(row["ordinal"], []).append(row)
        columns = ("ordinal", "path", "compared_path", "group")
        return [
            json.dumps({**row, "earlier": lists.get(row["ordinal"], [])})
            for row in self.files.select(*columns).iter_rows(named=True)
        ]


class EarlierDeletes:
    """Reads earlier deletes where there is no plan, data file by data file.

    A delete file of several data files is read once for all of them that follow each other in a
    partition.
    """

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self._group: int | None = None
        self._read: dict[str, Mapping[str, Words]] = {}

    def words(self, file: Mapping[str, Any]) -> Words:
        """Return what is deleted of a file of `DeleteTargets.texts`.

        Raises:
            MissingFileError, InvalidDataFileError: a delete file cannot be read.
        """
        if file["group"] != self._group:
            self._group, self._read = file["group"], {}
        return Words.union([self._words_of(file, delete) for delete in file["earlier"]])

    def _words_of(self, file: Mapping[str, Any], delete: Mapping[str, Any]) -> Words:
        if delete["format"] == "puffin":
            return Words.of_values(vector_positions(self._io, delete))
        path = delete["path"]
        if path not in self._read:
            self._read[path] = self._by_path(path, delete["format"])
        return self._read[path].get(file["compared_path"], Words.empty())

    def _by_path(self, path: str, file_format: str) -> Mapping[str, Words]:
        parts: dict[str, list[Words]] = {}
        for rows in deleted_rows(self._io, path, file_format):
            names = rows.paths.to_list()
            for code, words in words_by_file(rows.codes, rows.positions).items():
                parts.setdefault(names[code], []).append(words)
        return {name: Words.union(words) for name, words in parts.items()}


def _check_once(paths: pl.Series) -> None:
    twice = paths.filter(paths.is_duplicated())
    if len(twice):
        raise ValidationError(
            f"the table has the data file {twice[0]} more than once, and a data file can have one "
            "deletion vector: compact the table first, with rewrite_all=True"
        )


def _arrange(
    files: pl.DataFrame, partitions: Sequence[tuple[Any, ...]], io: FileIO
) -> tuple[pl.DataFrame, tuple[tuple[Any, ...], ...]]:
    """The columns of `DeleteTargets.files` in their order, and the partitions in the same."""
    groups: dict[PartitionKey, int] = {}
    keys = (partition_key(s, p) for s, p in zip(files["spec_id"], partitions, strict=True))
    group = pl.Series("group", [groups.setdefault(k, len(groups)) for k in keys], pl.Int64)
    compared = comparable_paths(files["path"], io).alias("compared_path")
    columns = ("ordinal", "path", "compared_path", "record_count", "spec_id", "group")
    ordered = (
        files.with_columns(group, compared)
        .select(*columns)
        .with_row_index("place")
        .sort("group", pl.col("path").cast(pl.Binary))
    )
    return ordered.drop("place"), tuple(partitions[place] for place in ordered["place"])


def _earlier(plan: ScanPlan, ordinals: pl.Series, carried: CarriedDeletes) -> pl.DataFrame:
    deletes = plan.deletes.filter(pl.col("content") == POSITION_DELETES).select(
        "delete",
        pl.col("file_path").alias("path"),
        pl.col("file_format").alias("format"),
        "record_count",
        "content_offset",
        pl.col("content_size_in_bytes").alias("content_size"),
        pl.col("file_size_in_bytes").alias("size"),
        pl.col("referenced_data_file").alias(ABOUT),
    )
    if carried is CarriedDeletes.NONE:
        deletes = deletes.clear()
    elif carried is CarriedDeletes.OF_ONE_FILE:
        deletes = deletes.filter(pl.col(ABOUT).is_not_null())
    pairs = plan.delete_index.for_deletes(deletes["delete"]).for_files(ordinals).expanded_pairs()
    return pairs.join(deletes, on="delete", maintain_order="left")
