"""Places of rows as bits of words, so that rows are told by their places without a join.

A join of wide rows by their place would move all of them, where few are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.spark.deletes.bitmap import Words, by_file
from frazil.spark.deletes.collect import collected, most_words
from frazil.spark.row_level.target import Target, file_of, position_of


def words_of_places(
    target: Target, places: DataFrame, *, most_rows: int | None = None
) -> Mapping[int, Words] | None:
    """Collect the places of rows of a target's files; None where they are too many for it.

    Args:
        places: with the column of places, each as often as it comes; computed once.
        most_rows: how many there are at most; None where that is not known.

    Returns:
        the positions by the ordinal of those files of the target that have some.
    """
    files = target.plan.files
    room, last = most_words(files["record_count"]), max(files["ordinal"], default=0)
    rows = as_file_and_position(places, F.col(target.place))
    with collected(rows, most_words=room, most_rows=most_rows, most_ordinal=last) as found:
        if found.words is None:
            return None
        known = set(files["ordinal"])
        held = [ordinal for ordinal in found.counts["ordinal"] if ordinal in known]
        return by_file(found.words, held)


def as_file_and_position(rows: DataFrame, place: Column) -> DataFrame:
    """Return the ordinal of the file and the position of each place, as two columns."""
    return rows.select(file_of(place).alias("file"), position_of(place).alias("position"))
