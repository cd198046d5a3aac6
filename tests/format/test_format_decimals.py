"""Decimals of up to 38 digits, calculated with Python's integers and fractions beside."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from frazil.format import types as I
from frazil.format.partitions.transforms import parse_transform
from frazil.format.predicates import bind, parse_predicate
from frazil.format.schema import Schema
from frazil.format.values import coerce, from_bytes, from_json, to_bytes, to_json
from frazil.format.values.decimals import (
    add,
    at_scale,
    decimal_from_unscaled,
    floor_at_scale,
    largest_of,
    negate,
    rounded_to_scale,
    subtract,
    unscaled_at_scale,
    unscaled_value,
)
from scalar_predicates import keeps

UNSCALED = st.integers(-(10**38) + 1, 10**38 - 1)
SCALES = st.integers(0, 38)


@given(UNSCALED, UNSCALED, SCALES)
@example(-(10**38) + 1, 1, 10)
def test_every_operation_keeps_all_digits_whatever_the_threads_context(
    left: int, right: int, scale: int
) -> None:
    unit = Fraction(1, 10**scale)
    with localcontext(prec=3):
        a, b = decimal_from_unscaled(left, scale), decimal_from_unscaled(right, scale)
        assert Fraction(a) == left * unit
        assert Fraction(negate(a)) == -left * unit
        assert Fraction(add(a, b)) == (left + right) * unit
        assert Fraction(subtract(a, b)) == (left - right) * unit
        assert unscaled_value(a) == unscaled_at_scale(a, scale) == left
        assert Fraction(largest_of(38, scale)) == (10**38 - 1) * unit


@given(UNSCALED, SCALES, SCALES)
def test_another_scale_is_exact_or_refused_and_rounding_is_sparks(
    unscaled: int, scale: int, wanted: int
) -> None:
    value, step = decimal_from_unscaled(unscaled, scale), Fraction(1, 10**wanted)
    floor, rest = divmod(Fraction(value), step)
    assert Fraction(floor_at_scale(value, wanted)) == floor * step
    away = abs(Fraction(value)) // step + (abs(Fraction(value)) % step >= step / 2)
    assert Fraction(rounded_to_scale(value, wanted)) == (away if unscaled > 0 else -away) * step
    if rest:
        with pytest.raises(ValueError, match="lose digits"):
            at_scale(value, wanted)
    else:
        assert at_scale(value, wanted).as_tuple().exponent == -wanted
        assert at_scale(value, wanted) == value


@given(UNSCALED, st.sampled_from([0, 2, 10, 38]))
def test_values_go_through_text_json_and_bytes_with_all_digits(unscaled: int, scale: int) -> None:
    kind = I.DecimalType(38, scale)
    with localcontext(prec=3):
        value = decimal_from_unscaled(unscaled, scale)
        assert coerce(kind, f"{value:f}") == value
        assert coerce(kind, value) == value
        assert from_json(kind, to_json(kind, value)) == value
        assert from_bytes(kind, to_bytes(kind, value)) == value


@given(UNSCALED, st.integers(1, 2**31 - 1), st.sampled_from([0, 2, 10, 38]))
def test_truncate_is_that_of_the_integer(unscaled: int, width: int, scale: int) -> None:
    kind = I.DecimalType(38, scale)
    with localcontext(prec=3):
        found = parse_transform(f"truncate[{width}]").apply(
            kind, decimal_from_unscaled(unscaled, scale)
        )
    assert unscaled_value(found) == unscaled - unscaled % width


COMPARISONS = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


@given(UNSCALED, st.integers(-2, 2), st.sampled_from(sorted(COMPARISONS)))
@example(-123456789012345678901234567855, 0, ">")
def test_literals_of_either_sign_are_compared_with_all_their_digits(
    unscaled: int, distance: int, operator: str
) -> None:
    schema = Schema((I.NestedField(1, "d", I.DecimalType(38, 2)),))
    limit = 10**38 - 1
    stored = max(-limit, min(limit, unscaled + distance))
    text = f"{decimal_from_unscaled(unscaled, 2):f}"
    bound = bind(parse_predicate(f"d {operator} {text}"), schema)
    expected = COMPARISONS[operator](stored, unscaled)
    row = {1: decimal_from_unscaled(stored, 2)}
    assert keeps(bound, row) is expected
    assert keeps(bind(parse_predicate(bound.to_sql()), schema), row) is expected


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("-1234567890123456789012345678.55BD", "-1234567890123456789012345678.55"),
        ("-(1234567890123456789012345678.55)", "-1234567890123456789012345678.55"),
        (
            "-cast('1234567890123456789012345678.55' as decimal(38,2))",
            "-1234567890123456789012345678.55",
        ),
        ("- -99999999999999999999999999999999999.99", "99999999999999999999999999999999999.99"),
    ],
)
def test_a_minus_before_a_literal_rounds_nothing(literal: str, value: str) -> None:
    schema = Schema((I.NestedField(1, "d", I.DecimalType(38, 2)),))
    bound = bind(parse_predicate(f"d = {literal}"), schema)
    assert keeps(bound, {1: Decimal(value)})
