"""Names of tables before names of columns, in a text of SQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from frazil.spark.words import Word, words_of

Names = tuple[str, ...]

Tables = Collection[Names] | Mapping[Names, Collection[str]]
"""Names of tables with all that stands before them, each with its columns where they are known."""


def without_qualifiers(text: str, qualifiers: Collection[Names]) -> str:
    """Return a text with its columns' names less the names of tables before them."""
    words = words_of(text)
    cuts = [
        (words[first].start, words[last].start)
        for first, last in _qualified_names(words, qualifiers, str)
    ]
    for start, stop in reversed(cuts):
        text = text[:start] + text[stop:]
    return text


def with_short_qualifiers(text: str, tables: Tables) -> str:
    """Return a text in which columns are qualified by the last part of a table's name alone."""
    for start, stop in reversed(list(cuts_to_short(words_of(text), tables))):
        text = text[:start] + text[stop:]
    return text


def cuts_to_short(
    words: Sequence[Word], tables: Tables, *, but: Collection[int] = ()
) -> Iterator[tuple[int, int]]:
    """Yield what to cut, so that of ``db.t.column`` is left ``t.column``.

    A column that has the namespace's name, as a struct with a field that has the table's, is
    meant where the table has no column of the name that follows.

    Args:
        tables: names of tables with all that stands before them: ``catalog.db.t``.
        but: places of words that are names of tables themselves.
    """
    known = tables if isinstance(tables, Mapping) else {}
    structs = {name.lower() for columns in known.values() for name in columns}
    names: dict[Names, set[str]] = {}
    for whole in tables:
        for start in range(len(whole) - 1):
            suffix = tuple(part.lower() for part in whole[start:])
            names.setdefault(suffix, set()).update(name.lower() for name in known.get(whole, ()))
    for first, last in _qualified_names(words, names, str.lower):
        before = tuple(word.text.lower() for word in words[first:last:2])
        is_struct = before[0] in structs and words[last].text.lower() not in {*names[before], "*"}
        if words[first].start not in but and not is_struct:
            yield words[first].start, words[last - 2].start


def _qualified_names(
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
