"""Lines of a table: they fit the width, lose no column, and mark what is cut."""

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from ci_share import examples
from frazil.cli.layout import MARK, TextColumn, one_line, shorten, table_lines
from frazil.cli.output import readable_duration, readable_text

IDS = st.integers(10**18, 2**63 - 1).map(str)
TEXTS = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=60)
KINDS = {"whole": IDS, "number": IDS, "text": TEXTS, "path": TEXTS}


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=7))
    columns = [TextColumn(f"column {number}", kind) for number, kind in enumerate(kinds)]
    rows = draw(st.lists(st.tuples(*(KINDS[kind] for kind in kinds)), min_size=1, max_size=4))
    return columns, rows


@settings(max_examples=examples(150), deadline=None)
@given(tables(), st.integers(24, 200))
def test_lines_fit_and_hold_every_id(table, width):
    columns, rows = table
    lines = table_lines(columns, rows, width=width)
    text = "\n".join([*lines.heading, *lines.body])
    # Alone on its line an id may be longer than the line, and so may a word of text.
    assert all(cell_len(line) <= max(width, 40) or not lines.heading for line in text.splitlines())
    words = text.split()
    for number in range(len(columns)):
        assert str(number) in words
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            if column.kind in ("whole", "number") and width >= 40:
                assert value in words
            elif value and value not in text:
                assert MARK in text or not lines.heading


def test_without_a_width_nothing_is_cut():
    columns = [TextColumn("id", "number"), TextColumn("text", "text"), TextColumn("file", "path")]
    row = ["1", "x" * 300, "/y" * 300]
    assert table_lines(columns, [row], width=None).body == ("  ".join([" 1", *row[1:]]),)


def test_what_is_cut_has_a_mark():
    assert shorten("abcdef", 4, "text") == "abc…"
    assert shorten("abcdef", 4, "path") == "…def"
    assert shorten("abcd", 4, "text") == "abcd"
    # Wide characters count two cells, and an accent stays with its letter.
    assert shorten("東京都", 4, "text") == "東…"
    assert shorten("ae\u0301xyz", 3, "text") == "ae\u0301…"


def test_what_moves_the_cursor_is_escaped():
    assert one_line("a\nb\x1b[31m\u202e") == "a\\nb\\x1b[31m\\u202e"
    assert one_line("São 東京 🚕") == "São 東京 🚕"


def test_values_keep_their_digits():
    assert readable_text(1234567.891) == "1234567.891"
    assert readable_text(None) == "-"
    assert readable_duration(90_000_000) == "1 d 1 h"
    assert readable_duration(1) == "1 ms"
    assert readable_duration(0) == "0 ms"
