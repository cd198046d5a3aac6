"""What could stand where the cursor is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from frazil.cli.sql.keywords import (
    BEFORE_A_NAMESPACE,
    BEFORE_A_TABLE,
    FIRST_WORDS,
    FUNCTIONS,
    KEYWORDS,
    METADATA_TABLES,
)
from frazil.cli.sql.names import Name, Names
from frazil.errors import SqlSyntaxError
from frazil.later import later

if TYPE_CHECKING:
    from frazil.spark.words import Word, words_of
else:
    words_of = later("frazil.spark.words", "words_of")


_TYPED: Final = re.compile(r"[\w.]*\Z")
_PLAIN: Final = re.compile(r"[A-Za-z_]\w*\Z")

Procedures = Callable[[], Mapping[str, Sequence[str]]]
"""Gives the parameters of each procedure by its name."""


class SqlCompleter(Completer):
    """Completes namespaces, tables, columns, procedures, keywords and functions.

    Args:
        names: what the catalog has.
        procedures: which procedures there are.
    """

    def __init__(self, names: Names, procedures: Procedures) -> None:
        self._names = names
        self._procedures = procedures

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Yield what the word before the cursor can become."""
        before = document.text_before_cursor
        typed = _TYPED.search(before)
        word = "" if typed is None else typed[0]
        if not word and not complete_event.completion_requested and not before.endswith(" "):
            return
        for text, meta in self.offers(before[: len(before) - len(word)], document.text, word):
            yield Completion(text, start_position=-len(word), display_meta=meta)

    def offers(self, before: str, whole: str, word: str) -> Iterator[tuple[str, str]]:
        """Yield what can stand in the place of a word, and what each is.

        Args:
            before: what stands before the word.
            whole: the whole text.
            word: what is typed of it.
        """
        try:
            said = _of_last_statement(words_of(before))
        except SqlSyntaxError:
            return  # In a text or a comment anything can stand.
        seen: set[str] = set()
        for text, meta in self._candidates(said, whole, word):
            if text.lower().startswith(word.lower()) and text != word and text not in seen:
                seen.add(text)
                yield text, meta

    def _candidates(self, said: Sequence[Word], whole: str, word: str) -> Iterator[tuple[str, str]]:
        if not said:
            if "." not in word:
                yield from ((_as_typed(each, word), "") for each in FIRST_WORDS)
            return
        last, first = said[-1].keyword, said[0].keyword
        if first == "CALL":
            yield from self._call(said, word)
        elif last in BEFORE_A_NAMESPACE and first in ("USE", "SHOW", "DROP", "ALTER", "DESCRIBE"):
            yield from ((_name_as_typed(each), "namespace") for each in self._names.namespaces())
        elif last in BEFORE_A_TABLE:
            yield from self._tables(word)
        else:
            yield from self._columns(whole, word)
        if "." not in word and first != "CALL":
            yield from ((_as_typed(each, word), "") for each in KEYWORDS)
            if last not in BEFORE_A_TABLE | BEFORE_A_NAMESPACE:
                yield from ((each, "function") for each in FUNCTIONS)

    def _tables(self, word: str) -> Iterator[tuple[str, str]]:
        names = self._names
        if names.current:
            yield from (
                (_name_as_typed(each[-1:]), "table") for each in names.tables(names.current)
            )
        path = tuple(word.split(".")[:-1])
        is_whole = bool(path) and path[0] == names.catalog_name()
        own = path[1:] if is_whole else path
        for namespace in names.namespaces():
            if own and namespace[: len(own)] != own[: len(namespace)]:
                continue
            prefix = path[:1] if is_whole else ()
            yield _name_as_typed((*prefix, *namespace)), "namespace"
            for table in names.tables(namespace):
                yield _name_as_typed((*prefix, *table)), "table"
        if len(own) > 1 and names.columns(own):
            yield from ((f"{'.'.join(path)}.{each}", "metadata") for each in METADATA_TABLES)

    def _columns(self, whole: str, word: str) -> Iterator[tuple[str, str]]:
        path = word.rpartition(".")[0]
        for table, alias in _tables_in(whole):
            columns = [_name_as_typed((each,)) for each in self._names.columns(table)]
            if not path:
                yield from ((each, "column") for each in columns)
                if alias:
                    yield alias, "alias"
            elif path.lower() in (alias.lower(), table[-1].lower(), ".".join(table).lower()):
                yield from ((f"{path}.{each}", "column") for each in columns)

    def _call(self, said: Sequence[Word], word: str) -> Iterator[tuple[str, str]]:
        procedures = self._procedures()
        if len(said) == 1:
            yield from ((f"system.{each}", "procedure") for each in procedures)
            return
        called = next((each.text.lower() for each in said if each.text in procedures), "")
        yield from ((f"{name} => ", "argument") for name in procedures.get(called, ()))


def _of_last_statement(words: Sequence[Word]) -> Sequence[Word]:
    for number in range(len(words), 0, -1):
        if words[number - 1].keyword == ";":
            return words[number:]
    return words


def _tables_in(text: str) -> Iterator[tuple[Name, str]]:
    """The tables that a statement names, with their aliases."""
    try:
        words = words_of(text)
    except SqlSyntaxError:
        return
    for at, word in enumerate(words):
        if word.keyword not in ("FROM", "JOIN", "INTO", "UPDATE", "TABLE", "USING"):
            continue
        parts, after = _name_at(words, at + 1)
        if not parts:
            continue
        if after < len(words) and words[after].keyword == "AS":
            after += 1
        follows = words[after] if after < len(words) else None
        is_alias = (
            follows is not None and follows.may_be_name and follows.keyword not in _NO_ALIASES
        )
        yield parts, follows.text if follows is not None and is_alias else ""


_NO_ALIASES: Final = frozenset(KEYWORDS)


def _name_at(words: Sequence[Word], at: int) -> tuple[Name, int]:
    parts: list[str] = []
    while at < len(words) and words[at].may_be_name:
        parts.append(words[at].text)
        at += 1
        if at >= len(words) or words[at].text != ".":
            break
        at += 1
    return tuple(parts), at


def _as_typed(keyword: str, word: str) -> str:
    """A keyword in the letters that the user types."""
    return keyword.lower() if word and word.islower() else keyword


def _name_as_typed(parts: Iterable[str]) -> str:
    return ".".join(
        each if _PLAIN.match(each) else f"`{each.replace('`', '``')}`" for each in parts
    )
