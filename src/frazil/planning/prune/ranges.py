"""What metrics and summaries say of a column: its bounds, and whether it may be NULL or NaN."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Final

import polars as pl

from frazil.format.manifests import FieldSummary
from frazil.format.predicates.expressions import BoundRef
from frazil.format.types import (
    DoubleType,
    FloatType,
    IcebergType,
    PrimitiveType,
    UUIDType,
)
from frazil.storage.avro.binary_values import values_of
from frazil.storage.avro.columns import value_column

VALUE_STATISTICS: Final = (
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)
"""What is known of the values of a column in a file."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """What is known of one column in each of some sets of rows: files, or manifests.

    Attributes:
        lower, upper: bounds of the values that are neither NULL nor NaN, null where not known; None
            where none is known. They need not be values of any row.
        may_be_null, may_be_nan, may_be_value: whether a row may be that; without nulls.
    """

    lower: pl.Series | None
    upper: pl.Series | None
    may_be_null: pl.Series
    may_be_nan: pl.Series
    may_be_value: pl.Series


def ranges_of(ref: BoundRef, entries: pl.DataFrame) -> Ranges:
    """What the metrics say of a column (rules 46, 114, 117, 119, 120)."""
    records = entries["record_count"]
    trusted = records >= 0
    floating = is_floating(ref.type)
    nulls = _counts("null_value_counts", ref, entries)
    nans = _counts("nan_value_counts", ref, entries) if floating else None
    no_nulls = nulls == 0
    if ref.is_nested:
        # Some writers do not count the fields of a struct that is NULL.
        no_nulls &= _counts("value_counts", ref, entries) == records
    all_null = (nulls >= records).fill_null(False)
    known_nans = nans.fill_null(0) if nans is not None else 0
    no_values = (nulls + known_nans >= records).fill_null(False)
    may_be_nan = (
        constant(entries, False) if nans is None else (nans != 0).fill_null(True) & ~all_null
    )
    lower, upper = _bounds(ref, entries)
    known = trusted & pl.Series([isinstance(ref.type, PrimitiveType)])
    return Ranges(
        lower if lower is None else lower.set(~known, None),
        upper if upper is None else upper.set(~known, None),
        may_be_null=~(no_nulls.fill_null(False) & known),
        may_be_nan=may_be_nan | ~known,
        may_be_value=~(no_values & known),
    )


def ranges_in_summaries(kind: IcebergType, summaries: Sequence[FieldSummary | None]) -> Ranges:
    """What manifests say of a partition field (rule 163); None is a manifest that says nothing.

    Both bounds are absent where every value is NULL or NaN.
    """
    floating = is_floating(kind)
    bounds = [(None, None) if s is None else (s.lower_bound, s.upper_bound) for s in summaries]
    lower, upper = _sure_bounds(
        kind, *(pl.Series([each[side] for each in bounds], dtype=pl.Binary) for side in (0, 1))
    )
    explained = [
        s is not None and (s.contains_null or (floating and s.contains_nan is True))
        for s in summaries
    ]
    return Ranges(
        lower,
        upper,
        may_be_null=pl.Series([s is None or s.contains_null for s in summaries]),
        may_be_nan=pl.Series(
            [s is None or (floating and s.contains_nan is not False) for s in summaries]
        ),
        may_be_value=pl.Series(
            [
                not known or each != (None, None)
                for known, each in zip(explained, bounds, strict=True)
            ]
        ),
    )


def _counts(statistic: str, ref: BoundRef, entries: pl.DataFrame) -> pl.Series:
    counts = column_or_nulls(entries, value_column(statistic, ref.field_id), pl.Int64())
    return counts.set((counts < 0).fill_null(False), None)


def _bounds(ref: BoundRef, entries: pl.DataFrame) -> tuple[pl.Series | None, pl.Series | None]:
    """Bounds as values; null where they are absent or cannot be trusted."""
    names = [value_column(s, ref.field_id) for s in ("lower_bounds", "upper_bounds")]
    if any(name not in entries.columns for name in names):
        return None, None
    return _sure_bounds(ref.type, entries[names[0]], entries[names[1]])


def _sure_bounds(
    kind: IcebergType, lowest: pl.Series, highest: pl.Series
) -> tuple[pl.Series | None, pl.Series | None]:
    lower, upper = values_of(kind, lowest), values_of(kind, highest)
    if lower is None or upper is None:
        return None, None
    wrong = constant(lower, False)
    if is_floating(kind):
        # A NaN bound comes from writers that compared NaN as a number: neither bound holds.
        wrong = lower.is_nan().fill_null(False) | upper.is_nan().fill_null(False)
    if not isinstance(kind, UUIDType):
        wrong |= (lower > upper).fill_null(False)
    if wrong.any():
        return lower.set(wrong, None), upper.set(wrong, None)
    return lower, upper


def column_or_nulls(frame: pl.DataFrame, name: str, dtype: pl.DataType) -> pl.Series:
    """A column of a frame; nulls where the frame does not have it."""
    return frame[name] if name in frame.columns else pl.Series([None] * len(frame), dtype=dtype)


def constant(entries: Sized, value: bool) -> pl.Series:
    """Return one truth value for every entry."""
    return pl.Series([value], dtype=pl.Boolean).new_from_index(0, len(entries))


def is_floating(kind: IcebergType) -> bool:
    """Return whether values of the type may be NaN."""
    return isinstance(kind, FloatType | DoubleType)
