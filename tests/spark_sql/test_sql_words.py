"""The words of a statement, without Spark: places in the text, quotes, comments, damage."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import SqlSyntaxError, ValidationError
from frazil.spark.sql.parameters import with_frames, with_literals
from frazil.spark.sql.qualifiers import with_short_qualifiers, without_qualifiers
from frazil.spark.sql.statements.listing import (
    STATEMENTS,
    StatementKind,
    changes_after_ctes,
    first_of_a_query,
    kind_by_first_word,
    statement_of,
)
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
    assert reader.text_to(",", "WHEN") == "CASE WHEN a THEN (b, 'x, WHEN') END + 1"
    reader.expect(",")
    assert reader.text_to(",", "WHEN") == "c"


@pytest.mark.parametrize(
    ("text", "args", "expected"),
    [
        ("a = :x AND b = ':x'", {"x": "it's"}, "a = ('it\\'s') AND b = ':x'"),
        ("a:x = :x", {"x": 1}, "a:x = (1)"),
        ("a IN (?, ?) -- ?", [1, None], "a IN ((1), (NULL)) -- ?"),
        ("x = :list", {"list": [1, 2]}, "x = (array(1, 2))"),
        ("10 -:x AND 10 -?", {"x": -1}, "10 -(-1) AND 10 -?"),
        ("10 -? AND 'a'?", [-1.5, "b"], "10 -(-1.5D) AND 'a'('b')"),
        (
            "CASE WHEN:x THEN:y ELSE:x END",
            {"x": True, "y": 1},
            "CASE WHEN(TRUE) THEN(1) ELSE(TRUE) END",
        ),
        ("a[1]:x = f(b):x", {"x": 1}, "a[1]:x = f(b):x"),
        (
            "DATE :d, INTERVAL :i DAY",
            {"d": "2024-01-31", "i": -1},
            "DATE  '2024-01-31' , INTERVAL  -1  DAY",
        ),
        (
            "t VERSION AS OF :v LIKE :p ESCAPE :e",
            {"v": 7, "p": "a", "e": "!"},
            "t VERSION AS OF  7  LIKE ('a') ESCAPE  '!' ",
        ),
        ("TABLESAMPLE (:n PERCENT)", {"n": 10}, "TABLESAMPLE ( 10  PERCENT)"),
        ("v = :x", {"x": "${spark.app.name}$"}, "v = ('\\u0024{spark.app.name}$')"),
        (
            "v = :x",
            {"x": timedelta(days=-1, microseconds=5)},
            "v = (make_dt_interval(-1, 0, 0, 0.000005))",
        ),
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
        with_frames(None, "SELECT {y}", {"x": 1}, first_of_a_query)
    text = with_frames(
        None, "SELECT {x}, {{}}, 10 -{y}, '{y}%'", {"x": "it's", "y": -1}, first_of_a_query
    )
    assert text == ("SELECT  ('it\\'s'), {}, 10 - (-1), '-1%'", {})


def test_parameters_of_definitions_stand_alone_until_the_query():
    text = "CREATE TABLE t COMMENT :c TBLPROPERTIES ('a' = :a) AS SELECT 1 -:a"
    first = first_of_a_query(words_of(text))
    found = with_literals(text, {"c": "x", "a": -1}, first=first)
    expected = "CREATE TABLE t COMMENT  'x'  TBLPROPERTIES ('a' =  -1 ) AS SELECT 1 -(-1)"
    assert found == expected


def test_qualifiers():
    text = "lake.db.t.id = 1 AND db.t.x > t.y AND u.db.t.z = 'db.t.q' AND db.s.x = 1"
    short = "t.id = 1 AND t.x > t.y AND u.db.t.z = 'db.t.q' AND db.s.x = 1"
    assert with_short_qualifiers(text, [("lake", "db", "t")]) == short
    tables = {("lake", "db", "t"): ["id", "db"]}
    assert with_short_qualifiers(
        "db.t.x = db.t.id AND lake.db.t.db.t.x > count(db.t.*)", tables
    ) == ("db.t.x = t.id AND t.db.t.x > count(t.*)")
    assert without_qualifiers("a.id > 1 AND a.s.`x y` = b.a.c", {("a",)}) == (
        "id > 1 AND s.`x y` = b.a.c"
    )


STATEMENTS_BY_TEXT = {
    "create or replace table db.t (id int)": "CREATE OR REPLACE TABLE",
    "CREATE SCHEMA IF NOT EXISTS db": "CREATE NAMESPACE",
    "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1": "CREATE",
    "CREATE VIEW db.v AS SELECT 1": "CREATE VIEW",
    "DROP DATABASE db": "DROP NAMESPACE",
    "DROP FUNCTION f": None,
    "DROP TEMPORARY VIEW v": None,
    "ALTER TABLE db.t ADD COLUMN x int": "ALTER TABLE",
    "desc db.t": "DESC",
    "SELECT 1": None,
    "": None,
}


@pytest.mark.parametrize("text", STATEMENTS_BY_TEXT)
def test_the_row_of_a_statement(text):
    found = statement_of(words_of(text))
    assert (None if found is None else found.words) == STATEMENTS_BY_TEXT[text]


def test_every_row_of_a_statement_can_be_reached():
    assert [each for each in STATEMENTS if statement_of(words_of(f"{each.words} x")) != each] == []


def test_what_a_statement_becomes_inside_spark():
    kinds = {kind: [] for kind in StatementKind}
    words = """ALTER CACHE CALL COMMENT CREATE DELETE DESC DESCRIBE DROP EXPLAIN INSERT MERGE
        REFRESH REPLACE SELECT SET SHOW TRUNCATE UPDATE USE"""
    for word in words.split():
        kinds[kind_by_first_word(word)].append(word)
    assert {kind: " ".join(words) for kind, words in kinds.items()} == {
        StatementKind.SPARKS: "CACHE EXPLAIN REFRESH SELECT SET USE",
        StatementKind.CHANGE: (
            "ALTER COMMENT CREATE DELETE DROP INSERT MERGE REPLACE TRUNCATE UPDATE"
        ),
        StatementKind.SHOWN: "DESC DESCRIBE SHOW",
        StatementKind.CALL: "CALL",
    }


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("WITH s AS (SELECT 1) DELETE FROM t WHERE id IN (SELECT * FROM s)", True),
        ("WITH RECURSIVE s (n) AS (SELECT 1), r AS (SELECT 2) MERGE INTO t USING s", True),
        ("WITH s AS (SELECT 1) SELECT * FROM s", False),
        ("WITH s AS (SELECT 1) FROM s INSERT INTO t SELECT * INSERT OVERWRITE u SELECT *", True),
        ("WITH s AS (SELECT 1) FROM s SELECT * ", False),
        # A name may be a word of a statement, also behind a sub-query.
        ("WITH s AS (SELECT 1) SELECT * FROM s JOIN (SELECT 2) comment", False),
        ("WITH s AS (SELECT 1) SELECT * FROM s JOIN (SELECT 2) merge", False),
    ],
)
def test_what_follows_ctes(text, changes):
    assert changes_after_ctes(text) is changes
