"""How rows become lines: a table that fits a width without losing a column.

Ids, numbers and times are never cut. Text and paths are cut where there is no room, with a mark
(``…``). Where even that does not fit, the columns of a row go on several lines, or on a line each.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, zip_longest
from typing import Final, Literal

from rich.cells import cell_len

Kind = Literal["whole", "number", "text", "path"]
"""How a column may be cut: `whole` and `number` never, `text` at its end, `path` at its start."""

MARK: Final = "…"
_GAP: Final = "  "
_INDENT: Final = "    "
_SHORTEST: Final = {"text": 16, "path": 24}
_MOST_LINES: Final = 3
_BREAKABLE: Final = re.compile("[^ /]*[ /]|[^ /]+")
_BIDIRECTIONAL: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of a table: its heading, and how its values may be shown."""

    heading: str
    kind: Kind = "whole"

    @property
    def is_right(self) -> bool:
        """Whether values stand at the right."""
        return self.kind == "number"


@dataclass(frozen=True, slots=True)
class Lines:
    """A table as text: the lines of the heading, and those below."""

    heading: tuple[str, ...]
    body: tuple[str, ...]


def table_lines(
    columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], *, width: int | None
) -> Lines:
    """Return the lines of a table.

    Args:
        columns: what each value of a row is.
        rows: values as text of one line.
        width: how many cells a line may have; None for as many as it takes.
    """
    bodies = [max((cell_len(row[i]) for row in rows), default=0) for i in range(len(columns))]
    headings = [cell_len(column.heading) for column in columns]
    widths = [max(pair) for pair in zip(bodies, headings, strict=True)]
    if width is None or _total(widths) <= width:
        return _plain_lines(columns, rows, widths)
    folded = [
        max(body, _longest_word(column.heading))
        for body, column in zip(bodies, columns, strict=True)
    ]
    if _total(folded) <= width:
        return _plain_lines(columns, rows, folded)
    cut = _cut_widths(columns, folded, width)
    if cut is not None:
        return _plain_lines(columns, rows, cut)
    return _on_several_lines(columns, rows, widths, width)


def pair_lines(pairs: Sequence[tuple[str, str]], *, width: int | None) -> list[tuple[str, str]]:
    """Return names and values, padded; a value that is too long goes on in the next line."""
    names = max((cell_len(name) for name, _ in pairs), default=0)
    room = None if width is None else max(width - names - len(_GAP), 8)
    lines: list[tuple[str, str]] = []
    for name, value in pairs:
        parts = [value] if room is None else _pieces(value, room)
        for number, part in enumerate(parts):
            lines.append((_pad("" if number else name, names), f"{_GAP}{part}"))
    return lines


def one_line(text: str) -> str:
    """Return a text without what would move the cursor or turn the text: as escapes instead."""
    if text.isprintable() and not _BIDIRECTIONAL.intersection(text):
        return text
    return "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Cs", "Zl", "Zp") or character in _BIDIRECTIONAL:
        return character.encode("unicode_escape").decode()
    return character


def shorten(text: str, width: int, kind: Kind) -> str:
    """Return a text that is at most so wide; where something is left out there is a mark."""
    if cell_len(text) <= width:
        return text
    pieces = _characters(text)
    if kind == "path":
        pieces.reverse()
    kept: list[str] = []
    room = width - cell_len(MARK)
    for piece in pieces:
        room -= cell_len(piece)
        if room < 0:
            break
        kept.append(piece)
    if kind == "path":
        return MARK + "".join(reversed(kept))
    return "".join(kept) + MARK


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _longest_word(heading: str) -> int:
    return max((cell_len(word) for word in heading.split()), default=0)


def _cut_widths(
    columns: Sequence[TextColumn], widths: Sequence[int], width: int
) -> list[int] | None:
    """Return widths that fit, the widest columns that may be cut narrowed first; None if none."""
    found = list(widths)
    least = [
        min(have, max(_SHORTEST[column.kind], _longest_word(column.heading)))
        if column.kind in _SHORTEST
        else have
        for column, have in zip(columns, widths, strict=True)
    ]
    if _total(least) > width:
        return None
    while _total(found) > width:
        widest = max((i for i in range(len(found)) if found[i] > least[i]), key=lambda i: found[i])
        found[widest] -= 1
    return found


def _plain_lines(
    columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], widths: Sequence[int]
) -> Lines:
    words = [_folded_words(column.heading, w) for column, w in zip(columns, widths, strict=True)]
    heading = [_line(columns, line, widths) for line in zip_longest(*words, fillvalue="")]
    return Lines(tuple(heading), tuple(_line(columns, row, widths) for row in rows))


def _line(columns: Sequence[TextColumn], values: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        _pad(shorten(value, width, column.kind), width, right=column.is_right)
        if column.kind in _SHORTEST
        else _pad(value, width, right=column.is_right)
        for column, value, width in zip(columns, values, widths, strict=True)
    ]
    return _GAP.join(cells).rstrip()


def _on_several_lines(
    columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], widths: Sequence[int], width: int
) -> Lines:
    """A row on two or three lines; where that is not enough, a line for each of its columns."""
    limited = [
        min(have, width - len(_INDENT)) if column.kind in _SHORTEST else have
        for column, have in zip(columns, widths, strict=True)
    ]
    groups = _even_rows(limited, width)
    if groups is None:
        return _records(columns, rows, width)

    def lines_of(values: Sequence[str]) -> list[str]:
        found = []
        for number, group in enumerate(groups):
            line = _line(
                [columns[i] for i in group],
                [values[i] for i in group],
                [limited[i] for i in group],
            )
            found.append(f"{_INDENT}{line}" if number else line)
        return found

    body = [line for row in rows for line in lines_of(row)]
    return Lines(tuple(lines_of([column.heading for column in columns])), tuple(body))


def _even_rows(widths: Sequence[int], width: int) -> list[list[int]] | None:
    """Columns in the fewest lines that fit, as even as can be; None where too many are needed."""

    def widest(cuts: Sequence[int]) -> int:
        edges = [0, *cuts, len(widths)]
        return max(
            _total(widths[start:end]) + (len(_INDENT) if start else 0)
            for start, end in pairwise(edges)
        )

    for lines in range(2, min(_MOST_LINES, len(widths)) + 1):
        cuts = min(combinations(range(1, len(widths)), lines - 1), key=widest)
        if widest(cuts) <= width:
            return [list(range(*edges)) for edges in pairwise([0, *cuts, len(widths)])]
    return None


def _records(columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], width: int) -> Lines:
    body: list[str] = []
    for row in rows:
        if body:
            body.append("")
        pairs = [(column.heading, value) for column, value in zip(columns, row, strict=True)]
        body += [f"{name}{value}".rstrip() for name, value in pair_lines(pairs, width=width)]
    return Lines((), tuple(body))


def _folded_words(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}".strip()
        if lines[-1] and cell_len(joined) > width:
            lines.append(word)
        else:
            lines[-1] = joined
    return lines


def _pieces(text: str, width: int) -> list[str]:
    """A text in pieces of a width, cut after blanks and slashes only: words and ids stay whole."""
    lines = [""]
    for piece in _BREAKABLE.findall(text):
        if lines[-1] and cell_len(lines[-1]) + cell_len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def _characters(text: str) -> list[str]:
    """The characters of a text, accents and joiners with what they stand on."""
    found: list[str] = []
    for character in text:
        if found and not cell_len(character):
            found[-1] += character
        else:
            found.append(character)
    return found


def _pad(text: str, width: int, *, right: bool = False) -> str:
    blanks = " " * max(width - cell_len(text), 0)
    return blanks + text if right else text + blanks
