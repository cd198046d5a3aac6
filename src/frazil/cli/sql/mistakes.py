"""Errors of statements as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from frazil.cli.layout import one_line
from frazil.errors import FrazilError
from frazil.storage.paths import redact

_MOST_LINES: Final = 12
_NOT_FOR_PEOPLE: Final = ("JVM stacktrace", "at ", "... ", "Driver stacktrace", "SQLSTATE:")


def said_of(error: BaseException, secrets: Mapping[str, str]) -> str:
    """Return what an error says: its own lines, without traces and secrets.

    Args:
        secrets: settings whose values must not be shown.
    """
    text = redact(str(error), dict(secrets))
    if isinstance(error, FrazilError):
        return " ".join(text.split())
    lines = []
    for line in text.splitlines():
        if line.strip().startswith(_NOT_FOR_PEOPLE):
            break
        if line.strip():
            lines.append(one_line(line.rstrip()))
    kind = type(error).__name__
    shown = "\n".join(lines[:_MOST_LINES])
    return shown or kind
