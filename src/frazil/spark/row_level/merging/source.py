"""The rows that a merge takes from, evaluated once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.errors import ValidationError
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.row_level.merging.keys.collected import CollectedKeys
from frazil.spark.row_level.merging.keys.equal_columns import INTEGERS, EqualColumns, plain_value
from frazil.spark.row_level.merging.keys.named_keys import StoredKeys
from frazil.spark.session.free_names import free_names
from frazil.spark.session.row_bytes import RowBytes, bytes_beyond

_UNKNOWN: Final = 1 << 40
_ALL: Final = "all"
_MATCHED: Final = "matched"


@dataclass(frozen=True, slots=True)
class Source:
    """The rows that a merge takes from, evaluated once.

    Attributes:
        rows: the columns as given, and `number`.
        names: the columns as given.
        number: the name of the column that tells rows apart; no other column is called so.
        keys: the columns that equal one of the table in every match.
        count: the rows.
        collected: the keys of every row, where the driver has room for them.
        ranges: the lowest and the highest value of each key.
        size: of the rows, measured.
        matched_size: of those of their columns by which matches are found.
    """

    rows: DataFrame
    names: tuple[str, ...]
    number: str
    keys: tuple[EqualColumns, ...]
    count: int
    collected: CollectedKeys | None
    ranges: Sequence[tuple[Any, Any]]
    size: RowBytes
    matched_size: RowBytes

    @classmethod
    def of(
        cls,
        df: DataFrame,
        beside: Iterable[str],
        keys: tuple[EqualColumns, ...] = (),
        compared: Sequence[str] = (),
        matched: Collection[str] | None = None,
    ) -> Source:
        """Evaluate a DataFrame.

        Args:
            beside: names of columns that the rows will stand beside.
            keys: the columns that equal one of the table in every match.
            compared: others that are compared with the table's, where they are whole numbers.
            matched: all columns by which matches are found; every one unless given.

        Raises:
            ValidationError: it is a stream, or two of its columns have one name.
        """
        if df.isStreaming:
            raise ValidationError(
                "the source is a stream: merge its batches one by one, as in "
                "df.writeStream.foreachBatch(…)"
            )
        names = tuple(df.columns)
        lowered = [name.lower() for name in names]
        twice = sorted({n for n in names if lowered.count(n.lower()) > 1 and n in names})
        if twice and len(set(lowered)) != len(lowered) and len(set(names)) != len(names):
            raise ValidationError(f"the source has more than one column {twice[0]!r}")
        (number,) = free_names(["_frazil_source_row"], [*names, *beside])
        kept = df.withColumn(number, F.monotonically_increasing_id()).localCheckpoint(eager=False)
        # The first look at the rows is the job that evaluates them.
        whole = [f.name for f in df.schema.fields if isinstance(f.dataType, INTEGERS)]
        parts = {_ALL: names, _MATCHED: names if matched is None else tuple(matched)}
        beyond = {part: _bytes_beyond(df, columns) for part, columns in parts.items()}
        sizes = {part: size for part, size in beyond.items() if size is not None}
        beside_keys = [c for c in compared if c in whole]
        collected = CollectedKeys.of(kept, number, keys, beside_keys, sizes)
        if collected is not None:
            count, ranges = len(collected.numbers), collected.ranges
            told = {
                part: (int(each.sum()), int(each.max(initial=0)))
                for part, each in collected.sizes.items()
            }
        else:
            values = [value for _, value in _key_columns(kept, keys)]
            ends = [end(value) for value in values for end in (F.min, F.max)]
            measured = [of(size) for size in sizes.values() for of in (F.sum, F.max)]
            count, *found = kept.agg(F.count("*"), *measured, *ends).collect()[0]
            numbers, found = found[: len(measured)], found[len(measured) :]
            ranges = list(zip(found[::2], found[1::2], strict=True))
            pairs = zip(numbers[::2], numbers[1::2], strict=True)
            told = {part: (a or 0, b or 0) for part, (a, b) in zip(sizes, pairs, strict=True)}
        size, matched_size = (
            RowBytes.of(count, len(columns) + 1, *told.get(part, (0, 0)))
            for part, columns in parts.items()
        )
        return cls(kept, names, number, keys, count, collected, ranges, size, matched_size)

    def key_values(self, *, all_of_them: bool) -> Sequence[Sequence[Any]]:
        """Return the values of each key, as `plain_value` has them.

        Args:
            all_of_them: each value once, else the lowest and the highest.
        """
        if not all_of_them:
            return self.ranges
        if self.collected is not None:
            found = self.collected.values
        else:
            named = [value.alias(f"v{n}") for n, value in _key_columns(self.rows, self.keys)]
            found = tuple(self.rows.select(*named).toArrow().columns)
        return [values.unique().to_pylist() for values in found]

    def check_keys(self, stored: StoredKeys) -> None:
        """Check that no two rows have the same keys.

        Raises:
            ValidationError: two have.
        """
        if self.collected is not None and self.collected.are_distinct:
            return
        columns = [F.col(quote_name_always(column)) for column in stored.columns.values()]
        known = self.rows
        if not stored.keys.nulls_are_equal:
            known = known.where(reduce(and_, (column.isNotNull() for column in columns)))
        grouped = known.groupBy(*(c.alias(f"k{n}") for n, c in enumerate(columns)))
        counted = grouped.agg(F.count("*").alias("rows"))
        twice = counted.where("rows > 1").limit(1).collect()
        if twice:
            shown = ", ".join(
                f"{'.'.join(key)}={twice[0][n]!r}" for n, key in enumerate(stored.columns)
            )
            raise ValidationError(
                f"{twice[0]['rows']} rows have the keys {shown}; nothing was changed. Leave one "
                "row for each key, as with dropDuplicates"
            )


def _bytes_beyond(df: DataFrame, columns: Collection[str]) -> Column | None:
    lowered = [name.lower() for name in df.columns]
    if len(set(lowered)) < len(lowered):
        # To Spark a name may mean two columns: nothing is measured, and nothing sent.
        return F.lit(_UNKNOWN)
    return bytes_beyond(
        [
            (F.col(quote_name_always([field.name])), field.dataType)
            for field in df.schema.fields
            if field.name in columns
        ]
    )


def _key_columns(rows: DataFrame, keys: Sequence[EqualColumns]) -> list[tuple[int, Column]]:
    """Each key's place and value, as `plain_value` has it."""
    types = {field.name: field.dataType for field in rows.schema.fields}
    named = enumerate(key.source for key in keys)
    return [(n, plain_value(F.col(quote_name_always([name])), types[name])) for n, name in named]
