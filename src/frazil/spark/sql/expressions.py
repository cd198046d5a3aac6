"""Expressions within a statement: conditions and values, in which sub-queries name tables too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

from pyspark.sql import DataFrame

from frazil.spark.sql.binding.bound_text import bind_tables
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.failures import in_the_users_words
from frazil.spark.sql.qualifiers import with_short_qualifiers
from frazil.spark.words import Word, words_of

_BEFORE = "SELECT "


@dataclass(slots=True)
class Expressions:
    """Puts temporary views in place of the lake's tables in expressions.

    Attributes:
        context: what names mean.
        ctes: the text of CTEs that stand before the statement.
        outer: the table that the statement changes, where its columns can have its name.
    """

    context: SqlContext
    ctes: str = ""
    outer: tuple[tuple[str, ...], ...] = ()
    _rows: dict[str, DataFrame] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def bound(self, text: str) -> str:
        """Return an expression that Spark can read while `views` lasts."""
        words = words_of(text)
        if not any(word.keyword in ("SELECT", "TABLE", "FROM") for word in words):
            return with_short_qualifiers(text, self.outer)
        if self.ctes:
            text = self._with_ctes(text, words)
        whole = _BEFORE + text
        bound = bind_tables(self.context, whole, words_of(whole), as_views=True, outer=self.outer)
        self._rows.update(bound.relation_rows(bound.all_rows()))
        self._rows.update(bound.frames)
        self._names.update(bound.names)
        return bound.text[len(_BEFORE) :]

    def _with_ctes(self, text: str, words: Sequence[Word]) -> str:
        """The expression with the CTEs in each of its sub-queries."""
        starts = [
            word.start
            for before, word in pairwise(words)
            if before.keyword == "(" and word.keyword in ("SELECT", "TABLE", "FROM", "VALUES")
        ]
        for start in reversed(starts):
            text = f"{text[:start]}{self.ctes}{text[start:]}"
        return text

    @contextmanager
    def views(self) -> Iterator[None]:
        """Have the views that the expressions name."""
        catalog = self.context.spark.catalog
        made: list[str] = []
        try:
            for name, rows in self._rows.items():
                rows.createOrReplaceTempView(name)
                made.append(name)
            with in_the_users_words(self._names):
                yield
        finally:
            for name in made:
                catalog.dropTempView(name)
