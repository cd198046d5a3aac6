"""The words of a statement, without Spark: places in the text, quotes, comments, damage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import SqlSyntaxError, ValidationError
from frazil.spark.sql.parameters import with_frames, with_literals
from frazil.spark.sql.qualifiers import with_short_qualifiers, without_qualifiers
from frazil.spark.words import WordReader, words_of

TEXTS = [
    (
        "SELECT a.b, 'x''y', `p``q` FROM t -- end",
        ["SELECT", "a", ".", "b", ",", "x'y", ",", "p`q", "FROM", "t"],
    ),
    ("CALL system.f(a => 1)", ["CALL", "system", ".", "f", "(", "a", "=>", "1", ")"]),
    ("/* one */ SHOW\n-- two\nTABLES", ["SHOW", "TABLES"]),
    ("SELECT 1L, 2.5BD, r'a\\b', \"d\"", ["SELECT", "1L", ",", "2.5BD", ",", "a\\b", ",", "d"]),
    ("GROUP BY x PARTITIONED   BY (y)", ["GROUP", "BY", "x", "PARTITIONED", "BY", "(", "y", ")"]),
    ("", []),
]


@pytest.mark.parametrize(("text", "said"), TEXTS)
def test_words_and_their_places(text, said):
    words = words_of(text)
    assert [word.text for word in words] == said
    for word in words:
        raw = text[word.start : word.stop]
        assert raw == word.text or raw[0] in "'\"`r"


@pytest.mark.parametrize("text", ["SELECT 'open", "SELECT `open", 'SELECT "open'])
def test_a_quote_without_end(text):
    with pytest.raises(SqlSyntaxError):
        words_of(text)


@given(st.text(max_size=60))
def test_any_text_has_words_or_a_typed_error(text):
    try:
        words = words_of(text)
    except SqlSyntaxError:
        return
    places = [(word.start, word.stop) for word in words]
    assert places == sorted(places)
    assert all(0 <= start < stop <= len(text) for start, stop in places)


def test_a_megabyte_of_text():
    text = "SELECT " + ", ".join(f"c{number}" for number in range(100_000)) + " FROM db.t"
    assert len(text) > 700_000
    assert words_of(text)[-1].text == "t"


def test_a_reader_says_where_it_stopped():
    reader = WordReader("ALTER TABLE t\n  ADD nothing")
    reader.expect("ALTER", "TABLE")
    assert reader.names() == ("t",)
    with pytest.raises(
        SqlSyntaxError, match="line 2, column 3: DROP is expected, not 'ADD nothing'"
    ):
        reader.expect("DROP")


def test_text_ends_outside_of_parentheses_and_case():
    reader = WordReader("CASE WHEN a THEN (b, 'x, WHEN') END + 1, c WHEN d")
    assert reader.until(",", "WHEN") == "CASE WHEN a THEN (b, 'x, WHEN') END + 1"
    reader.expect(",")
    assert reader.until(",", "WHEN") == "c"


@pytest.mark.parametrize(
    ("text", "args", "expected"),
    [
        ("a = :x AND b = ':x'", {"x": "it's"}, "a = 'it\\'s' AND b = ':x'"),
        ("a:x = :x", {"x": 1}, "a:x = 1"),
        ("a IN (?, ?) -- ?", [1, None], "a IN (1, NULL) -- ?"),
        ("x = :list", {"list": [1, 2]}, "x = array(1, 2)"),
        ("x = :unknown", {"x": 1}, "x = :unknown"),
    ],
)
def test_parameters_become_literals(text, args, expected):
    assert with_literals(text, args) == expected


def test_parameters_that_cannot_be():
    with pytest.raises(SqlSyntaxError, match="2"):
        with_literals("a = ? AND b = ?", [1])
    with pytest.raises(ValidationError, match="no literal"):
        with_literals("a = :x", {"x": object()})
    with pytest.raises(SqlSyntaxError, match="braces"):
        with_frames(None, "SELECT {y}", {"x": 1})
    text = with_frames(None, "SELECT {x}, {{}}", {"x": "it's"})
    assert text == ("SELECT 'it\\'s', {}", {})


def test_qualifiers():
    text = "lake.db.t.id = 1 AND db.t.x > t.y AND u.db.t.z = 'db.t.q' AND db.s.x = 1"
    short = "t.id = 1 AND t.x > t.y AND u.db.t.z = 'db.t.q' AND db.s.x = 1"
    assert with_short_qualifiers(text, [("lake", "db", "t")]) == short
    assert without_qualifiers("a.id > 1 AND a.s.`x y` = b.a.c", {("a",)}) == (
        "id > 1 AND s.`x y` = b.a.c"
    )
