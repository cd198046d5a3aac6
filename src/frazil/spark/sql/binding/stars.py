"""Stars beside hidden columns: ``*`` means the table's own columns, as in Java's runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from frazil.errors import UnsupportedError
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.sql.binding.hidden_columns import NamedTables, Scope
from frazil.spark.words import Word

_BEFORE: Final = frozenset({"SELECT", "DISTINCT", "ALL", "MAP", "REDUCE", "(", ","})
_ALL_COLUMNS: Final = frozenset({"NATURAL", "PIVOT", "UNPIVOT", "|>"})
"""Words that mean all columns of a relation without a star."""


def without_hidden(named: NamedTables) -> Iterator[tuple[int, int, str]]:
    """Yield changes of a text by which its stars leave out the hidden columns of its tables.

    Raises:
        UnsupportedError: what is no star would take them for the table's own.
    """
    words, scopes = named.words, named.scopes
    hidden = {name: each for name, each in named.tables.items() if each.metadata_columns}
    if not hidden:
        return
    _refuse_all_columns(named)
    for at, word in enumerate(words):
        if word.keyword != "*" or at == 0 or _is_count(words, at):
            continue
        before = words[at - 1]
        if before.text != "." and before.keyword not in _BEFORE:
            continue
        wanted = words[at - 2].text.lower() if before.text == "." else None
        columns = [
            quote_name_always([named.alias(each), column])
            for name, each in named.in_scope(scopes[at]).items()
            if name in hidden and wanted in (None, named.alias(each).lower())
            for column in each.metadata_columns
        ]
        if columns:
            yield _left_out(words, at, ", ".join(columns))


def _left_out(words: Sequence[Word], at: int, columns: str) -> tuple[int, int, str]:
    """The change by which a star leaves out columns; it may leave out others already."""
    after = [word.keyword for word in words[at + 1 : at + 3]]
    if after != ["EXCEPT", "("]:
        return words[at].stop, words[at].stop, f" EXCEPT ({columns})"
    return words[at + 2].stop, words[at + 2].stop, f"{columns}, "


def _is_count(words: Sequence[Word], at: int) -> bool:
    """Whether a star is that of ``count(*)``, which counts rows."""
    return at > 1 and words[at - 1].keyword == "(" and words[at - 2].keyword == "COUNT"


def _refuse_all_columns(named: NamedTables) -> None:
    words = named.words
    for at, word in enumerate(words):
        if word.keyword in _ALL_COLUMNS or _is_pipe(words, at):
            _refuse(named, named.scopes[at], word)
        if word.keyword == "FROM" and _begins(named.scopes, at):
            _refuse_from(named, at)


def _refuse_from(named: NamedTables, at: int) -> None:
    """Refuse a query that begins with FROM, and says no columns."""
    scope = named.scopes[at]
    own = [word for word, each in zip(named.words, named.scopes, strict=True) if each == scope]
    if not any(word.keyword == "SELECT" for word in own):
        _refuse(named, scope, named.words[at])


def _refuse(named: NamedTables, scope: Scope, word: Word) -> None:
    for table in named.in_scope(scope).values():
        if table.metadata_columns:
            columns = ", ".join(table.metadata_columns)
            raise UnsupportedError(
                f"{word.text} takes all columns of {named.alias(table)}, and {columns} is hidden: "
                "name it in a SELECT of its own, as a sub-query"
            )


def _is_pipe(words: Sequence[Word], at: int) -> bool:
    two = [word.text for word in words[at : at + 2]]
    return two == ["|", ">"] and words[at].stop == words[at + 1].start


def _begins(scopes: Sequence[Scope], at: int) -> bool:
    """Whether a word is the first of its query."""
    return at == 0 or all(one != scopes[at] for one, _ in pairwise(scopes[: at + 1]))
