"""A source goes to every task by the bytes of its rows, whatever their types look like."""

from __future__ import annotations

import pytest

from frazil.spark.row_level.merging.matches import matching
from frazil.spark.row_level.merging.source import Source
from frazil.spark.session import costs

TEXT = "x" * 1000
VALUES = {
    "string": ("'{t}'", 1000),
    "binary": ("cast('{t}' as binary)", 1000),
    "array<bigint>": ("sequence(1L, 500L)", 4000),
    "array<string>": ("array_repeat('{t}', 3)", 3000),
    "array<array<string>>": ("array(array('{t}', null), null)", 1000),
    "map<string, double>": ("map('{t}', 1D)", 1000),
    "map<int, array<string>>": ("map(1, array('{t}'), 2, array('{t}'))", 2000),
    "struct<a: int, b: string>": ("named_struct('a', 1, 'b', '{t}')", 1000),
    "array<struct<a: array<string>>>": ("array(named_struct('a', array('{t}', '{t}')))", 2000),
    "variant": ("parse_json('\"{t}\"')", 1000),
    "null string": ("if(id < 0, '{t}', null)", 0),
}
"""Of each type a value, and the bytes that it surely takes."""

ROWS = 50


@pytest.mark.parametrize("keys", ["collected", "too long"])
def test_rows_are_measured(spark, monkeypatch, keys):
    if keys == "too long":
        monkeypatch.setattr("frazil.spark.session.costs.SOURCE_KEY_BYTES", 0)
    columns = [f"{value.format(t=TEXT)} as v{n}" for n, (value, _) in enumerate(VALUES.values())]
    df = spark.range(ROWS).selectExpr("id", *columns)
    bytes_of_row = sum(size for _, size in VALUES.values())
    source = Source.of(df, [], matched=["id", "v0"])
    assert (source.collected is None) == (keys == "too long")
    assert ROWS * bytes_of_row <= source.size.total <= 1.5 * ROWS * bytes_of_row
    assert bytes_of_row <= source.size.largest <= 1.5 * bytes_of_row
    assert ROWS * 1000 <= source.matched_size.total <= 1.1 * ROWS * 1000
    assert Source.of(df.limit(0), []).size.total == 0


@pytest.fixture
def sent(monkeypatch):
    """Whether the source, and whether its rows beside their places, went to every task."""
    told = []

    def spied(name):
        original = getattr(matching.Matching, name)

        def answer(self, *args):
            told.append((name, original(self, *args)))
            return told[-1][1]

        monkeypatch.setattr(matching.Matching, name, answer)

    spied("sends_pairs")
    monkeypatch.setattr(costs, "MATCHED_BYTES", 1 << 20)
    return told


@pytest.mark.parametrize(("length", "wanted"), [(3, True), (100_000, False)])
def test_a_large_row_that_matches_often_is_counted_as_often(lake, spark, sent, length, wanted):
    """The source is sent, of 100 kB; beside the rows that they match, its rows are of 2 MB."""
    table = lake.create_table(
        "db.t", "k int, g int, v string", properties={"write.merge.mode": "merge-on-read"}
    )
    table.append(spark.range(100).selectExpr("int(id) as k", "int(id % 5) as g", "'old' as v"))
    values = f"if(id = 4, repeat('x', {length}), 'new')"
    source = spark.range(5).selectExpr("int(id) as g", f"{values} as v")
    merge = table.merge(source, "target.g = source.g").when_matched_update({"v": "source.v"})
    assert merge.execute().rows_updated == 100
    assert sent == [("sends_pairs", wanted)]
    assert table.to_df().selectExpr("sum(length(v))").first()[0] == 80 * 3 + 20 * length
