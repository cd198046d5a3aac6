"""What predicates say, case by case: parsing, binding, projections by the specification's rules."""

from __future__ import annotations

import functools
import operator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from frazil.errors import PredicateError
from frazil.format import types as T
from frazil.format.manifests import DataFile
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import parse_transform
from frazil.format.predicates import (
    AlwaysTrue,
    SparkForms,
    all_of,
    any_of,
    bind,
    col,
    inclusive_projection,
    parse_predicate,
    strict_projection,
    to_spark_sql,
)
from frazil.format.schema import Schema
from pruned_by_columns import may_keep, may_match, must_keep, must_match
from scalar_predicates import keeps

COLUMNS: dict[str, Any] = {
    "i": T.IntegerType(),
    "l": T.LongType(),
    "f": T.FloatType(),
    "g": T.DoubleType(),
    "dec": T.DecimalType(9, 2),
    "d": T.DateType(),
    "t": T.TimeType(),
    "ts": T.TimestampType(),
    "tz": T.TimestamptzType(),
    "ns": T.TimestampNanoType(),
    "s": T.StringType(),
    "b": T.BinaryType(),
    "u": T.UUIDType(),
    "flag": T.BooleanType(),
    "nothing": T.UnknownType(),
    "p": T.StructType(
        (T.NestedField(101, "x", T.IntegerType()), T.NestedField(102, "q.r", T.LongType()))
    ),
    "list": T.ListType(103, T.IntegerType()),
    "order by": T.IntegerType(),
}
SCHEMA = Schema(tuple(T.NestedField(n, c, t) for n, (c, t) in enumerate(COLUMNS.items(), 1)))
ID = {name: n for n, name in enumerate(COLUMNS, 1)}
DAY_US = 86_400_000_000


def bound_sql(text: str, **options: Any) -> str:
    return bind(parse_predicate(text), SCHEMA, **options).to_sql()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ts >= '2024-01-01' and i in (1,2)", "ts >= '2024-01-01' AND i IN (1, 2)"),
        ("i between 1 and 2 and l = 3", "i >= 1 AND i <= 2 AND l = 3"),
        ("i not between 1 and 2", "NOT (i >= 1 AND i <= 2)"),
        ("s like 'abc%'", "startswith(s, 'abc')"),
        ("s like 'abc'", "s = 'abc'"),
        ("s like 'a\\_b\\%%'", "startswith(s, 'a_b%')"),
        ("s like 'a\\\\_b%'", "startswith(s, 'a_b')"),
        ("s like 'a!%b!!%' escape '!'", "startswith(s, 'a%b!')"),
        ("s not like 'a%%'", "NOT startswith(s, 'a')"),
        ("s not like 'a!%%' escape '!'", "NOT startswith(s, 'a%')"),
        ("s not like 'a'", "s != 'a'"),
        ("not s not like 'a%'", "startswith(s, 'a')"),
        ("i not in (1, 2)", "i NOT IN (1, 2)"),
        ("i is distinct from 1", "NOT (i = 1 AND i IS NOT NULL)"),
        ("not i = 1", "i != 1"),
        ("i <=> null", "i IS NULL"),
        ("i <=> 3", "i = 3 AND i IS NOT NULL"),
        ("i = -1.50", "i = -1.50BD"),
        ("i = 1.20BD", "i = 1.20BD"),
        ("i = -9223372036854775808L", "i = -9223372036854775808"),
        ("g = 1e3", "g = 1000.0D"),
        ("flag and not flag", "flag = TRUE AND flag != TRUE"),
        ("1 < i", "i > 1"),
        ("3 >= p.x", "p.x <= 3"),
        ("p.`q.r` = 1", "p.`q.r` = 1"),
        ("isnan(g) or not isnan(g)", "isnan(g) OR NOT isnan(g)"),
        ("i not in (1, null)", "NOT (i IN (1) OR NULL)"),
        ("s = 'it''s'", "s = 'it\\'s'"),
        ("s = 'it' 's'", "s = 'its'"),
        (r"s = '\u00e9\n\q\\'", "s = 'é\\nq\\\\'"),
        (r"s = r'\n'", "s = '\\\\n'"),
        ("b = X'00ff'", "b = X'00FF'"),
        ("d = DATE '2024-01-01'", "d = DATE '2024-01-01'"),
        ("ts < TIMESTAMP_NTZ '2024-01-01'", "ts < TIMESTAMP_NTZ '2024-01-01 00:00:00'"),
        ("cast('7' as int) = i", "i = 7"),
        ("`order by` = 1", "`order by` = 1"),
        ("flag is not true", "NOT (flag = TRUE AND flag IS NOT NULL)"),
        ("i = null", "NULL"),
        ("1 = 1 or i = 2", "TRUE OR i = 2"),
    ],
)
def test_sql_is_read_as_spark_reads_it(text: str, expected: str) -> None:
    parsed = parse_predicate(text)
    assert parsed.to_sql() == expected
    assert repr(parsed) == expected
    assert parse_predicate(expected) == parsed


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("s like any ('a')", "not supported"),
        ("s not ilike 'a'", "not supported"),
        ("s not rlike 'a'", "not supported"),
        ("i between symmetric 2 and 1", "smaller literal first"),
        ("i = cast('1' as int format 'x')", "not supp"),
        ("", "0 SQL expressions"),
        ("i = 1; l = 2", "2 SQL expressions"),
        ("i =", "not a SQL predicate"),
        ("i = l", "not supported"),
        ("s like '%a'", "'abc%'"),
        ("s like 'a_c'", "'abc%'"),
        ("s rlike 'a'", "a predicate is made of"),
        ("year(ts) = 2024", "a predicate is made of"),
        ("i in (select 1)", "not a query"),
        ("i in (1, l)", "list of literals"),
        ("d = DATE '2024-02-30'", "not in the calendar"),
        ("i = 300Y", "does not fit TINYINT"),
        ("(" * 20_000 + "i = 1" + ")" * 20_000, "too deeply"),
    ],
)
def test_what_is_not_supported_says_so(text: str, says: str) -> None:
    with pytest.raises(PredicateError, match=says.replace("(", r"\(")):
        parse_predicate(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Literals past the column's range: every value that is not NULL, or none.
        ("i < 3000000000", "i IS NOT NULL"),
        ("i != 3000000000", "i IS NOT NULL"),
        ("i = 3000000000", "FALSE"),
        ("i > -3000000000", "i IS NOT NULL"),
        ("not i < 3000000000", "FALSE"),
        ("i in (1, 3000000000)", "i = 1"),
        ("i not in (3000000000)", "i IS NOT NULL"),
        # Literals between two values.
        ("i < 3.5", "i <= 3"),
        ("i > 3.5", "i > 3"),
        ("i = 3.5", "FALSE"),
        ("i >= -3.5", "i > -4"),
        ("i = 4.0", "i = 4"),
        ("i < '7'", "i < 7"),
        ("dec = 1.2", "dec = 1.20BD"),
        ("dec = 1.234", "FALSE"),
        ("dec <= 1.234", "dec <= 1.23BD"),
        ("dec < 12345678.9", "dec IS NOT NULL"),
        ("d > TIMESTAMP_NTZ '2024-01-01 12:00:00'", "d > DATE '2024-01-01'"),
        (
            "ns = '2024-01-01 00:00:00.000000001'",
            "ns = TIMESTAMP_NTZ '2024-01-01 00:00:00.000000001'",
        ),
        (
            "ts >= '2024-01-01 00:00:00.000000001'",
            "ts > TIMESTAMP_NTZ '2024-01-01 00:00:00.000000'",
        ),
        # NaN is equal to itself and above every number.
        ("g = double('NaN')", "isnan(g)"),
        ("g > double('NaN')", "FALSE"),
        ("g < double('NaN')", "NOT isnan(g) AND g IS NOT NULL"),
        ("g in (1, double('NaN'))", "g = 1.0D OR isnan(g)"),
        # A float column is compared as the double that it is.
        ("f = 0.1", "f = 0.1D"),
        ("f = 0.5", "f = 0.5F"),
        # NULL
        ("not (i in (1, null))", "FALSE"),
        ("i in (2, 1, 2, null)", "i IN (1, 2)"),
        ("i = 1 and i is not null", "i = 1"),
        ("not (i <=> 1)", "i != 1 OR i IS NULL"),
        ("nothing = 1 or nothing is null", "nothing IS NULL"),
        ("s like '%'", "s IS NOT NULL"),
    ],
)
def test_literals_become_values_of_the_column(text: str, expected: str) -> None:
    assert bound_sql(text) == expected


def test_the_time_zone_of_literals_without_an_offset() -> None:
    text = "tz = '2024-07-01 00:00:00'"
    assert bound_sql(text) == "tz = TIMESTAMP_LTZ '2024-07-01 00:00:00.000000+00:00'"
    assert (
        bound_sql(text, time_zone="Europe/Berlin")
        == "tz = TIMESTAMP_LTZ '2024-06-30 22:00:00.000000+00:00'"
    )
    aware = datetime(2024, 7, 1, tzinfo=timezone(timedelta(hours=2)))
    assert (
        bind(col("tz") == aware, SCHEMA, time_zone="Asia/Tokyo")
        .to_sql()
        .endswith("'2024-06-30 22:00:00.000000+00:00'")
    )


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (col("i") == "x", "column 'i' of type int cannot be compared with 'x' of type str"),
        (col("i") == True, "number"),  # noqa: E712
        (col("s") == 1, "column 's' of type string cannot be compared with 1 of type int"),
        (col("d") == 1, "date"),
        (col("d") == "2024-01-01 12:00:00", "time of day"),
        (col("ts") == datetime(2024, 1, 1, tzinfo=UTC), "no time zone"),
        (col("b") == "x", "X'00FF'"),
        (col("flag") == 1, "true or false"),
        (col("p") == 1, "IS NULL"),
        (col("u") == "x", "uuid"),
        (col("s").is_nan(), "only float and double"),
        (col("i").starts_with("x"), "only a string"),
        (col("I") == 1, "no field 'I'"),
        (col("p.z") == 1, "struct 'p' has no field 'z'; it has x, q.r"),
        (col("list.element") == 1, "can only go into structs"),
        (col("tz") == "x", "timestamp"),
    ],
)
def test_a_mismatch_names_column_type_and_literal(expression: Any, says: str) -> None:
    with pytest.raises(PredicateError, match=says):
        bind(expression, SCHEMA)


def test_names_without_regard_to_case() -> None:
    assert bind(col("P.X") == 1, SCHEMA, case_sensitive=False).to_sql() == "p.x = 1"
    two = Schema((T.NestedField(1, "a", T.IntegerType()), T.NestedField(2, "A", T.IntegerType())))
    with pytest.raises(PredicateError, match="ambiguous"):
        bind(col("a") == 1, two, case_sensitive=False)
    assert bind(col("A") == 1, two).bound_ref.field_id == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: col("i") == None,  # noqa: E711
        lambda: col("i") == col("l"),
        lambda: bool(col("i") > 1),
        lambda: 1 < col("i") < 3,
        lambda: col("i") == [1],
        lambda: col(""),
        lambda: col("a..b"),
        lambda: col("s").starts_with(1),  # type: ignore[arg-type]
    ],
)
def test_python_mistakes_are_caught(wrong: Any) -> None:
    with pytest.raises(PredicateError):
        wrong()


_MANY = 3_000  # three times the depth at which Python gives up


@pytest.mark.parametrize("join", [operator.and_, operator.or_])
def test_wide_and_deep_predicates_need_no_recursion(join: Any) -> None:
    parts = [col("i") == n for n in range(_MANY)]
    wide = functools.reduce(join, parts)
    assert len(wide.children) == _MANY
    assert wide == (all_of(parts) if join is operator.and_ else any_of(parts))
    assert parse_predicate(wide.to_sql()) == wide
    bound = bind(~wide, SCHEMA)
    assert keeps(bound, {1: -1})
    deep = col("i") == -1
    for n in range(_MANY):
        deep = ((deep | (col("i") == n)) & (col("l") > n)) | col("s").is_null()
    deep_bound = bind(~deep, SCHEMA)
    assert keeps(deep_bound, {ID["i"]: 3, ID["l"]: -1, ID["s"]: "x"})
    assert not keeps(deep_bound, {ID["i"]: 3, ID["l"]: _MANY, ID["s"]: "x"})
    assert deep_bound.to_sql()


def test_a_long_in_list() -> None:
    bound = bind(parse_predicate(f"l in ({','.join(map(str, range(20_000)))})"), SCHEMA)
    assert keeps(bound, {ID["l"]: 19_999})
    assert not keeps(bound, {ID["l"]: 20_000})
    spec = spec_of("l", "truncate[1000]")
    projected = inclusive_projection(bound, spec, SCHEMA)
    assert len(projected.values) == 20  # type: ignore[attr-defined]


def spec_of(*columns_and_transforms: str) -> PartitionSpec:
    pairs = zip(columns_and_transforms[::2], columns_and_transforms[1::2], strict=True)
    return PartitionSpec(
        1,
        tuple(
            PartitionField((ID[column],), 1000 + n, parse_transform(transform), f"p{n}")
            for n, (column, transform) in enumerate(pairs)
        ),
    )


@pytest.mark.parametrize(
    ("column", "transform", "text", "expected_inclusive", "expected_strict"),
    [
        ("i", "identity", "i < 5", "p0 < 5", "p0 < 5"),
        ("i", "bucket[16]", "i = 34", "p0 = 3", "FALSE"),  # hash 2017239379, rule 265
        ("i", "bucket[16]", "i != 34", "p0 IS NOT NULL", "p0 != 3"),
        ("i", "bucket[16]", "i > 34", "p0 IS NOT NULL", "FALSE"),
        ("i", "bucket[16]", "i is null", "p0 IS NULL", "p0 IS NULL"),
        ("l", "truncate[16]", "l < 32", "p0 <= 16L", "p0 < 32L"),
        ("l", "truncate[16]", "l <= 32", "p0 <= 32L", "p0 < 32L"),
        ("l", "truncate[16]", "l >= 32", "p0 >= 32L", "p0 > 16L"),
        ("l", "truncate[16]", "l = -1", "p0 = -16L", "FALSE"),
        ("dec", "truncate[50]", "dec < 10.65", "p0 <= 10.50BD", "p0 < 10.50BD"),  # rule 86
        ("s", "truncate[3]", "s like 'ab%'", "startswith(p0, 'ab')", "startswith(p0, 'ab')"),
        ("s", "truncate[3]", "s like 'abcd%'", "p0 = 'abc'", "FALSE"),
        ("s", "truncate[3]", "s not like 'abcd%'", "p0 IS NOT NULL", "p0 != 'abc'"),
        ("s", "truncate[3]", "s not like 'ab%'", *2 * ("NOT startswith(p0, 'ab')",)),
        ("s", "truncate[3]", "s = 'abcd'", "p0 = 'abc'", "FALSE"),
        ("s", "truncate[3]", "s in ('abcd', 'abce')", "p0 = 'abc'", "FALSE"),
        ("s", "truncate[3]", "s not in ('abcd', 'abce')", "p0 IS NOT NULL", "p0 != 'abc'"),
        ("s", "truncate[3]", "s = 'ab'", "p0 = 'ab'", "p0 = 'ab'"),
        ("s", "truncate[3]", "s < 'abcd'", "p0 <= 'abc'", "p0 < 'abc'"),
        ("s", "truncate[3]", "s <= 'abcd'", "p0 <= 'abc'", "p0 < 'abc'"),
        ("s", "truncate[3]", "s >= 'abc'", "p0 >= 'abc'", "p0 >= 'abc'"),
        ("b", "truncate[1]", "b > X'0102'", "p0 >= X'01'", "p0 > X'01'"),
        ("d", "day", "d < DATE '1970-01-01'", "p0 <= DATE '1969-12-31'", "p0 < DATE '1970-01-01'"),
        ("d", "year", "d >= DATE '2017-11-16'", "p0 >= 47", "p0 > 47"),
        ("ts", "month", "ts < '2017-12-01'", "p0 <= 574", "p0 < 575"),
        ("ts", "hour", "ts = '1970-01-01 01:30:00'", "p0 = 1", "FALSE"),
        # Java writers rounded up before 1970: ProjectionUtil.fixInclusiveTimeProjection.
        ("ts", "hour", "ts = '1969-12-31 22:30:00'", "p0 IN (-2, -1)", "FALSE"),
        ("ts", "year", "ts <= '1969-06-01'", "p0 <= 0", "p0 < -1"),
        ("ts", "year", "ts < '1970-01-01'", "p0 <= 0", "p0 < 0"),
        ("ts", "year", "ts >= '1969-06-01'", "p0 >= -1", "p0 > 0"),
        ("ts", "year", "ts != '1969-06-01'", "p0 IS NOT NULL", "p0 NOT IN (-1, 0)"),
        ("d", "month", "d = DATE '1969-12-31'", "p0 IN (-1, 0)", "FALSE"),
        # Truncating near the smallest int wraps round in Java.
        ("i", "truncate[10]", "i < 5", "p0 <= 0 OR p0 = 2147483646", "p0 < 0"),
        ("i", "truncate[10]", "i > 15", "p0 >= 10", "p0 > 10 AND p0 != 2147483646"),
        ("i", "void", "i = 1", "TRUE", "FALSE"),
        ("i", "zorder[2]", "i = 1", "TRUE", "FALSE"),
        ("g", "identity", "isnan(g)", "isnan(p0)", "isnan(p0)"),
        ("l", "identity", "i = 1", "TRUE", "FALSE"),
    ],
)
def test_projections(
    column: str, transform: str, text: str, expected_inclusive: str, expected_strict: str
) -> None:
    bound, spec = bind(parse_predicate(text), SCHEMA), spec_of(column, transform)
    assert inclusive_projection(bound, spec, SCHEMA).to_sql() == expected_inclusive
    assert strict_projection(bound, spec, SCHEMA).to_sql() == expected_strict


def test_a_dropped_source_column_is_not_projected() -> None:
    bound = bind(col("i") == 1, SCHEMA)
    dropped = Schema(SCHEMA.fields[1:])
    assert inclusive_projection(bound, spec_of("i", "identity"), dropped) == AlwaysTrue()


def test_several_fields_over_one_column() -> None:
    spec = spec_of("ts", "month", "ts", "day")

    def decided(text: str, *partition: int) -> tuple[bool, bool]:
        bound = bind(parse_predicate(text), SCHEMA)
        return (
            may_keep(inclusive_projection(bound, spec, SCHEMA), spec, SCHEMA, partition),
            must_keep(strict_projection(bound, spec, SCHEMA), spec, SCHEMA, partition),
        )

    december = "ts >= '2017-12-01' and ts < '2018-01-01'"
    assert decided(december, 575, 17_510) == (True, True)
    assert decided(december, 576, 17_540) == (False, False)
    noon = "ts >= '2017-12-01 12:00:00'"
    assert decided(noon, 575, 17_501) == (True, False)
    assert decided(noon, 575, 17_502) == (True, True)


def file_of(count: int = 10, **metrics: dict[int, Any]) -> DataFile:
    return DataFile(file_path="f", record_count=count, file_size_in_bytes=1, **metrics)  # type: ignore[arg-type]


DOUBLES = {ID["g"]: b"\0\0\0\0\0\0\xf0?"}  # 1.0
UUID_0 = {ID["u"]: bytes(16)}
UUID_2 = {ID["u"]: b"\x20" + bytes(15)}
ONE_TO_ONE: dict[str, Any] = {"lower_bounds": DOUBLES, "upper_bounds": DOUBLES}


@pytest.mark.parametrize(
    ("text", "file", "may", "must"),
    [
        ("g > 5", file_of(**ONE_TO_ONE), True, False),  # there may be NaN
        ("g > 5", file_of(**ONE_TO_ONE, nan_value_counts={ID["g"]: 0}), False, False),
        (
            "g < 5",
            file_of(**ONE_TO_ONE, nan_value_counts={ID["g"]: 0}, null_value_counts={ID["g"]: 0}),
            True,
            True,
        ),
        ("g < 5", file_of(**ONE_TO_ONE, null_value_counts={ID["g"]: 0}), True, False),
        ("i = 1", file_of(null_value_counts={ID["i"]: 10}), False, False),
        ("i is null", file_of(null_value_counts={ID["i"]: 10}), True, True),
        ("i is null", file_of(null_value_counts={ID["i"]: 0}), False, False),
        ("i is not null", file_of(null_value_counts={ID["i"]: 0}), True, True),
        ("i is null", file_of(), True, False),
        # A nested column whose parent's NULLs were not counted: rule 174 must not prune it.
        ("p.x is null", file_of(null_value_counts={101: 0}, value_counts={101: 7}), True, False),
        ("p.x is null", file_of(null_value_counts={101: 0}, value_counts={101: 10}), False, False),
        ("i = 1", file_of(0), False, True),
        ("i = 1", file_of(-1, null_value_counts={ID["i"]: 10}), True, False),
        # Rule 46: bounds from before the promotion int to long.
        ("l = 7", file_of(lower_bounds={2: b"\x08\0\0\0"}), False, False),
        # Date to timestamp: the third of January, and a day that no timestamp reaches.
        ("ts < '1970-01-03'", file_of(lower_bounds={ID["ts"]: b"\2\0\0\0"}), False, False),
        ("ts < '1970-01-03'", file_of(lower_bounds={ID["ts"]: b"\0\0\0\x7f"}), True, False),
        # A string's bound cut within a character.
        ("s = 'é'", file_of(lower_bounds={ID["s"]: b"\xc3"}), True, False),
        ("s = 'é'", file_of(upper_bounds={ID["s"]: b"\xc3"}), True, False),
        ("s = 'b'", file_of(upper_bounds={ID["s"]: b"a"}), False, False),
        # UUID bounds in Java's signed order: 0x8000000000000000 is below the upper bound 0.
        ("u >= '00000000-0000-0000-0000-000000000001'", file_of(upper_bounds=UUID_0), True, False),
        ("u = '00000000-0000-0000-0000-000000000001'", file_of(upper_bounds=UUID_0), False, False),
        (
            "u < '10000000-0000-0000-0000-000000000000'",
            file_of(lower_bounds=UUID_2, upper_bounds=UUID_2, null_value_counts={ID["u"]: 0}),
            False,
            False,
        ),
        (
            "u > '10000000-0000-0000-0000-000000000000'",
            file_of(lower_bounds=UUID_2, upper_bounds=UUID_2, null_value_counts={ID["u"]: 0}),
            True,
            True,
        ),
        # Bounds that contradict each other or cannot be read decide nothing.
        (
            "i = 1",
            file_of(lower_bounds={1: b"\x09\0\0\0"}, upper_bounds={1: b"\0\0\0\0"}),
            True,
            False,
        ),
        ("i = 1", file_of(lower_bounds={1: b"\x09\0"}), True, False),
        ("g = 1", file_of(lower_bounds={ID["g"]: b"\0\0\0\0\0\0\xf8\x7f"}), True, False),
    ],
)
def test_files(text: str, file: DataFile, may: bool, must: bool) -> None:
    bound = bind(parse_predicate(text), SCHEMA)
    assert (may_match(bound, file), must_match(bound, file)) == (may, must)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("l = 5", "`l` = 5L"),
        ("`order by` > 1", "`order by` > 1"),
        ("p.`q.r` = 1", "`p`.`q.r` = 1L"),
        ("dec = 1.2", "`dec` = 1.20BD"),
        ("f = 0.5", "`f` = 0.5F"),
        ("s = 'it''s \\\\ \\n'", "`s` = 'it\\'s \\\\ \\n'"),
        ("b = X'0aff'", "`b` = X'0AFF'"),
        ("d = '2024-01-01'", "`d` = DATE '2024-01-01'"),
        ("ts = '2024-01-01'", "`ts` = TIMESTAMP_NTZ '2024-01-01 00:00:00.000000'"),
        ("tz = '2024-01-01'", "`tz` = TIMESTAMP_LTZ '2024-01-01 00:00:00.000000+00:00'"),
        ("ns = '1970-01-01 00:00:01'", "`ns` = 1000000000L"),
        ("t = '00:00:01'", "`t` = TIME '00:00:01.000000'"),
        (
            "u = 'F79C3E09-677C-4BBD-A479-3F349CB785E7'",
            "`u` = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'",
        ),
    ],
)
def test_spark_text(text: str, expected: str) -> None:
    assert to_spark_sql(bind(parse_predicate(text), SCHEMA)) == expected


def test_spark_text_of_types_that_spark_lacks() -> None:
    forms = SparkForms(uuid="binary", time="long", timestamp_ns="timestamp")
    for text, expected in [
        ("u = '00000000-0000-0000-0000-000000000001'", f"`u` = X'{1:032X}'"),
        ("t = '00:00:01'", "`t` = 1000000L"),
        ("ns = '1970-01-01'", "`ns` = TIMESTAMP_NTZ '1970-01-01 00:00:00.000000'"),
    ]:
        assert to_spark_sql(bind(parse_predicate(text), SCHEMA), forms=forms) == expected
    with pytest.raises(PredicateError, match="microseconds"):
        to_spark_sql(
            bind(parse_predicate("ns = '1970-01-01 00:00:00.000000001'"), SCHEMA), forms=forms
        )
    with pytest.raises(PredicateError, match="not bound"):
        to_spark_sql(col("i") == 1)


def test_python_and_sql_say_the_same() -> None:
    pairs = [
        (col("d") >= date(2024, 1, 1), "d >= DATE '2024-01-01'"),
        (col("dec") == Decimal("1.20"), "dec = 1.20BD"),
        (~(col("i").is_in([1, 2]) | col("s").is_null()), "NOT (i IN (1, 2) OR s IS NULL)"),
        (col("g").is_nan() & col("i").between(1, 2), "isnan(g) AND i >= 1 AND i <= 2"),
        (col("g").not_nan() & col("i").not_null(), "NOT isnan(g) AND i IS NOT NULL"),
        (col("`order by`").not_in([1]), "`order by` NOT IN (1)"),
        (col("s").not_starts_with("a'b"), "NOT startswith(s, 'a\\'b')"),
        (col("i").equals_null_safe(None), "i <=> NULL"),
        (col("b") == bytearray(b"\x01"), "b = X'01'"),
    ]
    for built, text in pairs:
        assert parse_predicate(text) == built
    assert repr(col("`order by`")) == "`order by`"
