"""UUID bounds that Java wrote: ordered by two signed halves, while predicates compare bytes."""

from __future__ import annotations

from uuid import UUID

import pytest

from frazil.format.manifests import Content, DataFile
from frazil.format.predicates import bind, parse_predicate
from frazil.format.schema import Schema
from frazil.format.types import NestedField, UUIDType
from pruned_by_columns import may_match

SCHEMA = Schema((NestedField(1, "u", UUIDType()),))
LOW_HALF_NEGATIVE, ONE, NEXT_HIGH_HALF = UUID(int=1 << 63), UUID(int=1), UUID(int=1 << 64)


@pytest.mark.parametrize(
    "where",
    [f"u < '{LOW_HALF_NEGATIVE}'", f"u <= '{ONE}'", f"u >= '{ONE}'", f"u > '{UUID(int=0)}'"],
)
def test_a_row_between_java_ordered_bounds_is_never_pruned(where: str) -> None:
    # In Java's order: 0…8000… (negative low half) < 0…01 < 1…0; the row 0…01 matches.
    lower, upper = LOW_HALF_NEGATIVE.bytes, NEXT_HIGH_HALF.bytes
    file = DataFile(
        content=Content.DATA,
        file_path="f",
        file_format="parquet",
        spec_id=0,
        partition=(),
        record_count=3,
        file_size_in_bytes=1,
        value_counts={1: 3},
        null_value_counts={1: 0},
        lower_bounds={1: lower},
        upper_bounds={1: upper},
    )
    bound = bind(parse_predicate(where), SCHEMA)
    assert may_match(bound, file)
