"""Expressions within a statement: conditions and values, in which sub-queries name tables too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from frazil.format.predicates import AlwaysTrue
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.failures import in_the_users_words
from frazil.spark.sql.query import bind_tables
from frazil.spark.words import words_of

_BEFORE = "SELECT "


@dataclass(slots=True)
class Expressions:
    """Puts temporary views in place of the lake's tables in expressions.

    Attributes:
        context: what names mean.
    """

    context: SqlContext
    _rows: dict[str, DataFrame] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def bound(self, text: str) -> str:
        """Return an expression that Spark can read while `views` lasts."""
        if not any(word.keyword in ("SELECT", "TABLE", "FROM") for word in words_of(text)):
            return text
        whole = _BEFORE + text
        bound = bind_tables(self.context, whole, words_of(whole), as_views=True)
        for name, relation in bound.relations.items():
            self._rows[name] = relation.rows(AlwaysTrue())
        self._rows.update(bound.frames)
        self._names.update(bound.names)
        return bound.text[len(_BEFORE) :]

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
