"""Pruning on columns gives the answers of the scalar reference, file by file."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ci_share import examples
from frazil.format import types as T
from frazil.format.manifests import DataFile, FieldSummary, ManifestFile
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import parse_transform
from frazil.format.predicates import (
    Expression,
    bind,
    col,
)
from frazil.format.predicates.projection.project import inclusive
from frazil.format.schema import Schema
from frazil.format.values import to_bytes
from frazil.planning import prune
from frazil.storage.avro.binary_values import partition_dtype
from pruned_by_columns import frame_of
from scalar_predicates import (
    keeps,
    keeps_partition,
    may_match,
    may_match_manifest,
    must_match,
)

UNPARTITIONED = PartitionSpec(0, ())
_f32 = st.floats(width=32, allow_nan=False)
VALUES: list[tuple[str, T.IcebergType, st.SearchStrategy[Any]]] = [
    ("boolean", T.BooleanType(), st.booleans()),
    ("int", T.IntegerType(), st.integers(-5, 5) | st.integers(-(2**31), 2**31 - 1)),
    ("long", T.LongType(), st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1)),
    ("float", T.FloatType(), st.sampled_from([-0.0, 0.0, 1.5, math.inf]) | _f32),
    ("double", T.DoubleType(), st.sampled_from([-0.0, 0.0, 1.5]) | st.floats(allow_nan=False)),
    ("date", T.DateType(), st.integers(-10, 10)),
    ("timestamp", T.TimestampType(), st.integers(-(10**12), 10**12)),
    (
        "decimal",
        T.DecimalType(20, 2),
        st.integers(-(10**19), 10**19).map(lambda v: Decimal(v).scaleb(-2)),
    ),
    ("string", T.StringType(), st.text("abé€😀", max_size=4)),
    ("uuid", T.UUIDType(), st.integers(0, 2**128 - 1).map(lambda v: uuid.UUID(int=v))),
    ("fixed", T.FixedType(2), st.binary(min_size=2, max_size=2)),
    ("binary", T.BinaryType(), st.binary(max_size=3)),
]
VALUES_BY_NAME = {name: (kind, strategy) for name, kind, strategy in VALUES}


def schema_of(kind: T.IcebergType) -> Schema:
    inner = T.NestedField(3, "inner", kind)
    return Schema((T.NestedField(1, "c", kind), T.NestedField(2, "s", T.StructType((inner,)))))


def as_literal(kind: T.IcebergType, value: Any) -> Any:
    match kind:
        case T.DateType():
            return date(1970, 1, 1) + timedelta(days=value)
        case T.TimestampType():
            return datetime(1970, 1, 1) + timedelta(microseconds=value)
        case _:
            return value


# Strategies are made once: to check a new one takes longer than to draw from it.
@cache
def predicates(
    kind: T.IcebergType, values: st.SearchStrategy[Any]
) -> st.SearchStrategy[Expression]:
    values = values.map(lambda value: as_literal(kind, value))
    column = st.sampled_from([col("c"), col("s.inner")])
    compared = st.tuples(column, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), values).map(
        _comparison
    )
    lists = st.lists(values, min_size=1, max_size=12)
    kinds = [
        compared,
        st.tuples(column, lists).map(lambda p: p[0].is_in(p[1])),
        st.tuples(column, lists).map(lambda p: p[0].not_in(p[1])),
        column.map(lambda c: c.is_null()),
        column.map(lambda c: c.not_null()),
    ]
    if isinstance(kind, T.FloatType | T.DoubleType):
        kinds += [column.map(lambda c: c.is_nan()), column.map(lambda c: c.not_nan())]
    if isinstance(kind, T.StringType):
        kinds += [
            st.tuples(column, values).map(lambda p: p[0].starts_with(p[1])),
            st.tuples(column, values).map(lambda p: p[0].not_starts_with(p[1])),
        ]
    leaf = st.one_of(kinds)
    return st.recursive(
        leaf,
        lambda inner: (
            st.tuples(inner, inner).map(lambda p: p[0] & p[1])
            | st.tuples(inner, inner).map(lambda p: p[0] | p[1])
            | inner.map(lambda p: ~p)
        ),
        max_leaves=4,
    )


def _comparison(parts: tuple[Any, str, Any]) -> Expression:
    column, op, value = parts
    return {
        "=": column == value,
        "!=": column != value,
        "<": column < value,
        "<=": column <= value,
        ">": column > value,
        ">=": column >= value,
    }[op]


Bounds = st.SearchStrategy[bytes]
COUNTS = st.integers(-1, 3)


@cache
def stored_bounds(kind: T.IcebergType, values: st.SearchStrategy[Any]) -> tuple[Bounds, Bounds]:
    """Bounds of the type, and those with others among them that no writer may store."""
    bounds = values.map(lambda value: to_bytes(kind, value))
    if isinstance(kind, T.FloatType | T.DoubleType):
        bounds = bounds | st.just(to_bytes(kind, math.nan))
    odd = st.binary(max_size=20)
    if isinstance(kind, T.TimestampType):
        odd = odd.filter(_is_no_late_date)
    return bounds, bounds | odd


def _is_no_late_date(bound: bytes) -> bool:
    """Whether it is not a date beyond all timestamps, of which columns know nothing."""
    days = int.from_bytes(bound, "little", signed=True)
    return len(bound) != 4 or abs(days) * 86_400_000_000 < 2**63


@st.composite
def _files(draw: st.DrawFn, kind: T.IcebergType, values: st.SearchStrategy[Any]) -> DataFile:
    records = draw(st.integers(0, 3))

    def metric(strategy: st.SearchStrategy[Any]) -> dict[int, Any] | None:
        found = {i: draw(strategy) for i in (1, 3) if draw(st.booleans())}
        return found or draw(st.sampled_from([None, {}]))

    right, odd = stored_bounds(kind, values)
    bounds = odd if draw(st.integers(0, 9)) == 0 else right
    return DataFile(
        file_path="f",
        record_count=records,
        file_size_in_bytes=1,
        value_counts=metric(COUNTS),
        null_value_counts=metric(COUNTS),
        nan_value_counts=metric(COUNTS),
        lower_bounds=metric(bounds),
        upper_bounds=metric(bounds),
    )


@cache
def files(kind: T.IcebergType, values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[DataFile]]:
    """Files with metrics of every kind: right, absent, contradictory."""
    return st.lists(_files(kind, values), min_size=1, max_size=4)


@pytest.mark.parametrize("name", [name for name, _, _ in VALUES])
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_metrics_agree_with_the_scalar_reference(name: str, data: st.DataObject) -> None:
    kind, values = VALUES_BY_NAME[name]
    schema = schema_of(kind)
    bound = bind(data.draw(predicates(kind, values)), schema)
    found = data.draw(files(kind, values))
    entries = frame_of(found, bound)
    may = prune.may_match(bound, UNPARTITIONED, schema, entries).to_list()
    must = prune.must_match(bound, UNPARTITIONED, schema, entries).to_list()
    for file, kept, all_kept in zip(found, may, must, strict=True):
        reference = may_match(bound, file)
        if isinstance(kind, T.StringType):
            # The reference also uses what is whole of a bound that ends within a character.
            assert kept or not reference
            assert all_kept <= must_match(bound, file)
        elif isinstance(kind, T.UUIDType) and "NULL" in repr(bound):
            # Bounds in neither order leave the reference undecided even on IS NULL.
            assert kept <= reference
            assert all_kept >= must_match(bound, file)
        else:
            assert kept == reference, file
            assert all_kept == must_match(bound, file), file


def summaries(bounds: Bounds) -> st.SearchStrategy[FieldSummary]:
    return st.builds(
        FieldSummary,
        contains_null=st.booleans(),
        contains_nan=st.sampled_from([None, False, True]),
        lower_bound=st.none() | bounds,
        upper_bound=st.none() | bounds,
    )


@pytest.mark.parametrize("name", [name for name, _, _ in VALUES])
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_summaries_agree_with_the_scalar_reference(name: str, data: st.DataObject) -> None:
    """Rules 163, 164, 171: of a manifest without one summary a field nothing is known."""
    kind, values = VALUES_BY_NAME[name]
    schema = schema_of(kind)
    spec = PartitionSpec(7, (PartitionField((1,), 1000, parse_transform("identity"), "p"),))
    bound = bind(data.draw(predicates(kind, values)), schema)
    right, odd = stored_bounds(kind, values)
    # The reference reads a part of text that is none, and so sees where both bounds contradict.
    one = st.tuples(summaries(right) | summaries(right if isinstance(kind, T.StringType) else odd))
    found = data.draw(st.lists(st.sampled_from([None, ()]) | one, min_size=1, max_size=4))
    manifests = [
        ManifestFile(manifest_path="m", manifest_length=1, partition_spec_id=7, partitions=each)
        for each in found
    ]
    may = prune.may_match_manifests(bound, manifests, {7: spec}, schema)
    projected = inclusive(bound, spec, schema)
    for manifest, kept in zip(manifests, may, strict=True):
        partition_type = spec.partition_type(schema)
        reference = may_match_manifest(projected, manifest, partition_type=partition_type)
        if isinstance(kind, T.StringType):
            assert kept or not reference
        elif isinstance(kind, T.UUIDType) and "NULL" in repr(bound):
            assert kept <= reference
        else:
            assert kept == reference, manifest


@cache
def some_rows(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | values, min_size=1, max_size=4)


def _inside(tuples: Sequence[tuple[Any]], limit: int) -> bool:
    return all(value is None or -limit <= value < limit for (value,) in tuples)


TRANSFORMS = {
    "boolean": ["identity"],
    "int": ["identity", "bucket[4]", "truncate[10]"],
    "long": ["identity", "bucket[4]", "truncate[10]"],
    "float": ["identity"],
    "double": ["identity"],
    "date": ["identity", "year", "month", "day", "bucket[4]"],
    "timestamp": ["identity", "year", "month", "day", "hour"],
    "decimal": ["identity", "bucket[4]", "truncate[50]"],
    "string": ["identity", "bucket[4]", "truncate[2]"],
    "uuid": ["identity", "bucket[4]"],
    "fixed": ["identity", "bucket[4]"],
    "binary": ["identity", "bucket[4]", "truncate[1]"],
}
CASES = [(name, text) for name, texts in TRANSFORMS.items() for text in [*texts, "void", "zorder"]]


@pytest.mark.parametrize(("name", "text"), CASES)
@settings(max_examples=examples(8), deadline=None)
@given(data=st.data())
def test_partitions_agree_with_the_scalar_reference(
    name: str, text: str, data: st.DataObject
) -> None:
    kind, values = VALUES_BY_NAME[name]
    schema = schema_of(kind)
    transform = parse_transform(text)
    spec = PartitionSpec(0, (PartitionField((1,), 1000, transform, "p"),))
    bound = bind(data.draw(predicates(kind, values)), schema)
    rows = data.draw(some_rows(values))
    known = text != "zorder"
    tuples = [(transform.apply(kind, row) if known else None,) for row in rows]
    projected = inclusive(bound, spec, schema)
    result = transform.result_type(kind) if known else T.IntegerType()
    limit = 2 ** (31 if name == "int" else 63)
    assume("truncate" not in text or name not in ("int", "long") or _inside(tuples, limit))
    raw = [v.bytes if isinstance(v, uuid.UUID) else v for (v,) in tuples]
    entries = pl.DataFrame({"partition.1000": pl.Series(raw, dtype=partition_dtype(result))})
    kept = prune.keeps_partitions(projected, entries).to_list()
    assert kept == [keeps_partition(projected, spec, t) for t in tuples]
    entries = entries.with_columns(pl.lit(1, pl.Int64).alias("record_count"))
    must = prune.must_match(bound, spec, schema, entries).to_list()
    may = prune.may_match(bound, spec, schema, entries).to_list()
    for row, pruned_in, all_kept in zip(rows, may, must, strict=True):
        kept_row = keeps(bound, {1: row, 3: None})
        assert pruned_in or not kept_row
        # The nested column is not known to be NULL, so only predicates on c alone may decide.
        if all_kept:
            assert kept_row or "s.inner" in repr(bound)


@pytest.mark.parametrize("bits", [31, 63])
@pytest.mark.parametrize("more", [0, 3])
@pytest.mark.parametrize("compared", ["=", "!=", "<", "<=", ">", ">=", "in"])
def test_what_the_least_numbers_are_truncated_to_lies_outside_of_their_type(
    compared: str, more: int, bits: int
) -> None:
    """Rule 85: the least of all, truncated to tens, is a lower number than the type has."""
    kind, value = (T.IntegerType() if bits == 31 else T.LongType()), more - (1 << bits)
    predicate = (
        col("c").is_in([value, 20])
        if compared == "in"
        else _comparison((col("c"), compared, value))
    )
    schema = schema_of(kind)
    spec = PartitionSpec(0, (PartitionField((1,), 1000, parse_transform("truncate[10]"), "p"),))
    projected = inclusive(bind(predicate, schema), spec, schema)
    stored: list[int | None] = [None, 10 - 10 * ((1 << bits) // 10), -10, 0, 20]
    entries = pl.DataFrame({"partition.1000": pl.Series(stored, dtype=partition_dtype(kind))})
    kept = prune.keeps_partitions(projected, entries).to_list()
    assert kept == [keeps_partition(projected, spec, (each,)) for each in stored]
