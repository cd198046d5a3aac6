"""What conditions imply, which columns they need, how names are found, what is refused."""

import pytest
from condition_texts import SCHEMA
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from ci_share import in_circles
from frazil.errors import PredicateError
from frazil.format import types as T
from frazil.format.predicates import col
from frazil.format.schema import Schema
from frazil.spark.conditions import condition_of

IMPLIED = [
    # the text, what it implies, whether that is all
    ("i = 5 and upper(s) = 'A'", "i = 5", False),
    ("i = 5 or upper(s) = 'A'", "TRUE", False),
    ("(i = 5 and upper(s) = 'A') or L < 3", "i = 5 OR L < 3L", False),
    ("not (i = 5 and upper(s) = 'A')", "TRUE", False),
    ("not (i = 5 or upper(s) = 'A')", "i != 5", False),
    ("not (not (i = 5 and rand() < 0.5))", "i = 5", False),
    ("i between 1 and 3 and i + 1 > 2 and d = '2024-01-01'", "i >= 1 AND i <= 3 AND d = DATE '2024-01-01'", False),  # noqa: E501
    ("i <> 5", "i != 5", True),
    ("`st`.`b.c` = 'x'", "st.`b.c` = 'x'", True),
    ("ST.A = 1", "st.a = 1", True),
    ("u = 'F79C3E09-677C-4BBD-A479-3F349CB785E7'", "u = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'", True),  # noqa: E501
    ("ts >= '2024-03-01' and s = 'Oslo'", "ts >= TIMESTAMP_NTZ '2024-03-01 00:00:00.000000' AND s = 'Oslo'", True),  # noqa: E501
    ("ts < current_timestamp()", "TRUE", False),
    # Spark compares a bigint with a double as doubles, and text with a number as the number.
    ("L = 9007199254740993D", "TRUE", False),
    ("s = 5", "TRUE", False),
    # Spark finds this TRUE of NULL.
    ("i < 9223372036854775808", "TRUE", False),
    # Clocks in New York were changed at that time.
    ("ts < TIMESTAMP '2024-03-10 02:30:00'", "TRUE", False),
    ("ts < TIMESTAMP '2024-06-01 00:00:00'", "ts < TIMESTAMP_NTZ '2024-06-01 00:00:00.000000'", True),  # noqa: E501
]  # fmt: skip


def made(spark, where, schema=SCHEMA, **more):
    zone = more.pop("time_zone", "America/New_York")
    return condition_of(
        where, schema, spark=spark, time_zone=zone, **{"case_sensitive": False, **more}
    )


@pytest.mark.parametrize(("text", "implied", "is_exact"), IMPLIED)
def test_implied(spark, text, implied, is_exact):
    condition = made(spark, text)
    assert (condition.implied.to_sql(), condition.is_exact) == (implied, is_exact)
    assert (str(condition), condition.has_subquery) == (text, False)


@pytest.mark.check
def test_none_an_expression_and_columns(spark):
    rows = spark.createDataFrame([(1, "a"), (2, None), (None, "b")], "i int, s string")
    schema = Schema((T.NestedField(1, "i", T.IntegerType()), T.NestedField(2, "s", T.StringType())))
    everything = made(spark, None, schema)
    assert everything.is_always_true
    assert (everything.matching_rows(rows).count(), everything.other_rows(rows).count()) == (3, 0)
    ours = made(spark, col("i") > 1, schema)
    assert (ours.text, ours.is_exact, ours.column_names) == ("i > 1", True, {"i"})
    assert (ours.matching_rows(rows).count(), ours.other_rows(rows).count()) == (1, 2)
    for column in (F.col("s") != "a", F.expr("t.s <> 'a'"), ~(F.col("t.S") == "a")):
        theirs = made(spark, column, schema, alias="t")
        assert (theirs.implied.to_sql(), theirs.is_exact) == ("TRUE", False)
        assert [row.s for row in theirs.matching_rows(rows).collect()] == ["b"]
        assert theirs.other_rows(rows).count() == 2
    assert "Column" not in made(spark, F.col("i") > 1, schema).text
    never = made(spark, "i = null", schema)
    assert (never.matching_rows(rows).count(), never.other_rows(rows).count()) == (0, 3)


REFUSED = [
    ("nothing = 1", "there is no column 'nothing'"),
    ("upper(flagg) = 'A'", "did you mean 'flag'"),
    ("t.nothing = upper(s)", "there is no column 'nothing'"),
    ("concat('a', s)", "boolean"),
    ("i", "boolean"),
    ("i = = 1", "syntax"),
    ("i = 1) or (true", "syntax"),
    ("i = 1; drop table x", "syntax"),
    ("i > max(L)", "max"),
    ("row_number() over (order by L) > 1", "window"),
    ("explode(array(true))", "generator"),
    ("no_such_function(i) > 1", "no_such_function"),
    ("d = X'00'", "mismatch"),
    ("i in (select x from no_such_view)", "no_such_view"),
    ("", "syntax"),
    (5, "give SQL text"),
    (F.col, "give SQL text"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "words"), in_circles(REFUSED, test=1))
def test_refused_when_it_is_made(spark, where, words):
    with pytest.raises(PredicateError, match=f"(?i){words}") as caught:
        made(spark, where, alias="t")
    assert len(str(caught.value)) < 1500
    if isinstance(where, str):
        assert caught.value.__cause__ is None or isinstance(
            caught.value.__cause__, AnalysisException
        )


def test_columns_of_no_use_are_refused_when_the_condition_is_made(spark):
    other = spark.range(3)
    for column in (F.col("nothing") > 1, other["id"] > 1, F.col("i") + 1, F.max("i") > 1):
        with pytest.raises(PredicateError, match="condition"):
            made(spark, column)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("upper(s) = 'flag' and i = 1", {"s", "i"}),
        ("t.S = upper(`st`.a) or x'00' = b", {"s", "st", "b"}),
        ("exists(array(i), d -> d = 1)", {"i", "d"}),
        ("rand() < 0.5", set()),
        ("struct(*) is null", None),
        ("t.i = length(t.s)", {"i", "s"}),
    ],
)
def test_columns_that_are_needed(spark, text, names):
    assert made(spark, text, alias="t").column_names == names


@pytest.mark.check
def test_an_alias_goes_before_a_struct_of_its_name(spark):
    schema = Schema(
        (
            T.NestedField(1, "t", T.StructType((T.NestedField(2, "id", T.IntegerType()),))),
            T.NestedField(3, "id", T.IntegerType()),
        )
    )
    rows = spark.sql("select named_struct('id', 1) as t, 2 as id")
    for text in ("t.id = 2", "t.t.id = 1", "abs(t.id) = 2", "t.id = 2 and abs(t.t.id) = 1"):
        assert made(spark, text, schema, alias="t").matching_rows(rows).count() == 1, text
        assert made(spark, text, schema, alias="t").other_rows(rows).count() == 0, text
    assert made(spark, "t.id = 1", schema).matching_rows(rows).count() == 1


def test_names_with_dots_quotes_and_other_cases(spark):
    names = ["a.b", "select `x`", "Über", "from"]
    schema = Schema(tuple(T.NestedField(n, x, T.IntegerType()) for n, x in enumerate(names, 1)))
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    rows = spark.sql("select " + ", ".join(f"{n} as {name}" for n, name in enumerate(quoted)))
    for n, name in enumerate(quoted):
        condition = made(spark, f"abs({name}) = {n} and {name} = {n}", schema)
        assert condition.column_names == {names[n]}
        assert condition.implied.to_sql().endswith(f" = {n}")
        assert condition.matching_rows(rows).count() == 1
    assert made(spark, "`über` = 2 and abs(`ÜBER`) = 2", schema).matching_rows(rows).count() == 1
    with pytest.raises(PredicateError, match="did you mean 'Über'"):
        made(spark, "`über` = 2", schema, case_sensitive=True)
    with pytest.raises(PredicateError, match="did you mean 'Über'"):
        made(spark, "abs(`über`) = 2", schema, case_sensitive=True)


def test_types_that_spark_lacks_and_nested_ones(spark):
    types = {
        "ns": T.TimestampNanoType(),
        "at": T.TimeType(),
        "u": T.UUIDType(),
        "v": T.VariantType(),
        "void": T.UnknownType(),
        "list": T.ListType(101, T.DoubleType(), True),
        "map": T.MapType(102, T.StringType(), 103, T.LongType()),
        "s": T.StringType(),
    }
    schema = Schema(tuple(T.NestedField(n, x, t) for n, (x, t) in enumerate(types.items(), 1)))
    rows = spark.sql(
        "select 1704067200000000001L as ns, 3723000000L as at, 'f79c3e09-677c-4bbd-a479-3f349cb785e7'"  # noqa: E501
        " as u, parse_json('1') as v, null as void, array(1.0D) as list, map('k', 5L) as map, 's' as s"  # noqa: E501
    )
    for text in (
        "ns >= '2024-01-01' and at = '01:02:03' and upper(s) = 'S'",
        "ns > TIMESTAMP '2024-01-01 00:00:00' or upper(s) = 'X'",
        "ns = 1704067200000000001",
        "at = TIME '01:02:03'",
        "u = 'F79C3E09-677C-4BBD-A479-3F349CB785E7' and lower(s) = 's'",
        "to_json(v) = '1' and void is null",
        "list[0] = 1 and size(list) = 1",
        "map['k'] = 5 and map.k = 5",
    ):
        if "TIMESTAMP" in text and " or " in text:
            # Spark sees a bigint there.
            with pytest.raises(PredicateError, match="refused by Spark"):
                made(spark, text, schema)
            continue
        condition = made(spark, text, schema)
        assert condition.matching_rows(rows).count() == 1, text
        assert condition.other_rows(rows).count() == 0, text


@pytest.mark.parametrize(
    ("setting", "text", "row"),
    [
        ("spark.sql.parser.escapedStringLiterals", r"s = 'a\nb'", r"a\nb"),
        ("spark.sql.legacy.consecutiveStringLiterals.enabled", "s = 'it''s'", "its"),
    ],
)
def test_settings_that_change_how_text_is_read(spark, session, setting, text, row):
    session(**{setting.replace(".", "__"): "true"})
    rows = spark.createDataFrame([(row,)], "s string")
    condition = made(spark, text, Schema((T.NestedField(1, "s", T.StringType()),)))
    assert (condition.is_exact, condition.matching_rows(rows).count()) == (False, 1)


@pytest.mark.check
def test_long_conditions(spark):
    many = " or ".join(f"i = {n}" for n in range(2000))
    assert made(spark, many).is_exact
    listed = made(spark, f"i in ({', '.join(map(str, range(5000)))}) and upper(s) = 'A'")
    assert listed.column_names == {"i", "s"}
