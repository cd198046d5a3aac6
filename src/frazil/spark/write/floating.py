"""Columns of floating-point numbers in files by Arrow: what entries say of them.

Arrow's statistics leave NaN out. Spark, for which NaN is the largest value, would pass over its
rows under a filter that it pushes down. So files have no statistics of these columns, and entries
get counts and bounds from the values as they are written.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from frazil.format import types as I
from frazil.format.manifests import DataFile
from frazil.format.properties.metrics_mode import NONE, MetricsMode

_LAYOUTS: Final[Mapping[type[I.IcebergType], str]] = {I.FloatType: "<f", I.DoubleType: "<d"}
_PHYSICAL: Final = ("FLOAT", "DOUBLE")


def with_statistics(schema: pa.Schema) -> bool | list[str]:
    """Return of which columns a Parquet file has statistics, by their paths; True for all."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema, store_schema=False).close()
    columns = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    floating: set[str] = set()
    others: set[str] = set()
    for column in columns:
        (floating if column.physical_type in _PHYSICAL else others).add(column.path)
    return sorted(others - floating) if floating else True


@dataclass(slots=True)
class _Column:
    """One column and what was seen of it."""

    field: I.NestedField
    mode: MetricsMode
    places: tuple[int, ...]
    values: int = 0
    nulls: int = 0
    nans: int = 0
    lower: float = math.inf
    upper: float = -math.inf

    def see(self, columns: Sequence[pa.Array]) -> None:
        array = columns[self.places[0]]
        for place in self.places[1:]:
            # What is in a struct that is NULL is NULL.
            array = pc.struct_field(array, place)
        numbers = array.to_numpy(zero_copy_only=False)
        self.values += len(array)
        self.nulls += array.null_count
        self.nans += int(np.isnan(numbers).sum()) - array.null_count
        self.lower = min(self.lower, float(np.fmin.reduce(numbers, initial=math.inf)))
        self.upper = max(self.upper, float(np.fmax.reduce(numbers, initial=-math.inf)))

    def bounds(self) -> tuple[bytes, bytes] | None:
        """The bounds, where all values lie within them in every engine's order."""
        if not self.mode.has_bounds or self.nans or self.nulls == self.values:
            return None
        layout = _LAYOUTS[type(self.field.field_type)]
        # A zero's sign depends on the order of the values; -0.0 sorts before 0.0 (rule 120).
        return struct.pack(layout, self.lower or -0.0), struct.pack(layout, self.upper or 0.0)


class FloatMetrics:
    """Counts and bounds of a file's columns of floating-point numbers.

    Bounds are left out where NaN is among the values, and the count where all of them are NaN: by
    either Java's runtime passes over files, and Spark asks for NaN by `d > 5` too.
    """

    def __init__(self, fields: Sequence[I.NestedField], modes: Mapping[int, MetricsMode]) -> None:
        """Look for the columns among the stored fields of a file."""
        self._columns = [
            _Column(field, mode, places)
            for field, places in _floating(fields, ())
            if (mode := modes.get(field.field_id, NONE)).kind != "none"
        ]

    def see(self, columns: Sequence[pa.Array]) -> None:
        """Take some rows of the file in."""
        for column in self._columns:
            column.see(columns)

    def completed(self, entry: DataFile) -> DataFile:
        """Return the file's entry with what was seen."""
        nulls, nans = dict(entry.null_value_counts or {}), dict(entry.nan_value_counts or {})
        lower, upper = dict(entry.lower_bounds or {}), dict(entry.upper_bounds or {})
        for column in self._columns:
            field_id = column.field.field_id
            nulls[field_id] = column.nulls
            if not 0 < column.nans == column.values:
                nans[field_id] = column.nans
            bounds = column.bounds()
            if bounds is not None:
                lower[field_id], upper[field_id] = bounds
        return replace(
            entry,
            null_value_counts=nulls,
            nan_value_counts=nans,
            lower_bounds=lower,
            upper_bounds=upper,
        )


def _floating(
    fields: Sequence[I.NestedField], above: tuple[int, ...]
) -> Iterator[tuple[I.NestedField, tuple[int, ...]]]:
    """The columns outside of lists and maps, each with its places from struct to struct."""
    stored = [field for field in fields if not isinstance(field.field_type, I.UnknownType)]
    for place, field in enumerate(stored):
        places = (*above, place)
        match field.field_type:
            case I.FloatType() | I.DoubleType():
                yield field, places
            case I.StructType(fields=parts):
                yield from _floating(parts, places)
            case _:
                pass
