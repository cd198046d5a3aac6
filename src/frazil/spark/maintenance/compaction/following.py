"""Rows that others delete while a compaction runs are deleted in its new files too.

In version 3 a row keeps its id wherever it is written: the ids of the rows that others deleted of
the old files tell their positions in the new ones. Of files that were copied their order tells it,
and of others in version 2 the values: equal rows stand for each other.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import polars as pl
from pyroaring import BitMap64
from pyspark.errors import PySparkException

from frazil.errors import FrazilError
from frazil.format.properties.table import ROW_LEVEL_CONFLICTS
from frazil.planning.deletes.index import POSITION_DELETES
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.delete_files.write import write_deletes_of_new_files
from frazil.spark.deletes.bitmap import Words
from frazil.spark.files.projection import FILE_ORDINAL_FIELD, Projection
from frazil.spark.maintenance.compaction.rewriting import RewrittenGroup
from frazil.spark.read.reader import TableReader
from frazil.spark.row_level.rivals.deleted_since import DeletedSince, words_of_bitmap
from frazil.spark.row_level.rivals.moved_rows import places_of
from frazil.spark.row_level.rivals.rows_by_id import RowIds, rows_in_new_files
from frazil.spark.row_level.rivals.rows_by_order import copied_places
from frazil.spark.row_level.rivals.rows_by_value import equal_rows
from frazil.spark.row_level.target import Target

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FollowedDeletes:
    """Gives rewritten groups the deletes that were committed since their files were read.

    Attributes:
        target: the files as they were read.
        now: the plan of the branch as it is, with every delete.
    """

    target: Target
    now: ScanPlan

    def followed(self, done: RewrittenGroup) -> RewrittenGroup | None:
        """Return a group with deletes of its new files; None where rows cannot be told.

        The group's files must all be there still.
        """
        metadata = self.target.metadata
        if metadata.format_version < 2 or not ROW_LEVEL_CONFLICTS.of(metadata.properties):
            return None
        try:
            return self._follow(done)
        except (FrazilError, PySparkException) as error:
            _LOG.warning("a group does not follow the deletes of others: %s", error)
            return None

    def _follow(self, done: RewrittenGroup) -> RewrittenGroup | None:
        target = self.target
        then = target.only(done.group.ordinals)
        now = replace(target, plan=self.now).named(then.plan.files["file_path"])
        deleted = DeletedSince(then, now).by_position()
        if deleted is None or not _are_all(then, now, deleted):
            return None
        found = self._by_id(then, done, deleted)
        if found is None:
            found = self._by_order(done, deleted)
        if found is None:
            found = self._by_value(then, done, deleted)
        if found is None:
            return None
        written = write_deletes_of_new_files(
            target.spark, done.added, found, metadata=target.metadata, io=target.io
        )
        return replace(done, deletes=written.added, moved_rows=written.deleted_rows)

    def _by_id(
        self, then: Target, done: RewrittenGroup, deleted: Mapping[str, BitMap64]
    ) -> list[Words] | None:
        """Where rows are in a group's new files, if all of them have ids."""
        rows = RowIds.at(then, places_of(then, deleted))
        if rows is None:
            return None
        found = rows_in_new_files(self.target.spark, self.target.io, done.added, rows)
        if len(found.ids) != len(rows):
            return None
        return [found.words(n) for n in range(len(done.added))]

    def _by_order(
        self, done: RewrittenGroup, deleted: Mapping[str, BitMap64]
    ) -> list[Words] | None:
        """Where rows are in a group's new files, if all of these are copies."""
        if any(file.file_format.lower() != "parquet" for file in done.added):
            return None
        paths = [file.file_path for file in done.added]
        places = copied_places(self.target.io, deleted, paths)
        if places is None:
            return None
        by_file = places.by_file()
        return [words_of_bitmap(by_file.get(path, BitMap64())) for path in paths]

    def _by_value(
        self, then: Target, done: RewrittenGroup, deleted: Mapping[str, BitMap64]
    ) -> list[Words] | None:
        """Where equal rows are in a group's new files, if rows have no ids."""
        new = then.of_new_files(done.added)
        found = equal_rows(then, places_of(then, deleted), new)
        return None if found is None else found.words(len(done.added))


def _are_all(then: Target, now: Target, deleted: Mapping[str, BitMap64]) -> bool:
    """Return whether no row is gone but by these positions, and none has come back.

    An equality delete may have become positions meanwhile: of rows that were deleted already. Later
    ones are left out here: they reach the new files as well.
    """
    known = _equality_deletes(then)
    if known <= _equality_deletes(now):
        return True
    places = places_of(then, deleted)
    gone = int(then.only(places).rows_at(places).count()) if places else 0
    is_known = pl.col("file_path").is_in(list(known)) | (pl.col("content") == POSITION_DELETES)
    deletes = now.plan.deletes.filter(is_known)
    index = now.plan.delete_index.of(deletes["delete"])
    plan = replace(now.plan, deletes=deletes, delete_index=index)
    reader = TableReader(now.spark, now.metadata, now.io)
    left = reader.rows_under_some_deletes(plan, Projection((FILE_ORDINAL_FIELD,))).count()
    return then.live_row_count - gone == int(left)


def _equality_deletes(target: Target) -> frozenset[str]:
    """The equality deletes that apply to files, by their paths."""
    deletes = target.plan.deletes.filter(pl.col("content") != POSITION_DELETES)
    index = target.plan.delete_index.of(deletes["delete"]).on(target.plan.files["ordinal"])
    used = deletes.filter(pl.col("delete").is_in(index.deletes().implode()))
    return frozenset(used["file_path"])
