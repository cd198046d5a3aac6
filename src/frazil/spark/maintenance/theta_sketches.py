"""Theta sketches of columns by Frazil's own functions, for a Spark that makes none.

Each task keeps the smallest hashes of its rows; the driver makes one sketch of those of all tasks.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import mmh3
import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame

from frazil.format.puffin.theta_sketches import ThetaSketch
from frazil.spark.session.tasks import map_batches

_SIZE: Final = 4_096
"""So many hashes are kept, as by Spark's own function."""
_SEED: Final = 9_001
_MAX_THETA: Final = 2**63 - 1
_KEPT: Final = pa.schema([("place", pa.int32()), ("theta", pa.int64()), ("hashes", pa.binary())])


def sketches_of(rows: DataFrame, columns: Sequence[Column]) -> list[ThetaSketch]:
    """Return a sketch of each column, of bigints, doubles, strings or binary values."""
    named = rows.select(*(each.alias(f"c{place}") for place, each in enumerate(columns)))
    found = map_batches(named, _sketch, _KEPT).toArrow().to_pylist()
    kept = [_Kept() for _ in columns]
    for each in found:
        hashes = np.frombuffer(each["hashes"], np.int64)
        kept[each["place"]].add(hashes, theta=each["theta"])
    return [each.sketch() for each in kept]


class _Kept:
    """The smallest of the hashes seen so far, and the limit that they lie below."""

    def __init__(self) -> None:
        self.hashes: Any = np.empty(0, np.int64)
        self.theta = _MAX_THETA
        self.is_empty = True

    def add(self, hashes: Any, *, theta: int = _MAX_THETA) -> None:
        """Take in hashes of values, those of another part below its limit."""
        self.is_empty = self.is_empty and not len(hashes)
        self.theta = min(self.theta, theta)
        found = np.union1d(self.hashes, hashes)
        found = found[found < self.theta]
        if len(found) > _SIZE:
            self.theta = int(found[_SIZE])
            found = found[:_SIZE]
        self.hashes = found

    def sketch(self) -> ThetaSketch:
        """Return the sketch of what was taken in."""
        if self.is_empty:
            return ThetaSketch((), is_empty=True)
        return ThetaSketch(tuple(self.hashes.tolist()), self.theta)


def _sketch(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What an executor keeps of the rows of one partition."""
    kept: list[_Kept] = []
    for batch in batches:
        kept = kept or [_Kept() for _ in batch.columns]
        for each, column in zip(kept, batch.columns, strict=True):
            each.add(_hashes(column))
    rows = [
        {"place": place, "theta": each.theta, "hashes": each.hashes.tobytes()}
        for place, each in enumerate(kept)
        if not each.is_empty
    ]
    yield pa.RecordBatch.from_pylist(rows, _KEPT)


def _hashes(column: pa.Array) -> Any:
    """The hashes of the distinct values; NULL and what has no byte are no values."""
    encode = _encoder(column.type)
    values: Any = column.dictionary_encode()
    encoded = {encode(value) for value in values.dictionary.to_pylist() if value is not None}
    found = [mmh3.hash64(data, _SEED, signed=False)[0] >> 1 for data in encoded if data]
    return np.array(found, np.int64)


def _encoder(kind: pa.DataType) -> Callable[[Any], bytes]:
    if pa.types.is_integer(kind):
        return struct.Struct("<q").pack
    if pa.types.is_floating(kind):
        return _of_double
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return str.encode
    return bytes


def _of_double(value: float) -> bytes:
    # One zero, and one of the values that are no number.
    return struct.pack("<d", float("nan") if value != value else value + 0.0)
