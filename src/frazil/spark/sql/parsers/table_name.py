"""The name of a table in a text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableName:
    """A name that a parser found.

    Attributes:
        parts: the parts of the name.
        start, stop: where it stands; `stop` is the place after its last letter.
        is_aliased: the query gives it another name.
    """

    parts: tuple[str, ...]
    start: int
    stop: int
    is_aliased: bool
