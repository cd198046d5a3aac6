"""Errors of statements as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from frazil.cli.layout import one_line
from frazil.errors import FrazilError
from frazil.spark.session.messages import lines_for_people
from frazil.storage.paths import redact

_MOST_LINES: Final = 12


def said_of(error: BaseException, secrets: Mapping[str, str]) -> str:
    """Return what an error says: its own lines, without traces and secrets.

    Args:
        secrets: settings whose values must not be shown.
    """
    text = redact(str(error), dict(secrets))
    if isinstance(error, FrazilError):
        return " ".join(text.split())
    lines = [one_line(line) for line in lines_for_people(text)]
    kind = type(error).__name__
    shown = "\n".join(lines[:_MOST_LINES])
    return shown or kind
