"""Stars beside reserved columns: ``*`` means the table's own columns, as in Java's runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.sql.binding.relations import QueriedTable
from frazil.spark.words import Word

_BEFORE: Final = frozenset({"SELECT", "DISTINCT", "ALL", ","})
_BETWEEN: Final = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})

Place = tuple[int, int]


def without_reserved(
    words: Sequence[Word], relations: Sequence[QueriedTable]
) -> Iterator[tuple[int, int, str]]:
    """Yield changes of a text by which its stars leave out the reserved columns of its tables."""
    places = _places(words)
    aliases = {}
    for each in relations:
        first = next(i for i, word in enumerate(words) if word.start >= each.use.name.start)
        aliases[_alias(words, each)] = (places[first], each)
    for at, word in enumerate(words):
        if word.keyword != "*" or at == 0:
            continue
        before = words[at - 1]
        if before.text == ".":
            names = [words[at - 2].text]
        elif before.keyword in _BEFORE:
            names = list(aliases)
        else:
            continue
        hidden = [
            quote_name_always([alias, column])
            for alias, (place, each) in aliases.items()
            if place == places[at] and alias in names
            for column in each.metadata_columns
        ]
        if hidden:
            yield word.stop, word.stop, f" EXCEPT ({', '.join(hidden)})"


def _places(words: Sequence[Word]) -> list[Place]:
    """Which query each word is of: the parenthesis around it, and the set operators before it."""
    places: list[Place] = []
    around: list[list[int]] = [[-1, 0]]
    for at, word in enumerate(words):
        if word.keyword == ")" and len(around) > 1:
            around.pop()
        if word.keyword in _BETWEEN:
            around[-1][1] += 1
        places.append((around[-1][0], around[-1][1]))
        if word.keyword == "(":
            around.append([at, 0])
    return places


def _alias(words: Sequence[Word], relation: QueriedTable) -> str:
    use = relation.use
    if not use.name.is_aliased:
        return use.name.parts[-1]
    after = [word for word in words if word.start >= use.stop]
    return after[1].text if after[0].keyword == "AS" else after[0].text
