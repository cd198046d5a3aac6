"""Text of a table as pages and notebooks show it: everything is escaped, small tables laid out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

_RIGHT: Final = ' style="text-align:right"'
_LEFT: Final = ' style="text-align:left"'
_CONTINUED: Final = "    "
"""What a line begins with that says more of the value above it."""


def html_text(value: Any) -> str:
    """Return a value as HTML that shows it and nothing else."""
    return escape(str(value), quote=True)


def html_table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as a table; numbers stand at the right."""
    listed = list(rows)
    first = listed[0] if listed else [""] * len(headings)
    head = "".join(
        f"<th{_RIGHT if _is_number(value) else _LEFT}>{html_text(heading)}</th>"
        for heading, value in zip(headings, first, strict=True)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in listed)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_script_json(value: Any) -> str:
    """Return a value as JSON that may stand within a script element."""
    text = json.dumps(value, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def size_text(size: float) -> str:
    """Return a number of bytes with its unit."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1024
    raise AssertionError(size)


def notebook_card(title: str, facts: Mapping[str, Any], *, below: str = "") -> str:
    """Return a small box for a notebook: a title, names with their values, and more below."""
    rows = "".join(
        f'<tr><td style="text-align:left;color:gray">{html_text(name)}</td>'
        f'<td style="text-align:left">{html_text(value)}</td></tr>'
        for name, value in facts.items()
    )
    return (
        f'<div style="max-width:900px;overflow-x:auto"><b>{html_text(title)}</b>'
        f"<table>{rows}</table>{below}</div>"
    )


def notebook_lines(text: str) -> str:
    """Return lines for people as a box for a notebook: the first is the title."""
    title, _, rest = text.partition("\n")
    rows = "".join(_row(line) for line in rest.splitlines() if line.strip())
    return (
        f'<div style="max-width:900px;overflow-x:auto"><b>{html_text(title)}</b>'
        f"<table>{rows}</table></div>"
    )


def _row(line: str) -> str:
    name, gap, value = line.strip().partition("  ")
    if gap:
        return f"<tr>{_note(name, ';color:gray')}{_note(value.strip())}</tr>"
    if line.startswith(_CONTINUED):
        return f"<tr><td></td>{_note(name)}</tr>"
    return f'<tr><td colspan="2" style="text-align:left">{html_text(name)}</td></tr>'


def _note(text: str, more: str = "") -> str:
    return f'<td style="text-align:left{more}">{html_text(text)}</td>'


class ShownInNotebooks:
    """A value whose text for people is also a box in a notebook, escaped."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return notebook_lines(repr(self))


def _cell(value: Any) -> str:
    if _is_number(value):
        shown = f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"
        return f"<td{_RIGHT}>{shown}</td>"
    return f"<td{_LEFT}>{html_text(value)}</td>"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
