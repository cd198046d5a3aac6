"""Expressions within a statement: conditions and values, in which sub-queries name tables too."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.session.temporary_views import make_temporary_view
from frazil.spark.sql.binding.bind import bind_query, bind_tables
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.errors.failures import in_the_users_words
from frazil.spark.sql.functions.calls import calls_in, may_call
from frazil.spark.sql.functions.with_functions import with_functions
from frazil.spark.sql.qualifiers import with_short_qualifiers
from frazil.spark.sql.variables import with_values
from frazil.spark.words import Word, words_of

_BEFORE = "SELECT "
Side = Callable[[], DataFrame]


@dataclass(slots=True)
class Expressions:
    """Puts temporary views in place of the lake's tables in expressions.

    Attributes:
        context: what names mean.
        ctes: the text of CTEs that stand before the statement.
        outer: the table that the statement changes with its columns, where these can have its name.
        sides: what the expressions name columns of: by aliases what returns the rows.
    """

    context: SqlContext
    ctes: str = ""
    outer: Mapping[tuple[str, ...], Collection[str]] = field(default_factory=dict)
    sides: dict[str, Side] = field(default_factory=dict)
    _rows: dict[str, DataFrame] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def bind(self, text: str) -> str:
        """Return an expression that Spark can read while `views` lasts."""
        text = self._with_functions(with_values(self.context.spark, text, self._is_column))
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

    def _is_column(self, parts: tuple[str, ...]) -> bool:
        """Whether a name is that of a column, or begins with what the rows of one are called."""
        first = parts[0].lower()
        whole = [part.lower() for names in self.outer for part in names]
        if len(parts) > 1 and first in (*map(str.lower, self.sides), *whole):
            return True
        return any(first in map(str.lower, side().columns) for side in self.sides.values())

    def _with_functions(self, text: str) -> str:
        """The expression with Spark's own in place of the lake's functions."""
        words = words_of(text)
        calls = calls_in(text, words, self.context.is_lake) if may_call(words) else []
        if not calls:
            return text
        whole = [self.sides, *({name: rows} for name, rows in self.sides.items())]
        for number, sides in enumerate(whole):
            try:
                analyse = partial(self._analysed_frame, sides)
                return with_functions(text, words, calls, analyse).text
            except AnalysisException:
                # In a clause of MERGE a name may be of one side, and would mean either.
                if number + 1 == len(whole):
                    raise
        raise AssertionError(text)

    def _analysed_frame(self, sides: dict[str, Side], text: str) -> DataFrame:
        names = {f"frazil_side_{number}": name for number, name in enumerate(sides)}
        frames = {ours: sides[said]() for ours, said in names.items()}
        rows = ", ".join(f"`{ours}` AS {quote_name_always([said])}" for ours, said in names.items())
        own = with_short_qualifiers(text, self.outer)
        whole = f"{self.ctes}SELECT ({own})" + (f" FROM {rows}" if rows else "")  # noqa: S608
        context = replace(self.context, frames={**self.context.frames, **frames})
        bound = bind_query(context, whole)
        return bound.run(None, bound.no_rows())

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
        with ExitStack() as made:
            for name, rows in self._rows.items():
                made.callback(make_temporary_view(rows, name))
            with in_the_users_words(self._names):
                yield
