"""The statements of SQL that are no queries: a row for each, with what runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from pyspark.sql import DataFrame

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
from frazil.spark.words import Word, WordReader

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

    @property
    def first_word(self) -> str:
        """Its first word."""
        return self.words.partition(" ")[0]


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

_KINDS: Final = {each.first_word: each.kind for each in reversed(STATEMENTS)}
_BEGINS_A_QUERY: Final = frozenset({"AS", "SELECT", "VALUES"})


def statement_of(words: Sequence[Word]) -> ListedStatement | None:
    """Return which statement words begin; None where it is none of these."""
    keys = [word.keyword for word in words[:4]]
    text = " ".join("NAMESPACE" if key in tables.NAMESPACE_WORDS else key for key in keys) + " "
    return next((each for each in STATEMENTS if text.startswith(f"{each.words} ")), None)


def kind_by_first_word(word: str) -> StatementKind:
    """Return what a statement becomes that begins with a word."""
    return StatementKind.CHANGE if word in CHANGES else _KINDS.get(word, StatementKind.SPARKS)


def first_of_a_query(words: Sequence[Word]) -> int:
    """Return from which word on a statement may hold expressions: where its query begins.

    Before that stand names, and literals by themselves. What is explained is its own statement.
    """
    first = words[0].keyword if words else ""
    if first not in _KINDS or first == "EXPLAIN":
        return 0
    places = (at for at, word in enumerate(words) if word.keyword in _BEGINS_A_QUERY)
    return next(places, len(words))


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
