"""Positions in PostgreSQL's log (LSN): numbers, written as two hexadecimal halves."""

from __future__ import annotations

import re
from typing import Final

from frazil.errors import ValidationError

_TEXT: Final = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def lsn_of(text: str) -> int:
    """Return the position that a text such as ``16/B374D848`` names.

    Raises:
        ValidationError: the text names none.
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValidationError(f"{text!r} is no position in PostgreSQL's log, as 16/B374D848")
    return (int(found[1], 16) << 32) + int(found[2], 16)


def lsn_text(lsn: int) -> str:
    """Return a position as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
