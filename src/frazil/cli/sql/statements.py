"""A text as statements, with ``;`` between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frazil.errors import SqlSyntaxError
from frazil.later import later

if TYPE_CHECKING:
    from frazil.spark.words import words_of
else:
    words_of = later("frazil.spark.words", "words_of")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a text.

    Attributes:
        text: without the ``;``.
        line: the line in which it begins, from 1.
    """

    text: str
    line: int = 1


def statements_of(text: str) -> Iterator[Statement]:
    """Yield the statements of a text, which has ``;`` between them.

    Raises:
        SqlSyntaxError: a quote or a comment has no end.
    """
    start = None
    stop = 0
    for word in words_of(text):
        if word.keyword == ";":
            if start is not None:
                yield Statement(text[start:stop], text.count("\n", 0, start) + 1)
            start = None
            continue
        start = word.start if start is None else start
        stop = word.stop
    if start is not None:
        yield Statement(text[start:stop], text.count("\n", 0, start) + 1)


def is_complete(text: str) -> bool:
    """Return whether a text ends with ``;``, outside of quotes and comments."""
    try:
        words = words_of(text)
    except SqlSyntaxError:
        return False
    return bool(words) and words[-1].keyword == ";"
