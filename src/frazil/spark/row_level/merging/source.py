"""The rows that a merge takes from, evaluated once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.errors import ValidationError
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.free_names import free_names


@dataclass(frozen=True, slots=True)
class Source:
    """The rows that a merge takes from, evaluated once.

    Attributes:
        rows: the columns as given, and `number`.
        names: the columns as given.
        number: the name of the column that tells rows apart; no other column is called so.
        count: the rows.
        ranges: the lowest and the highest value of columns that were asked for, by the texts of
            what was asked.
    """

    rows: DataFrame
    names: tuple[str, ...]
    number: str
    count: int
    ranges: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, df: DataFrame, beside: Iterable[str], measured: Mapping[str, Column] | None = None
    ) -> Source:
        """Evaluate a DataFrame.

        Args:
            beside: names of columns that the rows will stand beside.
            measured: values of its columns whose ranges are wanted, by name.

        Raises:
            ValidationError: it is a stream, or two of its columns have one name.
        """
        if df.isStreaming:
            raise ValidationError(
                "the source is a stream: merge its batches one by one, as in "
                "df.writeStream.foreachBatch(…)"
            )
        names = tuple(df.columns)
        keys = [name.lower() for name in names]
        twice = sorted({name for name in names if keys.count(name.lower()) > 1 and name in names})
        if twice and len(set(keys)) != len(keys) and len(set(names)) != len(names):
            raise ValidationError(f"the source has more than one column {twice[0]!r}")
        (number,) = free_names(["_frazil_source_row"], [*names, *beside])
        kept = df.withColumn(number, F.monotonically_increasing_id()).localCheckpoint(eager=False)
        wanted = {} if measured is None else measured
        ends = [end(value) for value in wanted.values() for end in (F.min, F.max)]
        # The count is the job that evaluates the rows.
        count, *found = kept.agg(F.count("*"), *ends).collect()[0]
        pairs = zip(found[::2], found[1::2], strict=True)
        return cls(kept, names, number, count, dict(zip(wanted, pairs, strict=True)))

    def check_keys(self, keys: Sequence[tuple[str, ...]]) -> None:
        """Check that no two rows have the same keys.

        Raises:
            ValidationError: two have.
        """
        columns = [F.col(quote_name_always(key)) for key in keys]
        known = self.rows.where(reduce(and_, (column.isNotNull() for column in columns)))
        grouped = known.groupBy(*(c.alias(f"k{n}") for n, c in enumerate(columns)))
        counted = grouped.agg(F.count("*").alias("rows"))
        twice = counted.where("rows > 1").limit(1).collect()
        if twice:
            shown = ", ".join(f"{'.'.join(key)}={twice[0][n]!r}" for n, key in enumerate(keys))
            raise ValidationError(
                f"{twice[0]['rows']} rows have the keys {shown}; nothing was changed. Leave one "
                "row for each key, as with dropDuplicates"
            )
