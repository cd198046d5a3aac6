"""The rows of a command beside those of other commits, read where the two may contradict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import Expression
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.properties.table import MOST_TESTED_BYTES
from frazil.format.snapshots import Snapshot
from frazil.format.types import NestedField
from frazil.planning.removal import data_files
from frazil.spark.delete_files.write import write_deletes, write_deletes_of_new_files
from frazil.spark.deletes.bitmap import Words, words_by_file
from frazil.spark.deletes.position_files import comparable_paths, deleted_rows, vector_positions
from frazil.spark.files.projection import FILE_ORDINAL_FIELD, LAST_UPDATED_FIELD
from frazil.spark.row_level.rivals.deleted_since import (
    DeletedSince,
    deleted_positions,
    union_by_path,
    words_of_bitmap,
)
from frazil.spark.row_level.rivals.key_test import KeyTest
from frazil.spark.row_level.rivals.moved_rows import (
    counts_by_path,
    moved_by_id,
    moved_by_order,
    moved_by_value,
    places_of,
)
from frazil.spark.row_level.rivals.rows_by_id import RowIds, rows_in_new_files
from frazil.spark.row_level.rivals.rows_by_value import equal_rows
from frazil.spark.row_level.target import Target, file_of
from frazil.spark.session import costs
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import in_threads
from frazil.table.conflicts.rows import DeletesOfCopies, MovedDeletes, MovedTo, OwnRows

CountMatching = Callable[[Target], Mapping[int, int]]
"""Counts the rows of a target that a command would have been about, by their files' ordinals."""


@dataclass(frozen=True, slots=True)
class RowTest:
    """How a command tests rows that others added since it read the table.

    Attributes:
        count: counts those of some files that it would have been about.
        beside: names of columns that then stand beside the table's.
        keys: tells files that hold no such row, before they are counted.
    """

    count: CountMatching
    beside: Sequence[str] = ()
    keys: KeyTest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRows:
    """The rows that a command deletes, and its test of rows that others added.

    Attributes:
        target: the data files that the command looked at, and what was deleted of them then.
        deletes: the deletes that the command wrote.
        removed: the data files that it removes as a whole.
        where: a predicate of all rows that the command is about.
        tested: how rows are tested that others added.
    """

    target: Target
    deletes: Sequence[DataFile]
    where: Expression
    tested: RowTest
    removed: Sequence[DataFile] = ()

    @property
    def spark(self) -> SparkSession:
        """The session that reads and writes."""
        return self.target.spark

    @property
    def io(self) -> FileIO:
        """The table's files."""
        return self.target.io

    def own_rows(self, paths: Collection[str]) -> Mapping[str, OwnRows]:
        """Return what the command deletes of these data files."""
        if not paths:
            return {}
        deleted = dict(self.deleted_by(self.deletes, paths))
        for file in self.removed:
            if file.file_path in paths:
                deleted[file.file_path] = BitMap64(range(file.record_count))
        earlier = deleted_positions(self.target.with_paths(paths))
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
        found = in_threads(lambda each: self._read(each, wanted), about, name="frazil-rivals")
        return union_by_path(pair for each in found for pair in each.items())

    def write_vectors(
        self, metadata: TableMetadata, deleted: Mapping[str, BitMap64]
    ) -> Sequence[DataFile]:
        """Write deletion vectors of data files."""
        ordinals = self.target.with_paths(deleted).ordinals
        files = data_files(self.target.metadata, self.target.plan, ordinals)
        words = [words_of_bitmap(deleted[file.file_path]) for file in files]
        written = write_deletes_of_new_files(
            self.spark, files, words, metadata=metadata, io=self.io
        )
        return written.added

    def deleted_since(
        self, metadata: TableMetadata, head: Snapshot | None, paths: Collection[str], since: int
    ) -> Mapping[str, BitMap64] | None:
        """Return the positions of rows that others deleted since the command read the table."""
        if not paths:
            return {}
        compared = self._compare(metadata, head, paths)
        if compared is None:
            return None
        by_position, by_equality = compared.by_position(), compared.by_equality(since)
        if by_position is None or by_equality is None:
            return None
        return union_by_path([*by_position.items(), *by_equality.items()])

    def deleted_by_equality(
        self, metadata: TableMetadata, head: Snapshot | None, paths: Collection[str], since: int
    ) -> Mapping[str, BitMap64] | None:
        """Return those of them that equality deletes of others delete."""
        compared = self._compare(metadata, head, paths)
        return None if compared is None else compared.by_equality(since)

    def decisive_counts(self, rows: Mapping[str, BitMap64]) -> Mapping[str, int] | None:
        """Count those of some rows that the command would have been about."""
        places = places_of(self.target, rows)
        some = _attributes(self.target.restricted_to(places))
        return self._count(RowsAt(**some, positions=places)) if places else {}

    def move_deletes(
        self,
        metadata: TableMetadata,
        head: Snapshot | None,
        gone: Collection[str],
        written: MovedTo,
        since: int,
    ) -> MovedDeletes | None:
        """Write the deletes of the command's rows anew, where others moved them."""
        own = {path: each.deleted - each.earlier for path, each in self.own_rows(gone).items()}
        if sum(map(len, own.values())) > costs.SOUGHT_ROWS:
            return None
        now = self._current_target(metadata, head).with_paths(written.every)
        moved = moved_by_id(self.target, now, own, since)
        if moved is None:
            moved = moved_by_order(now, own, written.copies)
        if moved is None:
            moved = moved_by_value(self.target, now, own, written.same)
        if moved is None or not len(moved.files):
            return None if moved is None else MovedDeletes(missing=moved.missing)
        places = pa.table({"file": moved.files, "position": moved.positions})
        deletes = write_deletes(
            self.spark.createDataFrame(places, "file bigint, position bigint"),
            plan=now.restricted_to(set(moved.files.tolist())).plan,
            metadata=metadata,
            io=self.io,
            most_rows=len(places),
        )
        return MovedDeletes(
            deletes.added, deletes.removed, deletes.referenced_paths, len(places), moved.missing
        )

    def deletes_of_copies(
        self,
        metadata: TableMetadata,
        deleted: Mapping[str, BitMap64],
        copies: Sequence[DataFile],
    ) -> DeletesOfCopies | None:
        """Write deletes of rows in the command's own new files."""
        rows = RowIds.at_places(self.target, places_of(self.target, deleted))
        if rows is None:
            return self._deletes_of_equal_rows(metadata, deleted, copies)
        found = rows_in_new_files(self.spark, self.io, copies, rows)
        if not found.are_unique:
            return None
        written = write_deletes_of_new_files(
            self.spark,
            copies,
            found.only_those_that_stay().words(len(copies)),
            metadata=metadata,
            io=self.io,
        )
        return DeletesOfCopies(
            written.added,
            written.deleted_rows,
            counts_by_path(self.target, rows.files[~np.isin(rows.ids, found.ids)]),
            counts_by_path(self.target, rows.files[np.isin(rows.ids, found.ids[~found.stays])]),
        )

    def _deletes_of_equal_rows(
        self,
        metadata: TableMetadata,
        deleted: Mapping[str, BitMap64],
        copies: Sequence[DataFile],
    ) -> DeletesOfCopies | None:
        """Write deletes of rows in the command's new files that equal some which it left alone."""
        if self.target.keeps_lineage or self.decisive_counts(deleted):
            return None
        now = self.target.of_new_files(copies)
        found = equal_rows(self.target, places_of(self.target, deleted), now)
        if found is None:
            return None
        words = found.words(len(copies))
        written = write_deletes_of_new_files(
            self.spark, copies, words, metadata=metadata, io=self.io
        )
        return DeletesOfCopies(written.added, written.deleted_rows)

    def matching_counts(
        self, metadata: TableMetadata, head: Snapshot | None, paths: Collection[str], since: int
    ) -> Mapping[str, int] | None:
        """Count the rows of live data files that the command would have been about."""
        if metadata.schema != self.target.metadata.schema:
            return None
        added = self._current_target(metadata, head).with_paths(paths)
        if self.tested.keys is not None:
            added = self.tested.keys.left_of(added)
        if int(added.plan.files["file_size_in_bytes"].sum()) > MOST_TESTED_BYTES.of(
            metadata.properties
        ):
            return None
        if not added.plan.file_count:
            return {}
        if added.keeps_lineage:
            added = RowsChangedSince(**_attributes(added), since=since)
        return self._count(added)

    def _count(self, target: Target) -> dict[str, int]:
        """The rows of files that the command would have been about, by path."""
        by_ordinal = dict(target.plan.files.select("ordinal", "file_path").iter_rows())
        found: dict[str, int] = {}
        for ordinal, count in self.tested.count(target).items():
            path = by_ordinal[ordinal]
            found[path] = found.get(path, 0) + count
        return found

    def _current_target(self, metadata: TableMetadata, head: Snapshot | None) -> Target:
        """The files that may hold rows which the command is about, as they are."""
        beside = self.tested.beside
        return Target.of(self.spark, metadata, self.io, head, where=self.where, beside=beside)

    def _compare(
        self, metadata: TableMetadata, head: Snapshot | None, paths: Collection[str]
    ) -> DeletedSince | None:
        """Files as the command read them and as they are; None where one is gone."""
        then, now = (
            self.target.with_paths(paths),
            self._current_target(metadata, head).with_paths(paths),
        )
        if set(then.plan.files["file_path"]) != set(now.plan.files["file_path"]):
            return None
        return DeletedSince(then, now)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsAt(Target):
    """Rows at some places.

    Attributes:
        positions: in files, by the files' ordinals; at least one.
    """

    positions: Mapping[int, Words]

    def rows_with_files(self, fields: Sequence[NestedField]) -> DataFrame:
        """Return these columns of the live rows and the ordinal of each row's file."""
        rows = self.rows_at(self.positions)
        names = [F.col(quote_name_always([field.name])) for field in fields]
        return rows.select(*names, file_of(F.col(self.place)).alias(self.file))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsChangedSince(Target):
    """Rows that were added or changed after a sequence number, or that may have been.

    Attributes:
        since: the sequence number.
    """

    since: int

    def rows_with_files(self, fields: Sequence[NestedField]) -> DataFrame:
        """Return these columns of the live rows and the ordinal of each row's file."""
        beside = {FILE_ORDINAL_FIELD: self.file, LAST_UPDATED_FIELD: self.last_updated}
        named = self.read(fields, beside)
        number = F.col(quote_name_always([self.last_updated]))
        return named.where(number.isNull() | (number > self.since)).drop(self.last_updated)


def _attributes(target: Target) -> dict[str, Any]:
    return {each.name: getattr(target, each.name) for each in fields(Target)}
