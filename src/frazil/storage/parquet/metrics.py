"""A Parquet footer as a manifest's metrics: counts, sizes, bounds, split offsets (rules 101-127).

Columns are found by their path of names, so the file must have been written with the schema that
the reader is made for. Values are taken in their physical form: nothing passes through datetime.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import pyarrow.parquet as pq

from frazil.errors import InvalidDataFileError
from frazil.format import types as I
from frazil.format.properties.column_metrics import (
    truncate_bytes_up,
    truncate_string_down,
    truncate_string_up,
)
from frazil.format.properties.metrics_mode import NONE, MetricsMode
from frazil.format.schema import Schema
from frazil.format.types.forms import form_of
from frazil.format.values import to_bytes
from frazil.format.values.decimals import decimal_from_unscaled

# These writers take NaN for the greatest value, others leave it out of a column's range.
_NAN_IN_RANGES: Final = re.compile(r"parquet-mr version 1\.1[0-7]\.\d+ ", re.ASCII)


@dataclass(frozen=True, slots=True)
class FileMetrics:
    """What a manifest entry says of a file's rows; maps are keyed by field id (rules 114-122).

    Attributes:
        nan_value_counts: 0 of the columns whose range shows that no value is NaN; of others
            nothing is known.
        bounds: single-value bytes, lower ≤ every value ≤ upper; NaN is never one.
        split_offsets: where the row groups start, ascending.
    """

    record_count: int
    column_sizes: Mapping[int, int]
    value_counts: Mapping[int, int]
    null_value_counts: Mapping[int, int]
    nan_value_counts: Mapping[int, int]
    lower_bounds: Mapping[int, bytes]
    upper_bounds: Mapping[int, bytes]
    split_offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FooterRange:
    """The exact smallest and largest value of one column of a file, as internal values.

    Both are None where the column holds nulls only.
    """

    null_count: int
    value_count: int
    lower: Any
    upper: Any


@dataclass(frozen=True, slots=True)
class _Leaf:
    field_id: int
    field_type: I.IcebergType
    mode: MetricsMode
    in_collection: bool


@dataclass(slots=True)
class _Total:
    """What the row groups say of one column together."""

    size: int = 0
    values: int = 0
    nulls: int | None = 0
    lower: Any = None
    upper: Any = None
    has_range: bool = True


@dataclass(frozen=True)
class MetricsReader:
    """Reads the footers of files that were written with one schema.

    Args:
        schema: of the files; unknown columns are in none of them.
        modes: by field id, from `metrics_modes`.
    """

    schema: Schema
    modes: Mapping[int, MetricsMode]
    _leaves: dict[str, _Leaf | None] = field(init=False, repr=False, compare=False)
    _paths: dict[int, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        leaves: dict[str, _Leaf | None] = {}
        for path, child, in_collection in parquet_columns(self.schema.as_struct()):
            if isinstance(child.field_type, I.VariantType):
                # Of its columns this one is there in every value, and null only with it.
                path = f"{path}.metadata"
            mode = self.modes.get(child.field_id, NONE)
            leaf = _Leaf(child.field_id, child.field_type, mode, in_collection)
            # Names may hold dots; of two columns with one path neither can be told from the other.
            leaves[path] = None if path in leaves else leaf
        object.__setattr__(self, "_leaves", leaves)
        paths = {leaf.field_id: path for path, leaf in leaves.items() if leaf is not None}
        object.__setattr__(self, "_paths", paths)

    def with_paths(self, ids: Mapping[str, int]) -> MetricsReader:
        """The reader of a file that has other paths of columns."""
        known = {leaf.field_id: leaf for leaf in self._leaves.values() if leaf is not None}
        reader = copy(self)
        leaves = {path: known[number] for path, number in ids.items() if number in known}
        object.__setattr__(reader, "_leaves", leaves)
        object.__setattr__(reader, "_paths", {leaf.field_id: path for path, leaf in leaves.items()})
        return reader

    def metrics(self, footer: pq.FileMetaData) -> FileMetrics:
        """The metrics of one file."""
        sizes: dict[int, int] = {}
        counts: dict[int, int] = {}
        nulls: dict[int, int] = {}
        nans: dict[int, int] = {}
        tells_nan = _NAN_IN_RANGES.match(footer.created_by or "") is not None
        lower: dict[int, bytes] = {}
        upper: dict[int, bytes] = {}
        for index in range(footer.num_columns):
            leaf = self._leaf(footer, index)
            if leaf is None or leaf.mode.kind == "none":
                continue
            total = _total(footer, index, leaf)
            if not isinstance(leaf.field_type, I.VariantType):
                sizes[leaf.field_id] = total.size
            if leaf.in_collection:
                continue
            counts[leaf.field_id] = total.values
            if total.nulls is not None:
                nulls[leaf.field_id] = total.nulls
            if tells_nan and total.has_range and form_of(leaf.field_type).meaning == "floating":
                nans[leaf.field_id] = 0
            if leaf.mode.has_bounds and total.has_range and total.lower is not None:
                low, high = _bounds(leaf, total.lower, total.upper)
                if low is not None:
                    lower[leaf.field_id] = low
                if high is not None:
                    upper[leaf.field_id] = high
        return FileMetrics(
            footer.num_rows, sizes, counts, nulls, nans, lower, upper, _split_offsets(footer)
        )

    def column_range(self, footer: pq.FileMetaData, field_id: int) -> FooterRange | None:
        """The exact range of one column, or None where the footer does not tell it.

        A footer tells no range where NaN or values of many bytes are among the rows.
        """
        index = self._index(footer, field_id)
        leaf = self._leaf(footer, index)
        if leaf is None or leaf.in_collection:
            return None
        total = _total(footer, index, leaf)
        if not total.has_range or total.nulls is None:
            return None
        if total.lower is None:
            return FooterRange(total.nulls, total.values, None, None)
        low = _internal(leaf.field_type, total.lower)
        high = _internal(leaf.field_type, total.upper)
        return FooterRange(total.nulls, total.values, low, high)

    def _index(self, footer: pq.FileMetaData, field_id: int) -> int:
        path = self._paths.get(field_id)
        for index in range(footer.num_columns):
            if path is not None and footer.schema.column(index).path == path:
                return index
        name = self.schema.find_column_name(field_id)
        raise InvalidDataFileError(f"the file has no column {name!r} (id {field_id})")

    def _leaf(self, footer: pq.FileMetaData, index: int) -> _Leaf | None:
        return self._leaves.get(footer.schema.column(index).path)


def parquet_columns(
    iceberg_type: I.StructType, path: tuple[str, ...] = (), *, in_collection: bool = False
) -> Iterator[tuple[str, I.NestedField, bool]]:
    """Yield a schema's columns of values by their paths in a file.

    With each is whether it lies in a list or a map.
    """
    for child in iceberg_type.fields:
        yield from _columns_of(child, (*path, child.name), in_collection=in_collection)


def _columns_of(
    child: I.NestedField, path: tuple[str, ...], *, in_collection: bool
) -> Iterator[tuple[str, I.NestedField, bool]]:
    match child.field_type:
        case I.StructType():
            yield from parquet_columns(child.field_type, path, in_collection=in_collection)
        case I.ListType(element_field=element):
            yield from _columns_of(element, (*path, "list", "element"), in_collection=True)
        case I.MapType(fields=parts):
            for part in parts:
                yield from _columns_of(part, (*path, "key_value", part.name), in_collection=True)
        case _:
            yield ".".join(path), child, in_collection


def _total(footer: pq.FileMetaData, index: int, leaf: _Leaf) -> _Total:
    total = _Total()
    for number in range(footer.num_row_groups):
        column = footer.row_group(number).column(index)
        total.size += column.total_compressed_size
        total.values += column.num_values
        statistics = column.statistics
        nulls = (
            statistics.null_count if statistics is not None and statistics.has_null_count else None
        )
        total.nulls = None if nulls is None or total.nulls is None else total.nulls + nulls
        if nulls is not None and nulls == column.num_values:
            continue
        if statistics is None or not statistics.has_min_max:
            total.has_range = False
            continue
        low = _comparable(leaf.field_type, statistics.min_raw)
        high = _comparable(leaf.field_type, statistics.max_raw)
        if low is None or high is None:
            total.has_range = False
            continue
        total.lower = low if total.lower is None else min(total.lower, low)
        total.upper = high if total.upper is None else max(total.upper, high)
    return total


def _comparable(iceberg_type: I.IcebergType, raw: Any) -> Any:
    """A physical value in a form that sorts as the column does; None where there is none."""
    match iceberg_type:
        case I.FloatType() | I.DoubleType():
            return None if math.isnan(raw) else float(raw)
        case I.DecimalType():
            return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
        case I.StringType():
            return raw.encode() if isinstance(raw, str) else raw
        case _:
            return raw if form_of(iceberg_type).is_ordered else None


def _internal(iceberg_type: I.IcebergType, value: Any) -> Any:
    match iceberg_type:
        case I.DecimalType():
            return decimal_from_unscaled(value, iceberg_type.scale)
        case I.StringType():
            return value.decode("utf-8")
        case I.UUIDType():
            return UUID(bytes=value)
        case _:
            return value


def _bounds(leaf: _Leaf, low: Any, high: Any) -> tuple[bytes | None, bytes | None]:
    kind = leaf.field_type
    match form_of(kind).carrier:
        case "float" | "double":
            # A zero in a footer stands for either sign; -0.0 sorts before 0.0 (rule 120).
            return to_bytes(kind, low or -0.0), to_bytes(kind, high or 0.0)
        case "uuid":
            low, high = bytes(low), bytes(high)
            # Readers that take both halves for signed numbers would find the file empty.
            return (low, high) if _signed_halves(low) <= _signed_halves(high) else (None, None)
        case "string" | "binary" | "fixed":
            return _truncate_bounds(leaf, bytes(low), bytes(high))
        case "boolean" | "int" | "long" | "decimal":
            return to_bytes(kind, _internal(kind, low)), to_bytes(kind, _internal(kind, high))
        case _:
            return None, None


def _signed_halves(value: bytes) -> tuple[int, int]:
    """A UUID in the order of Java's class, which apache/iceberg issue 14216 is about."""
    high, low = struct.unpack(">qq", value)
    return high, low


def _truncate_bounds(leaf: _Leaf, low: bytes, high: bytes) -> tuple[bytes | None, bytes | None]:
    if leaf.mode.kind == "full":
        return low, high
    length = leaf.mode.length
    if not isinstance(leaf.field_type, I.StringType):
        return low[:length], truncate_bytes_up(high, length)
    try:
        lower, upper = low.decode("utf-8"), high.decode("utf-8")
    except UnicodeDecodeError:
        return None, None
    rounded = truncate_string_up(upper, length)
    return (
        truncate_string_down(lower, length).encode(),
        None if rounded is None else rounded.encode(),
    )


def _split_offsets(footer: pq.FileMetaData) -> tuple[int, ...]:
    columns = (footer.row_group(number).column(0) for number in range(footer.num_row_groups))
    starts = ((each.dictionary_page_offset, each.data_page_offset) for each in columns)
    return tuple(sorted(min(dictionary or data, data) for dictionary, data in starts))
