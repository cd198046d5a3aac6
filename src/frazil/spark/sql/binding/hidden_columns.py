"""Hidden columns, such as ``_file``: of which tables a text names them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from frazil.spark.files.projection import METADATA_COLUMNS
from frazil.spark.session.facts import is_case_sensitive
from frazil.spark.session.temporary_views import make_temporary_view
from frazil.spark.sql.binding.relations import QueriedTable
from frazil.spark.sql.errors.failures import place_in_the_users_text
from frazil.spark.sql.parameters import Args
from frazil.spark.words import QUERIES, Word, begins_query

_CHANGES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_BETWEEN: Final = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})
_UNRESOLVED: Final = "UNRESOLVED_COLUMN"
_NAMES: Final[Mapping[str, str]] = {field.name.lower(): field.name for field in METADATA_COLUMNS}
_QUOTED: Final = re.compile(r"`((?:[^`]|``)*)`")

Scope = tuple[tuple[int, int], ...]
"""A query in a text: the parentheses around it, each with the set operators before it."""

Hidden = Mapping[str, tuple[str, ...]]
"""Hidden columns that are named, by our names of the tables."""


def scopes_of(words: Sequence[Word]) -> list[Scope]:
    """Return which query each word is of."""
    frames = [[-1, 0]]
    opened: list[bool] = []
    scopes: list[Scope] = []
    for at, word in enumerate(words):
        key = word.keyword
        if key == ")" and opened:
            if opened.pop():
                frames.pop()
        elif key in _BETWEEN and not (at and words[at - 1].keyword == "*"):
            frames[-1][1] += 1
        scopes.append(tuple((begin, count) for begin, count in frames))
        if key == "(":
            begins = next((w.keyword for w in words[at + 1 :] if w.keyword != "("), "") in QUERIES
            opened.append(begins)
            if begins:
                frames.append([at, 0])
    return scopes


@dataclass(frozen=True, slots=True)
class NamedTables:
    """The tables of a text.

    Attributes:
        words: of the text.
        scopes: of the words.
        tables: by our names.
    """

    words: Sequence[Word]
    scopes: Sequence[Scope]
    tables: Mapping[str, QueriedTable]

    def in_scope(self, scope: Scope) -> dict[str, QueriedTable]:
        """Return the tables of a query's own FROM."""
        return {
            name: each
            for name, each in self.tables.items()
            if self.scopes[self._first_word(each)] == scope
        }

    def alias(self, table: QueriedTable) -> str:
        """Return what columns of a table are qualified by."""
        use = table.use
        if not use.name.is_aliased:
            return use.name.parts[-1]
        first = next(i for i, word in enumerate(self.words) if word.start >= use.alias_after)
        return self.words[first + (self.words[first].keyword == "AS")].text

    def hidden_columns(self, places: Iterator[int] | Sequence[int]) -> dict[str, tuple[str, ...]]:
        """Return the hidden columns that the words at some places name, as far as they can."""
        found: dict[str, tuple[str, ...]] = {}
        for at in places:
            column = _NAMES[self.words[at].text.lower()]
            for name in self._tables_of_word(at):
                found[name] = tuple({**dict.fromkeys(found.get(name, ())), column: None})
        return found

    def _tables_of_word(self, at: int) -> list[str]:
        """The tables of which a word can be a column: those of the nearest query that has such."""
        qualifier = None
        if at > 1 and self.words[at - 1].text == ".":
            qualifier = self.words[at - 2].text.lower()
        scope = self.scopes[at]
        while scope:
            found = [
                name
                for name, each in self.in_scope(scope).items()
                if qualifier in (None, self.alias(each).lower()) and not self._is_whole(each)
            ]
            if found:
                return found
            scope = scope[:-1]
        return []

    def _is_whole(self, table: QueriedTable) -> bool:
        """Whether a table stands in TABLE t, which is a query of all its columns."""
        at = self._first_word(table)
        return at > 0 and self.words[at - 1].keyword == "TABLE"

    def _first_word(self, table: QueriedTable) -> int:
        start = table.use.name.start
        return next(i for i, word in enumerate(self.words) if word.start >= start)


def places_of_hidden(words: Sequence[Word], spark: SparkSession) -> list[int]:
    """Return which words can name a hidden column."""
    found = [
        at
        for at, word in enumerate(words)
        if not word.is_string
        and word.text.lower() in _NAMES
        and not (at and words[at - 1].keyword == "AS")
    ]
    if found and is_case_sensitive(spark):
        return [at for at in found if words[at].text in _NAMES.values()]
    return found


def hidden_names(words: Sequence[Word], spark: SparkSession) -> tuple[str, ...]:
    """Return the hidden columns that some words can name."""
    places = places_of_hidden(words, spark)
    return tuple(sorted({_NAMES[words[at].text.lower()] for at in places}))


def is_only_a_query(words: Sequence[Word]) -> bool:
    """Return whether Spark can analyse a text and do nothing else."""
    return begins_query(words) and not any(word.keyword in _CHANGES for word in words)


def unresolved_place(
    spark: SparkSession,
    text: str,
    changes: Sequence[tuple[int, int, str]],
    rows: Mapping[str, DataFrame],
    args: Args,
) -> int | None:
    """Return where the user's text names a column that Spark does not find.

    Args:
        text: what Spark reads, with our names for temporary views.
        changes: what was replaced in the user's text.
        rows: relations without rows, by our names.

    Returns:
        The place in the user's text, -1 where it is not told; None where Spark refuses nothing.
    """
    with ExitStack() as made:
        for name, frame in rows.items():
            made.callback(make_temporary_view(frame, name))
        try:
            _ = spark.sql(text, args).schema  # type: ignore[arg-type]
        except AnalysisException as error:
            if not (error.getCondition() or "").startswith(_UNRESOLVED):
                return -1
            return place_in_the_users_text(error, changes)
    return None


def word_of_column(words: Sequence[Word], place: int, candidates: Sequence[int]) -> int | None:
    """Return which of some words is in the name that begins at a place in the text."""
    at = next((i for i, word in enumerate(words) if word.stop > place), len(words))
    while at < len(words):
        if at in candidates:
            return at
        if at + 1 >= len(words) or words[at + 1].text != ".":
            return None
        at += 2
    return None
