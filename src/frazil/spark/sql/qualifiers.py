"""Names of tables before names of columns, in a text of SQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from frazil.spark.words import Word, words_of

Names = tuple[str, ...]


def without_qualifiers(text: str, qualifiers: Collection[Names]) -> str:
    """Return a text with its columns' names less the names of tables before them."""
    words = words_of(text)
    cuts = [
        (words[first].start, words[last].start)
        for first, last in _qualified(words, qualifiers, str)
    ]
    for start, stop in reversed(cuts):
        text = text[:start] + text[stop:]
    return text


def with_short_qualifiers(text: str, tables: Collection[Names]) -> str:
    """Return a text in which columns are qualified by the last part of a table's name alone."""
    for start, stop in reversed(list(cuts_to_short(words_of(text), tables))):
        text = text[:start] + text[stop:]
    return text


def cuts_to_short(
    words: Sequence[Word], tables: Collection[Names], *, but: Collection[int] = ()
) -> Iterator[tuple[int, int]]:
    """Yield what to cut, so that of ``db.t.column`` is left ``t.column``.

    Args:
        tables: names of tables with all that stands before them: ``catalog.db.t``.
        but: places of words that are names of tables themselves.
    """
    names = {
        tuple(part.lower() for part in whole[start:])
        for whole in tables
        for start in range(len(whole) - 1)
    }
    for first, last in _qualified(words, names, str.lower):
        if words[first].start not in but:
            yield words[first].start, words[last - 2].start


def _qualified(
    words: Sequence[Word], qualifiers: Collection[Names], key: Callable[[str], str]
) -> Iterator[tuple[int, int]]:
    """Where qualified names begin, and where what is after the qualifier does."""
    for at, word in enumerate(words):
        if not word.may_be_name or (at and words[at - 1].text == "."):
            continue
        for parts in qualifiers:
            last = at + 2 * len(parts)
            some = words[at:last]
            dotted = [each.text for each in some[1::2]] == ["."] * len(parts)
            if dotted and last < len(words) and tuple(key(w.text) for w in some[::2]) == parts:
                yield at, last
                break
