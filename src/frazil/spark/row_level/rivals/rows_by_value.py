"""Rows found by their values: equal rows stand for each other where rows have no ids.

It serves versions 1 and 2, where a commit that only moves rows leaves as many equal rows as there
were. Which of them a delete is about cannot be told from the table, before or after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.comparable import comparable
from frazil.spark.deletes.bitmap import Longs, Words, words_by_file
from frazil.spark.row_level.target import Target, file_of, position_of
from frazil.spark.session import costs

_FILE: Final = "file"
_POSITION: Final = "position"
_VALUES: Final = "values"
_COUNT: Final = "count"
_NUMBER: Final = "number"


@dataclass(frozen=True, slots=True, eq=False)
class EqualRows:
    """Rows that were found; the arrays are as long as each other.

    Attributes:
        files: the ordinal or the number of the file of each.
        positions: the position of each in it.
    """

    files: Longs
    positions: Longs

    def words(self, count: int) -> list[Words]:
        """Return the positions of each of so many files, by their ordinals."""
        found = words_by_file(self.files, self.positions)
        return [found.get(n, Words.empty()) for n in range(count)]


def equal_rows(then: Target, places: Mapping[int, Words], now: Target) -> EqualRows | None:
    """Find as many rows as are at some places, each equal to one of them.

    Args:
        then: files as they were read, in a table whose rows have no ids.
        places: positions in them by the files' ordinals; those of live rows count.
        now: the files that the rows are in by now.

    Returns:
        the rows that were found, each once; None where one has no equal, where a column came or
        went meanwhile, or of too many rows.
    """
    if then.keeps_lineage or then.metadata.schema != now.metadata.schema:
        return None
    if not places:
        return EqualRows(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    if not now.plan.file_count or sum(w.cardinality for w in places.values()) > costs.SOUGHT_ROWS:
        return None
    deleted, live = then.rows_at(places), now.rows()
    wanted = deleted.select(_values(then, deleted))
    count = wanted.count()
    counted = wanted.groupBy(_VALUES).agg(F.count("*").alias(_COUNT))
    packed = F.col(quote_name_always([now.place]))
    pairs = live.select(
        _values(now, live), file_of(packed).alias(_FILE), position_of(packed).alias(_POSITION)
    ).join(counted, _VALUES)
    nth = F.row_number().over(Window.partitionBy(_VALUES).orderBy(_FILE, _POSITION))
    chosen = pairs.withColumn(_NUMBER, nth).where(F.col(_NUMBER) <= F.col(_COUNT))
    found = chosen.select(_FILE, _POSITION).toArrow()
    if len(found) != count:
        return None
    return EqualRows(found.column(_FILE).to_numpy(), found.column(_POSITION).to_numpy())


def _values(target: Target, rows: DataFrame) -> Column:
    """The values of each row as one column that can be compared."""
    types = {field.name: field.dataType for field in rows.schema.fields}
    forms = [
        comparable(F.col(quote_name_always([field.name])), types[field.name]).alias(f"c{n}")
        for n, field in enumerate(target.schema.fields)
    ]
    return F.struct(*forms).alias(_VALUES)
