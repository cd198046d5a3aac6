"""The words of a statement: where each stands in the text, and a reader that goes along them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError

from frazil.errors import PredicateError, SqlSyntaxError
from frazil.format.predicates.sql.sql_literals import spark_tokens
from frazil.storage.caches import BoundedCache

Item = TypeVar("Item")

QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE"})
"""With which words a query begins, but for parentheses."""

_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_SHOWN: Final = 60
_NO_SPACE: Final = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text.

    Attributes:
        text: what it says: a name without its backticks, a string without its quotes.
        start, stop: where it stands; `stop` is the place after its last letter.
        is_name: it is in backticks.
        is_string: it is in quotes.
    """

    text: str
    start: int
    stop: int
    is_name: bool = False
    is_string: bool = False

    @property
    def keyword(self) -> str:
        """The word in capitals; nothing where it is quoted."""
        return "" if self.is_name or self.is_string else self.text.upper()

    @property
    def may_be_name(self) -> bool:
        """Whether a name can be written so."""
        return self.is_name or (not self.is_string and self.text.replace("_", "a").isalnum())


def words_of(text: str) -> tuple[Word, ...]:
    """Return the words of a text; comments are none.

    Raises:
        SqlSyntaxError: a quote or a comment has no end, or a letter means nothing.
    """
    known = _KNOWN.get(text)
    if known is not None:
        return known
    try:
        tokens = spark_tokens(text)
    except (SqlglotError, PredicateError, ValueError, IndexError) as error:
        raise SqlSyntaxError(f"the statement cannot be read: {_first_line(error)}") from error
    words = tuple(_words(text, tokens))
    _KNOWN.put(text, words, len(text))
    return words


_KNOWN: Final = BoundedCache[tuple[Word, ...]](256 << 10)
"""Words of the last texts, by letters: a statement is read at several places, and often again."""


def begins_query(words: Sequence[Word]) -> bool:
    """Return whether the first word is that of a query, in parentheses or not."""
    return bool(words) and (words[0].keyword == "(" or words[0].keyword in QUERIES)


def _words(text: str, tokens: Iterable[Token]) -> Iterator[Word]:
    last = -1
    for token in tokens:
        # A number with a type, such as 1L, comes as three.
        if token.start < last or token.token_type is TokenType.HINT:
            continue
        last = token.end + 1
        raw = text[token.start : last]
        quoted = token.token_type in (TokenType.STRING, TokenType.RAW_STRING)
        name = token.token_type is TokenType.IDENTIFIER
        if quoted or name:
            yield Word(token.text, token.start, last, is_name=name, is_string=quoted)
            continue
        # Words that often stand together, such as ORDER BY, come as one.
        for found in _NO_SPACE.finditer(raw):
            yield Word(found[0], token.start + found.start(), token.start + found.end())


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


class WordReader:
    """Goes along the words of a statement.

    Args:
        text: the statement.
        words: its words, or some of them.
    """

    def __init__(self, text: str, words: tuple[Word, ...] | None = None) -> None:
        self.text = text
        self.words = words_of(text) if words is None else words
        self.at = 0

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return self.at >= len(self.words)

    @property
    def place(self) -> int:
        """Where the next word begins, or the text ends."""
        return len(self.text) if self.is_done else self.words[self.at].start

    def sees(self, *keywords: str) -> bool:
        """Return whether the next words are these, in any case."""
        some = self.words[self.at : self.at + len(keywords)]
        return [word.keyword for word in some] == list(keywords)

    def sees_one_of(self, *keywords: str) -> bool:
        """Return whether the next word is one of these."""
        return not self.is_done and self.words[self.at].keyword in keywords

    def sees_after_one(self, keyword: str) -> bool:
        """Return whether the word after the next one is this."""
        after = self.words[self.at + 1 : self.at + 2]
        return [word.keyword for word in after] == [keyword]

    def takes(self, *keywords: str) -> bool:
        """Go past these words if they are next, and say whether they were."""
        if not self.sees(*keywords):
            return False
        self.at += len(keywords)
        return True

    def expect(self, *keywords: str) -> None:
        """Go past these words.

        Raises:
            SqlSyntaxError: others are next.
        """
        if not self.takes(*keywords):
            raise self.error(f"{' '.join(keywords)} is expected")

    def word(self, expected: str) -> Word:
        """Return the next word and go past it.

        Raises:
            SqlSyntaxError: nothing is left.
        """
        if self.is_done:
            raise self.error(f"{expected} is expected")
        self.at += 1
        return self.words[self.at - 1]

    def name(self, expected: str = "a name") -> str:
        """Return a name of one part.

        Raises:
            SqlSyntaxError: the next word is none.
        """
        if self.is_done or not self.words[self.at].may_be_name:
            raise self.error(f"{expected} is expected")
        return self.word(expected).text

    def names(self, expected: str = "a name") -> tuple[str, ...]:
        """Return a name of parts with dots between them."""
        parts = [self.name(expected)]
        while self.takes("."):
            parts.append(self.name(expected))
        return tuple(parts)

    def string(self, expected: str = "a text in quotes") -> str:
        """Return the value of a string.

        Raises:
            SqlSyntaxError: the next word is none.
        """
        if self.is_done or not self.words[self.at].is_string:
            raise self.error(f"{expected} is expected")
        return self.word(expected).text

    def number(self, expected: str = "a number") -> int:
        """Return a whole number.

        Raises:
            SqlSyntaxError: the next word is none.
        """
        text = "" if self.is_done else self.words[self.at].keyword.rstrip("L")
        if not (text.isascii() and text.isdigit()):
            raise self.error(f"{expected} is expected")
        self.at += 1
        return int(text)

    def list_of(self, read: Callable[..., Item], *args: Any) -> list[Item]:
        """Return what a function reads between commas, which goes along this reader."""
        found = [read(*args)]
        while self.takes(","):
            found.append(read(*args))
        return found

    def inner_reader(self) -> WordReader:
        """Go past a pair of parentheses, and return a reader of what is inside.

        Raises:
            SqlSyntaxError: there is none next.
        """
        self.expect("(")
        begin = self.at
        self._to_closing()
        inner = WordReader(self.text, self.words[begin : self.at])
        inner.end = self.place
        self.expect(")")
        return inner

    end: int | None = None
    """Where the reader's part of the text ends; None for the text's own end."""

    def text_to(self, *keywords: str) -> str:
        """Return the text up to one of these words outside of parentheses and CASE, or to the end.

        Raises:
            SqlSyntaxError: there is no text before it.
        """
        begin = self.place
        first, depth, cases = self.at, 0, 0
        while not self.is_done:
            word = self.words[self.at]
            key = word.keyword
            if depth == 0 and cases == 0 and key in keywords:
                break
            depth += (key in _OPENING) - (key in _CLOSING)
            cases += (key == "CASE") - (key == "END" and cases > 0)
            self.at += 1
        if self.at == first:
            raise self.error("an expression is expected")
        return self.text[begin : self.words[self.at - 1].stop]

    def remaining_text(self) -> str:
        """Return the text of what is left, and go to the end."""
        begin = self.place
        self.at = len(self.words)
        return self.text[begin : self.words[-1].stop].rstrip() if self.words else ""

    def finish(self) -> None:
        """Check that nothing is left.

        Raises:
            SqlSyntaxError: something is.
        """
        self.takes(";")
        if not self.is_done:
            raise self.error("the statement should end here")

    def error(self, said: str) -> SqlSyntaxError:
        """Return an error about the next word."""
        place = self.end if self.is_done and self.end is not None else self.place
        line = self.text.count("\n", 0, place) + 1
        column = place - (self.text.rfind("\n", 0, place) + 1) + 1
        found = self.text[place : place + _SHOWN].split("\n")[0] or "the end"
        return SqlSyntaxError(f"line {line}, column {column}: {said}, not {found!r}")

    def _to_closing(self) -> None:
        depth = 0
        while not self.is_done:
            key = self.words[self.at].keyword
            if key in _CLOSING and depth == 0:
                return
            depth += (key in _OPENING) - (key in _CLOSING)
            self.at += 1


def properties_of(reader: WordReader) -> dict[str, str]:
    """Read ``'key' = 'value', …``; a key may also be words with dots between."""
    found: dict[str, str] = {}
    while not reader.is_done:
        word = reader.word("a property")
        key = word.text
        while not word.is_string and reader.sees_one_of(".", "-"):
            key += reader.word("a dot").text + reader.word("a name").text
        reader.takes("=")
        value = reader.word("a value")
        found[key] = value.text
        if not reader.is_done:
            reader.expect(",")
    return found
