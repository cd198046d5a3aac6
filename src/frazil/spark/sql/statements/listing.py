"""The statements of SQL that are no queries: a row for each, with what runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Final, TypeAlias

from pyspark.sql import DataFrame

from frazil.errors import SqlSyntaxError
from frazil.spark.procedures.call import call
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.statements import (
    alter,
    changes,
    describe,
    insert,
    merge,
    show,
    tables,
    temporary_views,
    views,
)
from frazil.spark.words import QUERIES, Word, WordReader, words_of

RunChange: TypeAlias = Callable[[SqlContext, WordReader, str], None]
"""Runs a statement that changes rows; gets the text of its CTEs as well."""

RunOther: TypeAlias = Callable[[SqlContext, WordReader], DataFrame | bool | None]
"""Runs another statement; False, or None of one that has rows, says that it is Spark's."""


class StatementKind(Enum):
    """What a statement that names a lake becomes in a session whose Spark knows it.

    Attributes:
        SPARKS: what Spark makes of it, with the lake's tables in their places.
        CHANGE: a command, which is run when Spark executes it.
        SHOWN: rows about a table, read at each use.
        CALL: a procedure's rows.
    """

    SPARKS = "Spark's"
    CHANGE = "a change"
    SHOWN = "shown"
    CALL = "a call"


@dataclass(frozen=True, slots=True)
class ListedStatement:
    """A kind of statement that neither asks for rows of tables nor changes them.

    Attributes:
        words: what it begins with; `NAMESPACE` is any word for one.
        run: runs it.
        kind: what it becomes inside Spark.
        has_rows: whether there is something to show.
    """

    words: str
    run: RunOther
    kind: StatementKind = StatementKind.CHANGE
    has_rows: bool = False


CHANGES: Final[Mapping[str, RunChange]] = {
    "INSERT": insert.insert,
    "DELETE": changes.delete,
    "UPDATE": changes.update,
    "MERGE": merge.merge,
}
"""What changes rows, by the word that says it, which CTEs may stand before."""


def _call(context: SqlContext, reader: WordReader) -> DataFrame:
    return call(context.spark, context.catalog, reader.text, name=context.name)


STATEMENTS: Final = (
    ListedStatement("CALL", _call, StatementKind.CALL, has_rows=True),
    ListedStatement("SHOW", show.show, StatementKind.SHOWN, has_rows=True),
    ListedStatement("DESCRIBE", describe.describe, StatementKind.SHOWN, has_rows=True),
    ListedStatement("DESC", describe.describe, StatementKind.SHOWN, has_rows=True),
    ListedStatement("EXPLAIN", temporary_views.explain, StatementKind.SPARKS, has_rows=True),
    ListedStatement("CREATE NAMESPACE", tables.create_namespace),
    ListedStatement("CREATE TABLE", tables.create_table),
    ListedStatement("CREATE OR REPLACE TABLE", tables.create_table),
    ListedStatement("REPLACE TABLE", tables.create_table),
    ListedStatement("CREATE VIEW", views.create_view),
    ListedStatement("CREATE OR REPLACE VIEW", views.create_view),
    ListedStatement("CREATE", temporary_views.create_temporary_view, StatementKind.SPARKS),
    ListedStatement("DROP NAMESPACE", tables.drop_namespace),
    ListedStatement("DROP TABLE", tables.drop_table),
    ListedStatement("DROP VIEW", views.drop_view),
    ListedStatement("ALTER NAMESPACE", tables.alter_namespace),
    ListedStatement("ALTER TABLE", alter.alter_table),
    ListedStatement("ALTER VIEW", views.alter_view),
    ListedStatement("TRUNCATE", changes.truncate),
    ListedStatement("USE", tables.use, StatementKind.SPARKS),
    ListedStatement("CACHE", temporary_views.cache, StatementKind.SPARKS),
    ListedStatement("UNCACHE", temporary_views.uncache),
    ListedStatement("COMMENT", tables.comment),
    ListedStatement("REFRESH", tables.refresh, StatementKind.SPARKS),
)
"""Of several that fit the first is meant."""

_KINDS: Final = {each.words.partition(" ")[0]: each.kind for each in reversed(STATEMENTS)}
_SPARKS: Final = frozenset({"CATALOGS", "FUNCTION", "VARIABLE"})
_OF_THE_SESSION: Final = frozenset({"TEMPORARY", "TEMP", "FUNCTION", "VARIABLE", "GLOBAL"})
_BEGINS_A_QUERY: Final = frozenset({"AS", "SELECT", "VALUES"})


def statement_of(words: Sequence[Word]) -> ListedStatement | None:
    """Return which statement words begin; None where it is none of these."""
    keys = [word.keyword for word in words[:4] if word.keyword != "EXTERNAL"]
    text = " ".join("NAMESPACE" if key in tables.NAMESPACE_WORDS else key for key in keys) + " "
    return next((each for each in STATEMENTS if text.startswith(f"{each.words} ")), None)


def kind_by_first_word(word: str) -> StatementKind:
    """Return what a statement becomes that begins with a word."""
    return StatementKind.CHANGE if word in CHANGES else _KINDS.get(word, StatementKind.SPARKS)


def kind_of_statement(text: str, words: Sequence[Word]) -> StatementKind:
    """Return what a statement becomes, by its first words."""
    keys = [word.keyword for word in words[:5]] or [""]
    first = keys[0]
    if first == "WITH":
        return StatementKind.CHANGE if changes_after_ctes(text) else StatementKind.SPARKS
    if first == "FROM":
        return StatementKind.CHANGE if inserts_in(words) else StatementKind.SPARKS
    if first == "CREATE":
        return StatementKind.SPARKS if _OF_THE_SESSION & set(keys) else StatementKind.CHANGE
    if first == "DROP" and keys[1:2] and keys[1] in _OF_THE_SESSION:
        return StatementKind.SPARKS
    if first == "CACHE":
        has_query = temporary_views.name_of_cached_query(text) is not None
        return StatementKind.SPARKS if has_query else StatementKind.CHANGE
    if first == "EXPLAIN":
        return StatementKind.SHOWN if explained_change(text) else StatementKind.SPARKS
    kind = kind_by_first_word(first)
    of_spark = _SPARKS & set(keys) or "QUERY" in keys[1:2]
    return StatementKind.SPARKS if kind is StatementKind.SHOWN and of_spark else kind


def explained_change(text: str) -> tuple[str, str] | None:
    """Return an EXPLAIN and the statement after it, of one that changes something; else None."""
    reader = WordReader(text)
    reader.expect("EXPLAIN")
    for word in ("LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST"):
        reader.takes(word)
    inner = text[reader.place :]
    kind = kind_of_statement(inner, words_of(inner))
    is_change = kind in (StatementKind.CHANGE, StatementKind.CALL)
    return (text[: reader.place], inner) if is_change else None


def first_of_a_query(words: Sequence[Word]) -> int:
    """Return from which word on a statement may hold expressions: where its query begins.

    Before that stand names, and literals by themselves. What is explained is its own statement.
    """
    first = words[0].keyword if words else ""
    if first not in _KINDS or first == "EXPLAIN":
        return 0
    places = (at for at, word in enumerate(words) if word.keyword in _BEGINS_A_QUERY)
    return next(places, len(words))


def rows_of_change(text: str) -> list[str]:
    """Return queries of the rows that a statement writes, or looks for to change them."""
    reader = WordReader(text.rstrip().removesuffix(";"))
    before = after_ctes(reader)[0] if reader.sees("WITH") else ""
    if reader.sees("FROM"):
        starts = [reader.words[at].start for at in inserts_in(reader.words)]
        head = reader.text[: starts[0]]
        return [
            f"{head}{_query_of_insert(reader.text[start:stop])}"
            for start, stop in pairwise([*starts, len(reader.text)])
        ]
    if reader.sees("INSERT"):
        return [before + _query_of_insert(reader.text[reader.place :])]
    if reader.takes("DELETE", "FROM"):
        return [f"{before}SELECT * FROM {reader.remaining_text()}"]  # noqa: S608
    if reader.takes("UPDATE"):
        target = reader.text_to("SET")
        reader.text_to("WHERE")
        return [f"{before}SELECT * FROM {target} {reader.remaining_text()}"]  # noqa: S608
    if not reader.takes("MERGE"):
        return []
    reader.takes("WITH", "SCHEMA", "EVOLUTION")
    reader.expect("INTO")
    target = reader.text_to("USING")
    reader.expect("USING")
    source = reader.text_to("WHEN")
    return [f"{before}SELECT * FROM {target} JOIN {source}"]  # noqa: S608


def _query_of_insert(text: str) -> str:
    """The query of an INSERT, or what of it follows a FROM."""
    reader = WordReader(text)
    reader.expect("INSERT")
    reader.word("INTO")
    reader.takes("TABLE")
    reader.names("the name of a table")
    while not (reader.is_done or reader.sees_one_of(*QUERIES) or insert.sees_query(reader)):
        if reader.sees("("):
            reader.inner_reader()
        else:
            reader.word("a query")
    return reader.remaining_text()


def inserts_in(words: Sequence[Word]) -> list[int]:
    """Return where a statement that begins as a query says INSERT INTO or OVERWRITE."""
    depth = 0
    found = []
    for at, (word, after) in enumerate(pairwise(words)):
        depth += (word.keyword == "(") - (word.keyword == ")")
        if depth == 0 and word.keyword == "INSERT" and after.keyword in ("INTO", "OVERWRITE"):
            found.append(at)
    return found


def changes_after_ctes(text: str) -> bool:
    """Return whether a statement that begins with CTEs changes rows after them."""
    reader = WordReader(text)
    try:
        kind = after_ctes(reader)[1]
    except SqlSyntaxError:
        return False
    return kind in CHANGES or (kind == "FROM" and bool(inserts_in(reader.words)))


def after_ctes(reader: WordReader) -> tuple[str, str]:
    """Return the text of CTEs, and the word that follows them; the reader stands there.

    Raises:
        SqlSyntaxError: the text does not begin with CTEs.
    """
    begin = reader.place
    reader.expect("WITH")
    reader.takes("RECURSIVE")
    while True:
        reader.name("the name of a CTE")
        if reader.sees("("):
            reader.inner_reader()
        while reader.sees_one_of("MAX"):
            reader.word("MAX")
            reader.word("RECURSION")
            reader.word("LEVEL")
            reader.word("a number")
        reader.takes("AS")
        reader.inner_reader()
        if not reader.takes(","):
            break
    kind = "" if reader.is_done else reader.words[reader.at].keyword
    return reader.text[begin : reader.place], kind
