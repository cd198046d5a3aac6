"""The rows of a command beside those of other commits, read where the two may contradict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from pyroaring import BitMap64
from pyspark.sql import SparkSession

from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import Expression
from frazil.format.properties.table import MOST_TESTED_BYTES
from frazil.format.snapshots import Snapshot
from frazil.planning.deletes.index import POSITION_DELETES
from frazil.planning.removal import data_files
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.delete_files.write import write_deletes_of_new_files
from frazil.spark.deletes.bitmap import Words, words_by_file
from frazil.spark.deletes.position_files import comparable_paths, deleted_rows, vector_positions
from frazil.spark.deletes.positions import PositionDeletes
from frazil.spark.files.parquet.native import ScanContext
from frazil.spark.row_level.target import Target
from frazil.spark.session.facts import type_support
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import in_threads
from frazil.table.conflicts.rows import OwnRows

CountMatching = Callable[[Target], Mapping[int, int]]
"""Counts the rows of a target that a command would have been about, by their files' ordinals."""

_READERS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRows:
    """The rows that a command deletes, and its test of rows that others added.

    Attributes:
        metadata: of the table when the command read it.
        plan: the data files that the command looked at, and what was deleted of them then.
        deletes: the deletes that the command wrote.
        where: a predicate of all rows that the command is about.
        count_matching: counts them.
        beside: names of columns that stand beside the rows when they are tested.
    """

    spark: SparkSession
    metadata: TableMetadata
    io: FileIO
    plan: ScanPlan
    deletes: Sequence[DataFile]
    where: Expression
    count_matching: CountMatching
    beside: Sequence[str] = ()

    def own(self, paths: Collection[str]) -> Mapping[str, OwnRows]:
        """Return what the command deletes of these data files."""
        if not paths:
            return {}
        deleted = self.deleted_by(self.deletes, paths)
        earlier = self._earlier(paths)
        return {
            path: OwnRows(deleted.get(path, BitMap64()), earlier.get(path, BitMap64()))
            for path in paths
        }

    def deleted_by(
        self, deletes: Sequence[DataFile], paths: Collection[str]
    ) -> Mapping[str, BitMap64]:
        """Return the positions that position deletes or vectors delete of these data files."""
        names = pl.Series("path", list(paths), dtype=pl.String)
        wanted: dict[str, list[str]] = {}
        for path, name in zip(names, comparable_paths(names, self.io), strict=True):
            wanted.setdefault(name, []).append(path)
        once = {(each.file_path, each.content_offset): each for each in deletes}
        about = [
            each
            for each in once.values()
            if each.referenced_data_file is None
            or not each.is_deletion_vector
            or each.referenced_data_file in paths
        ]
        parts: dict[str, BitMap64] = {}
        for found in in_threads(
            lambda each: self._read(each, wanted), about, threads=_READERS, name="frazil-rivals"
        ):
            for path, positions in found.items():
                parts[path] = parts.get(path, BitMap64()) | positions
        return parts

    def write_vectors(
        self, metadata: TableMetadata, deleted: Mapping[str, BitMap64]
    ) -> Sequence[DataFile]:
        """Write deletion vectors of data files."""
        files = data_files(self.metadata, self.plan, self._ordinals(deleted))
        words = [Words.of_values(_values(deleted[file.file_path])) for file in files]
        written = write_deletes_of_new_files(
            self.spark, files, words, metadata=metadata, io=self.io
        )
        return written.added

    def matching(
        self, metadata: TableMetadata, head: Snapshot | None, paths: Collection[str]
    ) -> Mapping[str, int] | None:
        """Count the rows of live data files that the command would have been about."""
        if metadata.schema != self.metadata.schema:
            return None
        every = Target.of(self.spark, metadata, self.io, head, where=self.where, beside=self.beside)
        added = every.named(paths)
        if int(added.plan.files["file_size_in_bytes"].sum()) > MOST_TESTED_BYTES.of(
            metadata.properties
        ):
            return None
        if not added.plan.file_count:
            return {}
        counts = self.count_matching(added)
        by_ordinal = dict(added.plan.files.select("ordinal", "file_path").iter_rows())
        found: dict[str, int] = {}
        for ordinal, count in counts.items():
            path = by_ordinal[ordinal]
            found[path] = found.get(path, 0) + count
        return found

    def _read(self, delete: DataFile, wanted: Mapping[str, Sequence[str]]) -> dict[str, BitMap64]:
        if delete.is_deletion_vector:
            assert delete.referenced_data_file is not None
            positions = vector_positions(
                self.io,
                {
                    "path": delete.file_path,
                    "content_offset": delete.content_offset,
                    "content_size": delete.content_size_in_bytes,
                    "record_count": delete.record_count,
                },
            )
            return {delete.referenced_data_file: Words.of_values(positions).bitmap()}
        found: dict[str, BitMap64] = {}
        for rows in deleted_rows(self.io, delete.file_path, delete.file_format):
            names = rows.paths.to_list()
            for code, words in words_by_file(rows.codes, rows.positions).items():
                for path in wanted.get(names[code], ()):
                    found[path] = found.get(path, BitMap64()) | words.bitmap()
        return found

    def _earlier(self, paths: Collection[str]) -> Mapping[str, BitMap64]:
        """What was deleted of data files when the command read them."""
        by_position = self.plan.deletes.filter(pl.col("content") == POSITION_DELETES)["delete"]
        ordinals = pl.Series(self._ordinals(paths), dtype=pl.Int64)
        touched = self.plan.delete_index.of(by_position).on(ordinals).ordinals()
        if touched.is_empty():
            return {}
        context = ScanContext(
            spark=self.spark,
            metadata=self.metadata,
            io=self.io,
            support=type_support(self.spark),
        )
        words = PositionDeletes.of(context, self.plan, touched).words()
        files = self.plan.files.filter(pl.col("ordinal").is_in(touched.implode()))
        found: dict[str, BitMap64] = {}
        for ordinal, path in files.select("ordinal", "file_path").iter_rows():
            found[path] = found.get(path, BitMap64()) | words[ordinal].bitmap()
        return found

    def _ordinals(self, paths: Collection[str]) -> list[int]:
        named = pl.Series(list(paths), dtype=pl.String)
        files = self.plan.files
        return [int(n) for n in files.filter(files["file_path"].is_in(named.implode()))["ordinal"]]


def _values(bitmap: BitMap64) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.asarray(bitmap.to_array(), dtype=np.int64)
