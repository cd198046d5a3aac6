"""What the words of a query tell before Spark reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from frazil.spark.words import Word

_ASKING: Final = frozenset({"WHERE", "ON", "HAVING", "USING", "QUALIFY", "NATURAL", "FILTER"})
_KNOWN_AGGREGATES: Final = frozenset({"COUNT", "MIN", "MAX"})
_TIMES_OF_DAY: Final = frozenset(
    {
        "CURRENT_TIMESTAMP",
        "CURRENT_DATE",
        "CURRENT_TIME",
        "LOCALTIMESTAMP",
        "NOW",
        "CURDATE",
        "UNIX_TIMESTAMP",
        "TO_UNIX_TIMESTAMP",
    }
)


def asks_for_rows(words: Sequence[Word]) -> bool:
    """Return whether a query says anything of the rows that it wants."""
    return any(word.keyword in _ASKING for word in words)


def aggregates(words: Sequence[Word]) -> bool:
    """Return whether a query may be one row of aggregates that metadata knows."""
    found = {word.keyword for word in words}
    return not found.isdisjoint(_KNOWN_AGGREGATES) and "GROUP" not in found


def names_the_time(words: Sequence[Word]) -> bool:
    """Return whether a query asks what time it is."""
    return any(word.keyword in _TIMES_OF_DAY for word in words)
