"""Which rows of data files are deleted by now that were not when a command read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from pyroaring import BitMap64
from pyspark.sql import functions as F

from frazil.planning.deletes.index import POSITION_DELETES
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.deletes.bitmap import Words, by_file
from frazil.spark.deletes.collect import collect_places, most_words
from frazil.spark.deletes.positions import PositionDeletes
from frazil.spark.deletes.resolve import PLACES
from frazil.spark.files.parquet.native import ScanContext
from frazil.spark.files.projection import DELETED, FILE_ORDINAL_FIELD, POS, Projection
from frazil.spark.read.reader import TableReader
from frazil.spark.row_level.target import Target
from frazil.spark.session.facts import type_support


@dataclass(frozen=True, slots=True)
class DeletedSince:
    """The deletes of the same data files at two times.

    Attributes:
        then: the files as they were read.
        now: the same files as they are, in an order of their own.
    """

    then: Target
    now: Target

    def by_position(self) -> dict[str, BitMap64] | None:
        """Return what position deletes and vectors deleted by path; None where rows came back."""
        before, after = deleted_positions(self.then), deleted_positions(self.now)
        found: dict[str, BitMap64] = {}
        for path in self.then.plan.files["file_path"]:
            was, new = before.get(path, BitMap64()), after.get(path, BitMap64())
            if not was.issubset(new):
                return None
            if gone := new - was:
                found[path] = gone
        return found

    def by_equality(self, since: int) -> dict[str, BitMap64] | None:
        """Return what equality deletes deleted by path; None where they are too many to collect.

        Args:
            since: the sequence number of the read: deletes of later ones count.
        """
        plan = self.now.plan
        later = (pl.col("content") != POSITION_DELETES) & (pl.col("sequence_number") > since)
        deletes = plan.deletes.filter(later)
        index = plan.delete_index.for_deletes(deletes["delete"])
        if index.is_empty:
            return {}
        files = plan.restricted_to(index.ordinals())
        by_equality = replace(self.now, plan=replace(files, deletes=deletes, delete_index=index))
        return _deleted_rows(by_equality)


def deleted_positions(target: Target) -> dict[str, BitMap64]:
    """Return what position deletes and vectors delete of files, by path."""
    plan = target.plan
    deletes = plan.deletes.filter(pl.col("content") == POSITION_DELETES)["delete"]
    touched = plan.delete_index.for_deletes(deletes).for_files(plan.files["ordinal"]).ordinals()
    if touched.is_empty():
        return {}
    context = ScanContext(
        spark=target.spark,
        metadata=target.metadata,
        io=target.io,
        support=type_support(target.spark),
    )
    return _by_path(plan, PositionDeletes.of(context, plan, touched).words())


def words_of_bitmap(bitmap: BitMap64) -> Words:
    """Return a bitmap's values as words."""
    return Words.of_values(np.asarray(bitmap.to_array(), dtype=np.int64))


def _deleted_rows(target: Target) -> dict[str, BitMap64] | None:
    """The rows that a plan's deletes delete, by path."""
    reader = TableReader(target.spark, target.metadata, target.io)
    rows = reader.rows(target.plan, Projection(PLACES)).where(F.col(DELETED))
    files = target.plan.files
    room, last = most_words(files["record_count"]), max(files["ordinal"], default=0)
    places = rows.select(FILE_ORDINAL_FIELD.name, POS)
    with collect_places(places, most_words=room, most_ordinal=last) as found:
        if found.words is None:
            return None
        return _by_path(target.plan, by_file(found.words, list(found.counts["ordinal"])))


def _by_path(plan: ScanPlan, words: Mapping[int, Words]) -> dict[str, BitMap64]:
    # The table may have a file twice.
    return union_by_path(
        (path, words[ordinal].bitmap())
        for ordinal, path in plan.files.select("ordinal", "file_path").iter_rows()
        if ordinal in words
    )


def union_by_path(found: Iterable[tuple[str, BitMap64]]) -> dict[str, BitMap64]:
    """Return the positions of each path, of all its parts together."""
    together: dict[str, BitMap64] = {}
    for path, positions in found:
        together[path] = together.get(path, BitMap64()) | positions
    return together
