"""Calls of a lake's functions in a text, such as `system.bucket(16, id)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from frazil.errors import SqlSyntaxError
from frazil.spark.words import Word, WordReader

BUCKET: Final = "bucket"
TRUNCATE: Final = "truncate"
VERSION: Final = "iceberg_version"

PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    BUCKET: ("a number of buckets", "a value"),
    TRUNCATE: ("a width", "a value"),
    "years": ("a date or a time",),
    "months": ("a date or a time",),
    "days": ("a date or a time",),
    "hours": ("a time",),
    VERSION: (),
}
"""The functions, and what each takes, in Java's order."""

_SYSTEM: Final = "system"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a lake's function.

    Attributes:
        name: of the function, in small letters.
        start, stop: where it stands; `stop` is the place after its last parenthesis.
        number: of buckets, or the width; 0 for functions without one.
        value: where the value stands, from its first letter to the place after its last; None for
            functions without one.
        has_simple_value: the value is a name or a literal, so that it can be written several times.
        key: equal for calls of the same text.
    """

    name: str
    start: int
    stop: int
    number: int
    value: tuple[int, int] | None
    has_simple_value: bool
    key: str


def may_call(words: Sequence[Word]) -> bool:
    """Return whether a call can be among the words; quick, and never wrongly no."""
    return any(word.text.lower() == _SYSTEM and not word.is_string for word in words)


def calls_in(
    text: str, words: tuple[Word, ...], is_lake: Callable[[str], bool]
) -> list[FunctionCall]:
    """Return the calls in a text, the inner ones before those around them.

    Args:
        is_lake: whether a name stands before names of a lake.

    Raises:
        SqlSyntaxError: a call has other arguments than the function takes.
    """
    found = [_call(text, words, first, name) for first, name in _names(words, is_lake)]
    return sorted(found, key=lambda call: call.stop)


def _names(words: Sequence[Word], is_lake: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """Where the names of called functions begin, and where their last parts stand."""
    for at, word in enumerate(words[:-3]):
        dot, name, opening = words[at + 1 : at + 4]
        if (
            not word.is_string
            and word.text.lower() == _SYSTEM
            and dot.text == "."
            and not name.is_string
            and name.text.lower() in PARAMETERS
            and opening.keyword == "("
        ):
            first = at
            if at and words[at - 1].text == ".":
                has_lake = at > 1 and is_lake(words[at - 2].text)
                if not has_lake or (at > 2 and words[at - 3].text == "."):
                    continue
                first = at - 2
            yield first, at + 2


def _call(text: str, words: tuple[Word, ...], first: int, last: int) -> FunctionCall:
    reader = WordReader(text, words)
    reader.at = last + 1
    name = words[last].text.lower()
    inner = reader.inner_reader()
    stop = words[reader.at - 1].stop
    pieces: list[tuple[Word, ...]] = []
    while not inner.is_done:
        begin = inner.at
        inner.text_to(",")
        pieces.append(inner.words[begin : inner.at])
        if inner.takes(",") and inner.is_done:
            raise inner.error("an argument is expected")
    expected = PARAMETERS[name]
    if len(pieces) != len(expected):
        takes = " and ".join(expected) or "nothing"
        raise SqlSyntaxError(f"system.{name} takes {takes}, not {len(pieces)} arguments")
    number = _number(name, pieces[0]) if len(pieces) == 2 else 0
    value = (pieces[-1][0].start, pieces[-1][-1].stop) if pieces else None
    return FunctionCall(
        name=name,
        start=words[first].start,
        stop=stop,
        number=number,
        value=value,
        has_simple_value=bool(pieces) and _is_simple(pieces[-1]),
        key=" ".join(repr((w.text, w.is_string)) for w in words[last : reader.at]),
    )


def _number(name: str, words: Sequence[Word]) -> int:
    words = _unwrapped_words(words)
    said = "".join(word.text for word in words)
    digits = said.upper().rstrip("LSY")
    is_number = len(words) == 1 and digits.isascii() and digits.isdigit()
    if not is_number or not 0 < int(digits) < 1 << 31 or words[0].is_string:
        raise SqlSyntaxError(
            f"system.{name}: {PARAMETERS[name][0]} is a literal of 1 or more, not {said}"
        )
    return int(digits)


def _unwrapped_words(words: Sequence[Word]) -> Sequence[Word]:
    """The word that stands alone in parentheses; the words as they are where that is not so."""
    alone = len(words) == 3 and words[0].keyword == "(" and words[2].keyword == ")"
    return words[1:2] if alone else words


def _is_simple(words: Sequence[Word]) -> bool:
    words = _unwrapped_words(words)
    names, dots = words[::2], words[1::2]
    if not all(dot.text == "." for dot in dots) or len(words) % 2 == 0:
        return False
    return all(word.may_be_name for word in names) or (len(words) == 1 and words[0].is_string)
