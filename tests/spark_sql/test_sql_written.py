"""What a query's text says of its tables, and comparisons of functions as ranges of columns."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.format.partitions.transforms import (
    DayTransform,
    HourTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from frazil.format.predicates.sql.parse import sql_tree
from frazil.format.schema import Schema
from frazil.format.types import DateType, IntegerType, NestedField, StringType, TimestampType
from frazil.spark.sql.pruning.function_terms import FunctionReader
from frazil.spark.sql.pruning.written import written_reads
from scalar_predicates import keeps

SAID = {
    "SELECT 1 FROM f JOIN d ON f.k = d.k AND f.a = 1 WHERE d.b = 2": {
        "f": "f.k = d.k, f.a = 1, d.b = 2", "d": "f.k = d.k, f.a = 1, d.b = 2"},
    "SELECT 1 FROM f LEFT JOIN d ON f.k = d.k AND f.a = 1 WHERE d.b IS NULL AND f.c = 3": {
        "f": "d.b IS NULL, f.c = 3", "d": "f.k = d.k, f.a = 1"},
    "SELECT 1 FROM f RIGHT JOIN d ON f.a = 1 AND d.b = 2 WHERE f.c = 3": {
        "f": "f.a = 1, d.b = 2", "d": "f.c = 3"},
    "SELECT 1 FROM f FULL JOIN d ON f.a = 1 WHERE f.c = 3 AND d.b = 2": {"f": "", "d": ""},
    "SELECT 1 FROM f ANTI JOIN d ON f.a = 1 AND d.b = 2 WHERE f.c = 3": {
        "f": "f.c = 3", "d": "f.a = 1, d.b = 2"},
    "SELECT 1 FROM f SEMI JOIN d ON f.a = 1 WHERE f.c = 3": {
        "f": "f.a = 1, f.c = 3", "d": "f.a = 1"},
    # Rows of d that fail the second ON would make rows of f stand alone.
    "SELECT 1 FROM f LEFT JOIN d ON f.k = d.k JOIN e ON d.b IS NULL": {
        "f": "d.b IS NULL", "d": "f.k = d.k", "e": "d.b IS NULL"},
    "SELECT 1 FROM (SELECT k AS x, * FROM f WHERE f.a = 1) s WHERE s.b = 2 AND s.x = 3": {
        "f": "f.a = 1, b = 2"},
    "SELECT 1 FROM (SELECT k AS x, k + 1 AS y FROM f) s WHERE s.x = 3 AND s.y = 4": {"f": "k = 3"},
    "SELECT 1 FROM (SELECT k FROM f LIMIT 3) s WHERE s.k = 3": {"f": ""},
    "SELECT 1 FROM (SELECT k, max(a) AS a FROM f GROUP BY k) s WHERE s.k = 3": {"f": ""},
    "SELECT 1 FROM (SELECT k, rank() OVER (ORDER BY a) AS r FROM f) s WHERE s.k = 3": {"f": ""},
    "SELECT 1 FROM (SELECT k FROM f UNION ALL SELECT k FROM d) s WHERE s.k = 3": {"f": "", "d": ""},
    "SELECT 1 FROM (SELECT k FROM f) s LEFT JOIN (SELECT k FROM d) t ON s.k = 3 AND t.k = 4": {
        "f": "", "d": "k = 4"},
    "SELECT 1 FROM f TABLESAMPLE (3 ROWS) WHERE k = 3": {"f": ""},
    "SELECT * FROM f PIVOT (sum(a) FOR k IN (1, 2)) WHERE b = 1": {"f": ""},
    "WITH f AS (SELECT * FROM d WHERE d.a = 1) SELECT * FROM f WHERE f.b = 2": {"d": "d.a = 1"},
    "SELECT 1 FROM f WHERE k NOT IN (SELECT k FROM d WHERE b = 2)": {
        "f": "NOT k IN (SELECT k FROM d WHERE b = 2)", "d": "b = 2"},
    # Names of an alias stand for columns of other names.
    "SELECT 1 FROM f AS x (k, b) WHERE k = 3": {"f": ""},
    "SELECT 1 FROM (SELECT k, a FROM f WHERE a = 1) AS s (a, k) WHERE s.k = 3": {"f": "a = 1"},
    "FROM f |> WHERE a = 1": {},
}  # fmt: skip


@pytest.mark.parametrize("query", SAID)
def test_conditions_that_hold_for_every_row_needed(query):
    found = {
        read.name.parts[-1]: ", ".join(each.sql().replace('"', "") for each in read.conditions)
        for read in written_reads(query)
    }
    assert found == SAID[query]


SCHEMA = Schema(
    (
        NestedField(1, "i", IntegerType()),
        NestedField(2, "s", StringType()),
        NestedField(3, "d", DateType()),
        NestedField(4, "t", TimestampType()),
    )
)
READER = FunctionReader(
    schema=SCHEMA, case_sensitive=True, time_zone="UTC", is_lake=lambda name: name == "lake"
)
DAY = 86_400_000_000
COMPARISONS = {
    "=": lambda a, b: a == b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
FUNCTIONS = {
    "system.truncate(7, i)": (1, IntegerType(), TruncateTransform(7), (-40, 40), (-60, 60)),
    "lake.system.days(d)": (3, DateType(), DayTransform(), (-90, 90), (-90, 90)),
    "system.days(t)": (4, TimestampType(), DayTransform(), (-3, 3), (-3 * DAY, 3 * DAY)),
    "system.hours(t)": (4, TimestampType(), HourTransform(), (-30, 30), (-DAY, DAY)),
    "system.months(t)": (4, TimestampType(), MonthTransform(), (-20, 20), (-500 * DAY, 500 * DAY)),
    "system.years(d)": (3, DateType(), YearTransform(), (-4, 4), (-1500, 1500)),
}


@given(st.data())
def test_a_comparison_is_a_range_of_the_column(data):
    call = data.draw(st.sampled_from(sorted(FUNCTIONS)))
    field, kind, transform, results, values = FUNCTIONS[call]
    op = data.draw(st.sampled_from(sorted(COMPARISONS)))
    result, value = data.draw(st.integers(*results)), data.draw(st.integers(*values))
    edge = data.draw(st.integers(-1, 1))
    literal = str(result)
    if "days" in call:
        literal = f"DATE '{date(1970, 1, 1) + timedelta(days=result)}'"
    found = READER.implied_by_tree(sql_tree(f"{call} {op} {literal}"))
    for each in (value, value // DAY * DAY + edge):
        expected = COMPARISONS[op](transform.apply(kind, each), result)
        assert keeps(found, {field: each}) is expected, (call, op, literal, each)
    assert not keeps(found, {field: None})


@given(st.text("ab", max_size=4), st.text("ab", max_size=4), st.integers(1, 3))
def test_a_text_that_is_cut(value, said, width):
    found = READER.implied_by_tree(sql_tree(f"system.truncate({width}, s) IN ('{said}')"))
    assert keeps(found, {2: value}) is (value[:width] == said)


@pytest.mark.parametrize("text", [
    "system.bucket(4, i) = 3", "other.system.days(d) = DATE '2024-01-01'", "system.days(d) = 3",
    "system.days(d) != DATE '2024-01-01'", "system.days(d) = DATE '2024-1-1'",
    "system.years(d) = 9000", "system.truncate(2, s) > 'a'", "system.hours(d) = 3",
])  # fmt: skip
def test_what_is_not_known_implies_nothing(text):
    assert READER.implied_by_tree(sql_tree(text)).to_sql() == "TRUE"


def test_buckets():
    found = READER.buckets(sql_tree("system.bucket(4, i) IN (1, 3)"))
    assert (found.ref.field_id, found.count, found.wanted) == (1, 4, {1, 3})
    for text in ("system.bucket(4, i) > 1", "system.days(d) = 1", "system.bucket(4, i) = i"):
        assert READER.buckets(sql_tree(text)) is None
