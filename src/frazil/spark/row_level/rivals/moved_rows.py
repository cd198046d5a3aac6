"""Rows of files that are gone, where others have written them: by id, by order, or by value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from pyroaring import BitMap64
from pyspark.sql import functions as F

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.deletes.bitmap import Longs, Words
from frazil.spark.row_level.rivals.deleted_since import words_of_bitmap
from frazil.spark.row_level.rivals.rows_by_id import RowIds, live_rows
from frazil.spark.row_level.rivals.rows_by_order import copied_places
from frazil.spark.row_level.rivals.rows_by_value import equal_rows
from frazil.spark.row_level.target import POSITION_BITS, Target


@dataclass(frozen=True, slots=True, eq=False)
class MovedRows:
    """Live rows that are as they were; the arrays are as long as each other.

    Attributes:
        files: the ordinal of the file of each.
        positions: the position of each in it.
        missing: the others, which were deleted or changed: how many by the file they were in.
    """

    files: Longs
    positions: Longs
    missing: Mapping[str, int]


def moved_by_id(
    then: Target, now: Target, rows: Mapping[str, BitMap64], since: int
) -> MovedRows | None:
    """Find rows by their ids; None where rows have none, or are too many.

    Args:
        then: the files as they were read.
        now: the files that others wrote, as they are.
        rows: positions by the files that are gone.
        since: the sequence number of the read.
    """
    ids = RowIds.at_places(then, places_of(then, rows))
    if ids is None:
        return None
    found = live_rows(now, ids, since)
    if not found.are_unique:
        return None
    same = found.only_those_that_stay()
    gone = ids.files[~np.isin(ids.ids, same.ids)]
    return MovedRows(same.files, same.positions, counts_by_path(then, gone))


def moved_by_order(
    now: Target, rows: Mapping[str, BitMap64], copies: Collection[str]
) -> MovedRows | None:
    """Find rows by what footers say of their order; None where they do not say it.

    Args:
        now: the files that others wrote, as they are.
        rows: positions by the files that are gone.
        copies: those that have the same rows as others that they replace.
    """
    files = now.with_paths(copies).plan.files
    parquet = files.filter(pl.col("file_format").str.to_lowercase() == "parquet")
    places = copied_places(now.io, rows, list(parquet["file_path"]))
    if places is None:
        return None
    words = {path: words_of_bitmap(positions) for path, positions in places.by_file().items()}
    ordinals = dict(files.select("file_path", "ordinal").iter_rows())
    numbers = np.array([ordinals[path] for path in places.new], dtype=np.int64)
    live = _live_places(now, {ordinals[path]: each for path, each in words.items()})
    is_live = np.isin(numbers << POSITION_BITS | places.positions, live)
    old, counts = np.unique(places.old[~is_live], return_counts=True)
    missing = dict(zip(old.tolist(), counts.tolist(), strict=True))
    return MovedRows(numbers[is_live], places.positions[is_live], missing)


def moved_by_value(
    then: Target, now: Target, rows: Mapping[str, BitMap64], same: Collection[str]
) -> MovedRows | None:
    """Find rows that equal them in files of the same rows; None where one has no equal.

    Args:
        then: the files as they were read.
        now: the files that others wrote, as they are.
        rows: positions by the files that are gone.
        same: those that hold no rows but such as were there when the files were read.
    """
    found = equal_rows(then, places_of(then, rows), now.with_paths(same)) if same else None
    return None if found is None else MovedRows(found.files, found.positions, {})


def places_of(target: Target, rows: Mapping[str, BitMap64]) -> dict[int, Words]:
    """Return positions by the ordinals of files, without files that have none."""
    return {
        ordinal: words_of_bitmap(positions)
        for ordinal, path in target.plan.files.select("ordinal", "file_path").iter_rows()
        if (positions := rows.get(path))
    }


def counts_by_path(target: Target, ordinals: Longs) -> dict[str, int]:
    """Return how many rows lie in which file, from the ordinal of each row's file."""
    numbers, counts = np.unique(ordinals, return_counts=True)
    paths = dict(target.plan.files.select("ordinal", "file_path").iter_rows())
    return {
        paths[number]: count
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
    }


def _live_places(target: Target, places: Mapping[int, Words]) -> Longs:
    """Those of some places, packed, at which there is a live row."""
    if not places:
        return np.empty(0, dtype=np.int64)
    rows = target.rows_at(places).select(F.col(quote_name_always([target.place])).alias("place"))
    live: Longs = rows.toArrow().column("place").to_numpy()
    return live
