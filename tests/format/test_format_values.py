"""Single values, coercion and hashes (rules 265-278)."""

from __future__ import annotations

import json
import math
import struct
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal, localcontext
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from frazil.errors import ConfigurationError, InvalidFormatError, UnsupportedError, ValidationError
from frazil.format import types as I
from frazil.format import types as T
from frazil.format.partitions.transforms import parse_transform
from frazil.format.predicates import bind, parse_predicate
from frazil.format.schema import Schema
from frazil.format.schema.types_json import parse_type
from frazil.format.values import civil, coerce, from_bytes, from_json, to_bytes, to_json, to_python
from frazil.format.values.civil import parse_timestamp
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
from frazil.format.values.hashing import bucket_hash
from frazil.format.values.zones import offset_at, zone_of
from scalar_predicates import keeps

UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("int", 34, 2017239379),
        ("long", 34, 2017239379),
        ("decimal(9,2)", Decimal("14.20"), -500754589),
        ("date", 17486, -653330422),
        ("boolean", True, 1392991556),
        ("time", 81068000000, -662762989),
        ("timestamp", 1510871468000000, -2047944441),
        ("timestamp", 1510871468000001, -1207196810),
        ("timestamptz", 1510871468000000, -2047944441),
        ("timestamp_ns", 1510871468000000000, -2047944441),
        ("timestamp_ns", 1510871468000001001, -1207196810),
        ("timestamptz_ns", 1510871468000001001, -1207196810),
        ("string", "iceberg", 1210000089),
        ("uuid", UUID, 1488055340),
        ("fixed[4]", b"\x00\x01\x02\x03", -188683207),
        ("binary", b"\x00\x01\x02\x03", -188683207),
        ("float", 1.0, -142385009),
        ("double", 1.0, -142385009),
        ("double", 0.0, 1669671676),
        ("double", -0.0, 1669671676),
    ],
)
def test_published_hashes(text: str, value: Any, expected: int) -> None:
    """Rules 265-274, with the trap of rule 268."""
    assert bucket_hash(parse_type(text), value) == expected


def test_hashes_of_nan_agree() -> None:
    """Rule 274."""
    odd = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]
    assert math.isnan(odd)
    assert bucket_hash(parse_type("double"), odd) == bucket_hash(parse_type("double"), math.nan)


def test_no_hash_for_variant() -> None:
    with pytest.raises(UnsupportedError):
        bucket_hash(T.VariantType(), b"")


@pytest.mark.parametrize(
    ("text", "raw", "expected"),
    [
        ("long", "22000000", 34),
        ("long", "ffffffff", -1),
        ("double", "0000803f", 1.0),
        ("timestamp", "4e440000", 17486 * 86_400_000_000),
        ("timestamp_ns", "4e440000", 17486 * 86_400_000_000_000),
        ("decimal(38,2)", "058c", Decimal("14.20")),
        ("decimal(38,2)", "ffffff", Decimal("-0.01")),
        ("boolean", "02", True),
        ("geometry", "0101", b"\x01\x01"),
        ("unknown", "00", None),
    ],
)
def test_bytes_written_before_a_promotion(text: str, raw: str, expected: Any) -> None:
    """Rules 46, 275, 277, 278."""
    value = from_bytes(parse_type(text), bytes.fromhex(raw))
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("int", "22"),
        ("int", "2200000000000000"),
        ("long", "222222"),
        ("timestamptz", "4e440000"),
        ("timestamptz_ns", "4e440000"),
        ("time", "00000000"),
        ("float", "0000000000000000"),
        ("double", ""),
        ("boolean", ""),
        ("uuid", "00"),
        ("fixed[2]", "00"),
        ("decimal(9,2)", ""),
        ("string", "ff"),
    ],
)
def test_bytes_of_no_value(text: str, raw: str) -> None:
    with pytest.raises(InvalidFormatError):
        from_bytes(parse_type(text), bytes.fromhex(raw))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("int", 2**31),
        ("long", 2**63),
        ("int", "34"),
        ("float", 1e300),
        ("fixed[2]", b"1"),
        ("decimal(9,2)", Decimal("1.5")),
        ("uuid", "x"),
        ("string", "\ud800"),
    ],
)
def test_no_bytes_of_wrong_values(text: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        to_bytes(parse_type(text), value)


def test_decimal_bytes_are_minimal() -> None:
    """Rule 275: two's complement, big-endian, as few bytes as hold the sign."""
    vectors = {0: "00", 127: "7f", 128: "0080", -1: "ff", -128: "80", -129: "ff7f", 1420: "058c"}
    for unscaled, raw in vectors.items():
        assert to_bytes(parse_type("decimal(38,0)"), Decimal(unscaled)).hex() == raw


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("decimal(9,2)", Decimal("14.20"), "14.20"),
        ("decimal(38,10)", Decimal("0.0000000001"), "0.0000000001"),
        ("date", 17486, "2017-11-16"),
        ("date", -719529, "-0001-12-31"),
        ("date", 2932897, "+10000-01-01"),
        ("time", 81068123456, "22:31:08.123456"),
        ("timestamp", 1510871468123456, "2017-11-16T22:31:08.123456"),
        ("timestamptz", 1510871468123456, "2017-11-16T22:31:08.123456+00:00"),
        ("timestamp_ns", 1510871468123456789, "2017-11-16T22:31:08.123456789"),
        ("timestamptz_ns", -1, "1969-12-31T23:59:59.999999999+00:00"),
        ("uuid", UUID, "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        ("fixed[4]", b"\x00\x01\x02\xff", "000102ff"),
        ("binary", b"", ""),
    ],
)
def test_json(text: str, value: Any, expected: Any) -> None:
    """Rule 276."""
    assert to_json(parse_type(text), value) == expected
    assert from_json(parse_type(text), expected) == value


NESTED = T.StructType(
    (
        T.NestedField(1, "a", T.LongType()),
        T.NestedField(2, "b", T.ListType(4, T.StringType())),
        T.NestedField(3, "c", T.MapType(5, T.StringType(), 6, T.TimestampType())),
    )
)


def test_nested_json() -> None:
    """Rule 276: structs by field id, maps as two arrays."""
    value = (1, ("x", None), (("k", 0),))
    expected = {
        "1": 1,
        "2": ["x", None],
        "3": {"keys": ["k"], "values": ["1970-01-01T00:00:00.000000"]},
    }
    assert to_json(NESTED, value) == expected
    assert from_json(NESTED, expected) == value
    assert from_json(NESTED, {"1": 1}) == (1, None, None)
    with pytest.raises(UnsupportedError):
        to_json(T.VariantType(), 1)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("boolean", 1),
        ("int", True),
        ("int", 2**31),
        ("int", 1.5),
        ("int", "1"),
        ("long", 2**63),
        ("double", "1.5"),
        ("double", True),
        ("decimal(9,2)", 14.2),
        ("decimal(9,2)", "14.201"),
        ("decimal(9,2)", "12345678.00"),
        ("decimal(9,2)", "NaN"),
        ("decimal(9,2)", "x"),
        ("date", "2017-02-29"),
        ("date", "2017-13-01"),
        ("date", 17486),
        ("time", "24:00:00"),
        ("time", "22:31:08.1234567"),
        ("timestamp", "2017-11-16T22:31:08+00:00"),
        ("timestamp", "2017-11-16T22:31:08.1234567"),
        ("timestamptz", "2017-11-16T22:31:08"),
        ("string", 1),
        ("uuid", "f79c3e09"),
        ("uuid", "{f79c3e09-677c-4bbd-a479-3f349cb785e7}"),
        ("fixed[2]", "00"),
        ("binary", "0"),
        ("unknown", 0),
    ],
)
def test_wrong_json(text: str, wrong: Any) -> None:
    with pytest.raises(InvalidFormatError):
        from_json(parse_type(text), wrong)


MICROS = 1510871468123456
COERCED = [
    ("boolean", True, True),
    ("boolean", " False ", False),
    ("int", 3.0, 3),
    ("int", Decimal("3"), 3),
    ("int", "-34", -34),
    ("long", 2**63 - 1, 2**63 - 1),
    ("double", 3, 3.0),
    ("double", "1e3", 1000.0),
    ("double", Decimal("0.5"), 0.5),
    ("double", "NaN", math.nan),
    ("double", float("inf"), math.inf),
    ("float", 0.1, struct.unpack("<f", struct.pack("<f", 0.1))[0]),
    ("decimal(9,2)", "14.2", Decimal("14.20")),
    ("decimal(9,2)", 14, Decimal("14.00")),
    ("decimal(9,2)", 14.2, Decimal("14.20")),
    ("decimal(9,2)", Decimal("14.2000"), Decimal("14.20")),
    ("decimal(38,0)", "2E+20", Decimal(2 * 10**20)),
    ("decimal(38,38)", "0." + "9" * 38, Decimal("0." + "9" * 38)),
    ("date", "2017-11-16", 17486),
    ("date", date(2017, 11, 16), 17486),
    ("date", datetime(2017, 11, 16), 17486),
    ("date", "2017-11-16 00:00:00", 17486),
    ("date", 17486, 17486),
    ("time", time(22, 31, 8, 123456), 81068123456),
    ("time", "22:31", 81060000000),
    ("time", 81068123456, 81068123456),
    ("timestamp", "2017-11-16T22:31:08.123456", MICROS),
    ("timestamp", "2017-11-16 22:31:08.123456", MICROS),
    ("timestamp", "2017-11-16", 17486 * 86_400_000_000),
    ("timestamp", datetime(2017, 11, 16, 22, 31, 8, 123456), MICROS),
    ("timestamp", date(2017, 11, 16), 17486 * 86_400_000_000),
    ("timestamp", MICROS, MICROS),
    ("timestamp", datetime(1, 1, 1), -62135596800000000),
    ("timestamptz", "2017-11-16T14:31:08.123456-08:00", MICROS),
    ("timestamptz", "2017-11-16 22:31:08.123456Z", MICROS),
    ("timestamptz", "2017-11-16 22:31:08.123456", MICROS),
    ("timestamptz", datetime(2017, 11, 16, 22, 31, 8, 123456, UTC), MICROS),
    (
        "timestamptz",
        datetime(2017, 11, 16, 14, 31, 8, 123456, timezone(timedelta(hours=-8))),
        MICROS,
    ),
    ("timestamp_ns", "2017-11-16T22:31:08.123456789", MICROS * 1000 + 789),
    ("timestamp_ns", datetime(2017, 11, 16, 22, 31, 8, 123456), MICROS * 1000),
    ("timestamp_ns", pd.Timestamp("2017-11-16T22:31:08.123456789"), MICROS * 1000 + 789),
    ("timestamptz_ns", pd.Timestamp("2017-11-16T22:31:08.123456789Z"), MICROS * 1000 + 789),
    ("string", "x", "x"),
    ("uuid", str(UUID).upper(), UUID),
    ("uuid", UUID.bytes, UUID),
    ("fixed[2]", bytearray(b"ab"), b"ab"),
    ("binary", memoryview(b"ab"), b"ab"),
    ("int", None, None),
]


@pytest.mark.parametrize(("text", "given_value", "expected"), COERCED)
def test_coerce(text: str, given_value: Any, expected: Any) -> None:
    value = coerce(parse_type(text), given_value)
    assert type(value) is type(expected)
    assert value == expected or (math.isnan(value) and math.isnan(expected))


@pytest.mark.parametrize(
    ("text", "given_value"),
    [
        ("boolean", 1),
        ("boolean", "yes"),
        ("int", True),
        ("int", 1.5),
        ("int", 2**31),
        ("int", "1.0"),
        ("int", math.nan),
        ("int", math.inf),
        ("int", Decimal("Infinity")),
        ("int", b"1"),
        ("long", 2**63),
        ("long", 1e30),
        ("float", 1e39),
        ("double", 10**400),
        ("double", "1e999"),
        ("double", "x"),
        ("double", True),
        ("decimal(9,2)", "14.201"),
        ("decimal(9,2)", 0.001),
        ("decimal(9,2)", 10**7),
        ("decimal(9,2)", "1e999999999"),
        ("decimal(9,2)", "NaN"),
        ("decimal(9,2)", True),
        ("decimal(9,2)", None.__class__),
        ("date", datetime(2017, 11, 16, 1)),
        ("date", "2017-11-16T01:00:00"),
        ("date", "yesterday"),
        ("date", 1.5),
        ("date", 2**31),
        ("time", "25:00"),
        ("time", 86_400_000_000),
        ("time", -1),
        ("time", time(1, tzinfo=UTC)),
        ("timestamp", "2017-11-16T22:31:08Z"),
        ("timestamp", datetime(2017, 11, 16, tzinfo=UTC)),
        ("timestamp", "2017-11-16T22:31:08.1234567"),
        ("timestamp", pd.Timestamp("2017-11-16T22:31:08.123456789")),
        ("timestamp", 1.5),
        ("timestamp", pd.NaT),
        ("timestamp_ns", "2300-01-01T00:00:00"),
        ("string", 1),
        ("string", "\ud800"),
        ("uuid", "x"),
        ("uuid", b"x"),
        ("fixed[2]", b"abc"),
        ("binary", "ab"),
        ("unknown", 1),
    ],
)
def test_coerce_refuses(text: str, given_value: Any) -> None:
    with pytest.raises(ValidationError):
        coerce(parse_type(text), given_value)


def test_zone_of_timestamps_without_offset() -> None:
    zone = ZoneInfo("America/New_York")
    summer = coerce(parse_type("timestamptz"), "2024-07-01 00:00:00", zone=zone)
    assert summer == coerce(parse_type("timestamptz"), "2024-07-01 04:00:00+00:00")
    winter = coerce(parse_type("timestamptz"), "2024-01-01", zone=zone)
    assert winter == coerce(parse_type("timestamptz"), "2024-01-01T05:00:00Z")


def test_nested_coercion() -> None:
    given_value = {"a": "1", "b": ["x", None], "c": {"k": "1970-01-01"}}
    assert coerce(NESTED, given_value) == (1, ("x", None), (("k", 0),))
    assert coerce(NESTED, (1, [], None)) == (1, (), None)
    for wrong in ({"d": 1}, (1,), "x", {"b": "xyz"}):
        with pytest.raises(ValidationError):
            coerce(NESTED, wrong)
    with pytest.raises(UnsupportedError):
        coerce(T.VariantType(), 1)


def test_to_python() -> None:
    assert to_python(parse_type("date"), 17486) == date(2017, 11, 16)
    assert to_python(parse_type("time"), 81068123456) == time(22, 31, 8, 123456)
    assert to_python(parse_type("timestamp"), MICROS) == datetime(2017, 11, 16, 22, 31, 8, 123456)
    assert to_python(parse_type("timestamptz"), 0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert to_python(parse_type("timestamp_ns"), 789) == 789
    assert to_python(NESTED, (1, ("x",), (("k", 0),))) == {
        "a": 1,
        "b": ["x"],
        "c": {"k": datetime(1970, 1, 1)},
    }
    with pytest.raises(ValidationError, match="years 1 to 9999"):
        to_python(parse_type("date"), 2**31 - 1)


def values_of(text: str) -> st.SearchStrategy[Any]:
    longs = st.integers(-(2**63), 2**63 - 1)
    return {
        "boolean": st.booleans(),
        "int": st.integers(-(2**31), 2**31 - 1),
        "long": longs,
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "decimal(38,9)": st.integers(-(10**38) + 1, 10**38 - 1).map(
            lambda unscaled: Decimal(f"{unscaled}E-9")
        ),
        "date": st.integers(-(2**31), 2**31 - 1),
        "time": st.integers(0, 86_399_999_999),
        "timestamp": longs,
        "timestamptz": longs,
        "timestamp_ns": longs,
        "timestamptz_ns": longs,
        "string": st.text(),
        "uuid": st.uuids(),
        "fixed[3]": st.binary(min_size=3, max_size=3),
        "binary": st.binary(),
    }[text]


@pytest.mark.parametrize(
    "text",
    ["boolean", "int", "long", "float", "double", "decimal(38,9)", "date", "time", "timestamp",
     "timestamptz", "timestamp_ns", "timestamptz_ns", "string", "uuid", "fixed[3]", "binary"],
)  # fmt: skip
@given(data=st.data())
def test_round_trips(text: str, data: st.DataObject) -> None:
    value_type: T.IcebergType = parse_type(text)
    value = data.draw(values_of(text))
    assert from_bytes(value_type, to_bytes(value_type, value)) == value
    assert from_json(value_type, json.loads(json.dumps(to_json(value_type, value)))) == value
    assert coerce(value_type, value) == value


@given(st.dates())
def test_calendar_agrees_with_datetime(day: date) -> None:
    days = (day - date(1970, 1, 1)).days
    assert civil.civil_from_days(days) == (day.year, day.month, day.day)
    assert civil.days_from_civil(day.year, day.month, day.day) == days
    assert civil.format_date(days) == day.isoformat()


@given(st.datetimes())
def test_timestamps_agree_with_datetime(moment: datetime) -> None:
    micros = coerce(T.TimestampType(), moment)
    assert to_python(T.TimestampType(), micros) == moment
    assert coerce(T.TimestampType(), moment.isoformat(sep=" ")) == micros
    assert to_json(T.TimestampType(), micros) == moment.isoformat(timespec="microseconds")


# Decimals of up to 38 digits, calculated with Python's integers and fractions beside.


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


# Zones by name: what Spark and Java take, and what they refuse.


NOON = int(datetime(2024, 7, 15, 12, tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("Europe/Berlin", 2), ("UTC", 0), ("Z", 0), ("GMT0", 0), ("+02:00", 2), ("-8", -8),
        ("+0530", 5.5), ("+02:3", 2.05), ("-02:30:36", -2.51), ("UTC+2", 2), ("GMT+01:30", 1.5),
        ("UT+1", 1), ("PST", -7), ("EST", -5), ("Etc/GMT+5", -5), ("+18:00", 18),
    ],
)  # fmt: skip
def test_names_of_zones(name: str, hours: float) -> None:
    assert offset_at(zone_of(name), NOON) == round(hours * 3600)


@pytest.mark.parametrize(
    "name",
    ["", "Mars/Olympus", "+18:01", "+02:60", "z", "utc", "UTC0", "UTC+19", "02:00", "posix/UTC",
     "right/UTC", "localtime", "../UTC", "Europe", "+2:3:4", " UTC", "+٠٢:٠٠"],
)  # fmt: skip
def test_unknown_zones_are_named(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"time zone .* is not known"):
        zone_of(name)


def test_a_zone_is_its_own_name() -> None:
    zone = timezone(timedelta(hours=3))
    assert zone_of(zone) is zone


@pytest.mark.parametrize(
    ("text", "hours"),
    [("12:00:00 Asia/Tokyo", 9), ("12:00+1", 1), ("12:00:00.5PST", -8), ("12:00 UTC-3", -3)],
)
def test_a_timestamp_may_name_its_zone(text: str, hours: int) -> None:
    assert parse_timestamp(f"2024-03-01 {text}")[1] == hours * 3600
    with pytest.raises(ValueError, match="Mars"):
        parse_timestamp("2024-03-01 12:00:00 Mars/Olympus")


def test_offsets_outside_of_pythons_calendar() -> None:
    """The rules of the last years hold on; before the first change it is local mean time."""
    berlin = zone_of("Europe/Berlin")
    summer = (datetime(9999, 7, 1) - datetime(1970, 1, 1)) // timedelta(seconds=1)
    cycle = 146_097 * 86_400
    assert offset_at(berlin, summer) == offset_at(berlin, summer + 25 * cycle) == 7200
    assert offset_at(berlin, summer + 184 * 86_400 + 25 * cycle) == 3600
    assert offset_at(berlin, -100 * cycle) == 53 * 60 + 28
